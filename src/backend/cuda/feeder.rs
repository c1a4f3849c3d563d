//! Bases on their way from a parameter file to a device: read as they are into pinned memory by several threads, copied,
//! and there decoded and checked, each piece while others are read and copied.

use std::ops::Range;
use std::time::{Duration, Instant};

use super::curves::{DeviceCurve, G1Words, G2Words, G1, G2};
use super::gpu::{args, Buffer, Event, Gpu, Pinned, Span, Stream};
use super::ntt::Layout;
use crate::error::{Error, Result};
use crate::groth16::params::Section;
use crate::groth16::{Counts, FilePoint, G1Section, Parameters};
use crate::pipeline::Control;

/// Bytes that are read and copied at once: a millisecond or two of each, and so many that the threads that read them
/// rarely wait for each other.
const PIECE: usize = 48 << 20;

/// Pieces at once: one is read while others are copied.
const PIECES: usize = 3;

/// Bytes of whole points of either group.
const WHOLE: usize = <G2 as DeviceCurve>::Host::BYTES;

const _: () = assert!(PIECE.is_multiple_of(WHOLE) && WHOLE.is_multiple_of(<G1 as DeviceCurve>::Host::BYTES));

/// Threads of a block; the kernels have the same.
pub(super) const THREADS: u32 = 128;

/// No point is bad.
const NONE: u64 = u64::MAX;

/// What bases go through on their way to a device. To be kept where they come often.
pub(super) struct Ring {
    pieces: Vec<Piece>,
    /// The piece whose turn is next.
    next: usize,
    copy: Stream,
    decode: Stream,
    /// Behind what was decoded last.
    decoded: Event,
    /// The least number of a bad point: see [`number`].
    first_bad: Buffer<u64>,
}

/// Pinned memory for one piece.
struct Piece {
    bytes: Pinned<u8>,
    /// The last copy from it.
    copied: Event,
    /// The last piece that was decoded from the copy.
    decoded: Event,
}

impl Ring {
    /// Bytes of pinned memory of a ring for files with such counts.
    pub fn pinned_bytes(counts: &Counts) -> usize {
        PIECES * Self::piece_bytes(counts)
    }

    /// Bytes on the device.
    pub const DEVICE_BYTES: usize = size_of::<u64>();

    fn piece_bytes(counts: &Counts) -> usize {
        PIECE.min(largest_section(counts)).next_multiple_of(WHOLE)
    }

    /// A ring for files with such counts.
    ///
    /// # Errors
    /// [`Error::Memory`] and whatever else a device may fail with.
    pub fn new(gpu: &Gpu, counts: &Counts) -> Result<Self> {
        Self::with_piece(gpu, Self::piece_bytes(counts))
    }

    fn with_piece(gpu: &Gpu, bytes: usize) -> Result<Self> {
        let piece = |_| {
            let bytes = gpu.pinned(bytes, "bases on their way to a device")?;
            Ok(Piece { bytes, copied: gpu.event()?, decoded: gpu.event()? })
        };
        Ok(Ring {
            pieces: (0..PIECES).map(piece).collect::<Result<_>>()?,
            next: 0,
            copy: gpu.stream()?,
            decode: gpu.stream()?,
            decoded: gpu.event()?,
            first_bad: gpu.allocate(1, "the number of a bad base")?,
        })
    }

    /// Bytes of pinned memory.
    pub fn bytes(&self) -> usize {
        self.pieces.iter().map(|piece| piece.bytes.len()).sum()
    }

    /// Points of a group that a piece has room for.
    fn step<C: DeviceCurve>(&self) -> usize {
        self.pieces[0].bytes.len() / C::Host::BYTES
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // Whatever the error, nothing is copied any more.
        if let Err(error) = self.copy.synchronize() {
            log::warn!("{error}");
        }
    }
}

fn largest_section(counts: &Counts) -> usize {
    let bytes = |section: Section| counts.points(section) * section.point_bytes();
    Section::ALL.into_iter().map(bytes).max().unwrap_or(0)
}

/// Of a point, in the order of the file; below [`NONE`].
fn number(section: Section, index: usize) -> u64 {
    let position = Section::ALL.iter().position(|known| *known == section).expect("all are there");
    (position as u64) << 32 | index as u64
}

