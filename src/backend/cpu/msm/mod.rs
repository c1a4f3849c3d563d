//! Multi-scalar multiplication for full-width scalars: Pippenger's buckets in affine coordinates.
//! Knows no protocol.
//!
//! Scratch for many points in G1: bucket sums (94 MB, with IFMA 126 MB), digits and table of a chunk (31 MB and
//! 50 MB, with IFMA 67 MB) and, for each window in work, references and pieces (5 MB): about 200 MB in all; in G2
//! bucket sums and table take twice as much. Fewer points need fewer buckets: 2^16 points take 25 MB.

mod buckets;
mod digits;
mod reduce;

use blstrs::{G1Affine, G1Projective, G2Affine, G2Projective, Scalar};
use group::Group;
use rayon::prelude::*;

#[cfg(target_arch = "x86_64")]
use super::lane::ifma;
use super::lane::{Best, Lanes, PointLane, Portable};
use crate::curve::AffinePoint;
use crate::error::{Error, Result};
use crate::memory::huge_vec;
use crate::pipeline::Control;

/// Points whose digits are sorted together.
const CHUNK: usize = 1 << 19;

/// Below this many points, buckets do not pay.
const FEW: usize = 64;

/// How scalars are cut into digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Windows {
    /// Bits of a digit.
    bits: usize,
    /// Digits of a scalar.
    count: usize,
}

impl Windows {
    fn new(bits: usize) -> Self {
        Windows { bits, count: 255usize.div_ceil(bits) }
    }

    /// Magnitudes other than zero that a digit may have.
    fn buckets(&self) -> usize {
        1 << (self.bits - 1)
    }

    /// The windows with the fewest additions for `points` points: one for each point and window, two for each
    /// bucket. 17 bits bound the memory of the bucket sums, and cost at most 4 % more than the best for 2^23.
    fn for_points(points: usize) -> Self {
        let additions = |windows: &Windows| windows.count * (points + 2 * windows.buckets());
        (2..=17).map(Windows::new).min_by_key(additions).unwrap_or(Windows::new(17))
    }
}

/// The sum of `scalars[i] * bases[i]` in G1.
pub fn msm_g1(bases: &[G1Affine], scalars: &[Scalar], lanes: Lanes, control: &Control) -> Result<G1Projective> {
    match lanes.best() {
        #[cfg(target_arch = "x86_64")]
        Best::Ifma => sum::<ifma::G1>(bases, scalars, control),
        Best::Portable => sum::<Portable<G1Affine>>(bases, scalars, control),
    }
}

/// The sum of `scalars[i] * bases[i]` in G2.
pub fn msm_g2(bases: &[G2Affine], scalars: &[Scalar], lanes: Lanes, control: &Control) -> Result<G2Projective> {
    match lanes.best() {
        #[cfg(target_arch = "x86_64")]
        Best::Ifma => sum::<ifma::G2>(bases, scalars, control),
        Best::Portable => sum::<Portable<G2Affine>>(bases, scalars, control),
    }
}

/// Bytes that a sum of so many points takes beside points and scalars: in G1, and in G2.
pub(super) fn scratch_bytes(points: usize, lanes: Lanes, threads: usize) -> (u64, u64) {
    match lanes.best() {
        #[cfg(target_arch = "x86_64")]
        Best::Ifma => (scratch::<ifma::G1>(points, threads), scratch::<ifma::G2>(points, threads)),
        Best::Portable => {
            (scratch::<Portable<G1Affine>>(points, threads), scratch::<Portable<G2Affine>>(points, threads))
        }
    }
}

fn scratch<L: PointLane>(points: usize, threads: usize) -> u64 {
    if points < FEW {
        return 0;
    }
    let (windows, chunk) = (Windows::for_points(points), CHUNK.min(points));
    let entry = size_of::<L::Entry>();
    let sums = windows.count * windows.buckets() * entry;
    let chunk_bytes = windows.count * chunk * size_of::<u32>() + chunk * entry;
    let sorted = buckets::scratch_bytes(chunk, windows.buckets());
    (sums + chunk_bytes + threads.min(windows.count) * sorted + threads * buckets::rows_bytes::<L>()) as u64
}

type Curve<L> = <<L as PointLane>::Point as AffinePoint>::Projective;

fn sum<L: PointLane>(bases: &[L::Point], scalars: &[Scalar], control: &Control) -> Result<Curve<L>> {
    if bases.len() != scalars.len() {
        return Err(Error::internal(format!("{} scalars for {} points", scalars.len(), bases.len())));
    }
    if bases.len() < FEW {
        return few::<L::Point>(bases, scalars, control);
    }
    sum_in_windows::<L>(bases, scalars, Windows::for_points(bases.len()), CHUNK, control)
}

/// One scalar multiplication a point.
fn few<P: AffinePoint>(bases: &[P], scalars: &[Scalar], control: &Control) -> Result<P::Projective> {
    let terms = bases.par_iter().zip(scalars).map(|(base, scalar)| {
        control.check("a multi-scalar multiplication")?;
        Ok(P::Projective::from(*base) * scalar)
    });
    terms.try_reduce(P::Projective::identity, |a, b| Ok(a + b))
}

fn sum_in_windows<L: PointLane>(
    bases: &[L::Point],
    scalars: &[Scalar],
    windows: Windows,
    chunk: usize,
    control: &Control,
) -> Result<Curve<L>> {
    let mut sums = huge_vec(L::infinity(), windows.count * windows.buckets());
    let mut digits = huge_vec(0, windows.count * chunk.min(bases.len()));
    let mut table = huge_vec(L::infinity(), chunk.min(bases.len()));
    for (index, (bases, scalars)) in bases.chunks(chunk).zip(scalars.chunks(chunk)).enumerate() {
        control.check("a multi-scalar multiplication")?;
        let digits = &mut digits[..windows.count * bases.len()];
        digits::split(scalars, windows, digits);
        let table = &mut table[..bases.len()];
        encode::<L>(bases, table, control)?;
        let table = &*table;
        sums.par_chunks_mut(windows.buckets())
            .zip(digits.par_chunks(bases.len()))
            .try_for_each(|(sums, digits)| buckets::accumulate::<L>(table, digits, sums, index == 0, control))?;
    }
    let window_sums: Vec<_> = sums
        .par_chunks(windows.buckets())
        .map(|sums| reduce::weighted_sum::<L>(sums, control))
        .collect::<Result<_>>()?;
    let mut result = Curve::<L>::identity();
    for window_sum in window_sums.into_iter().rev() {
        for _ in 0..windows.bits {
            result = result.double();
        }
        result += window_sum;
    }
    Ok(result)
}

/// Writes the points in the lane's own form. Where that is the points' own form, a copy still pays: the table
/// lies on huge pages, and every point is looked up once a window at a random place.
fn encode<L: PointLane>(bases: &[L::Point], table: &mut [L::Entry], control: &Control) -> Result<()> {
    const RUN: usize = 1 << 13;
    table.par_chunks_mut(RUN).zip(bases.par_chunks(RUN)).try_for_each(|(entries, bases)| {
        control.check("a multi-scalar multiplication")?;
        L::new().encode(bases, entries);
        Ok(())
    })
}

#[cfg(test)]
mod tests;
