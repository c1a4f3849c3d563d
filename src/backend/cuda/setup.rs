//! Test parameters from a seed, made on a device: to be used there, or for a file.

mod download;

use blstrs::Scalar;
use ff::Field;
use group::{Curve, Group};
use rayon::prelude::*;

use super::bases::Bases;
use super::curves::{DeviceCurve, G1, G2};
use super::gpu::{args, scalar_words, Buffer, Gpu, Span, Stream, Words};
use super::memory_plan::Residency;
use super::ntt::Layout;
use crate::error::{Error, Result};
use crate::groth16::params::Section;
use crate::groth16::setup::{Columns, Output, Powers, Sections};
use crate::groth16::{Counts, G1Section};
use crate::pipeline::Control;

use download::Downloads;

/// Numbers that are multiplied at once: 32 MiB.
const PIECE: usize = 1 << 20;

/// The same for a file, where their multiples take room as well: 48 MiB in G2.
const FILE_PIECE: usize = 1 << 18;

/// Threads of a block; the kernels have the same.
const THREADS: u32 = 128;

/// Bits of a digit: all that divide a word and whose tables are not too large.
const WINDOWS: [u32; 3] = [4, 8, 16];

/// Bits of a number, in whole words.
const BITS: u32 = 256;

/// Tables of a generator's multiples by all digits of each window.
struct Generator<C: DeviceCurve> {
    window: u32,
    tables: Buffer<C::Affine>,
}

impl<C: DeviceCurve> Generator<C> {
    /// Tables that suit about `count` products.
    fn new(stream: &Stream, count: usize) -> Result<Self> {
        let work = |window: u32| (count + ((2 * window as usize) << window)) * (BITS / window) as usize;
        let window = WINDOWS.into_iter().min_by_key(|&window| work(window)).unwrap_or(WINDOWS[0]);
        Self::with_window(stream, window)
    }

    fn with_window(stream: &Stream, window: u32) -> Result<Self> {
        let gpu = stream.gpu();
        let points = shifted_generators::<C>(window, (BITS / window) as usize);
        let bases = gpu.allocate(points.len(), "a generator")?;
        stream.upload(bases.span(), C::words(&points))?;
        let tables: Buffer<C::Affine> = gpu.allocate(points.len() << window, "multiples of a generator")?;
        let count = tables.len() as u32;
        let args = args![tables.span(), bases.span(), window, count];
        stream.launch(C::KERNELS.setup_tables, blocks(count), THREADS, 0, &args)?;
        // Before the bases are freed.
        stream.synchronize()?;
        Ok(Generator { window, tables })
    }

    /// Queues `out[i]` = `scalars[i]` times the generator; both have the same length.
    fn multiply(&self, stream: &Stream, scalars: Span<Words>, out: Span<C::Affine>) -> Result<()> {
        let count = out.len() as u32;
        assert_eq!(scalars.len(), out.len());
        let args = args![out, scalars, self.tables.span(), self.window, count];
        stream.launch(C::KERNELS.setup_multiply, blocks(count), THREADS, 0, &args)
    }
}

/// The generator times 1, 2^step, 2^(2 step), ..
fn shifted_generators<C: DeviceCurve>(step: u32, count: usize) -> Vec<C::Host> {
    let shifted = |point: &C::Projective| Some((0..step).fold(*point, |point, _| point.double()));
    let points = std::iter::successors(Some(C::Projective::generator()), shifted);
    points.take(count).map(|point| point.to_affine()).collect()
}

fn blocks(threads: u32) -> u32 {
    threads.div_ceil(THREADS)
}

/// Makes the bases of a circuit with such counts.
///
/// # Errors
/// [`Error::Memory`] if they do not fit on the device; whatever else it may fail with; cancel and deadline.
pub(super) fn make(gpu: &Gpu, counts: &Counts, sections: Sections, control: &Control) -> Result<Bases> {
    let layout = Layout::new(counts.log_domain)?;
    let mut bases = Bases::allocate(gpu, counts, Residency::all(counts.len(G1Section::H)))?;
    let maker = Maker::new(gpu, counts, PIECE, control)?;
    maker.make(sections, layout.parts(), &mut bases)?;
    maker.stream.synchronize()?;
    Ok(bases)
}

