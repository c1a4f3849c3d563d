//! Test parameters from a seed, made on the device where they are used: no file is written.

use blstrs::Scalar;
use ff::Field;
use group::{Curve, Group};
use rayon::prelude::*;

use super::bases::Bases;
use super::curves::{DeviceCurve, G1Words, G1, G2};
use super::gpu::{args, scalar_words, Buffer, Gpu, Span, Stream, Words};
use super::ntt::Layout;
use crate::error::{Error, Result};
use crate::groth16::setup::{Columns, Powers, Sections};
use crate::groth16::{Counts, G1Section};
use crate::pipeline::Control;

/// Numbers that are multiplied at once: 32 MiB.
const PIECE: usize = 1 << 20;

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
    let stream = gpu.stream()?;
    let count = |section| counts.len(section);
    let g1 = Generator::<G1>::new(&stream, G1Section::ALL.into_iter().map(count).sum())?;
    let g2 = Generator::<G2>::new(&stream, count(G1Section::B))?;
    let piece = gpu.allocate(PIECE.min(1 << counts.log_domain), "numbers on their way")?;
    let maker = Maker { stream: &stream, piece, control };
    let Sections { h, l, a, b } = sections;
    let h = maker.powers(&g1, &h, counts)?;
    let l = maker.query(&g1, count(G1Section::L), &Columns { inputs: Vec::new(), aux: l })?;
    let a = maker.query(&g1, count(G1Section::A), &a)?;
    let b_g1 = maker.query(&g1, count(G1Section::B), &b)?;
    let b_g2 = maker.query(&g2, count(G1Section::B), &b)?;
    stream.synchronize()?;
    Ok(Bases { identity: None, h, l, a, b_g1, b_g2 })
}

struct Maker<'a> {
    stream: &'a Stream,
    /// Numbers whose multiples are being made.
    piece: Buffer<Words>,
    control: &'a Control,
}

impl Maker<'_> {
    /// The bases of h, each at its coefficient's position.
    fn powers(&self, generator: &Generator<G1>, powers: &Powers, counts: &Counts) -> Result<Buffer<G1Words>> {
        let layout = Layout::new(counts.log_domain)?;
        let gpu = self.stream.gpu();
        let squares = std::iter::successors(Some(powers.base), |x| Some(x.square())).take(layout.log_size() as usize);
        let factors: Vec<Scalar> = std::iter::once(powers.factor).chain(squares).collect();
        let table = gpu.allocate(factors.len(), "powers")?;
        self.stream.upload(table.span(), scalar_words(&factors))?;
        // All positions but the last one, which is that of coefficient N - 1.
        let bases = gpu.allocate(counts.len(G1Section::H), "bases of the quotient")?;
        for first in (0..bases.len()).step_by(self.piece.len()) {
            self.control.check("making parameters")?;
            let out = bases.span().slice(first..bases.len().min(first + self.piece.len()));
            let scalars = self.piece.span().slice(..out.len());
            let args = args![scalars, table.span(), first as u32, out.len() as u32, layout.parts()];
            self.stream.launch("setup_powers", blocks(out.len() as u32), THREADS, 0, &args)?;
            generator.multiply(self.stream, scalars, out)?;
        }
        self.stream.synchronize()?;
        Ok(bases)
    }

    /// The multiples by all numbers that are not zero, inputs first, which must be so many.
    fn query<C: DeviceCurve>(
        &self,
        generator: &Generator<C>,
        count: usize,
        columns: &Columns,
    ) -> Result<Buffer<C::Affine>> {
        let bases = self.stream.gpu().allocate(count, "bases")?;
        let mut done = 0;
        for numbers in columns.inputs.chunks(self.piece.len()).chain(columns.aux.chunks(self.piece.len())) {
            self.control.check("making parameters")?;
            let kept: Vec<Scalar> =
                numbers.par_iter().filter(|number| !bool::from(number.is_zero())).copied().collect();
            if done + kept.len() > count {
                return Err(Error::internal(format!("a query of more than {count} points")));
            }
            let scalars = self.piece.span().slice(..kept.len());
            self.stream.upload(scalars, scalar_words(&kept))?;
            generator.multiply(self.stream, scalars, bases.span().slice(done..done + kept.len()))?;
            done += kept.len();
        }
        match done == count {
            true => Ok(bases),
            // A polynomial that is not zero vanishes at tau: impossible but for a fault.
            false => Err(Error::internal(format!("a query of {done} points, expected {count}"))),
        }
    }
}

#[cfg(all(test, feature = "emulator"))]
mod tests {
    use bellperson::Circuit;
    use ff::PrimeField;
    use rand::rngs::StdRng;
    use rand::SeedableRng;

    use super::super::gpu::{emulated, Plain};
    use super::super::proof::{Loaded, Resident};
    use super::super::testing;
    use super::*;
    use crate::backend::Job;
    use crate::groth16::setup::Multipliers;
    use crate::groth16::testing::{Chain, Fixture, Hash, Several};
    use crate::r1cs::{Constraints, Templates};

    fn read<T: Plain>(stream: &Stream, span: Span<T>) -> Vec<T> {
        super::super::sums::read(stream, span).unwrap()
    }

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
            for (found, scalar) in read(&stream, out.span()).iter().zip(&scalars) {
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
            assert!(read(&stream, of(found)) == read(&stream, of(expected)), "{name}");
        }
        assert!(read(&stream, found.b_g2.span()) == read(&stream, expected.b_g2.span()), "b in G2");
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
        let job = Loaded { r1cs: &fixture.r1cs, witnesses: &witnesses, first_partition: 0, control: &control };
        assert!(matches!(resident.prove_loaded(&gpu, &job, None), Err(Error::Internal { .. })));
        // Those of another seed give other proofs, and are replaced by those of the file.
        resident.install(|| made(&gpu, &fixture.r1cs, 2)).unwrap();
        let others = resident.prove_loaded(&gpu, &job, None).unwrap();
        let file = Job {
            r1cs: &fixture.r1cs,
            parameters: &parameters,
            witnesses: &witnesses,
            first_partition: 0,
            control: &control,
        };
        let expected = resident.prove(&gpu, &file, None).unwrap();
        assert_ne!(others, expected);
        resident.install(|| made(&gpu, &fixture.r1cs, 1)).unwrap();
        assert_eq!(resident.prove_loaded(&gpu, &job, None).unwrap(), expected);
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
