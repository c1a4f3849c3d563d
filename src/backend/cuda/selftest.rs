//! Known answers: what every multiprocessor must compute before a device is trusted with a proof.

use blstrs::Scalar;
use ff::Field;
use group::Group;

use super::curves::{DeviceCurve, G1, G2};
use super::gpu::{args, scalar_words, Gpu, Plain, Stream};
use crate::error::{Error, Result};

/// Threads of a block, each with a number or a point of its own.
const THREADS: usize = 64;

/// So many blocks a multiprocessor that each one gets some.
const BLOCKS_EACH: u32 = 2;

/// Compares what the device computes with what the host does.
///
/// # Errors
/// [`Error::Device`] if a result is wrong; those of the device's calls.
pub(super) fn check(gpu: &Gpu) -> Result<()> {
    let stream = gpu.stream()?;
    let numbers: Vec<Scalar> = (0..THREADS as u64).map(|i| Scalar::from(i * i * i * i) - Scalar::from(16)).collect();
    let results: Vec<Scalar> = numbers.iter().map(result).collect();
    ask(&stream, "selftest_field", scalar_words(&numbers), scalar_words(&results))?;
    check_group::<G1>(&stream)?;
    check_group::<G2>(&stream)
}

fn check_group<C: DeviceCurve>(stream: &Stream) -> Result<()> {
    let points = points(C::Projective::generator());
    ask(stream, C::KERNELS.selftest, &points.map(C::words_of), &sums(&points).map(C::words_of))
}

/// What kernel selftest_field makes of a number.
fn result(x: &Scalar) -> Scalar {
    let cube = x.cube();
    let shifted = Scalar::ONE - (cube - x.double());
    shifted.invert().unwrap_or(Scalar::ZERO) * cube
}

/// Multiples of a generator, among them infinity, equal and opposite neighbours.
fn points<P: Group>(generator: P) -> [P; THREADS] {
    let mut point = generator;
    std::array::from_fn(|i| match i {
        7 => P::identity(),
        20 | 21 => generator,
        22 => -generator,
        _ => {
            point = point.double() + generator;
            point
        }
    })
}

/// What the kernels of the groups make of points.
fn sums<P: Group>(points: &[P; THREADS]) -> [P; THREADS] {
    std::array::from_fn(|i| (points[i] + points[(i + 1) % THREADS]).double())
}

/// Runs a kernel in many blocks and compares the results of each.
fn ask<T: Plain + PartialEq>(stream: &Stream, kernel: &'static str, input: &[T], expected: &[T]) -> Result<()> {
    let gpu = stream.gpu();
    let blocks = BLOCKS_EACH * gpu.properties().multiprocessors.max(1);
    let given = gpu.allocate::<T>(THREADS, "the self-test")?;
    let made = gpu.allocate::<T>(THREADS * blocks as usize, "the self-test")?;
    stream.upload(given.span(), input)?;
    stream.launch(kernel, blocks, THREADS as u32, 0, &args![given.span(), made.span()])?;
    let mut results = vec![input[0]; made.len()];
    stream.download(made.span(), &mut results)?;
    let wrong = results.chunks(THREADS).filter(|block| *block != expected).count();
    match wrong {
        0 => Ok(()),
        _ => {
            let detail =
                format!("{kernel} gave wrong results in {wrong} of {blocks} blocks; it is faulty or overclocked");
            Err(Error::Device { device: gpu.label(), detail })
        }
    }
}
