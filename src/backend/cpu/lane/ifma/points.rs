//! Batched affine additions, eight accumulators a group. Knows no scalars.
//!
//! Between operations coordinates are small ([`Wide`]). Infinity has all bits zero, and nothing else has
//! y = 0: the orders of both curves are odd, and no operation yields the integer 0 from another value.

use std::arch::x86_64::*;

use blstrs::{G1Affine, G2Affine};

use super::field::Vector;
use super::wide::{Pair, Wide};
use crate::backend::cpu::lane::points::{PointLane, Reference, NEGATIVE, NONE};
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
    /// One, then a denominator for each group.
    denominators: Vec<W>,
    /// At i + 1 the product of the denominators before group i in its chain.
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
            denominators: vec![W::one(); W::BATCH + 1],
            products: vec![W::one(); W::BATCH + 1 + CHAINS],
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
        *x = W::to_blst_x(&entry.0[0]);
        *y = W::to_blst_y(&entry.0[1]);
        point
    }

    fn load(&mut self, groups: &mut [Group<W>], table: &[Self::Entry], references: &[Reference]) {
        unsafe { load(groups, table, references) }
    }

    fn add(
        &mut self,
        groups: &mut [Group<W>],
        table: &[Self::Entry],
        references: &[Reference],
        hint: impl FnMut(usize),
    ) {
        unsafe { add_references(self, groups, table, references, hint) }
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
        x: W::from_blst_x(std::array::from_fn(|lane| point(lane).x())),
        y: W::from_blst_y(std::array::from_fn(|lane| point(lane).y())),
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

/// Eight places in the table, which of their points are to be negated, and which exist at all (the others are some
/// point of the table).
#[inline]
#[target_feature(enable = "avx512f,avx512ifma,avx512vl,avx512dq,avx512bw,avx512vbmi")]
fn look_up<'a, M>(table: &'a [Entry<M>], references: &[Reference; 8]) -> ([&'a [M; 2]; 8], __mmask8, __mmask8) {
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
    let points = indices.map(|index| unsafe { &table.get_unchecked(index as usize).0 });
    (points, negative, present)
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
        let (points, negative, present) = look_up(table, references);
        let [x, y] = [0, 1].map(|part| W::load(points.map(|point| &point[part])));
        let negated = W::difference(&W::ZERO, &y);
        let y = W::choose(negative & !y.zero_lanes(), &y, &negated);
        group.x = W::choose(present, &W::ZERO, &x);
        group.y = W::choose(present, &W::ZERO, &y);
    }
}

#[target_feature(enable = "avx512f,avx512ifma,avx512vl,avx512dq,avx512bw,avx512vbmi")]
fn add_references<P, W: Wide>(
    lane: &mut Lane<P, W>,
    groups: &mut [Group<W>],
    table: &[Entry<W::Memory>],
    references: &[Reference],
    mut hint: impl FnMut(usize),
) {
    assert_eq!(references.len(), 8 * groups.len());
    for (batch, groups) in groups.chunks_mut(W::BATCH).enumerate() {
        let first = batch * W::BATCH;
        batch_add(
            lane,
            groups,
            |index, (product, a, b), x, point, difference| {
                let (points, negative, present) = look_up(table, eight(references, first + index));
                W::product_and_load(product, a, b, points, x, (&mut point.x, &mut point.y), difference);
                (negative, present)
            },
            |index| hint(first + index),
        );
    }
}

#[target_feature(enable = "avx512f,avx512ifma,avx512vl,avx512dq,avx512bw,avx512vbmi")]
fn add_groups<P, W: Wide>(lane: &mut Lane<P, W>, groups: &mut [Group<W>], others: &[Group<W>]) {
    assert_eq!(groups.len(), others.len());
    for (groups, others) in groups.chunks_mut(W::BATCH).zip(others.chunks(W::BATCH)) {
        batch_add(
            lane,
            groups,
            |index, (product, a, b), x, point, difference| {
                W::product(product, a, b);
                *point = others[index];
                *difference = W::difference(&point.x, x);
                (0, 0xff)
            },
            |_| {},
        );
    }
}

