//! Times of the kernels, beside what the device could do at most.

use blstrs::Scalar;
use group::Group;

use super::arena::Arena;
use super::curves::{DeviceCurve, G1, G2};
use super::gpu::{args, Buffer, Gpu, Stream, Words};
use super::memory_plan::CHUNKS;
use super::sums::{KeySums, Msm, PiecewiseMsm, POINTS_APART};
use super::{evaluate, ntt};
use crate::backend::accelerator::Measurement;
use crate::backend::Figure;
use crate::error::Result;

/// Runs per figure; the median is reported.
const RUNS: usize = 5;

/// Rates that bound the kernels; measured on one NVIDIA H200, scaled by multiprocessors elsewhere.
struct Roof {
    /// Products in Fp a nanosecond.
    fp: f64,
}

impl Roof {
    fn of(gpu: &Gpu) -> Self {
        // 27.6 products a nanosecond on 132 multiprocessors.
        Roof { fp: 27.6 * f64::from(gpu.properties().multiprocessors) / 132.0 }
    }

    /// Milliseconds for so many affine additions of so many products each.
    fn additions(&self, count: f64, products: f64) -> f64 {
        count * products / self.fp * 1e-6
    }
}

/// Products of an affine addition with its share of an inversion: five, and a square at four fifths.
const G1_PRODUCTS: f64 = 5.8;
/// The same in the quadratic extension: three a product, two a square.
const G2_PRODUCTS: f64 = 17.0;

/// Milliseconds that `work` takes on the device, the median after one run to warm up.
pub(super) fn median(gpu: &Gpu, stream: &Stream, mut work: impl FnMut() -> Result<()>) -> Result<f64> {
    work()?;
    let mut times = Vec::new();
    for _ in 0..RUNS {
        let (begin, end) = (gpu.event()?, gpu.event()?);
        stream.record(&begin)?;
        work()?;
        stream.record(&end)?;
        end.synchronize()?;
        times.push(f64::from(end.since(&begin)?));
    }
    times.sort_by(f64::total_cmp);
    Ok(times[RUNS / 2])
}

/// step, 2 step, .. times a generator.
fn multiples<C: DeviceCurve>(count: usize, step: u64) -> Vec<C::Affine> {
    let step = C::Projective::generator() * Scalar::from(step);
    std::iter::successors(Some(step), |point| Some(*point + step)).take(count).map(C::words_of).collect()
}

/// Distinct points.
fn points<C: DeviceCurve>(gpu: &Gpu, stream: &Stream, count: usize) -> Result<Buffer<C::Affine>> {
    let low_bits = (count.next_power_of_two().trailing_zeros()).div_ceil(2);
    let upload = |words: Vec<C::Affine>| -> Result<Buffer<C::Affine>> {
        let buffer = gpu.allocate(words.len(), "points")?;
        stream.upload(buffer.span(), &words)?;
        Ok(buffer)
    };
    let low = upload(multiples::<C>(1 << low_bits, 1))?;
    let high = upload(multiples::<C>(count.div_ceil(1 << low_bits), 1 << 32))?;
    let out = gpu.allocate(count, "points")?;
    let fill = args![out.span(), low.span(), high.span(), count as u32, low_bits];
    stream.launch(C::KERNELS.bench_fill, count.div_ceil(128) as u32, 128, 0, &fill)?;
    stream.synchronize()?;
    Ok(out)
}

/// Pseudo-random numbers below the scalar field's modulus.
pub(super) fn scalars(gpu: &Gpu, stream: &Stream, count: usize, seed: u64) -> Result<Buffer<Words>> {
    let out = gpu.allocate(count, "scalars")?;
    stream.launch("bench_fill_scalars", count.div_ceil(256) as u32, 256, 0, &args![out.span(), count as u64, seed])?;
    Ok(out)
}

fn keys(gpu: &Gpu, stream: &Stream, count: usize, bits: u32) -> Result<Buffer<u32>> {
    let out = gpu.allocate(count, "keys")?;
    let fill = args![out.span(), count as u64, 7u64, bits];
    stream.launch("bench_fill_keys", count.div_ceil(256) as u32, 256, 0, &fill)?;
    Ok(out)
}

fn scratch(gpu: &Gpu, bytes: usize) -> Result<Buffer<u8>> {
    gpu.allocate(bytes, "scratch")
}

/// Memory for a multiplication's scratch: most of what is free.
fn spare(gpu: &Gpu) -> Result<usize> {
    Ok(gpu.free_memory()? as usize / 10 * 9)
}

fn multiplication<C: DeviceCurve>(gpu: &Gpu, stream: &Stream, log: u32, name: &str, products: f64) -> Result<Figure> {
    let count = 1usize << log;
    let points = points::<C>(gpu, stream, count)?;
    let scalars = scalars(gpu, stream, count, 1)?;
    let msm = Msm::<C>::new(gpu, count, 1, spare(gpu)?);
    let scratch = scratch(gpu, msm.scratch_bytes())?;
    let out = gpu.allocate(msm.result_len(), "windows")?;
    let milliseconds =
        median(gpu, stream, || msm.queue(stream, points.span(), scalars.span(), None, scratch.span(), out.span()))?;
    let floor = Roof::of(gpu).additions((count * msm.windows()) as f64, products);
    Ok(Figure { name: format!("{name} multiplication, 2^{log} points, {msm}"), milliseconds, floor })
}