fn of_number(number: u64) -> Option<(Section, usize)> {
    Section::ALL.get((number >> 32) as usize).map(|&section| (section, number as u32 as usize))
}

/// Brings bases of one parameter file to a device.
///
/// What its functions are asked for is queued: they return when the bytes have left the file. [`Feeder::ready`] lets
/// other work wait for it, [`Feeder::after`] lets it wait for other work, and nothing that was made of the bases may be
/// believed before [`Feeder::finish`] has said that they are good.
pub(super) struct Feeder<'a> {
    ring: &'a mut Ring,
    parameters: &'a Parameters,
    control: &'a Control,
    /// How long the host read, and how long it waited for pinned memory.
    reading: Duration,
    waiting: Duration,
}

/// Where bases go.
enum Place<'a, C: DeviceCurve> {
    /// One after the other.
    Row(Span<C::Affine>),
    /// To the positions of their coefficients, by way of some memory for each piece.
    Spread { layout: &'a Layout, pieces: Span<C::Affine>, out: Span<C::Affine> },
}

impl<'a> Feeder<'a> {
    /// A feeder from an open file; cancel and deadline are looked at while it is read.
    ///
    /// # Errors
    /// Whatever a device may fail with.
    pub fn new(ring: &'a mut Ring, parameters: &'a Parameters, control: &'a Control) -> Result<Self> {
        ring.decode.upload(ring.first_bad.span(), &[NONE])?;
        let (reading, waiting) = (Duration::ZERO, Duration::ZERO);
        Ok(Feeder { ring, parameters, control, reading, waiting })
    }

    /// The device that they come to.
    pub fn gpu(&self) -> &Gpu {
        self.ring.copy.gpu()
    }

    /// Queues the bases `range` of a section in G1, in the order of the file, for `out`, which has as many.
    ///
    /// Reads on all threads of the current pool.
    ///
    /// # Errors
    /// [`Error::ParamsRead`]; [`Error::ParamsChanged`] if the file has become shorter; [`Error::Internal`] for a range
    /// outside the section; cancel, deadline; whatever a device may fail with.
    pub fn g1(&mut self, section: G1Section, range: Range<usize>, out: Span<G1Words>) -> Result<()> {
        self.feed::<G1>(Section::G1(section), range, Place::Row(out))
    }

    /// As [`Feeder::g1`], of the section b in G2.
    pub fn g2(&mut self, range: Range<usize>, out: Span<G2Words>) -> Result<()> {
        self.feed::<G2>(Section::B2, range, Place::Row(out))
    }

    /// Brings all bases of h to the positions of their coefficients in `out`, and waits until they are there.
    ///
    /// # Errors
    /// As [`Feeder::g1`].
    pub fn h(&mut self, layout: &Layout, out: Span<G1Words>) -> Result<()> {
        let step = self.ring.step::<G1>();
        let pieces = self.ring.copy.gpu().allocate(PIECES * step, "bases on their way")?;
        self.feed::<G1>(Section::G1(G1Section::H), 0..out.len(), Place::Spread { layout, pieces: pieces.span(), out })?;
        // Before the pieces are freed.
        self.ring.decode.synchronize()
    }

    /// What is asked for from now on is written to the device after the event: whoever used the memory before is done.
    pub fn after(&self, event: &Event) -> Result<()> {
        self.ring.copy.wait(event)
    }

    /// What is queued on the stream from now on begins when all that was asked for is decoded.
    pub fn ready(&self, stream: &Stream) -> Result<()> {
        self.ring.decode.record(&self.ring.decoded)?;
        stream.wait(&self.ring.decoded)
    }

    /// Waits for all bases, and says whether they are good and still those of the file.
    ///
    /// # Errors
    /// [`Error::ParamsContent`] for the first in the file's order that has coordinates that are not canonical or not on
    /// the curve; [`Error::ParamsChanged`]; [`Error::Device`] for one that was damaged behind the file; whatever a
    /// device may fail with.
    pub fn finish(&mut self) -> Result<()> {
        let begin = Instant::now();
        let mut first_bad = [NONE];
        self.ring.decode.download(self.ring.first_bad.span(), &mut first_bad)?;
        self.waiting += begin.elapsed();
        if first_bad != [NONE] {
            return Err(self.fault(first_bad[0]));
        }
        self.parameters.ensure_unchanged()
    }

