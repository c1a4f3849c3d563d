//! Times of transforms and of the quotient, beside what products or memory alone would take.

use super::{Layout, Ntt};
use crate::backend::cuda::bench::{median, scalars, sizes, Report};
use crate::backend::cuda::gpu::{Gpu, Words};
use crate::backend::cuda::quotient::Quotient;
use crate::backend::Figure;
use crate::error::Result;

/// Products of 32-bit limbs to 64 bits that an H200 computes in a millisecond, on 132 multiprocessors.
const PRODUCTS: f64 = 7.6e9;
/// Bytes that it reads and writes in a millisecond.
pub(in crate::backend::cuda) const BYTES: f64 = 4.3e9;

/// Limb products of a multiplication by a constant.
const CONSTANT: f64 = 86.0;
/// Limb products of a multiplication by i.
const BY_I: f64 = 62.0;
/// Limb products of a multiplication of two variables.
const GENERAL: f64 = 112.0;
/// Limb products of an element in a transform of eight.
const EIGHT: f64 = (2.0 * BY_I + 2.0 * CONSTANT) / 8.0;

/// Limb products of an element in a pass over `bits` bits, without factors between passes.
fn pass(bits: u32) -> f64 {
    let layers = bits.div_ceil(3).saturating_sub(1);
    let first = match bits - 3 * layers {
        0 | 1 => 0.0,
        2 => 2.0 * BY_I / 8.0,
        _ => EIGHT,
    };
    first + f64::from(layers) * (EIGHT + 7.0 / 8.0 * CONSTANT)
}

/// Limb products of an element in a transform, and its passes over memory.
fn transform(layout: Layout) -> (f64, f64) {
    let passes = pass(layout.first) + pass(layout.second) + pass(layout.third);
    // Two products and a quotient for every constant of a merged layer, and one more product in that layer.
    let merged = (3.0 * CONSTANT + 36.0) / 8.0;
    match layout.has_three_passes() {
        true => (passes + 2.0 * CONSTANT + merged, 3.0),
        false => (passes + CONSTANT, 2.0),
    }
}

fn figure(gpu: &Gpu, name: String, log_size: u32, milliseconds: f64, (products, passes): (f64, f64)) -> Figure {
    let elements = (1u64 << log_size) as f64;
    let rate = PRODUCTS * f64::from(gpu.properties().multiprocessors) / 132.0;
    let floor = (products * elements / rate).max(64.0 * passes * elements / BYTES);
    Figure { name, milliseconds, floor }
}

/// Times the transforms and the quotient of one size.
fn of_size(gpu: &Gpu, log_size: u32, report: Report<'_>) -> Result<()> {
    let stream = gpu.stream()?;
    let size = 1usize << log_size;
    let (a, b) = (scalars(gpu, &stream, size, 1)?, scalars(gpu, &stream, size, 2)?);
    let (c, top) = (gpu.allocate::<Words>(size, "scalars")?, gpu.allocate::<Words>(1, "scalars")?);
    let (a, b, c, top) = (a.span(), b.span(), c.span(), top.span());
    let ntt = Ntt::new(gpu, log_size)?;
    let one = transform(ntt.layout());
    let mut transform = |name: &str, products: f64, milliseconds: f64| {
        let cost = (one.0 + products, one.1);
        report(figure(gpu, format!("{name} transform, 2^{log_size} elements"), log_size, milliseconds, cost))
    };
    transform("forward", 0.0, median(gpu, &stream, || ntt.forward(&stream, a))?)?;
    transform("inverse", 0.0, median(gpu, &stream, || ntt.inverse(&stream, a))?)?;
    transform("coset", CONSTANT, median(gpu, &stream, || ntt.coset_forward(&stream, a))?)?;
    transform("inverse coset", CONSTANT, median(gpu, &stream, || ntt.coset_inverse(&stream, a))?)?;
    drop(ntt);
    let quotient = Quotient::new(gpu, log_size)?;
    let milliseconds = median(gpu, &stream, || quotient.run(&stream, a, b, c, top, &|| Ok(())))?;
    // Two changes to the coset and one back, and two products. Joined kernels save three and a half passes: the first
    // reads two vectors for three, two more read what was not written between two transforms, the last reads c too.
    let cost = (6.0 * one.0 + 3.0 * CONSTANT + 2.0 * GENERAL, 6.0 * one.1 - 3.5);
    report(figure(gpu, format!("quotient, 2^{log_size} rows"), log_size, milliseconds, cost))
}

/// Times the transforms at sizes up to 2^`largest`.
pub(in crate::backend::cuda) fn transforms(gpu: &Gpu, largest: u32, report: Report<'_>) -> Result<()> {
    sizes(&[22, 24, 27], largest).into_iter().try_for_each(|log| of_size(gpu, log, report))
}

#[cfg(all(test, feature = "emulator"))]
mod tests {
    use super::*;
    use crate::backend::cuda::testing;

    #[test]
    fn figures_are_made_for_small_sizes() {
        let gpu = testing::gpu();
        let mut figures = Vec::new();
        let mut keep = |figure| {
            figures.push(figure);
            Ok(())
        };
        of_size(&gpu, 8, &mut keep).unwrap();
        assert_eq!(figures.len(), 5);
        assert!(figures.iter().all(|figure| figure.floor > 0.0 && figure.milliseconds >= 0.0));
    }
}