/// Makes the points of a parameter file, a piece at a time; `advance` gets how many were written.
///
/// # Errors
/// As [`make`]; [`Error::Io`].
pub(super) fn write(gpu: &Gpu, sections: Sections, output: &Output<'_>, advance: &mut dyn FnMut(usize)) -> Result<()> {
    write_in_pieces(gpu, FILE_PIECE, sections, output, advance)
}

fn write_in_pieces(
    gpu: &Gpu,
    piece: usize,
    sections: Sections,
    output: &Output<'_>,
    advance: &mut dyn FnMut(usize),
) -> Result<()> {
    let Output { counts, file, control } = output;
    let maker = Maker::new(gpu, counts, piece, control)?;
    let mut downloads = Downloads::new(&maker.stream, maker.piece.len(), file, advance)?;
    // As in the file: coefficient k is at position k.
    maker.make(sections, [0, 0, counts.log_domain], &mut downloads)?;
    downloads.finish()
}

/// Some points of a section.
#[derive(Debug, Clone, Copy)]
struct Points {
    section: Section,
    first: usize,
    count: usize,
}

/// Where points go, piece by piece.
trait Destination {
    /// Lets `make` queue the next points of a section.
    fn take<C: DeviceCurve>(&mut self, points: Points, make: impl FnOnce(Span<C::Affine>) -> Result<()>) -> Result<()>;
}

impl Destination for Bases {
    fn take<C: DeviceCurve>(&mut self, points: Points, make: impl FnOnce(Span<C::Affine>) -> Result<()>) -> Result<()> {
        let bytes: Span<u8> = match points.section {
            Section::G1(G1Section::H) => self.h.span().cast(),
            Section::G1(G1Section::L) => self.l.span().cast(),
            Section::G1(G1Section::A) => self.a.span().cast(),
            Section::G1(G1Section::B) => self.b_g1.span().cast(),
            Section::B2 => self.b_g2.span().cast(),
        };
        make(bytes.cast().slice(points.first..points.first + points.count))
    }
}

struct Maker<'a> {
    stream: Stream,
    counts: &'a Counts,
    g1: Generator<G1>,
    g2: Generator<G2>,
    /// Numbers whose multiples are being made.
    piece: Buffer<Words>,
    control: &'a Control,
}

impl<'a> Maker<'a> {
    /// Makes so many points at once, at most.
    fn new(gpu: &Gpu, counts: &'a Counts, piece: usize, control: &'a Control) -> Result<Self> {
        let stream = gpu.stream()?;
        let g1 = Generator::new(&stream, G1Section::ALL.into_iter().map(|section| counts.len(section)).sum())?;
        let g2 = Generator::new(&stream, counts.len(G1Section::B))?;
        let piece = gpu.allocate(piece.min(1 << counts.log_domain), "numbers on their way")?;
        Ok(Maker { stream, counts, g1, g2, piece, control })
    }

    /// All sections in the order of a file, h in the order that a layout with these parts gives to coefficients.
    fn make(&self, sections: Sections, parts: [u32; 3], to: &mut impl Destination) -> Result<()> {
        let Sections { h, l, a, b } = sections;
        self.powers(&h, parts, to)?;
        for (section, columns) in [(G1Section::L, Columns { inputs: Vec::new(), aux: l }), (G1Section::A, a)] {
            self.query(&self.g1, Section::G1(section), &columns, to)?;
        }
        self.query(&self.g1, Section::G1(G1Section::B), &b, to)?;
        self.query(&self.g2, Section::B2, &b, to)
    }

    fn powers(&self, powers: &Powers, parts: [u32; 3], to: &mut impl Destination) -> Result<()> {
        let (gpu, section) = (self.stream.gpu(), Section::G1(G1Section::H));
        let log_size = self.counts.log_domain as usize;
        let squares = std::iter::successors(Some(powers.base), |x| Some(x.square())).take(log_size);
        let factors: Vec<Scalar> = std::iter::once(powers.factor).chain(squares).collect();
        let table = gpu.allocate(factors.len(), "powers")?;
        self.stream.upload(table.span(), scalar_words(&factors))?;
        // All positions but the last one, which is that of coefficient N - 1.
        let end = self.counts.points(section);
        for first in (0..end).step_by(self.piece.len()) {
            self.control.check("making parameters")?;
            let count = self.piece.len().min(end - first);
            let scalars = self.piece.span().slice(..count);
            let args = args![scalars, table.span(), first as u32, count as u32, parts];
            self.stream.launch("setup_powers", blocks(count as u32), THREADS, 0, &args)?;
            let multiply = |out| self.g1.multiply(&self.stream, scalars, out);
            to.take::<G1>(Points { section, first, count }, multiply)?;
        }
        // Before the table is freed.
        self.stream.synchronize()
    }

