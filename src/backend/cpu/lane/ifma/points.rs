//! Batched affine additions, eight accumulators a group. Knows no scalars.
//!
//! Between operations coordinates are small ([`Wide`]). Infinity has all bits zero, and nothing else has
//! y = 0: the orders of both curves are odd, and no operation yields the integer 0 from another value.

use std::arch::x86_64::*;

use blstrs::{G1Affine, G2Affine};

use super::field::Vector;
use super::wide::{Pair, Wide};
use crate::backend::cpu::lane::points::{prefetch, PointLane, Reference, NEGATIVE, NONE};
use crate::curve::AffinePoint;

/// Additions in G1.
pub(crate) type G1 = Lane<G1Affine, Vector<8>>;

/// Additions in G2.
pub(crate) type G2 = Lane<G2Affine, Pair>;

/// A point in memory, x and y by limbs, on whole cache lines.
#[derive(Clone, Copy)]
#[repr(C, align(128))]
pub(crate) struct Entry<M>([M; 2]);

/// Eight accumulators.
#[derive(Clone, Copy)]
pub(crate) struct Group<W> {
    x: W,
    y: W,
}

/// Independent products in flight.
const CHAINS: usize = 4;

/// What happens in each lane of a group.
#[derive(Clone, Copy)]
struct Step {
    /// Subtract the addend instead of adding it.
    negative: __mmask8,
    /// Lanes that do anything but add different points.
    special: __mmask8,
    /// Lanes that double their accumulator.
    double: __mmask8,
    /// Lanes that become their addend.
    take: __mmask8,
    /// Lanes that become infinity.
    clear: __mmask8,
}

/// The lane of one curve and its scratch.
pub(crate) struct Lane<P, W: Wide> {
    denominators: Vec<W>,
    /// Products of the denominators before this one in its chain.
    products: Vec<W>,
    addends: Vec<Group<W>>,
    steps: Vec<Step>,
    curve: std::marker::PhantomData<P>,
}

// SAFETY: (all blocks of this impl) `new` made sure that the instructions are available.
impl<W: Wide, P: AffinePoint<Field = W::Element>> PointLane for Lane<P, W> {
    type Point = P;
    type Entry = Entry<W::Memory>;
    type Group = Group<W>;

    const WIDTH: usize = 8;
    const BATCH: usize = W::BATCH;

    fn new() -> Self {
        assert!(super::available());
        let step = Step { negative: 0, special: 0, double: 0, take: 0, clear: 0 };
        Lane {
            denominators: vec![W::ZERO; W::BATCH],
            products: vec![W::ZERO; W::BATCH],
            addends: vec![Group { x: W::ZERO, y: W::ZERO }; W::BATCH],
            steps: vec![step; W::BATCH],
            curve: std::marker::PhantomData,
        }
    }

    fn infinity() -> Self::Entry {
        Entry([W::ZERO_MEMORY; 2])
    }

    fn group(&mut self, entry: &Self::Entry) -> Group<W> {
        unsafe { broadcast(entry) }
    }

    fn encode(&mut self, points: &[P], entries: &mut [Self::Entry]) {
        assert_eq!(points.len(), entries.len());
        for (points, entries) in points.chunks(8).zip(entries.chunks_mut(8)) {
            unsafe { encode::<W, P>(points, entries) };
        }
    }

    fn as_entries(_: &[P]) -> Option<&[Self::Entry]> {
        None
    }

    fn decode(entry: &Self::Entry) -> P {
        let mut point = P::INFINITY;
        let (x, y) = point.coordinates_mut();
        *x = W::to_blst(&entry.0[0]);
        *y = W::to_blst(&entry.0[1]);
        point
    }

    fn load(&mut self, groups: &mut [Group<W>], table: &[Self::Entry], references: &[Reference]) {
        unsafe { load(groups, table, references) }
    }

    fn add(&mut self, groups: &mut [Group<W>], table: &[Self::Entry], references: &[Reference], next: &[Reference]) {
        unsafe { add_references(self, groups, table, references, next) }
    }

    fn add_groups(&mut self, groups: &mut [Group<W>], others: &[Group<W>]) {
        unsafe { add_groups(self, groups, others) }
    }

    fn store(&mut self, groups: &[Group<W>], entries: &mut [Self::Entry]) {
        for (group, entries) in groups.iter().zip(entries.chunks_mut(8)) {
            unsafe { store(group, entries) };
        }
    }
}

#[target_feature(enable = "avx512f,avx512ifma,avx512vl,avx512dq,avx512bw,avx512vbmi")]
fn broadcast<W: Wide>(entry: &Entry<W::Memory>) -> Group<W> {
    Group { x: W::broadcast(&entry.0[0]), y: W::broadcast(&entry.0[1]) }
}

