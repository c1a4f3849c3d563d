//! What sums of points need of an instruction set, and the portable answer. Knows no scalars.

use crate::curve::{AffinePoint, BatchAdder};

/// A table index with a sign: bit 31 asks for the negative of the point at bits 0..31.
pub(crate) type Reference = u32;

/// The sign of a [`Reference`].
pub(crate) const NEGATIVE: Reference = 1 << 31;

/// Refers to no point: the accumulator stays as it is.
pub(crate) const NONE: Reference = u32::MAX;

/// Batched affine additions on `WIDTH` accumulators at a time. A value holds one thread's scratch.
///
/// Additions are complete: equal, opposite and infinite operands are ordinary.
pub(crate) trait PointLane: Sized {
    /// The curve's affine point in memory.
    type Point: AffinePoint;
    /// A point in the form in which this lane reads and writes tables.
    type Entry: Copy + Send + Sync;
    /// `WIDTH` accumulators.
    type Group: Copy + Send + Sync;

    /// Accumulators in a group.
    const WIDTH: usize;
    /// Groups that share one inversion well.
    const BATCH: usize;

    /// A lane with its scratch.
    fn new() -> Self;

    /// The point at infinity.
    fn infinity() -> Self::Entry;

    /// A group whose accumulators are all `entry`.
    fn group(&mut self, entry: &Self::Entry) -> Self::Group;

    /// Points as table entries; both slices have one length.
    fn encode(&mut self, points: &[Self::Point], entries: &mut [Self::Entry]);

    /// `points` as entries if they are that already, so that no copy is needed.
    fn as_entries(points: &[Self::Point]) -> Option<&[Self::Entry]>;

    /// An entry as a point.
    fn decode(entry: &Self::Entry) -> Self::Point;

    /// Sets accumulators to the points of `references`, `WIDTH` a group; infinity for [`NONE`].
    fn load(&mut self, groups: &mut [Self::Group], table: &[Self::Entry], references: &[Reference]);

    /// Adds the points of `references` to the accumulators, `WIDTH` a group. `hint` is called once for each group
    /// with its number, where there is time to ask memory for what comes next.
    fn add(
        &mut self,
        groups: &mut [Self::Group],
        table: &[Self::Entry],
        references: &[Reference],
        hint: impl FnMut(usize),
    );

    /// Adds other accumulators to the accumulators, lane by lane.
    fn add_groups(&mut self, groups: &mut [Self::Group], others: &[Self::Group]);

    /// The accumulators as table entries, `WIDTH` a group.
    fn store(&mut self, groups: &[Self::Group], entries: &mut [Self::Entry]);
}

/// blst's field functions, one point at a time.
pub(crate) struct Portable<P: AffinePoint> {
    adder: BatchAdder<P>,
}

#[inline(always)]
fn fetch<P: AffinePoint>(table: &[P], reference: Reference) -> P {
    if reference == NONE {
        return P::INFINITY;
    }
    let mut point = table[(reference & !NEGATIVE) as usize];
    if reference & NEGATIVE != 0 {
        use crate::curve::Coordinate;
        point.coordinates_mut().1.negate();
    }
    point
}

impl<P: AffinePoint> PointLane for Portable<P> {
    type Point = P;
    type Entry = P;
    type Group = P;

    const WIDTH: usize = 1;
    const BATCH: usize = 768;

    fn new() -> Self {
        Portable { adder: BatchAdder::new() }
    }

    fn infinity() -> P {
        P::INFINITY
    }

    fn group(&mut self, entry: &P) -> P {
        *entry
    }

    fn encode(&mut self, points: &[P], entries: &mut [P]) {
        entries.copy_from_slice(points);
    }

    fn as_entries(points: &[P]) -> Option<&[P]> {
        Some(points)
    }

    fn decode(entry: &P) -> P {
        *entry
    }

    fn load(&mut self, groups: &mut [P], table: &[P], references: &[Reference]) {
        for (group, reference) in groups.iter_mut().zip(references) {
            *group = fetch(table, *reference);
        }
    }

    fn add(&mut self, groups: &mut [P], table: &[P], references: &[Reference], mut hint: impl FnMut(usize)) {
        let groups = &mut groups[..references.len()];
        self.adder.add_with(groups, |index| {
            hint(index);
            fetch(table, references[index])
        });
    }

    fn add_groups(&mut self, groups: &mut [P], others: &[P]) {
        self.adder.add(groups, others);
    }

    fn store(&mut self, groups: &[P], entries: &mut [P]) {
        entries.copy_from_slice(groups);
    }
}

/// Asks for all of a value to be brought near the core. Does nothing to memory, so any address will do.
#[inline(always)]
pub(crate) fn prefetch<T>(value: *const T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_mm_prefetch, _MM_HINT_T1};
        let last = size_of::<T>().saturating_sub(1);
        // An unaligned value may reach into one more cache line than its size has: the last byte's.
        for byte in (0..last).step_by(64).chain([last]) {
            // SAFETY: prefetching has no effect on memory.
            unsafe { _mm_prefetch::<_MM_HINT_T1>(value.cast::<i8>().wrapping_add(byte)) };
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = value;
}