    /// Why a point with this number is bad.
    fn fault(&self, number: u64) -> Error {
        let damaged = |detail| Error::Device { device: self.ring.copy.gpu().label(), detail };
        let Some((section, index)) = of_number(number) else {
            return damaged(format!("a kernel found a bad point of number {number:#x}, which none has"));
        };
        let of_file = self.parameters.check_point(section, index).and_then(|()| self.parameters.ensure_unchanged());
        of_file.err().unwrap_or_else(|| {
            damaged(format!("point {index} of section {} is good in the file and arrived damaged", section.name()))
        })
    }

    /// How long the host has read so far, and how long it has waited for the device.
    pub fn times(&self) -> (Duration, Duration) {
        (self.reading, self.waiting)
    }

    fn feed<C: DeviceCurve>(&mut self, section: Section, range: Range<usize>, place: Place<'_, C>) -> Result<()> {
        let step = self.ring.step::<C>();
        let begin = range.start;
        for first in range.clone().step_by(step) {
            let points = first..range.end.min(first + step);
            self.read::<C>(section, points.clone())?;
            let slot = self.ring.next;
            let to = match &place {
                Place::Row(out) => out.slice(points.start - begin..points.end - begin),
                Place::Spread { pieces, .. } => pieces.slice(slot * step..slot * step + points.len()),
            };
            self.ring.next = (slot + 1) % PIECES;
            self.queue(slot, number(section, first), first, to, &place)?;
        }
        Ok(())
    }

    /// Reads points into the next piece when nothing is copied from it any more.
    fn read<C: DeviceCurve>(&mut self, section: Section, points: Range<usize>) -> Result<()> {
        let piece = &mut self.ring.pieces[self.ring.next];
        let begin = Instant::now();
        piece.copied.synchronize()?;
        let waited = begin.elapsed();
        let bytes = &mut piece.bytes[..points.len() * C::Host::BYTES];
        let Feeder { parameters, control, .. } = self;
        control.compute(|| parameters.read_bytes(section, points.start, bytes, control))?;
        self.waiting += waited;
        self.reading += begin.elapsed() - waited;
        Ok(())
    }

    /// Queues the copy of a piece, and its decoding where it is copied to.
    fn queue<C: DeviceCurve>(
        &mut self,
        slot: usize,
        number: u64,
        first: usize,
        to: Span<C::Affine>,
        place: &Place<'_, C>,
    ) -> Result<()> {
        let Ring { pieces, copy, decode, first_bad, .. } = &*self.ring;
        let piece = &pieces[slot];
        if let Place::Spread { .. } = place {
            // Which is read from the same memory.
            copy.wait(&piece.decoded)?;
        }
        // SAFETY: the bytes are next written to or freed behind the event or the stream's end; if there is no event, the
        // stream is waited for.
        let queued = unsafe { copy.upload_later(to.cast(), &piece.bytes, 0) };
        queued.and_then(|()| copy.record(&piece.copied)).inspect_err(|_| drop(copy.synchronize()))?;
        decode.wait(&piece.copied)?;
        let count = to.len() as u32;
        let args = args![to, count, number, first_bad.span()];
        decode.launch(C::KERNELS.decode, count.div_ceil(THREADS), THREADS, 0, &args)?;
        if let Place::Spread { layout, out, .. } = place {
            layout.arrange(decode, *out, to, first)?;
            decode.record(&piece.decoded)?;
        }
        Ok(())
    }
}

#[cfg(all(test, feature = "emulator"))]
pub(crate) mod tests {
    use blstrs::{G1Affine, G2Affine};
    use ff::Field;
    use group::prime::PrimeCurveAffine;
    use group::{Curve, Group};
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    use super::super::bases::Bases;
    use super::super::gpu::emulated::{self, census};
    use super::super::sums::read;
    use super::super::testing;
    use super::*;
    use crate::groth16::testing::{offset_of, Chain, Fixture};
    use crate::pipeline::CancelToken;