    /// The multiples by all numbers that are not zero, inputs first, which must be as many as the section has.
    fn query<C: DeviceCurve>(
        &self,
        generator: &Generator<C>,
        section: Section,
        columns: &Columns,
        to: &mut impl Destination,
    ) -> Result<()> {
        let expected = self.counts.points(section);
        let mut first = 0;
        for numbers in columns.inputs.chunks(self.piece.len()).chain(columns.aux.chunks(self.piece.len())) {
            self.control.check("making parameters")?;
            let kept: Vec<Scalar> =
                numbers.par_iter().filter(|number| !bool::from(number.is_zero())).copied().collect();
            let count = kept.len();
            if count == 0 {
                continue;
            }
            if first + count > expected {
                return Err(Error::internal(format!("a query of more than {expected} points")));
            }
            let scalars = self.piece.span().slice(..count);
            self.stream.upload(scalars, scalar_words(&kept))?;
            let multiply = |out| generator.multiply(&self.stream, scalars, out);
            to.take::<C>(Points { section, first, count }, multiply)?;
            first += count;
        }
        match first == expected {
            true => Ok(()),
            // A polynomial that is not zero vanishes at tau: impossible but for a fault.
            false => Err(Error::internal(format!("a query of {first} points, expected {expected}"))),
        }
    }
}

#[cfg(all(test, feature = "emulator"))]
mod tests {
    use bellperson::Circuit;
    use ff::PrimeField;
    use rand::rngs::StdRng;
    use rand::SeedableRng;

    use super::super::curves::G1Words;
    use super::super::gpu::emulated::{self, census};
    use super::super::proof::{Loaded, Resident};
    use super::super::sums::read;
    use super::super::testing;
    use super::*;
    use crate::backend::Job;
    use crate::groth16::setup::{generate_with, Multipliers, Target};
    use crate::groth16::testing::{Chain, Fixture, Hash, Several};
    use crate::r1cs::{Constraints, Templates};

    fn multiples_are_right<C: DeviceCurve>(gpu: &Gpu) {
        let mut rng = StdRng::seed_from_u64(6);
        let two = Scalar::from(2);
        let mut scalars = vec![Scalar::ZERO, Scalar::ONE, two, -Scalar::ONE, -two, Scalar::TWO_INV];
        for bit in [4u64, 8, 16, 31, 32, 33, 64, 128, 253, 254] {
            let power = two.pow_vartime([bit]);
            scalars.extend([power, power - Scalar::ONE, -power]);
        }
        scalars.extend((0..100).map(|_| Scalar::random(&mut rng)));
        scalars.extend_from_within(..);
        let stream = gpu.stream().unwrap();
        let numbers = gpu.allocate(scalars.len(), "numbers").unwrap();
        stream.upload(numbers.span(), scalar_words(&scalars)).unwrap();
        for window in WINDOWS {
            // Emulated, the largest tables take minutes.
            if window == 16 && emulated::wanted() {
                continue;
            }
            let out = gpu.allocate(scalars.len(), "points").unwrap();
            let generator = Generator::<C>::with_window(&stream, window).unwrap();
            generator.multiply(&stream, numbers.span(), out.span()).unwrap();
            for (found, scalar) in read(&stream, out.span()).unwrap().iter().zip(&scalars) {
                assert_eq!(C::affine(found), C::Projective::generator() * scalar, "{scalar} with window {window}");
            }
        }
    }

    #[test]
    fn multiples_are_the_generator_times_the_numbers() {
        let gpu = testing::gpu();
        multiples_are_right::<G1>(&gpu);
        multiples_are_right::<G2>(&gpu);
    }

    fn made(gpu: &Gpu, r1cs: &dyn Constraints, seed: u64) -> Result<Bases> {
        let control = Control::new();
        let sections = Multipliers::new(r1cs, seed, &control)?.into_sections();
        make(gpu, &Counts::of(r1cs), sections, &control)
    }