/// A multiplication in so many pieces, a power of two, with the memory that a proof has for it: that of two vectors of as
/// many field elements, without the chunks. All pieces have the same points.
fn pieces<C: DeviceCurve>(
    gpu: &Gpu,
    stream: &Stream,
    log: u32,
    pieces: usize,
    name: &str,
    products: f64,
) -> Result<Figure> {
    let count = 1usize << log;
    let each = count / pieces;
    let chunk = (each * size_of::<C::Affine>()).next_multiple_of(POINTS_APART);
    let memory = (2 * count * size_of::<Words>()).saturating_sub(CHUNKS * chunk);
    let msm = PiecewiseMsm::<C>::new(gpu, &vec![each; pieces], memory);
    let room = scratch(gpu, chunk + msm.scratch_bytes())?;
    let (bases, scratch) = (room.span().slice(..each * size_of::<C::Affine>()).cast(), room.span().slice(chunk..));
    stream.copy(bases, points::<C>(gpu, stream, each)?.span())?;
    let scalars = scalars(gpu, stream, count, 1)?;
    let out = gpu.allocate(msm.result_len(), "windows")?;
    let milliseconds = median(gpu, stream, || {
        for index in 0..pieces {
            msm.add(stream, index, bases, scalars.span().slice(index * each..(index + 1) * each), scratch)?;
        }
        msm.reduce(stream, scratch, out.span())
    })?;
    let floor = Roof::of(gpu).additions((count * msm.windows()) as f64, products);
    Ok(Figure { name: format!("{name} multiplication in pieces, 2^{log} points, {msm}"), milliseconds, floor })
}

fn selection<C: DeviceCurve>(
    gpu: &Gpu,
    stream: &Stream,
    log: u32,
    bits: u32,
    name: &str,
    products: f64,
) -> Result<Figure> {
    let count = 1usize << log;
    let points = points::<C>(gpu, stream, count)?;
    let keys = keys(gpu, stream, count, bits)?;
    let sums = KeySums::<C>::new(gpu, count, bits);
    let scratch = scratch(gpu, sums.scratch_bytes())?;
    let mut arena = Arena::counting();
    sums.carve_result(&mut arena);
    let room = self::scratch(gpu, arena.used())?;
    let result = sums.carve_result(&mut Arena::new(room.span()));
    let milliseconds = median(gpu, stream, || sums.queue(stream, points.span(), keys.span(), scratch.span(), &result))?;
    let additions = count as f64 * (1.0 - 0.5f64.powi(bits as i32));
    let floor = Roof::of(gpu).additions(additions, products);
    let what = if bits == 1 {
        "sum of a random half of".to_owned()
    } else {
        format!("joint sums of {bits} random bitmaps over")
    };
    Ok(Figure { name: format!("{name} {what} 2^{log} points, {sums}"), milliseconds, floor })
}

/// Where a figure goes.
pub(super) type Report<'a> = &'a mut dyn FnMut(Figure) -> Result<()>;

/// Those of the usual sizes that are not above the largest; the largest alone if there are none.
pub(super) fn sizes(usual: &[u32], largest: u32) -> Vec<u32> {
    let chosen: Vec<u32> = usual.iter().copied().filter(|&log| log <= largest).collect();
    if chosen.is_empty() {
        return vec![largest];
    }
    chosen
}

/// Times the sums at sizes up to 2^`largest`.
fn sums(gpu: &Gpu, largest: u32, report: Report<'_>) -> Result<()> {
    let stream = gpu.stream()?;
    for log in sizes(&[15, 22, 24, 27], largest) {
        report(multiplication::<G1>(gpu, &stream, log, "G1", G1_PRODUCTS)?)?;
    }
    for log in sizes(&[27], largest) {
        report(pieces::<G1>(gpu, &stream, log, 8, "G1", G1_PRODUCTS)?)?;
    }
    for log in sizes(&[15, 20, 23], largest) {
        report(multiplication::<G2>(gpu, &stream, log, "G2", G2_PRODUCTS)?)?;
    }
    // One bitmap, and those of ten witnesses.
    for (usual, bits) in [(&[21, 24, 27], 1), (&[21, 24, 27], 10)] {
        for log in sizes(usual, largest) {
            report(selection::<G1>(gpu, &stream, log, bits, "G1", G1_PRODUCTS)?)?;
        }
    }
    for (usual, bits) in [(20, 1), (24, 10)] {
        for log in sizes(&[usual], largest) {
            report(selection::<G2>(gpu, &stream, log, bits, "G2", G2_PRODUCTS)?)?;
        }
    }
    Ok(())
}

/// Times all kernels that take long in proofs.
pub(super) fn all(gpu: &Gpu, measurement: &mut Measurement<'_>) -> Result<()> {
    let Measurement { largest, systems, report } = measurement;
    ntt::bench::transforms(gpu, *largest, report)?;
    sums(gpu, *largest, report)?;
    systems.iter().try_for_each(|(name, system)| evaluate::bench::evaluations(gpu, name, *system, report))
}

#[cfg(all(test, feature = "emulator"))]
mod tests {
    use super::*;
    use crate::backend::cuda::testing;

    #[test]
    fn figures_are_made_for_small_sizes() {
        let gpu = testing::gpu();
        let stream = gpu.stream().unwrap();
        assert!(multiplication::<G1>(&gpu, &stream, 6, "G1", G1_PRODUCTS).unwrap().floor > 0.0);
        assert!(pieces::<G1>(&gpu, &stream, 6, 2, "G1", G1_PRODUCTS).unwrap().floor > 0.0);
        assert!(selection::<G2>(&gpu, &stream, 6, 2, "G2", G2_PRODUCTS).unwrap().milliseconds >= 0.0);
    }

    #[test]
    fn usual_sizes_are_taken_up_to_the_largest() {
        assert_eq!(sizes(&[20, 24, 27], 24), [20, 24]);
        assert_eq!(sizes(&[20, 24, 27], 8), [8]);
    }
}