    /// What the device makes of points as files have them, and the number of the first bad one.
    fn decoded<C: DeviceCurve>(gpu: &Gpu, bytes: &[u8], first: u64) -> (Vec<C::Affine>, u64) {
        let stream = gpu.stream().unwrap();
        let (points, bad) = (gpu.allocate::<u8>(bytes.len(), "points").unwrap(), gpu.allocate(1, "bad").unwrap());
        stream.upload(points.span(), bytes).unwrap();
        stream.upload(bad.span(), &[NONE]).unwrap();
        let points: Span<C::Affine> = points.span().cast();
        let count = points.len() as u32;
        let args = args![points, count, first, bad.span()];
        stream.launch(C::KERNELS.decode, count.div_ceil(THREADS), THREADS, 0, &args).unwrap();
        (read(&stream, points).unwrap(), read(&stream, bad.span()).unwrap()[0])
    }

    fn encoded<P: FilePoint>(points: &[P]) -> Vec<u8> {
        let mut bytes = Vec::new();
        points.iter().for_each(|point| point.encode_to(&mut bytes));
        bytes
    }

    fn random_points<C: DeviceCurve>(count: usize) -> Vec<C::Host> {
        let mut rng = StdRng::seed_from_u64(count as u64);
        let point = |_| (C::Projective::generator() * blstrs::Scalar::random(&mut rng)).to_affine();
        (0..count).map(point).collect()
    }

    /// Numbers of 48 bytes at the edges: below, at and above the modulus.
    fn edges() -> Vec<Vec<u8>> {
        let mut modulus = (-blstrs::Fp::ONE).to_bytes_be();
        let largest = modulus;
        modulus[47] += 1;
        let (mut above, mut two, mut one) = (modulus, [0; 48], [0; 48]);
        above[47] += 1;
        (two[47], one[47]) = (2, 1);
        let mut wide = [0xff; 48];
        wide[0] = 0x1f;
        [[0; 48], one, two, largest, modulus, above, wide, [0xff; 48]].map(Vec::from).into()
    }

    /// Good and bad points: all combinations of edges where there are few, every flag, and changed bytes.
    fn candidates<C: DeviceCurve>() -> Vec<Vec<u8>> {
        let mut rng = StdRng::seed_from_u64(3);
        let coordinates = C::Host::BYTES / 48;
        let generator = encoded(&[C::Host::generator()]);
        let mut candidates = vec![generator.clone(), encoded(&[-C::Host::generator()])];
        for edge in edges() {
            for place in 0..coordinates {
                let mut changed = generator.clone();
                changed[48 * place..48 * (place + 1)].copy_from_slice(&edge);
                candidates.push(changed);
            }
            for other in edges() {
                let mut parts: Vec<&[u8]> = vec![&other; coordinates];
                parts[..coordinates / 2].fill(&edge);
                candidates.push(parts.concat());
            }
        }
        for flags in 1..8 {
            let mut flagged = generator.clone();
            flagged[0] |= flags << 5;
            candidates.push(flagged);
            candidates.push([&[flags << 5][..], &vec![0; C::Host::BYTES - 1]].concat());
        }
        for point in random_points::<C>(40) {
            let good = encoded(&[point]);
            let mut changed = good.clone();
            changed[rng.gen_range(0..C::Host::BYTES)] ^= rng.gen_range(1..=255u8);
            candidates.extend([good, changed]);
        }
        candidates
    }

    /// What the device should make of a point; it does not look for the subgroup.
    fn expected<C: DeviceCurve>(bytes: &[u8]) -> Option<C::Affine> {
        let good = match C::Host::decode(bytes) {
            Ok(_) => true,
            Err(fault) => fault.to_string().contains("subgroup"),
        };
        good.then(|| C::words(&[C::Host::decode_coordinates(bytes).unwrap()])[0])
    }

    fn decodes_as_the_cpu<C: DeviceCurve>() {
        let gpu = testing::gpu();
        let candidates = candidates::<C>();
        let expected: Vec<_> = candidates.iter().map(|bytes| expected::<C>(bytes)).collect();
        let infinity = C::words_of(C::Projective::identity());
        for (bytes, expected) in candidates.iter().zip(&expected) {
            let (points, bad) = decoded::<C>(&gpu, bytes, 7);
            assert_eq!((points[0], bad), (expected.unwrap_or(infinity), if expected.is_some() { NONE } else { 7 }));
        }
        // Together, and without the bad ones.
        let (points, bad) = decoded::<C>(&gpu, &candidates.concat(), 1 << 40);
        let all: Vec<_> = expected.iter().map(|expected| expected.unwrap_or(infinity)).collect();
        assert!(points == all);
        assert_eq!(bad, (1 << 40) + expected.iter().position(Option::is_none).unwrap() as u64);
        let good = candidates.iter().zip(&expected).filter(|(_, expected)| expected.is_some());
        let good: Vec<_> = good.map(|(bytes, _)| bytes.as_slice()).collect();
        assert!(good.len() > 40);
        assert_eq!(decoded::<C>(&gpu, &good.concat(), 0).1, NONE);
    }

