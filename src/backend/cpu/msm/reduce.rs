//! From bucket sums to the window's sum: bucket b counts b + 1 times. Knows no scalars.
//!
//! The buckets are cut into segments that advance together from their top bucket down: `running` is the sum of
//! the buckets so far, `total` the sum of all values of `running`.

use group::Group;
use rayon::prelude::*;

use crate::backend::cpu::lane::{PointLane, Reference};
use crate::curve::AffinePoint;
use crate::error::Result;
use crate::pipeline::Control;

/// Buckets that one task reduces.
const BLOCK: usize = 1 << 14;

/// Segments of a block, if each has at least [`SHORTEST`] buckets.
const SEGMENTS: usize = 512;
const SHORTEST: usize = 8;

type Curve<L> = <<L as PointLane>::Point as AffinePoint>::Projective;

/// The sum of `(b + 1) * sums[b]`; the number of sums is a power of two.
pub(super) fn weighted_sum<L: PointLane>(sums: &[L::Entry], control: &Control) -> Result<Curve<L>> {
    let blocks: Vec<_> = sums.par_chunks(BLOCK).map(|block| block_sums::<L>(block, control)).collect::<Result<_>>()?;
    Ok(join(blocks.into_iter(), BLOCK.min(sums.len())))
}

/// The plain sum of a block and its weighted sum, with weights from 1.
fn block_sums<L: PointLane>(sums: &[L::Entry], control: &Control) -> Result<(Curve<L>, Curve<L>)> {
    let segments = SEGMENTS.min(sums.len() / SHORTEST);
    if segments < 2 * L::WIDTH.max(4) {
        return Ok(plainly::<L>(sums));
    }
    let len = sums.len() / segments;
    let mut lane = L::new();
    let at = |position: usize| -> Vec<Reference> {
        (0..segments).map(|segment| (segment * len + len - 1 - position) as Reference).collect()
    };
    let mut running = vec![lane.group(&L::infinity()); segments / L::WIDTH];
    lane.load(&mut running, sums, &at(0));
    let mut total = running.clone();
    for position in 1..len {
        control.check("a multi-scalar multiplication")?;
        lane.add(&mut running, sums, &at(position), |_| {});
        lane.add_groups(&mut total, &running);
    }
    let mut entries = [vec![L::infinity(); segments], vec![L::infinity(); segments]];
    lane.store(&running, &mut entries[0]);
    lane.store(&total, &mut entries[1]);
    let point = |entry: &L::Entry| Curve::<L>::from(L::decode(entry));
    let pairs = entries[0].iter().map(point).zip(entries[1].iter().map(point));
    let plain = entries[0].iter().map(L::decode).fold(Curve::<L>::identity(), |mut sum, point| {
        sum += &point;
        sum
    });
    Ok((plain, join(pairs, len)))
}

/// The weighted sum of consecutive segments of `len` buckets, each given as its plain and its weighted sum:
/// segment s adds its weighted sum and `s * len` times its plain sum.
fn join<C: Group>(segments: impl DoubleEndedIterator<Item = (C, C)> + ExactSizeIterator, len: usize) -> C {
    let mut weighted = C::identity();
    let mut above = C::identity();
    let mut above_sum = C::identity();
    for (plain, own) in segments.rev() {
        // `above` is the sum of the segments beyond this one; each is counted once for every segment below it.
        above_sum += above;
        above += plain;
        weighted += own;
    }
    for _ in 0..len.trailing_zeros() {
        above_sum = above_sum.double();
    }
    weighted + above_sum
}

/// The same one bucket at a time.
fn plainly<L: PointLane>(sums: &[L::Entry]) -> (Curve<L>, Curve<L>) {
    let mut running = Curve::<L>::identity();
    let mut total = Curve::<L>::identity();
    for entry in sums.iter().rev() {
        running += &L::decode(entry);
        total += running;
    }
    (running, total)
}