/// At most eight points.
#[target_feature(enable = "avx512f,avx512ifma,avx512vl,avx512dq,avx512bw,avx512vbmi")]
fn encode<W: Wide, P: AffinePoint<Field = W::Element>>(points: &[P], entries: &mut [Entry<W::Memory>]) {
    let padding = P::INFINITY;
    let point = |lane: usize| points.get(lane).unwrap_or(&padding);
    let group = Group::<W> {
        x: W::from_blst(std::array::from_fn(|lane| point(lane).x())),
        y: W::from_blst(std::array::from_fn(|lane| point(lane).y())),
    };
    store(&group, entries);
}

/// The first accumulators of a group, as many as there are entries.
#[target_feature(enable = "avx512f,avx512ifma,avx512vl,avx512dq,avx512bw,avx512vbmi")]
fn store<W: Wide>(group: &Group<W>, entries: &mut [Entry<W::Memory>]) {
    for (entry, (x, y)) in entries.iter_mut().zip(group.x.store().iter().zip(&group.y.store())) {
        *entry = Entry([*x, *y]);
    }
}

/// Eight points of the table as they are, which of them are to be negated, and which exist at all (the others
/// are some point of the table).
#[inline]
#[target_feature(enable = "avx512f,avx512ifma,avx512vl,avx512dq,avx512bw,avx512vbmi")]
fn gather<W: Wide>(table: &[Entry<W::Memory>], references: &[Reference; 8]) -> (Group<W>, __mmask8, __mmask8) {
    // SAFETY: reads eight references.
    let packed = unsafe { _mm256_loadu_si256(references.as_ptr().cast()) };
    let present = _mm256_cmpneq_epi32_mask(packed, _mm256_set1_epi32(NONE as i32));
    let negative = _mm256_movepi32_mask(packed) & present;
    let places = _mm256_maskz_and_epi32(present, packed, _mm256_set1_epi32(!NEGATIVE as i32));
    let inside = _mm256_cmplt_epu32_mask(places, _mm256_set1_epi32(table.len().min(1 << 31) as i32));
    assert!(inside == 0xff, "a reference points outside the table");
    let mut indices = [0u32; 8];
    // SAFETY: writes eight indices.
    unsafe { _mm256_storeu_si256(indices.as_mut_ptr().cast(), places) };
    // SAFETY: each index was compared with the table's length.
    let entries = indices.map(|index| unsafe { table.get_unchecked(index as usize) });
    let group = Group {
        x: W::load(std::array::from_fn(|lane| &entries[lane].0[0])),
        y: W::load(std::array::from_fn(|lane| &entries[lane].0[1])),
    };
    (group, negative, present)
}

#[inline]
fn eight(references: &[Reference], group: usize) -> &[Reference; 8] {
    references[8 * group..8 * group + 8].try_into().unwrap()
}

#[target_feature(enable = "avx512f,avx512ifma,avx512vl,avx512dq,avx512bw,avx512vbmi")]
fn load<W: Wide>(groups: &mut [Group<W>], table: &[Entry<W::Memory>], references: &[Reference]) {
    for (index, group) in groups.iter_mut().enumerate() {
        let references = eight(references, index);
        if references.iter().all(|reference| *reference == NONE) {
            *group = Group { x: W::ZERO, y: W::ZERO };
            continue;
        }
        let (points, negative, present) = gather::<W>(table, references);
        let negated = W::difference(&W::ZERO, &points.y);
        let y = W::choose(negative & !points.y.zero_lanes(), &points.y, &negated);
        group.x = W::choose(present, &W::ZERO, &points.x);
        group.y = W::choose(present, &W::ZERO, &y);
    }
}

#[target_feature(enable = "avx512f,avx512ifma,avx512vl,avx512dq,avx512bw,avx512vbmi")]
fn add_references<P, W: Wide>(
    lane: &mut Lane<P, W>,
    groups: &mut [Group<W>],
    table: &[Entry<W::Memory>],
    references: &[Reference],
    next: &[Reference],
) {
    assert_eq!(references.len(), 8 * groups.len());
    for (batch, groups) in groups.chunks_mut(W::BATCH).enumerate() {
        let first = batch * W::BATCH;
        batch_add(
            lane,
            groups,
            |index| gather(table, eight(references, first + index)),
            |index| {
                if 8 * (first + index) + 8 <= next.len() {
                    for reference in eight(next, first + index) {
                        if let Some(entry) = table.get((reference & !NEGATIVE) as usize) {
                            prefetch(entry);
                        }
                    }
                }
            },
        );
    }
}

