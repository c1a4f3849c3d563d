//! Batched affine additions in G1, eight accumulators a group. Knows no scalars.
//!
//! Coordinates are in Montgomery form with R = 2^416. Between operations x and y are below 2 p, x even below
//! 1.93 p (see [`fold`]); infinity has all bits zero, and nothing else has y = 0: the group order is odd, and
//! no operation yields the integer 0 from another value.

// Limbs of several operands advance together, by index.
#![allow(clippy::needless_range_loop)]

use std::arch::x86_64::*;

use blst::{blst_fp, blst_p1_affine};
use blstrs::G1Affine;

use super::field::{
    add, constant, multiply, normalize, square, subtract, transpose, Field, Fp, Limbs, Modulus, Vector,
};
use super::limbs::{self, BITS, MASK};
use crate::backend::cpu::lane::points::{prefetch, PointLane, Reference, NEGATIVE, NONE};
use crate::curve::{AffinePoint, Coordinate};

/// A point in memory: eight limbs of x, eight limbs of y, on two cache lines.
#[derive(Clone, Copy)]
#[repr(C, align(128))]
pub(crate) struct Entry([[u64; 8]; 2]);

/// Eight accumulators.
#[derive(Clone, Copy)]
pub(crate) struct Group {
    x: Vector<8>,
    y: Vector<8>,
}

/// Groups that share an inversion: some 300 kB of scratch, which a core's cache holds.
const BATCH: usize = 96;

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

/// The lane and its scratch.
pub(crate) struct G1 {
    denominators: Vec<Vector<8>>,
    /// Products of the denominators before this one in its chain.
    products: Vec<Vector<8>>,
    addends: Vec<Group>,
    steps: Vec<Step>,
}

/// 2^448 mod p: turns blst's x 2^384 into x 2^416, and the inverse of a number in one form into the other.
const INTO: Limbs<8> = limbs::power_of_two(&Fp::ONCE, 448);

/// 2^352: turns x 2^416 into blst's x 2^384, by blst's product.
const OUT_OF: blst_fp = blst_fp { l: [0, 0, 0, 0, 0, 1 << 32] };

impl PointLane for G1 {
    type Point = G1Affine;
    type Entry = Entry;
    type Group = Group;

    const WIDTH: usize = 8;
    const BATCH: usize = BATCH;

    fn new() -> Self {
        assert!(super::available());
        let step = Step { negative: 0, special: 0, double: 0, take: 0, clear: 0 };
        G1 {
            denominators: vec![Vector::ZERO; BATCH],
            products: vec![Vector::ZERO; BATCH],
            addends: vec![Group { x: Vector::ZERO, y: Vector::ZERO }; BATCH],
            steps: vec![step; BATCH],
        }
    }

    fn infinity() -> Entry {
        Entry([[0; 8]; 2])
    }

    fn group(&mut self, entry: &Entry) -> Group {
        let Entry([x, y]) = *entry;
        Group { x: Vector::from_elements(&[x; 8]), y: Vector::from_elements(&[y; 8]) }
    }

    // SAFETY: (all blocks of this impl) `new` made sure that the instructions are available.
    fn encode(&mut self, points: &[G1Affine], entries: &mut [Entry]) {
        assert_eq!(points.len(), entries.len());
        for (points, entries) in points.chunks(8).zip(entries.chunks_mut(8)) {
            let mut eight = [blst_p1_affine::default(); 8];
            for (slot, point) in eight.iter_mut().zip(points) {
                *slot = *point.as_ref();
            }
            let group = unsafe { from_blst(&eight) };
            unsafe { store(&group, entries) };
        }
    }

    fn as_entries(_: &[G1Affine]) -> Option<&[Entry]> {
        None
    }

    fn decode(entry: &Entry) -> G1Affine {
        let mut point = G1Affine::INFINITY;
        let (x, y) = point.coordinates_mut();
        for (coordinate, limbs) in [(x, &entry.0[0]), (y, &entry.0[1])] {
            coordinate.l = limbs::join(&limbs::reduce(*limbs, &Fp::ONCE));
            coordinate.multiply(&OUT_OF);
        }
        point
    }

    fn load(&mut self, groups: &mut [Group], table: &[Entry], references: &[Reference]) {
        unsafe { load(groups, table, references) }
    }