    fn assert_same(gpu: &Gpu, found: &Bases, expected: &Bases) {
        let stream = gpu.stream().unwrap();
        for (name, of) in [
            ("h", (|bases| bases.h.span()) as fn(&Bases) -> Span<G1Words>),
            ("l", |bases| bases.l.span()),
            ("a", |bases| bases.a.span()),
            ("b in G1", |bases| bases.b_g1.span()),
        ] {
            assert!(read(&stream, of(found)).unwrap() == read(&stream, of(expected)).unwrap(), "{name}");
        }
        let b_g2 = |bases: &Bases| read(&stream, bases.b_g2.span()).unwrap();
        assert!(b_g2(found) == b_g2(expected), "b in G2");
    }

    fn equal_those_of_the_file(gpu: &Gpu, fixture: &Fixture, seed: u64, r1cs: &dyn Constraints) {
        let expected = Bases::read(gpu, &fixture.open().unwrap(), &Control::new()).unwrap();
        assert_same(gpu, &made(gpu, r1cs, seed).unwrap(), &expected);
    }

    #[test]
    fn bases_are_those_of_the_file_of_the_same_seed() {
        let gpu = testing::gpu();
        for seed in [1, 77] {
            let fixture = Fixture::new(Chain::small(), seed);
            equal_those_of_the_file(&gpu, &fixture, seed, &fixture.r1cs);
        }
    }

    #[test]
    fn bases_of_a_hash_are_those_of_the_file() {
        let fixture = Fixture::new(Hash, 1);
        equal_those_of_the_file(&testing::gpu(), &fixture, 1, &fixture.r1cs);
    }

    #[test]
    fn bases_of_templates_are_those_of_the_file_of_their_rows() {
        let several = |times| Several { times, circuit: Chain { links: 300, start: 9 } };
        let fixture = Fixture::new(several(3), 5);
        let record = Templates::record(3, |times, pass| pass.run(several(times)), &Control::new());
        equal_those_of_the_file(&testing::gpu(), &fixture, 5, &record.unwrap());
    }

    #[test]
    fn proofs_and_keys_are_those_of_the_file_and_other_bases_are_not_taken_for_it() {
        let (gpu, control) = (testing::gpu(), Control::new());
        let fixture = Fixture::new(Chain::small(), 1);
        let parameters = fixture.open().unwrap();
        let key = Multipliers::new(&fixture.r1cs, 1, &control).unwrap().verifying_key(&control).unwrap();
        assert_eq!(&key, parameters.vk());
        let chain = |start| Chain { start, ..Chain::small() };
        let witnesses: Vec<_> = [4, 5].map(|start| fixture.r1cs.assign(chain(start), &control).unwrap()).into();
        let mut resident = Resident::default();
        let witnesses = (&witnesses[..]).into();
        let job = Loaded { r1cs: &fixture.r1cs, witnesses, first_partition: 0, control: &control };
        assert!(matches!(resident.prove_loaded(&gpu, &job, None), Err(Error::Internal { .. })));
        // Those of another seed give other proofs, and are replaced by those of the file.
        resident.install(|| made(&gpu, &fixture.r1cs, 2)).unwrap();
        let others = resident.prove_loaded(&gpu, &job, None).unwrap();
        let file =
            Job { r1cs: &fixture.r1cs, parameters: &parameters, witnesses, first_partition: 0, control: &control };
        let expected = resident.prove(&gpu, &file, None).unwrap();
        assert_ne!(others, expected);
        resident.install(|| made(&gpu, &fixture.r1cs, 1)).unwrap();
        assert_eq!(resident.prove_loaded(&gpu, &job, None).unwrap(), expected);
    }