#[target_feature(enable = "avx512f,avx512ifma,avx512vl,avx512dq,avx512bw,avx512vbmi")]
fn add_groups<P, W: Wide>(lane: &mut Lane<P, W>, groups: &mut [Group<W>], others: &[Group<W>]) {
    assert_eq!(groups.len(), others.len());
    for (groups, others) in groups.chunks_mut(W::BATCH).zip(others.chunks(W::BATCH)) {
        batch_add(lane, groups, |index| (others[index], 0, 0xff), |_| {});
    }
}

/// `groups[i] += addend(i)` with one inversion; `addend` gives points, their signs and which lanes take part.
/// `hint` is called once for each group while products keep the core busy.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma,avx512vl,avx512dq,avx512bw,avx512vbmi")]
fn batch_add<P, W: Wide>(
    lane: &mut Lane<P, W>,
    groups: &mut [Group<W>],
    mut addend: impl FnMut(usize) -> (Group<W>, __mmask8, __mmask8),
    mut hint: impl FnMut(usize),
) {
    let count = groups.len();
    assert!(count <= W::BATCH && lane.denominators.len() == W::BATCH && lane.products.len() == W::BATCH);
    assert!(lane.addends.len() == W::BATCH && lane.steps.len() == W::BATCH);
    let one = W::one();
    let mut chains = [one; CHAINS];
    for start in (0..count).step_by(CHAINS) {
        let end = (start + CHAINS).min(count);
        for (index, accumulator) in groups.iter().enumerate().take(end).skip(start) {
            let (point, negative, present) = addend(index);
            let difference = W::difference(&point.x, &accumulator.x);
            lane.addends[index] = point;
            lane.denominators[index] = difference;
            lane.steps[index] = Step { negative, special: 0, double: 0, take: 0, clear: 0 };
            let suspect = difference.suspect_lanes() | point.y.zero_lanes() | accumulator.y.zero_lanes();
            if suspect != 0 || present != 0xff {
                exceptions(lane, index, accumulator, present);
            }
        }
        for index in start..end {
            let chain = &mut chains[index - start];
            lane.products[index] = *chain;
            W::product(chain, &lane.products[index], &lane.denominators[index]);
        }
    }
    let mut inverses = invert(&chains);
    let mut scratch = [one; CHAINS];
    let mut slopes = [one; CHAINS];
    let mut results = [one; CHAINS];
    for start in (0..count).step_by(CHAINS).rev() {
        let width = CHAINS.min(count - start);
        for k in 0..width {
            W::product(&mut scratch[k], &inverses[k], &lane.products[start + k]);
            let last = inverses[k];
            W::product(&mut inverses[k], &last, &lane.denominators[start + k]);
        }
        for k in 0..width {
            hint(start + k);
            slopes[k] = numerator(&groups[start + k], &lane.addends[start + k], &lane.steps[start + k]);
        }
        for k in 0..width {
            let numerator = slopes[k];
            W::product(&mut slopes[k], &numerator, &scratch[k]);
        }
        // x = slope^2 - x1 - x2, y = slope (x1 - x) - y1
        for k in 0..width {
            W::squared(&mut scratch[k], &slopes[k]);
        }
        for k in 0..width {
            let (accumulator, point) = (&groups[start + k], &lane.addends[start + k]);
            results[k] = W::fold_less_two(&scratch[k], &accumulator.x, &point.x);
            scratch[k] = W::difference(&accumulator.x, &results[k]);
        }
        for k in 0..width {
            let run = scratch[k];
            W::product(&mut scratch[k], &slopes[k], &run);
        }
        for k in 0..width {
            let accumulator = &mut groups[start + k];
            let sum = Group { x: results[k], y: W::fold_less(&scratch[k], &accumulator.y) };
            let step = &lane.steps[start + k];
            if step.special == 0 {
                *accumulator = sum;
            } else {
                settle(accumulator, &sum, &lane.addends[start + k], step);
            }
        }
    }
}