    fn add(&mut self, groups: &mut [Group], table: &[Entry], references: &[Reference], next: &[Reference]) {
        unsafe { add_references(self, groups, table, references, next) }
    }

    fn add_groups(&mut self, groups: &mut [Group], others: &[Group]) {
        unsafe { add_groups(self, groups, others) }
    }

    fn store(&mut self, groups: &[Group], entries: &mut [Entry]) {
        for (group, entries) in groups.iter().zip(entries.chunks_mut(8)) {
            unsafe { store(group, entries) };
        }
    }
}

/// Which bytes and shifts give limb i of a number of 48 bytes: bits 52 i to 52 i + 51.
const SPREAD: ([u8; 64], [u64; 8], u64) = {
    let (mut bytes, mut shifts, mut inside) = ([0u8; 64], [0u64; 8], 0u64);
    let mut limb = 0;
    while limb < 8 {
        let first = BITS * limb / 8;
        shifts[limb] = (BITS * limb % 8) as u64;
        let mut byte = 0;
        while byte < 8 {
            if first + byte < 48 {
                bytes[8 * limb + byte] = (first + byte) as u8;
                inside |= 1 << (8 * limb + byte);
            }
            byte += 1;
        }
        limb += 1;
    }
    (bytes, shifts, inside)
};

/// Eight points in blst's form.
#[target_feature(enable = "avx512f,avx512ifma,avx512vl,avx512dq,avx512bw,avx512vbmi")]
fn from_blst(points: &[blst_p1_affine; 8]) -> Group {
    // SAFETY: both constants have 64 bytes.
    let (bytes, shifts) =
        unsafe { (_mm512_loadu_si512(SPREAD.0.as_ptr().cast()), _mm512_loadu_si512(SPREAD.1.as_ptr().cast())) };
    let into = Vector::broadcast(&INTO);
    let spread = |coordinate: fn(&blst_p1_affine) -> &blst_fp| {
        let mut rows = [_mm512_setzero_si512(); 8];
        for (row, point) in rows.iter_mut().zip(points) {
            // SAFETY: reads the six words that the mask selects.
            let words = unsafe { _mm512_maskz_loadu_epi64(0x3f, coordinate(point).l.as_ptr().cast()) };
            let windows = _mm512_maskz_permutexvar_epi8(SPREAD.2, bytes, words);
            *row = _mm512_and_si512(_mm512_srlv_epi64(windows, shifts), constant(MASK));
        }
        multiply::<8, Fp>(&Vector(transpose(&rows)), &into)
    };
    Group { x: spread(|point| &point.x), y: spread(|point| &point.y) }
}

/// The first accumulators of a group, as many as there are entries.
#[target_feature(enable = "avx512f,avx512ifma,avx512vl,avx512dq,avx512bw,avx512vbmi")]
fn store(group: &Group, entries: &mut [Entry]) {
    let (x, y) = (transpose(&group.x.0), transpose(&group.y.0));
    for (lane, entry) in entries.iter_mut().enumerate() {
        // SAFETY: each half of an entry has 64 bytes.
        unsafe {
            _mm512_storeu_si512(entry.0[0].as_mut_ptr().cast(), x[lane]);
            _mm512_storeu_si512(entry.0[1].as_mut_ptr().cast(), y[lane]);
        }
    }
}

/// Eight points of the table as they are, which of them are to be negated, and which exist at all (the others
/// are some point of the table).
#[inline]
#[target_feature(enable = "avx512f,avx512ifma,avx512vl,avx512dq,avx512bw,avx512vbmi")]
fn gather(table: &[Entry], references: &[Reference; 8]) -> (Group, __mmask8, __mmask8) {
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
    let (mut x, mut y) = ([_mm512_setzero_si512(); 8], [_mm512_setzero_si512(); 8]);
    for lane in 0..8 {
        // SAFETY: the index was compared with the table's length.
        unsafe {
            let entry = table.get_unchecked(indices[lane] as usize);
            x[lane] = _mm512_loadu_si512(entry.0[0].as_ptr().cast());
            y[lane] = _mm512_loadu_si512(entry.0[1].as_ptr().cast());
        }
    }
    (Group { x: Vector(transpose(&x)), y: Vector(transpose(&y)) }, negative, present)
}

#[inline]
fn eight(references: &[Reference], group: usize) -> &[Reference; 8] {
    references[8 * group..8 * group + 8].try_into().unwrap()
}