    #[test]
    fn points_are_decoded_and_refused_as_the_cpu_does() {
        decodes_as_the_cpu::<G1>();
        decodes_as_the_cpu::<G2>();
    }

    fn first_bad_is_found<C: DeviceCurve>() {
        let gpu = testing::gpu();
        let good = encoded(&random_points::<C>(300));
        for bad in [[0, 299, 5], [299, 299, 299], [127, 128, 129], [128, 200, 256]] {
            let mut bytes = good.clone();
            for index in bad {
                bytes[(index + 1) * C::Host::BYTES - 1] ^= 1;
            }
            assert_eq!(decoded::<C>(&gpu, &bytes, 1000).1, 1000 + *bad.iter().min().unwrap() as u64);
        }
    }

    #[test]
    fn the_first_bad_point_is_found() {
        first_bad_is_found::<G1>();
        first_bad_is_found::<G2>();
    }

    fn encoding_is_the_files<C: DeviceCurve>() {
        let gpu = testing::gpu();
        let mut points = random_points::<C>(300);
        points.extend([C::Host::generator(), -C::Host::generator()]);
        let stream = gpu.stream().unwrap();
        let buffer = gpu.allocate(points.len(), "points").unwrap();
        stream.upload(buffer.span(), C::words(&points)).unwrap();
        let count = points.len() as u32;
        let args = args![buffer.span(), count];
        stream.launch(C::KERNELS.encode, count.div_ceil(THREADS), THREADS, 0, &args).unwrap();
        assert!(read::<u8>(&stream, buffer.span().cast()).unwrap() == encoded(&points));
    }

    #[test]
    fn points_are_encoded_as_the_cpu_does() {
        encoding_is_the_files::<G1>();
        encoding_is_the_files::<G2>();
    }

    fn fixture() -> Fixture {
        Fixture::new(Chain::small(), 1)
    }

    fn g1_of_cpu(parameters: &Parameters, section: G1Section, range: Range<usize>) -> Vec<G1Affine> {
        let mut points = Vec::new();
        parameters.read_g1(section, range, &mut points, &Control::new()).unwrap();
        points
    }

    fn b2_of_cpu(parameters: &Parameters) -> Vec<G2Affine> {
        let mut points = Vec::new();
        let count = parameters.counts().len(G1Section::B);
        parameters.read_g2(0..count, &mut points, &Control::new()).unwrap();
        points
    }

    #[test]
    fn ranges_of_sections_arrive_in_pieces_of_any_size() {
        let gpu = testing::gpu();
        let (fixture, control) = (fixture(), Control::new());
        let parameters = fixture.open().unwrap();
        let stream = gpu.stream().unwrap();
        let event = gpu.event().unwrap();
        // From one point in G2 up to more than there are.
        for points in [1, 3, 7, 1000] {
            let mut ring = Ring::with_piece(&gpu, points * WHOLE).unwrap();
            for round in 0..2 {
                let mut feeder = Feeder::new(&mut ring, &parameters, &control).unwrap();
                for section in G1Section::ALL {
                    let count = parameters.counts().len(section);
                    for range in [0..count, 1..count, 3..8, 5..5, count - 1..count] {
                        let out = gpu.allocate(range.len(), "bases").unwrap();
                        stream.record(&event).unwrap();
                        feeder.after(&event).unwrap();
                        feeder.g1(section, range.clone(), out.span()).unwrap();
                        feeder.ready(&stream).unwrap();
                        let found = read(&stream, out.span()).unwrap();
                        assert!(
                            found == G1::words(&g1_of_cpu(&parameters, section, range.clone())),
                            "{section} {range:?}"
                        );
                    }
                }
                let expected = b2_of_cpu(&parameters);
                let out = gpu.allocate(expected.len(), "bases").unwrap();
                feeder.g2(0..expected.len(), out.span()).unwrap();
                feeder.finish().unwrap();
                assert!(read(&stream, out.span()).unwrap() == G2::words(&expected), "round {round}");
                assert!(matches!(feeder.g2(1..expected.len() + 1, out.span()), Err(Error::Internal { .. })));
            }
        }
    }