/// Sorts out lanes with equal x, with infinity, and lanes that take no part; leaves denominators that can be
/// inverted. The addend gets its sign here.
#[cold]
#[inline(never)]
#[target_feature(enable = "avx512f,avx512ifma,avx512vl,avx512dq,avx512bw,avx512vbmi")]
fn exceptions<P, W: Wide>(lane: &mut Lane<P, W>, index: usize, accumulator: &Group<W>, present: __mmask8) {
    let negative = lane.steps[index].negative;
    let (point, denominator) = (&mut lane.addends[index], &mut lane.denominators[index]);
    let exists = present & !point.y.zero_lanes();
    let empty = accumulator.y.zero_lanes();
    let same_x = exists & !empty & denominator.multiple_lanes();
    point.y = W::choose(negative, &point.y, &W::difference(&W::ZERO, &point.y));
    let double = same_x & W::difference(&point.y, &accumulator.y).multiple_lanes();
    let ordinary = exists & !empty & !same_x;
    *denominator = W::choose(ordinary, &W::one(), denominator);
    *denominator = W::choose(double, denominator, &W::sum(&accumulator.y, &accumulator.y));
    lane.steps[index] = Step { negative: 0, special: !ordinary, double, take: exists & empty, clear: same_x & !double };
}

/// The slope's numerator: the difference of the y, or 3 x^2 where a point is doubled (both curves have a = 0).
#[inline]
#[target_feature(enable = "avx512f,avx512ifma,avx512vl,avx512dq,avx512bw,avx512vbmi")]
fn numerator<W: Wide>(accumulator: &Group<W>, point: &Group<W>, step: &Step) -> W {
    let chord = W::signed_difference(&accumulator.y, &point.y, step.negative);
    if step.double == 0 {
        return chord;
    }
    let mut square = W::ZERO;
    W::squared(&mut square, &accumulator.x);
    W::choose(step.double, &chord, &W::sum(&W::sum(&square, &square), &square))
}

/// Writes the lanes that are not ordinary sums as they must be.
#[cold]
#[inline(never)]
#[target_feature(enable = "avx512f,avx512ifma,avx512vl,avx512dq,avx512bw,avx512vbmi")]
fn settle<W: Wide>(accumulator: &mut Group<W>, sum: &Group<W>, point: &Group<W>, step: &Step) {
    let moved = !step.special | step.double;
    let each = |old: &W, sum: &W, point: &W| {
        let value = W::choose(moved, old, sum);
        let value = W::choose(step.take, &value, point);
        W::choose(step.clear, &value, &W::ZERO)
    };
    accumulator.x = each(&accumulator.x, &sum.x, &point.x);
    accumulator.y = each(&accumulator.y, &sum.y, &point.y);
}

