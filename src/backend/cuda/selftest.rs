//! Known answers: what every multiprocessor must compute before a device is trusted with a proof.

use blstrs::{G1Affine, G1Projective, G2Affine, G2Projective, Scalar};
use ff::Field;
use group::prime::PrimeCurveAffine;
use group::{Curve, Group};

use super::gpu::{args, scalar_words, Gpu, Plain, Stream};
use crate::error::{Error, Result};

/// Threads of a block, each with a number or a point of its own.
const THREADS: usize = 64;

/// So many blocks a multiprocessor that each one gets some.
const BLOCKS_EACH: u32 = 2;

/// Elements of the two groups as plain words.
pub(super) type G1Words = [u64; 12];
pub(super) type G2Words = [u64; 24];

const _: () = assert!(size_of::<G1Affine>() == size_of::<G1Words>() && align_of::<G1Affine>() == 8);
const _: () = assert!(size_of::<G2Affine>() == size_of::<G2Words>() && align_of::<G2Affine>() == 8);

/// Compares what the device computes with what the host does.
///
/// # Errors
/// [`Error::Device`] if a result is wrong; those of the device's calls.
pub(super) fn check(gpu: &Gpu) -> Result<()> {
    let stream = gpu.stream()?;
    let numbers: Vec<Scalar> = (0..THREADS as u64).map(|i| Scalar::from(i * i * i * i) - Scalar::from(16)).collect();
    let results: Vec<Scalar> = numbers.iter().map(result).collect();
    ask(&stream, "selftest_field", scalar_words(&numbers), scalar_words(&results))?;
    let g1 = points(G1Projective::generator());
    ask(&stream, "selftest_g1", &g1.map(g1_words), &sums(&g1).map(g1_words))?;
    let g2 = points(G2Projective::generator());
    ask(&stream, "selftest_g2", &g2.map(g2_words), &sums(&g2).map(g2_words))
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

pub(super) fn g1_words(point: G1Projective) -> G1Words {
    let point = point.to_affine();
    match bool::from(point.is_identity()) {
        true => [0; 12],
        // SAFETY: repr(transparent) over blst_p1_affine: two times six u64, without padding.
        false => unsafe { std::mem::transmute::<G1Affine, G1Words>(point) },
    }
}

pub(super) fn g2_words(point: G2Projective) -> G2Words {
    let point = point.to_affine();
    match bool::from(point.is_identity()) {
        true => [0; 24],
        // SAFETY: repr(transparent) over blst_p2_affine: four times six u64, without padding.
        false => unsafe { std::mem::transmute::<G2Affine, G2Words>(point) },
    }
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