    #[test]
    fn bases_of_h_go_to_the_positions_of_their_coefficients() {
        let gpu = testing::gpu();
        let (fixture, control) = (Fixture::new(Chain { links: 300, start: 5 }, 1), Control::new());
        let parameters = fixture.open().unwrap();
        let layout = Layout::new(parameters.counts().log_domain).unwrap();
        let host = g1_of_cpu(&parameters, G1Section::H, 0..layout.size() - 1);
        let expected: Vec<G1Affine> = (0..host.len()).map(|position| host[layout.coefficient_at(position)]).collect();
        for points in [5, 64, 1000] {
            let mut ring = Ring::with_piece(&gpu, points * WHOLE).unwrap();
            let mut feeder = Feeder::new(&mut ring, &parameters, &control).unwrap();
            let out = gpu.allocate(host.len(), "bases").unwrap();
            feeder.h(&layout, out.span()).unwrap();
            feeder.finish().unwrap();
            assert!(read(&gpu.stream().unwrap(), out.span()).unwrap() == G1::words(&expected));
        }
    }

    /// Writes over bytes of the file of some parameters without changing its length.
    fn write_over(parameters: &Parameters, at: u64, bytes: &[u8]) {
        use std::os::unix::fs::FileExt;
        let file = std::fs::File::options().write(true).open(parameters.path()).unwrap();
        file.write_all_at(bytes, at).unwrap();
    }

    #[test]
    fn bad_points_are_the_errors_of_the_cpu() {
        let gpu = testing::gpu();
        let control = Control::new();
        let mut off_curve = G1Affine::generator().to_uncompressed();
        off_curve[95] ^= 1;
        let mut flagged = G1Affine::generator().to_uncompressed();
        flagged[0] |= 0x80;
        let infinity = G1Affine::identity().to_uncompressed();
        for (point, word) in [
            (infinity, "infinity"),
            ([0; 96], "infinity"),
            ([0x1f; 96], "modulus"),
            (flagged, "flags"),
            (off_curve, "off the curve"),
        ] {
            let fixture = fixture();
            let parameters = fixture.open().unwrap();
            // Points 2 and 9 of l.
            let l = offset_of(parameters.counts(), Section::G1(G1Section::L));
            for index in [9, 2] {
                write_over(&parameters, l + 96 * index, &point);
            }
            let error = Bases::read(&gpu, &parameters, &control).map(drop).unwrap_err().to_string();
            let of_cpu = match word {
                // What the CPU does not look for as it reads.
                "off the curve" => parameters.check_all(&control, &mut |_, _| {}).unwrap_err(),
                _ => parameters.read_g1(G1Section::L, 0..20, &mut Vec::new(), &control).unwrap_err(),
            };
            assert_eq!(error, of_cpu.to_string());
            let place = format!("point 2 of section l, at byte {}, is", l + 2 * 96);
            assert!(error.contains(word) && error.contains(&place), "{error}");
        }
        let fixture = fixture();
        let parameters = fixture.open().unwrap();
        let b2 = offset_of(parameters.counts(), Section::B2);
        write_over(&parameters, b2 + 192 * 4 + 191, &[0xff]);
        let error = Bases::read(&gpu, &parameters, &control).map(drop).unwrap_err();
        assert!(
            matches!(&error, Error::ParamsContent { detail, .. } if detail.contains("point 4 of section b_g2")),
            "{error}"
        );
    }