/// `groups[i] += addend(i)` with one inversion. `addend` writes points and the differences of their x and those that
/// it is given, and returns which points to subtract and which lanes take part; beside that it computes a product.
/// `hint` is called once for each group while products keep the core busy.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma,avx512vl,avx512dq,avx512bw,avx512vbmi")]
fn batch_add<P, W: Wide>(
    lane: &mut Lane<P, W>,
    groups: &mut [Group<W>],
    mut addend: impl FnMut(usize, (&mut W, &W, &W), &W, &mut Group<W>, &mut W) -> (__mmask8, __mmask8),
    mut hint: impl FnMut(usize),
) {
    let count = groups.len();
    assert!(count <= W::BATCH && lane.addends.len() == W::BATCH && lane.steps.len() == W::BATCH);
    assert!(lane.denominators.len() == W::BATCH + 1 && lane.products.len() == W::BATCH + 1 + CHAINS);
    // The product beside group i continues the chain of group i - 1; for the first group it is one times one.
    for (index, accumulator) in groups.iter().enumerate() {
        let (before, after) = lane.products.split_at_mut(index + CHAINS);
        let (done, own) = lane.denominators.split_at_mut(index + 1);
        let (point, own) = (&mut lane.addends[index], &mut own[0]);
        let product = (&mut after[0], &before[index], &done[index]);
        let (negative, present) = addend(index, product, &accumulator.x, point, own);
        let suspect = own.suspect_lanes() | point.y.zero_lanes() | accumulator.y.zero_lanes();
        lane.steps[index] = Step { negative, special: 0, double: 0, take: 0, clear: 0 };
        if suspect != 0 || present != 0xff {
            exceptions(lane, index, accumulator, present);
        }
    }
    let (before, after) = lane.products.split_at_mut(count + CHAINS);
    W::product(&mut after[0], &before[count], &lane.denominators[count]);
    // Where each chain ends: group i continues chain i modulo CHAINS.
    let ends = std::array::from_fn(|k| lane.products[1 + count + (k + CHAINS - count % CHAINS) % CHAINS]);
    // The inverses of what the chains come to before this round of groups, and after it.
    let mut inverses = [invert::<W>(&ends); 2];
    let [mut reciprocals, mut numerators, mut slopes, mut xs, mut products] = [[W::ZERO; CHAINS]; 5];
    for start in (0..count).step_by(CHAINS).rev() {
        let width = CHAINS.min(count - start);
        let (even, odd) = inverses.split_at_mut(1);
        let (after, before) =
            if (start / CHAINS).is_multiple_of(2) { (&even[0], &mut odd[0]) } else { (&odd[0], &mut even[0]) };
        for k in 0..width {
            let (accumulator, point) = (&groups[start + k], &lane.addends[start + k]);
            let step = &lane.steps[start + k];
            W::product_and_signed_difference(
                &mut reciprocals[k],
                &after[k],
                &lane.products[start + k + 1],
                [&accumulator.y, &point.y],
                step.negative,
                &mut numerators[k],
            );
            if step.double != 0 {
                numerators[k] = W::choose(step.double, &numerators[k], &tangent_numerator(accumulator));
            }
            hint(start + k);
            W::product(&mut before[k], &after[k], &lane.denominators[start + k + 1]);
        }
        for k in 0..width {
            W::product(&mut slopes[k], &numerators[k], &reciprocals[k]);
        }
        // x = slope^2 - x1 - x2, y = slope (x1 - x) - y1: while one point is multiplied, the one before it is added.
        let (squares, runs) = (&mut reciprocals, &mut numerators);
        let both_x = |k: usize| [&groups[start + k].x, &lane.addends[start + k].x];
        W::square_of_slope(&mut squares[0], &slopes[0]);
        for k in 1..width {
            let (done, own) = squares.split_at_mut(k);
            let (square, x, run) = (&mut own[0], &mut xs[k - 1], &mut runs[k - 1]);
            W::square_and_x_and_run(square, &slopes[k], &done[k - 1], both_x(k - 1), x, run);
        }
        W::x_and_run(&squares[width - 1], both_x(width - 1), &mut xs[width - 1], &mut runs[width - 1]);
        let ys = squares;
        W::product_of_run(&mut products[0], &slopes[0], &runs[0]);
        for k in 1..width {
            let (done, own) = products.split_at_mut(k);
            let y1 = &groups[start + k - 1].y;
            W::product_and_y(&mut own[0], &slopes[k], &runs[k], &done[k - 1], y1, &mut ys[k - 1]);
        }
        ys[width - 1] = W::y(&products[width - 1], &groups[start + width - 1].y);
        for k in 0..width {
            let (accumulator, step) = (&mut groups[start + k], &lane.steps[start + k]);
            let sum = Group { x: xs[k], y: ys[k] };
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
    let (point, denominator) = (&mut lane.addends[index], &mut lane.denominators[index + 1]);
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

/// 3 x^2, which over 2 y is the slope of the tangent (both curves have a = 0).
#[cold]
#[inline(never)]
#[target_feature(enable = "avx512f,avx512ifma,avx512vl,avx512dq,avx512bw,avx512vbmi")]
fn tangent_numerator<W: Wide>(point: &Group<W>) -> W {
    let mut square = W::ZERO;
    W::squared(&mut square, &point.x);
    W::sum(&W::sum(&square, &square), &square)
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
                    lane.add(&mut sums, &table, &references, |_| {});
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
            lane.add(&mut sums, &table, &references, |_| {});
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
        lane.add(&mut sums, &table, &references, |_| {});
        let mut entries = vec![G1::infinity(); 8];
        lane.store(&sums, &mut entries);
        let double = blstrs::G1Projective::from(generator).double().to_affine();
        assert!([1, 4, 5, 6].iter().all(|lane| G1::decode(&entries[*lane]) == double));
    }
}