    /// Makes the files of a circuit, in pieces.
    fn generate(
        gpu: &Gpu,
        piece: usize,
        (r1cs, seed): (&dyn Constraints, u64),
        directory: &std::path::Path,
        control: &Control,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<std::path::PathBuf> {
        let target = Target { directory, stem: "test", meta: "{\"sector_size\":0}" };
        generate_with(r1cs, seed, &target, control, progress, |sections, output, advance| {
            write_in_pieces(gpu, piece, sections, output, advance)
        })
    }

    fn writes_the_files_of_the_cpu(fixture: &Fixture, r1cs: &dyn Constraints, seed: u64, piece: usize) {
        let directory = tempfile::tempdir().unwrap();
        let mut last = (0, 0);
        let mut progress = |done, total| {
            assert!(done > last.0 && done <= total);
            last = (done, total);
        };
        let control = Control::new();
        let made = generate(&testing::gpu(), piece, (r1cs, seed), directory.path(), &control, &mut progress).unwrap();
        assert_eq!(last.0, last.1);
        for extension in ["params", "vk", "meta", "insecure"] {
            let expected = fixture.directory.path().join(format!("{}.{extension}", fixture.expected.stem));
            assert!(std::fs::read(made.with_extension(extension)).unwrap() == std::fs::read(expected).unwrap());
        }
    }

    #[test]
    fn files_are_those_of_the_cpu() {
        let chain = Fixture::new(Chain::small(), 77);
        for piece in [7, 32, FILE_PIECE] {
            writes_the_files_of_the_cpu(&chain, &chain.r1cs, 77, piece);
        }
        let several = |times| Several { times, circuit: Chain { links: 300, start: 9 } };
        let fixture = Fixture::new(several(3), 5);
        let record = Templates::record(3, |times, pass| pass.run(several(times)), &Control::new());
        writes_the_files_of_the_cpu(&fixture, &record.unwrap(), 5, 1000);
    }

    #[test]
    fn a_cancel_and_a_fault_while_a_file_is_written_leave_nothing() {
        let Some(_machine) = testing::machine() else { return };
        let gpu = Gpu::open(0).unwrap();
        let (before, base) = (census(), tempfile::tempdir().unwrap());
        let r1cs = crate::r1cs::R1cs::record(Chain::small(), &Control::new()).unwrap();
        let left = || (base.path().read_dir().unwrap().count(), census());
        for stop_at in 0..12 {
            let token = crate::pipeline::CancelToken::new();
            let control = Control::new().with_cancel(token.clone());
            let mut calls = 0;
            let mut progress = |_, _| {
                calls += 1;
                if calls > stop_at {
                    token.cancel();
                }
            };
            let made = generate(&gpu, 20, (&r1cs, 1), base.path(), &control, &mut progress);
            assert!(matches!(made, Err(Error::Cancelled { .. })), "{made:?}");
            assert_eq!(left(), (0, before));
        }
        for call in ["cuMemHostAlloc", "cuMemcpyDtoHAsync", "cuEventSynchronize", "cuLaunchKernel"] {
            emulated::fault(call, 1, 1, false);
            let made = generate(&gpu, 20, (&r1cs, 1), base.path(), &Control::new(), &mut |_, _| ());
            assert!(matches!(made, Err(Error::DeviceCall { .. } | Error::Memory { .. })), "{call}: {made:?}");
            assert_eq!(left(), (0, before));
        }
        generate(&gpu, 20, (&r1cs, 1), base.path(), &Control::new(), &mut |_, _| ()).unwrap();
    }

    #[test]
    fn an_unconstrained_circuit_and_a_cancel_are_errors() {
        #[derive(Clone)]
        struct Loose;

        impl Circuit<Scalar> for Loose {
            fn synthesize<CS: bellperson::ConstraintSystem<Scalar>>(
                self,
                cs: &mut CS,
            ) -> std::result::Result<(), bellperson::SynthesisError> {
                Chain::small().synthesize(cs)?;
                cs.alloc(|| "loose", || Ok(Scalar::ONE)).map(drop)
            }
        }

        let gpu = testing::gpu();
        let r1cs = crate::r1cs::R1cs::record(Loose, &Control::new()).unwrap();
        assert!(matches!(made(&gpu, &r1cs, 1), Err(Error::Argument { .. })));
        let r1cs = crate::r1cs::R1cs::record(Chain::small(), &Control::new()).unwrap();
        let sections = Multipliers::new(&r1cs, 1, &Control::new()).unwrap().into_sections();
        let token = crate::pipeline::CancelToken::new();
        token.cancel();
        let made = make(&gpu, &Counts::of(&r1cs), sections, &Control::new().with_cancel(token));
        assert!(matches!(made.map(drop), Err(Error::Cancelled { .. })));
    }
}