/// The inverses of all lanes of all chains, none of which is zero, by one inversion.
#[inline(never)]
#[target_feature(enable = "avx512f,avx512ifma,avx512vl,avx512dq,avx512bw,avx512vbmi")]
fn invert<W: Wide>(chains: &[W; CHAINS]) -> [W; CHAINS] {
    let mut products = *chains;
    for k in 1..CHAINS {
        let last = products[k - 1];
        W::product(&mut products[k], &last, &chains[k]);
    }
    let mut inverse = products[CHAINS - 1].inverse();
    let mut inverses = *chains;
    for k in (1..CHAINS).rev() {
        W::product(&mut inverses[k], &inverse, &products[k - 1]);
        let last = inverse;
        W::product(&mut inverse, &last, &chains[k]);
    }
    inverses[0] = inverse;
    inverses
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::curve::Coordinate as _;
    use blstrs::Scalar;
    use ff::Field as _;
    use group::{Curve as _, Group as _};
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    /// Infinity and points that are equal, opposite and unrelated.
    fn pool<P: AffinePoint>(rng: &mut StdRng) -> Vec<P> {
        let mut points = vec![P::INFINITY];
        for _ in 0..3 {
            let point = (P::Projective::generator() * Scalar::random(&mut *rng)).to_affine();
            points.extend([point, -point]);
        }
        points
    }

    fn signed<P: AffinePoint>(points: &[P], reference: Reference) -> P {
        match reference {
            NONE => P::INFINITY,
            _ if reference & NEGATIVE != 0 => -points[(reference & !NEGATIVE) as usize],
            _ => points[reference as usize],
        }
    }

    fn walks_equal_projective_additions<L: PointLane>() {
        let mut rng = StdRng::seed_from_u64(1);
        let points = pool::<L::Point>(&mut rng);
        let mut lane = L::new();
        let mut table = vec![L::infinity(); points.len()];
        lane.encode(&points, &mut table);
        assert!(table.iter().map(L::decode).eq(points.iter().copied()));
        for groups in [1, 2, 3, 4, 5, 17, L::BATCH, L::BATCH + 1] {
            let row = |rng: &mut StdRng| -> Vec<Reference> {
                let pick = |rng: &mut StdRng| match rng.gen_range(0..10) {
                    0 => NONE,
                    _ => rng.gen_range(0..points.len() as u32) | if rng.gen() { NEGATIVE } else { 0 },
                };
                (0..8 * groups).map(|_| pick(rng)).collect()
            };
            let mut references = row(&mut rng);
            let mut sums = vec![lane.group(&L::infinity()); groups];
            lane.load(&mut sums, &table, &references);
            let mut expected: Vec<<L::Point as AffinePoint>::Projective> =
                references.iter().map(|reference| signed(&points, *reference).into()).collect();
            for round in 0..40 {
                references = row(&mut rng);
                if round % 10 == 9 {
                    let others = sums.clone();
                    lane.add_groups(&mut sums, &others);
                    expected.iter_mut().for_each(|sum| *sum = sum.double());
                } else {
                    lane.add(&mut sums, &table, &references, &[]);
                    for (sum, reference) in expected.iter_mut().zip(&references) {
                        *sum += &signed(&points, *reference);
                    }
                }
                let mut entries = vec![L::infinity(); groups * 8];
                lane.store(&sums, &mut entries);
                for (entry, expected) in entries.iter().zip(&expected) {
                    assert!(L::decode(entry) == expected.to_affine(), "{groups} groups, round {round}");
                }
            }
        }
    }

    #[test]
    fn ifma_walks_through_every_exception_equal_projective_additions() {
        if crate::backend::cpu::lane::ifma::available() {
            walks_equal_projective_additions::<G1>();
            walks_equal_projective_additions::<G2>();
        }
    }

    /// Coordinates of distinct random-looking points stay below 2 p over many rounds.
    fn sums_stay_small<L: PointLane<Entry = Entry<M>>, M: Copy + Send + Sync + AsLimbs>() {
        let mut rng = StdRng::seed_from_u64(2);
        let mut step = <L::Point as AffinePoint>::Projective::generator() * Scalar::random(&mut rng);
        let points: Vec<L::Point> = (0..500)
            .map(|_| {
                step = step.double();
                step.to_affine()
            })
            .collect();
        let mut lane = L::new();
        let mut table = vec![L::infinity(); points.len()];
        lane.encode(&points, &mut table);
        let row = |rng: &mut StdRng| -> Vec<Reference> {
            (0..8 * L::BATCH).map(|_| rng.gen_range(0..500) | if rng.gen() { NEGATIVE } else { 0 }).collect()
        };
        let mut sums = vec![lane.group(&L::infinity()); L::BATCH];
        lane.load(&mut sums, &table, &row(&mut rng));
        for _ in 0..50 {
            let references = row(&mut rng);
            lane.add(&mut sums, &table, &references, &[]);
            let mut entries = vec![L::infinity(); 8 * L::BATCH];
            lane.store(&sums, &mut entries);
            for limbs in entries.iter().flat_map(|entry| entry.0.iter().flat_map(AsLimbs::parts)) {
                assert!(super::super::wide::is_small(&limbs));
            }
        }
    }

    trait AsLimbs {
        fn parts(&self) -> Vec<[u64; 8]>;
    }

    impl AsLimbs for [u64; 8] {
        fn parts(&self) -> Vec<[u64; 8]> {
            vec![*self]
        }
    }

    impl AsLimbs for [[u64; 8]; 2] {
        fn parts(&self) -> Vec<[u64; 8]> {
            self.to_vec()
        }
    }

    #[test]
    fn ifma_sums_stay_within_the_bounds_that_zero_tests_rely_on() {
        if crate::backend::cpu::lane::ifma::available() {
            sums_stay_small::<G1, _>();
            sums_stay_small::<G2, _>();
        }
    }

    #[test]
    fn an_off_curve_point_does_not_spoil_the_others_of_its_batch() {
        if !crate::backend::cpu::lane::ifma::available() {
            return;
        }
        let generator: G1Affine = group::prime::PrimeCurveAffine::generator();
        let mut broken = G1Affine::INFINITY;
        *broken.coordinates_mut().0 = blst::blst_fp::ONE;
        let mut lane = G1::new();
        let mut table = vec![G1::infinity(); 2];
        lane.encode(&[broken, generator], &mut table);
        let mut sums = vec![lane.group(&G1::infinity()); 1];
        let references = [0, 1, NONE, 0, 1, 1, 1, 0];
        lane.load(&mut sums, &table, &references);
        lane.add(&mut sums, &table, &references, &[]);
        let mut entries = vec![G1::infinity(); 8];
        lane.store(&sums, &mut entries);
        let double = blstrs::G1Projective::from(generator).double().to_affine();
        assert!([1, 4, 5, 6].iter().all(|lane| G1::decode(&entries[*lane]) == double));
    }
}