    #[test]
    fn changed_and_cut_files_and_cancels_are_errors_that_leave_nothing() {
        let Some(_machine) = testing::machine() else { return };
        let gpu = Gpu::open(0).unwrap();
        let before = census();
        let load = |control: &Control, change: &dyn Fn(&Parameters)| {
            let fixture = fixture();
            let parameters = fixture.open().unwrap();
            change(&parameters);
            let outcome = Bases::read(&gpu, &parameters, control).map(drop);
            assert_eq!(census(), before);
            outcome
        };
        let control = Control::new();
        load(&control, &|_| ()).unwrap();
        let cut = |parameters: &Parameters, length| {
            let file = std::fs::File::options().write(true).open(parameters.path()).unwrap();
            file.set_len(length).unwrap();
        };
        for length in [100, 3000, 10_000] {
            let error = load(&control, &|parameters| cut(parameters, length)).unwrap_err();
            assert!(matches!(error, Error::ParamsChanged { .. }), "{error}");
        }
        let rewritten = load(&control, &|parameters| {
            std::fs::copy(parameters.path(), parameters.path().with_extension("copy")).unwrap();
            std::fs::rename(parameters.path().with_extension("copy"), parameters.path()).unwrap();
        });
        assert!(matches!(rewritten, Err(Error::ParamsChanged { .. })));
        let late = Control::new().with_deadline(Instant::now());
        assert!(matches!(load(&late, &|_| ()), Err(Error::Deadline { .. })));
        // In the middle: between two sections.
        let fixture = fixture();
        let parameters = fixture.open().unwrap();
        let token = CancelToken::new();
        let control = Control::new().with_cancel(token.clone());
        {
            let out = gpu.allocate(20, "bases").unwrap();
            let mut ring = Ring::with_piece(&gpu, WHOLE).unwrap();
            let mut feeder = Feeder::new(&mut ring, &parameters, &control).unwrap();
            feeder.g1(G1Section::A, 0..20, out.span()).unwrap();
            token.cancel();
            assert!(matches!(feeder.g1(G1Section::A, 0..20, out.span()), Err(Error::Cancelled { .. })));
        }
        assert_eq!(census(), before);
        // A device that tells nonsense at the end.
        emulated::corrupt(0);
        assert!(matches!(load(&Control::new(), &|_| ()), Err(Error::Device { .. })));
        for call in ["cuMemHostAlloc", "cuMemcpyHtoDAsync", "cuEventRecord", "cuLaunchKernel"] {
            for nth in [0, 2] {
                emulated::fault(call, nth, 1, false);
                load(&Control::new(), &|_| ()).expect_err(call);
            }
        }
        load(&Control::new(), &|_| ()).unwrap();
    }

    /// Prints how long the bases of a file take to a device, and what of that the file and the copies would take alone.
    pub(crate) fn measure(parameters: &Parameters) {
        let gpu = testing::gpu();
        let counts = parameters.counts();
        let mut ring = Ring::new(&gpu, counts).unwrap();
        let mut pieces = Vec::new();
        for section in Section::ALL {
            let (count, step) = (counts.points(section), PIECE / section.point_bytes());
            let piece =
                |first| (first / step % PIECES, section, first, step.min(count - first) * section.point_bytes());
            pieces.extend((0..count).step_by(step).map(piece));
        }
        let total: usize = pieces.iter().map(|(_, _, _, bytes)| bytes).sum();
        let report = |what: &str, begin: Instant| {
            let elapsed = begin.elapsed();
            println!("{what}: {elapsed:.2?}, {:.1} GB/s", total as f64 / elapsed.as_secs_f64() * 1e-9);
        };
        for _ in 0..3 {
            let begin = Instant::now();
            for &(slot, section, first, bytes) in &pieces {
                let piece = &mut ring.pieces[slot].bytes[..bytes];
                parameters.read_bytes(section, first, piece, &Control::new()).unwrap();
            }
            report("file alone", begin);
            let to = gpu.allocate::<u8>(ring.pieces[0].bytes.len(), "bases").unwrap();
            let begin = Instant::now();
            for &(slot, _, _, bytes) in &pieces {
                // SAFETY: the stream is waited for before the ring is used again.
                unsafe { ring.copy.upload_later(to.span().slice(..bytes), &ring.pieces[slot].bytes, 0) }.unwrap();
            }
            ring.copy.synchronize().unwrap();
            report("copies alone", begin);
            drop(to);
            let begin = Instant::now();
            let bases = Bases::read(&gpu, parameters, &Control::new()).unwrap();
            report("all", begin);
            drop(bases);
        }
    }
}