#[target_feature(enable = "avx512f,avx512ifma,avx512vl,avx512dq,avx512bw,avx512vbmi")]
fn load(groups: &mut [Group], table: &[Entry], references: &[Reference]) {
    for (index, group) in groups.iter_mut().enumerate() {
        let references = eight(references, index);
        if references.iter().all(|reference| *reference == NONE) {
            *group = Group { x: Vector::ZERO, y: Vector::ZERO };
            continue;
        }
        let (points, negative, present) = gather(table, references);
        let negated = subtract(&Vector::ZERO, &Fp::TIMES_2, &points.y);
        let y = Vector::choose(negative & !points.y.zero_lanes(), &points.y, &negated);
        group.x = Vector::choose(present, &Vector::ZERO, &points.x);
        group.y = Vector::choose(present, &Vector::ZERO, &y);
    }
}

#[target_feature(enable = "avx512f,avx512ifma,avx512vl,avx512dq,avx512bw,avx512vbmi")]
fn add_references(lane: &mut G1, groups: &mut [Group], table: &[Entry], references: &[Reference], next: &[Reference]) {
    assert_eq!(references.len(), 8 * groups.len());
    for (batch, groups) in groups.chunks_mut(BATCH).enumerate() {
        let first = batch * BATCH;
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
fn add_groups(lane: &mut G1, groups: &mut [Group], others: &[Group]) {
    assert_eq!(groups.len(), others.len());
    for (groups, others) in groups.chunks_mut(BATCH).zip(others.chunks(BATCH)) {
        batch_add(lane, groups, |index| (others[index], 0, 0xff), |_| {});
    }
}

/// A product that is not inlined: the code of one fills a good part of the instruction cache.
#[inline(never)]
#[target_feature(enable = "avx512f,avx512ifma,avx512vl,avx512dq,avx512bw,avx512vbmi")]
fn product(result: &mut Vector<8>, a: &Vector<8>, b: &Vector<8>) {
    *result = multiply::<8, Fp>(a, b);
}

#[inline(never)]
#[target_feature(enable = "avx512f,avx512ifma,avx512vl,avx512dq,avx512bw,avx512vbmi")]
fn squared(result: &mut Vector<8>, a: &Vector<8>) {
    *result = square::<8, Fp>(a);
}

/// `groups[i] += addend(i)` with one inversion; `addend` gives points, their signs and which lanes take part.
/// `hint` is called once for each group while products keep the core busy.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma,avx512vl,avx512dq,avx512bw,avx512vbmi")]
fn batch_add(
    lane: &mut G1,
    groups: &mut [Group],
    mut addend: impl FnMut(usize) -> (Group, __mmask8, __mmask8),
    mut hint: impl FnMut(usize),
) {
    let count = groups.len();
    assert!(count <= BATCH && lane.denominators.len() == BATCH && lane.products.len() == BATCH);
    assert!(lane.addends.len() == BATCH && lane.steps.len() == BATCH);
    let one = Vector::broadcast(&Fp::ONE);
    let mut chains = [one; CHAINS];
    for start in (0..count).step_by(CHAINS) {
        let end = (start + CHAINS).min(count);
        for index in start..end {
            let (point, negative, present) = addend(index);
            let accumulator = &groups[index];
            // x below 1.93 p on both sides: the difference is 0 modulo p for p, 2 p and 3 p only.
            let difference = subtract(&point.x, &Fp::TIMES_2, &accumulator.x);
            lane.addends[index] = point;
            lane.denominators[index] = difference;
            lane.steps[index] = Step { negative, special: 0, double: 0, take: 0, clear: 0 };
            let low = difference.0[0];
            let suspect = _mm512_cmpeq_epi64_mask(low, constant(Fp::ONCE[0]))
                | _mm512_cmpeq_epi64_mask(low, constant(Fp::TIMES_2[0]))
                | _mm512_cmpeq_epi64_mask(low, constant(Fp::TIMES_3[0]))
                | _mm512_testn_epi64_mask(point.y.0[0], point.y.0[0])
                | _mm512_testn_epi64_mask(accumulator.y.0[0], accumulator.y.0[0]);
            if suspect != 0 || present != 0xff {
                exceptions(lane, index, accumulator, present);
            }
        }
        for index in start..end {
            let chain = &mut chains[index - start];
            lane.products[index] = *chain;
            product(chain, &lane.products[index], &lane.denominators[index]);
        }
    }
    let mut inverses = invert(&chains);
    let mut scratch = [one; CHAINS];
    let mut slopes = [one; CHAINS];
    for start in (0..count).step_by(CHAINS).rev() {
        let width = CHAINS.min(count - start);
        for k in 0..width {
            product(&mut scratch[k], &inverses[k], &lane.products[start + k]);
            let last = inverses[k];
            product(&mut inverses[k], &last, &lane.denominators[start + k]);
        }
        for k in 0..width {
            hint(start + k);
            slopes[k] = numerator(&groups[start + k], &lane.addends[start + k], &lane.steps[start + k]);
        }
        for k in 0..width {
            let numerator = slopes[k];
            product(&mut slopes[k], &numerator, &scratch[k]);
        }
        // x = slope^2 - x1 - x2, y = slope (x1 - x) - y1
        for k in 0..width {
            squared(&mut scratch[k], &slopes[k]);
        }
        let mut results = [one; CHAINS];
        for k in 0..width {
            let (accumulator, point) = (&groups[start + k], &lane.addends[start + k]);
            let mut limbs = scratch[k].0;
            for limb in 0..8 {
                let sum = _mm512_add_epi64(accumulator.x.0[limb], point.x.0[limb]);
                let raised = _mm512_add_epi64(limbs[limb], constant(Fp::TIMES_4[limb]));
                limbs[limb] = _mm512_sub_epi64(raised, sum);
            }
            results[k] = fold(limbs);
            scratch[k] = subtract(&accumulator.x, &Fp::TIMES_2, &results[k]);
        }
        for k in 0..width {
            let run = scratch[k];
            product(&mut scratch[k], &slopes[k], &run);
        }
        for k in 0..width {
            let accumulator = &mut groups[start + k];
            let mut limbs = scratch[k].0;
            for limb in 0..8 {
                let raised = _mm512_add_epi64(limbs[limb], constant(Fp::TIMES_3[limb]));
                limbs[limb] = _mm512_sub_epi64(raised, accumulator.y.0[limb]);
            }
            let sum = Group { x: results[k], y: fold(limbs) };
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
fn exceptions(lane: &mut G1, index: usize, accumulator: &Group, present: __mmask8) {
    let zero = |difference: &Vector<8>| {
        difference.equal_lanes(&Fp::ONCE) | difference.equal_lanes(&Fp::TIMES_2) | difference.equal_lanes(&Fp::TIMES_3)
    };
    let negative = lane.steps[index].negative;
    let (point, denominator) = (&mut lane.addends[index], &mut lane.denominators[index]);
    let exists = present & !point.y.zero_lanes();
    let empty = accumulator.y.zero_lanes();
    let same_x = exists & !empty & zero(denominator);
    point.y = Vector::choose(negative, &point.y, &subtract(&Vector::ZERO, &Fp::TIMES_2, &point.y));
    let double = same_x & zero(&subtract(&point.y, &Fp::TIMES_2, &accumulator.y));
    let ordinary = exists & !empty & !same_x;
    let twice = add(&accumulator.y, &accumulator.y);
    *denominator = Vector::choose(ordinary, &Vector::broadcast(&Fp::ONE), denominator);
    *denominator = Vector::choose(double, denominator, &twice);
    lane.steps[index] = Step { negative: 0, special: !ordinary, double, take: exists & empty, clear: same_x & !double };
}

/// The slope's numerator: the difference of the y, or 3 x^2 where a point is doubled (the curve has a = 0).
#[inline]
#[target_feature(enable = "avx512f,avx512ifma,avx512vl,avx512dq,avx512bw,avx512vbmi")]
fn numerator(accumulator: &Group, point: &Group, step: &Step) -> Vector<8> {
    let mut limbs = accumulator.y.0;
    for limb in 0..8 {
        let raised = _mm512_sub_epi64(constant(Fp::TIMES_4[limb]), limbs[limb]);
        let plus = _mm512_add_epi64(raised, point.y.0[limb]);
        limbs[limb] = _mm512_mask_sub_epi64(plus, step.negative, raised, point.y.0[limb]);
    }
    let chord = normalize(limbs);
    if step.double == 0 {
        return chord;
    }
    let square = square::<8, Fp>(&accumulator.x);
    Vector::choose(step.double, &chord, &add(&add(&square, &square), &square))
}

/// Writes the lanes that are not ordinary sums as they must be.
#[cold]
#[inline(never)]
#[target_feature(enable = "avx512f,avx512ifma,avx512vl,avx512dq,avx512bw,avx512vbmi")]
fn settle(accumulator: &mut Group, sum: &Group, point: &Group, step: &Step) {
    let moved = !step.special | step.double;
    let each = |old: &Vector<8>, sum: &Vector<8>, point: &Vector<8>| {
        let value = Vector::choose(moved, old, sum);
        let value = Vector::choose(step.take, &value, point);
        Vector::choose(step.clear, &value, &Vector::ZERO)
    };
    accumulator.x = each(&accumulator.x, &sum.x, &point.x);
    accumulator.y = each(&accumulator.y, &sum.y, &point.y);
}

/// k p for k below 8: limb j of all of them in row j.
const MULTIPLES: [[u64; 8]; 8] = {
    let mut table = [[0; 8]; 8];
    let mut k = 0;
    while k < 8 {
        let multiple = limbs::multiple(&Fp::ONCE, k as u64);
        let mut limb = 0;
        while limb < 8 {
            table[limb][k] = multiple[limb];
            limb += 1;
        }
        k += 1;
    }
    table
};

/// Subtracts floor(v / 2^381) p from v, which is above 2^-4 p and below 5.01 p, with limbs not yet carried.
///
/// Since p = 0.8126 * 2^381, the result is below (1 + 4 (1 - 0.8126)) / 0.8126 p, or, exactly, below 1.93 p.
/// The quotient is read off the top limb before the carries, which may change it by a few units: one too much
/// leaves the result positive, one too few within the bound.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma,avx512vl,avx512dq,avx512bw,avx512vbmi")]
fn fold(mut limbs: [__m512i; 8]) -> Vector<8> {
    let quotient = _mm512_srli_epi64::<17>(limbs[7]);
    for limb in 0..8 {
        // SAFETY: a row of the table has 64 bytes.
        let row = unsafe { _mm512_loadu_si512(MULTIPLES[limb].as_ptr().cast()) };
        limbs[limb] = _mm512_sub_epi64(limbs[limb], _mm512_permutexvar_epi64(quotient, row));
    }
    normalize(limbs)
}

/// The inverses of all lanes of all chains, none of which is zero, by one inversion.
#[inline(never)]
#[target_feature(enable = "avx512f,avx512ifma,avx512vl,avx512dq,avx512bw,avx512vbmi")]
fn invert(chains: &[Vector<8>; CHAINS]) -> [Vector<8>; CHAINS] {
    let mut products = *chains;
    for k in 1..CHAINS {
        let last = products[k - 1];
        product(&mut products[k], &last, &chains[k]);
    }
    let mut inverse = invert_lanes(&products[CHAINS - 1]);
    let mut inverses = *chains;
    for k in (1..CHAINS).rev() {
        product(&mut inverses[k], &inverse, &products[k - 1]);
        let last = inverse;
        product(&mut inverse, &last, &chains[k]);
    }
    inverses[0] = inverse;
    inverses
}

/// The inverse of every lane: each product with a rotation of itself brings in as many lanes again.
#[target_feature(enable = "avx512f,avx512ifma,avx512vl,avx512dq,avx512bw,avx512vbmi")]
fn invert_lanes(value: &Vector<8>) -> Vector<8> {
    let rotate = |vector: &Vector<8>, by: i64| {
        let lanes = _mm512_and_si512(
            _mm512_add_epi64(_mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0), _mm512_set1_epi64(by)),
            _mm512_set1_epi64(7),
        );
        let mut registers = vector.0;
        for register in &mut registers {
            *register = _mm512_permutexvar_epi64(lanes, *register);
        }
        Vector(registers)
    };
    let others4 = rotate(value, 4);
    let two = multiply::<8, Fp>(value, &others4);
    let others2 = rotate(&two, 2);
    let four = multiply::<8, Fp>(&two, &others2);
    let others1 = rotate(&four, 1);
    let all = multiply::<8, Fp>(&four, &others1);
    let mut single = blst_fp { l: limbs::join(&limbs::reduce(all.element(0), &Fp::ONCE)) };
    single.invert();
    single.multiply(&blst_fp { l: limbs::join(&INTO) });
    let inverse = Vector::broadcast(&limbs::split(&single.l));
    let inverse = multiply::<8, Fp>(&inverse, &others1);
    let inverse = multiply::<8, Fp>(&inverse, &others2);
    multiply::<8, Fp>(&inverse, &others4)
}

#[cfg(test)]
mod tests {
    use super::*;
    use blstrs::{G1Projective, Scalar};
    use ff::Field as _;
    use group::{Curve, Group as _};
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    /// Infinity and points that are equal, opposite and unrelated.
    fn pool(rng: &mut StdRng) -> Vec<G1Affine> {
        let mut points = vec![G1Affine::INFINITY];
        for _ in 0..3 {
            let point = (G1Projective::generator() * Scalar::random(&mut *rng)).to_affine();
            points.extend([point, -point]);
        }
        points
    }

    fn signed(points: &[G1Affine], reference: Reference) -> G1Affine {
        match reference {
            NONE => G1Affine::INFINITY,
            _ if reference & NEGATIVE != 0 => -points[(reference & !NEGATIVE) as usize],
            _ => points[reference as usize],
        }
    }

    fn points_of(lane: &mut G1, groups: &[Group]) -> Vec<G1Affine> {
        let mut entries = vec![G1::infinity(); groups.len() * 8];
        lane.store(groups, &mut entries);
        entries.iter().map(G1::decode).collect()
    }

    #[test]
    fn long_random_walks_through_every_exception_equal_projective_additions() {
        if !crate::backend::cpu::lane::ifma::available() {
            return;
        }
        let mut rng = StdRng::seed_from_u64(1);
        let points = pool(&mut rng);
        let mut lane = G1::new();
        let mut table = vec![G1::infinity(); points.len()];
        lane.encode(&points, &mut table);
        assert!(table.iter().map(G1::decode).eq(points.iter().copied()));
        for groups in [1, 2, 3, 4, 5, 17, BATCH, BATCH + 1] {
            let row = |rng: &mut StdRng| -> Vec<Reference> {
                let pick = |rng: &mut StdRng| match rng.gen_range(0..10) {
                    0 => NONE,
                    _ => rng.gen_range(0..points.len() as u32) | if rng.gen() { NEGATIVE } else { 0 },
                };
                (0..8 * groups).map(|_| pick(rng)).collect()
            };
            let mut references = row(&mut rng);
            let mut sums = vec![lane.group(&G1::infinity()); groups];
            lane.load(&mut sums, &table, &references);
            let mut expected: Vec<G1Projective> =
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
                        *sum += signed(&points, *reference);
                    }
                }
                let mut affine = vec![G1Affine::INFINITY; expected.len()];
                G1Projective::batch_normalize(&expected, &mut affine);
                assert!(points_of(&mut lane, &sums) == affine, "{groups} groups, round {round}");
            }
        }
    }

    #[test]
    fn sums_stay_within_the_bounds_that_zero_tests_rely_on() {
        if !crate::backend::cpu::lane::ifma::available() {
            return;
        }
        let points = crate::backend::cpu::testing::sample_points(4096);
        let mut lane = G1::new();
        let mut table = vec![G1::infinity(); points.len()];
        lane.encode(&points, &mut table);
        let mut sums = vec![lane.group(&G1::infinity()); BATCH];
        let mut rng = StdRng::seed_from_u64(2);
        let row = |rng: &mut StdRng| -> Vec<Reference> {
            (0..8 * BATCH).map(|_| rng.gen_range(0..4096) | if rng.gen() { NEGATIVE } else { 0 }).collect()
        };
        lane.load(&mut sums, &table, &row(&mut rng));
        for _ in 0..50 {
            let references = row(&mut rng);
            lane.add(&mut sums, &table, &references, &[]);
            let mut entries = vec![G1::infinity(); 8 * BATCH];
            lane.store(&sums, &mut entries);
            for Entry(coordinates) in entries {
                for limbs in coordinates {
                    assert!(limbs::checked_difference(&limbs, &Fp::TIMES_2).is_none());
                    assert!(limbs[..7].iter().all(|limb| *limb <= MASK));
                }
            }
        }
    }
}
