//! Eight coordinates at a time: elements of Fp, or pairs of them for Fp2 = Fp(u), u^2 = -1. Knows no points.
//!
//! Numbers here are Montgomery's with R = 2^416, blst's with 2^384. A point (x, y) is not converted: blst's number
//! for x, read as one of these, is that of x / 2^32, and (x / 2^32, y / 2^48) is a point of an isomorphic curve (for
//! a = 0 the formulas of addition do not know which). So x stays as it is, and y loses 16 bits.
//!
//! "Small" values are below 2 p in each part: results of folding and of [`Wide::from_blst_x`] and its like. Products of
//! anything below 2^12 p are below 5 p; each operation says what it needs.

// Limbs of several operands advance together, by index.
#![allow(clippy::needless_range_loop)]

use std::arch::x86_64::*;

use blst::{blst_fp, blst_fp2};

use super::field::{
    add, constant, multiply, multiply_beside, normalize, square, square_beside, subtract, transpose, transpose_pairs,
    transpose_quads, transpose_words, Field, Fp, Limbs, Modulus, Vector,
};
use super::limbs::{self, BITS, MASK};
use crate::curve::Coordinate;

/// Eight elements of a coordinate field. All methods but the constants and memory conversions of single
/// elements run only in code that is compiled with this module's instructions.
pub(crate) trait Wide: Copy + Send + Sync + 'static {
    /// blst's element.
    type Element: Coordinate;
    /// An element in memory, by limbs.
    type Memory: Copy + Send + Sync;

    /// Groups of points that share an inversion: some 400 kB of scratch, which a core's cache holds.
    const BATCH: usize;
    /// Eight zeros, all bits zero.
    const ZERO: Self;
    /// Zero in memory.
    const ZERO_MEMORY: Self::Memory;

    /// Eight ones.
    fn one() -> Self;

    /// x from blst's numbers; small.
    fn from_blst_x(elements: [&Self::Element; 8]) -> Self;

    /// y from blst's numbers; small.
    fn from_blst_y(elements: [&Self::Element; 8]) -> Self;

    /// One x to blst's number.
    fn to_blst_x(memory: &Self::Memory) -> Self::Element;

    /// One y to blst's number.
    fn to_blst_y(memory: &Self::Memory) -> Self::Element;

    /// The same element in all lanes.
    fn broadcast(memory: &Self::Memory) -> Self;

    /// Eight elements from memory.
    fn load(memory: [&Self::Memory; 8]) -> Self;

    /// The elements in memory's form.
    fn store(&self) -> [Self::Memory; 8];

    /// `result = a * b`, not inlined: the code of one product fills a good part of the instruction cache.
    fn product(result: &mut Self, a: &Self, b: &Self);

    /// `result = a^2` for a below 8 p, not inlined.
    fn squared(result: &mut Self, a: &Self);

    /// `a + b`
    fn sum(a: &Self, b: &Self) -> Self;

    /// `a - b + 2 p` for small b.
    fn difference(a: &Self, b: &Self) -> Self;

    /// `b + 4 p - a`, or `4 p - a - b` in the lanes of `negative`, for small a and b.
    fn signed_difference(a: &Self, b: &Self, negative: __mmask8) -> Self;

    /// `product + 4 p - a - b` made small, for a product and small a and b with x's bound (see `fold`).
    fn fold_less_two(product: &Self, a: &Self, b: &Self) -> Self;

    /// `product + 3 p - a` made small, for a product and small a.
    fn fold_less(product: &Self, a: &Self) -> Self;

    /// `result = a * b`, and beside it: eight points from memory, and the [`Wide::difference`] of their x and `x`.
    #[inline(always)]
    fn product_and_load(
        result: &mut Self,
        a: &Self,
        b: &Self,
        memory: [&[Self::Memory; 2]; 8],
        x: &Self,
        point: (&mut Self, &mut Self),
        difference: &mut Self,
    ) {
        Self::product(result, a, b);
        *point.0 = Self::load(memory.map(|point| &point[0]));
        *point.1 = Self::load(memory.map(|point| &point[1]));
        *difference = Self::difference(point.0, x);
    }

    /// `result = a * b`, and beside it [`Wide::signed_difference`] of `from` and `to`.
    #[inline(always)]
    fn product_and_signed_difference(
        result: &mut Self,
        a: &Self,
        b: &Self,
        [from, to]: [&Self; 2],
        negative: __mmask8,
        difference: &mut Self,
    ) {
        Self::product(result, a, b);
        *difference = Self::signed_difference(from, to, negative);
    }

    /// `square = slope^2`, for [`Wide::x_and_run`] only.
    #[inline(always)]
    fn square_of_slope(square: &mut Self, slope: &Self) {
        Self::squared(square, slope);
    }

    /// x = slope^2 - x1 - x2 made small from the square of the slope, and [`Wide::difference`] of x1 and x.
    #[inline(always)]
    fn x_and_run(square: &Self, [x1, x2]: [&Self; 2], x: &mut Self, run: &mut Self) {
        *x = Self::fold_less_two(square, x1, x2);
        *run = Self::difference(x1, x);
    }

    /// [`Wide::square_of_slope`] of one point, and beside it [`Wide::x_and_run`] of another.
    #[inline(always)]
    fn square_and_x_and_run(
        square: &mut Self,
        slope: &Self,
        other: &Self,
        x1_x2: [&Self; 2],
        x: &mut Self,
        run: &mut Self,
    ) {
        Self::square_of_slope(square, slope);
        Self::x_and_run(other, x1_x2, x, run);
    }

    /// `product = slope * run`, for [`Wide::y`] only.
    #[inline(always)]
    fn product_of_run(product: &mut Self, slope: &Self, run: &Self) {
        Self::product(product, slope, run);
    }

    /// y = slope run - y1 made small from the product.
    #[inline(always)]
    fn y(product: &Self, y1: &Self) -> Self {
        Self::fold_less(product, y1)
    }

    /// [`Wide::product_of_run`] of one point, and beside it [`Wide::y`] of another.
    #[inline(always)]
    fn product_and_y(product: &mut Self, slope: &Self, run: &Self, other: &Self, y1: &Self, y: &mut Self) {
        Self::product_of_run(product, slope, run);
        *y = Self::y(other, y1);
    }

    /// `b` in the lanes of `mask`, `a` in the others.
    fn choose(mask: __mmask8, a: &Self, b: &Self) -> Self;

    /// The lanes whose bits are all zero.
    fn zero_lanes(&self) -> __mmask8;

    /// Lanes that may be multiples of p, for a [`Wide::difference`] of small values: a quick test.
    fn suspect_lanes(&self) -> __mmask8;

    /// The lanes that are multiples of p, for a [`Wide::difference`] of small values with x's bound.
    fn multiple_lanes(&self) -> __mmask8;

    /// The inverse of every lane, none of which is zero.
    fn inverse(&self) -> Self;
}

/// 2^448 mod p: by blst's product, turns blst's inverse of z 2^416 into 2^416 / z.
const INVERSE: blst_fp = blst_fp { l: limbs::join(&limbs::power_of_two(&Fp::ONCE, 448)) };

/// Bits that y loses.
const LOST: u32 = 16;

/// Multiplies by 2^16, by blst's product.
const RETURN: blst_fp = blst_fp { l: limbs::join(&limbs::power_of_two(&Fp::ONCE, 384 + LOST as usize)) };

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

/// Eight of blst's numbers, limb by limb.
#[target_feature(enable = "avx512f,avx512ifma,avx512vl,avx512dq,avx512bw,avx512vbmi")]
fn from_blst(elements: [&blst_fp; 8]) -> Vector<8> {
    // SAFETY: both constants have 64 bytes.
    let (bytes, shifts) =
        unsafe { (_mm512_loadu_si512(SPREAD.0.as_ptr().cast()), _mm512_loadu_si512(SPREAD.1.as_ptr().cast())) };
    let mut rows = [_mm512_setzero_si512(); 8];
    for (row, element) in rows.iter_mut().zip(elements) {
        // SAFETY: reads the six words that the mask selects.
        let words = unsafe { _mm512_maskz_loadu_epi64(0x3f, element.l.as_ptr().cast()) };
        let windows = _mm512_maskz_permutexvar_epi8(SPREAD.2, bytes, words);
        *row = _mm512_and_si512(_mm512_srlv_epi64(windows, shifts), constant(MASK));
    }
    Vector(transpose(&rows))
}

/// Divides by 2^16 modulo p: adds the multiple of p that makes the lowest bits zero, and shifts. Less than 1.01 p.
#[target_feature(enable = "avx512f,avx512ifma,avx512vl,avx512dq,avx512bw,avx512vbmi")]
fn lose_bits(value: &Vector<8>) -> Vector<8> {
    let quotient = _mm512_madd52lo_epu64(_mm512_setzero_si512(), value.0[0], constant(Fp::INVERSE));
    let quotient = _mm512_and_si512(quotient, constant((1 << LOST) - 1));
    let mut limbs = value.0;
    for limb in 0..8 {
        limbs[limb] = _mm512_madd52lo_epu64(limbs[limb], quotient, constant(Fp::ONCE[limb]));
        if limb > 0 {
            limbs[limb] = _mm512_madd52hi_epu64(limbs[limb], quotient, constant(Fp::ONCE[limb - 1]));
        }
    }
    let sum = normalize(limbs).0;
    let mut shifted = [_mm512_setzero_si512(); 8];
    for limb in 0..8 {
        shifted[limb] = _mm512_srli_epi64::<LOST>(sum[limb]);
        if limb < 7 {
            let from_above = _mm512_slli_epi64::<{ BITS as u32 - LOST }>(sum[limb + 1]);
            shifted[limb] = _mm512_or_si512(shifted[limb], _mm512_and_si512(from_above, constant(MASK)));
        }
    }
    Vector(shifted)
}

/// One number as blst has it.
fn to_blst(limbs: &Limbs<8>) -> blst_fp {
    blst_fp { l: limbs::join(&limbs::reduce(*limbs, &Fp::ONCE)) }
}

#[target_feature(enable = "avx512f,avx512ifma,avx512vl,avx512dq,avx512bw,avx512vbmi")]
fn load(memory: [&Limbs<8>; 8]) -> Vector<8> {
    let mut rows = [_mm512_setzero_si512(); 8];
    for lane in 0..8 {
        // SAFETY: eight limbs have 64 bytes.
        rows[lane] = unsafe { _mm512_loadu_si512(memory[lane].as_ptr().cast()) };
    }
    Vector(transpose(&rows))
}

#[target_feature(enable = "avx512f,avx512ifma,avx512vl,avx512dq,avx512bw,avx512vbmi")]
fn store(vector: &Vector<8>) -> [Limbs<8>; 8] {
    // SAFETY: the same size, and any bits are integers.
    transpose(&vector.0).map(|row| unsafe { std::mem::transmute::<__m512i, [u64; 8]>(row) })
}

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

#[inline]
#[target_feature(enable = "avx512f,avx512ifma,avx512vl,avx512dq,avx512bw,avx512vbmi")]
fn signed_difference(a: &Vector<8>, b: &Vector<8>, negative: __mmask8) -> Vector<8> {
    let mut limbs = a.0;
    for limb in 0..8 {
        let raised = _mm512_sub_epi64(constant(Fp::TIMES_4[limb]), limbs[limb]);
        let plus = _mm512_add_epi64(raised, b.0[limb]);
        limbs[limb] = _mm512_mask_sub_epi64(plus, negative, raised, b.0[limb]);
    }
    normalize(limbs)
}

/// `value + 4 p - a - b`, limbs not yet carried.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma,avx512vl,avx512dq,avx512bw,avx512vbmi")]
fn less_two(value: &Vector<8>, a: &Vector<8>, b: &Vector<8>) -> [__m512i; 8] {
    let mut limbs = value.0;
    for limb in 0..8 {
        let raised = _mm512_add_epi64(limbs[limb], constant(Fp::TIMES_4[limb]));
        limbs[limb] = _mm512_sub_epi64(raised, _mm512_add_epi64(a.0[limb], b.0[limb]));
    }
    limbs
}

/// `value + 3 p - a`, limbs not yet carried.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma,avx512vl,avx512dq,avx512bw,avx512vbmi")]
fn less(value: &Vector<8>, a: &Vector<8>) -> [__m512i; 8] {
    let mut limbs = value.0;
    for limb in 0..8 {
        let raised = _mm512_add_epi64(limbs[limb], constant(Fp::TIMES_3[limb]));
        limbs[limb] = _mm512_sub_epi64(raised, a.0[limb]);
    }
    limbs
}

/// Lanes whose low limb is that of p, 2 p or 3 p.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma,avx512vl,avx512dq,avx512bw,avx512vbmi")]
fn suspect_lanes(value: &Vector<8>) -> __mmask8 {
    _mm512_cmpeq_epi64_mask(value.0[0], constant(Fp::ONCE[0]))
        | _mm512_cmpeq_epi64_mask(value.0[0], constant(Fp::TIMES_2[0]))
        | _mm512_cmpeq_epi64_mask(value.0[0], constant(Fp::TIMES_3[0]))
}

#[inline]
#[target_feature(enable = "avx512f,avx512ifma,avx512vl,avx512dq,avx512bw,avx512vbmi")]
fn multiple_lanes(value: &Vector<8>) -> __mmask8 {
    value.equal_lanes(&Fp::ONCE) | value.equal_lanes(&Fp::TIMES_2) | value.equal_lanes(&Fp::TIMES_3)
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

/// Subtracts q p with q = floor(v / 2^381) from v, which is above 2^-4 p and below 8.1 p, with limbs not yet
/// carried.
///
/// Since 2^381 = 1.2307 p, what remains is below (1.2307 + 0.2307 q) p. For v below 5.01 p that is below
/// 1.93 p: q = 3 leaves at most that, and q = 4 begins at 4.92 p, which leaves little. For v below 8.1 p it is
/// below 2.4 p, and a second round leaves less than 1.47 p. The quotient is read off the top limb before the
/// carries, which may raise it by less than 70 units of 2^364 (a rough product's limbs are below 2^58) or lower it
/// by two: one too much leaves the result positive, one too few within the bound.
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

/// Takes limbs from the lowest up, carries between them, and stores them. The top limb keeps the rest.
struct Carrier<'a> {
    carry: __m512i,
    result: &'a mut Vector<8>,
}

impl<'a> Carrier<'a> {
    #[inline(always)]
    fn new(result: &'a mut Vector<8>) -> Self {
        // SAFETY: see the trait.
        Carrier { carry: unsafe { _mm512_setzero_si512() }, result }
    }

    #[inline(always)]
    fn put(&mut self, limb: usize, value: __m512i) -> __m512i {
        // SAFETY: see the trait.
        unsafe {
            let value = _mm512_add_epi64(value, self.carry);
            self.carry = _mm512_srai_epi64::<52>(value);
            let value = if limb < 7 { _mm512_and_si512(value, constant(MASK)) } else { value };
            self.result.0[limb] = value;
            value
        }
    }
}

/// Limb `limb` of `value + multiple - less`.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma,avx512vl,avx512dq,avx512bw,avx512vbmi")]
fn limb_less(value: &Vector<8>, multiple: &Limbs<8>, less: &Vector<8>, limb: usize) -> __m512i {
    _mm512_sub_epi64(_mm512_add_epi64(value.0[limb], constant(multiple[limb])), less.0[limb])
}

/// Limb `limb` of `value + 4 p - a - b`.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma,avx512vl,avx512dq,avx512bw,avx512vbmi")]
fn limb_less_two(value: &Vector<8>, a: &Vector<8>, b: &Vector<8>, limb: usize) -> __m512i {
    let raised = _mm512_add_epi64(value.0[limb], constant(Fp::TIMES_4[limb]));
    _mm512_sub_epi64(raised, _mm512_add_epi64(a.0[limb], b.0[limb]))
}

/// Limb `limb` of what [`fold`] subtracts for a quotient.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma,avx512vl,avx512dq,avx512bw,avx512vbmi")]
fn limb_of_multiple(quotient: __m512i, limb: usize) -> __m512i {
    // SAFETY: a row of the table has 64 bytes.
    let row = unsafe { _mm512_loadu_si512(MULTIPLES[limb].as_ptr().cast()) };
    _mm512_permutexvar_epi64(quotient, row)
}

#[inline(never)]
#[target_feature(enable = "avx512f,avx512ifma,avx512vl,avx512dq,avx512bw,avx512vbmi")]
fn product_and_load(
    result: &mut Vector<8>,
    a: &Vector<8>,
    b: &Vector<8>,
    memory: [&[Limbs<8>; 2]; 8],
    x: &Vector<8>,
    point: (&mut Vector<8>, &mut Vector<8>),
    difference: &mut Vector<8>,
) {
    let mut rows = [_mm512_setzero_si512(); 8];
    let mut carrier = Carrier::new(difference);
    // SAFETY: the instructions are available.
    *result = normalize(unsafe {
        multiply_beside::<8, Fp>(
            a,
            b,
            #[inline(always)]
            |step| match step {
                0 | 9 => {
                    for lane in 0..8 {
                        // Eight limbs have 64 bytes.
                        rows[lane] = _mm512_loadu_si512(memory[lane][step / 9].as_ptr().cast());
                    }
                    rows = transpose_words(&rows);
                }
                1 | 11 => rows = transpose_pairs(&rows),
                2 => point.0 .0 = transpose_quads(&rows),
                13 => point.1 .0 = transpose_quads(&rows),
                3..=8 => drop(carrier.put(step - 3, limb_less(point.0, &Fp::TIMES_2, x, step - 3))),
                10 => drop(carrier.put(6, limb_less(point.0, &Fp::TIMES_2, x, 6))),
                12 => drop(carrier.put(7, limb_less(point.0, &Fp::TIMES_2, x, 7))),
                _ => {}
            },
        )
    });
}

#[inline(never)]
#[target_feature(enable = "avx512f,avx512ifma,avx512vl,avx512dq,avx512bw,avx512vbmi")]
fn product_and_signed_difference(
    result: &mut Vector<8>,
    a: &Vector<8>,
    b: &Vector<8>,
    from: &Vector<8>,
    to: &Vector<8>,
    negative: __mmask8,
    difference: &mut Vector<8>,
) {
    let mut carrier = Carrier::new(difference);
    // SAFETY: the instructions are available.
    *result = normalize(unsafe {
        multiply_beside::<8, Fp>(
            a,
            b,
            #[inline(always)]
            |step| {
                if step >= 8 {
                    let limb = step - 8;
                    let raised = _mm512_sub_epi64(constant(Fp::TIMES_4[limb]), from.0[limb]);
                    let plus = _mm512_add_epi64(raised, to.0[limb]);
                    carrier.put(limb, _mm512_mask_sub_epi64(plus, negative, raised, to.0[limb]));
                }
            },
        )
    });
}

#[inline(never)]
#[target_feature(enable = "avx512f,avx512ifma,avx512vl,avx512dq,avx512bw,avx512vbmi")]
fn square_of_slope(square: &mut Vector<8>, slope: &Vector<8>) {
    // SAFETY: the instructions are available.
    *square = Vector(unsafe { square_beside::<8, Fp>(slope, |_| {}) });
}

/// The folds here are those of [`fold`], limb by limb.
#[inline(never)]
#[target_feature(enable = "avx512f,avx512ifma,avx512vl,avx512dq,avx512bw,avx512vbmi")]
fn square_and_x_and_run(
    square: &mut Vector<8>,
    slope: &Vector<8>,
    other: &Vector<8>,
    x1: &Vector<8>,
    x2: &Vector<8>,
    x: &mut Vector<8>,
    run: &mut Vector<8>,
) {
    let quotient = _mm512_srli_epi64::<17>(limb_less_two(other, x1, x2, 7));
    let (mut x, mut run) = (Carrier::new(x), Carrier::new(run));
    // SAFETY: the instructions are available.
    *square = Vector(unsafe {
        square_beside::<8, Fp>(
            slope,
            #[inline(always)]
            |step| {
                if step >= 8 {
                    let limb = step - 8;
                    let value = x.put(
                        limb,
                        _mm512_sub_epi64(limb_less_two(other, x1, x2, limb), limb_of_multiple(quotient, limb)),
                    );
                    let raised = _mm512_add_epi64(x1.0[limb], constant(Fp::TIMES_2[limb]));
                    run.put(limb, _mm512_sub_epi64(raised, value));
                }
            },
        )
    });
}

#[inline(never)]
#[target_feature(enable = "avx512f,avx512ifma,avx512vl,avx512dq,avx512bw,avx512vbmi")]
fn product_of_run(product: &mut Vector<8>, slope: &Vector<8>, run: &Vector<8>) {
    // SAFETY: the instructions are available.
    *product = Vector(unsafe { multiply_beside::<8, Fp>(slope, run, |_| {}) });
}

#[inline(never)]
#[target_feature(enable = "avx512f,avx512ifma,avx512vl,avx512dq,avx512bw,avx512vbmi")]
fn product_and_y(
    product: &mut Vector<8>,
    slope: &Vector<8>,
    run: &Vector<8>,
    other: &Vector<8>,
    y1: &Vector<8>,
    y: &mut Vector<8>,
) {
    let quotient = _mm512_srli_epi64::<17>(limb_less(other, &Fp::TIMES_3, y1, 7));
    let mut y = Carrier::new(y);
    // SAFETY: the instructions are available.
    *product = Vector(unsafe {
        multiply_beside::<8, Fp>(
            slope,
            run,
            #[inline(always)]
            |step| {
                if step >= 8 {
                    let limb = step - 8;
                    let value = limb_less(other, &Fp::TIMES_3, y1, limb);
                    y.put(limb, _mm512_sub_epi64(value, limb_of_multiple(quotient, limb)));
                }
            },
        )
    });
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
    single.multiply(&INVERSE);
    let inverse = Vector::broadcast(&limbs::split(&single.l));
    let inverse = multiply::<8, Fp>(&inverse, &others1);
    let inverse = multiply::<8, Fp>(&inverse, &others2);
    multiply::<8, Fp>(&inverse, &others4)
}

// SAFETY: (all blocks below) see the trait: the callers are compiled with these instructions.
impl Wide for Vector<8> {
    type Element = blst_fp;
    type Memory = Limbs<8>;

    const BATCH: usize = 128;
    const ZERO: Self = Vector::ZERO;
    const ZERO_MEMORY: Limbs<8> = [0; 8];

    #[inline(always)]
    fn one() -> Self {
        unsafe { Vector::broadcast(&Fp::ONE) }
    }

    #[inline(always)]
    fn from_blst_x(elements: [&blst_fp; 8]) -> Self {
        unsafe { from_blst(elements) }
    }

    #[inline(always)]
    fn from_blst_y(elements: [&blst_fp; 8]) -> Self {
        unsafe { lose_bits(&from_blst(elements)) }
    }

    fn to_blst_x(memory: &Limbs<8>) -> blst_fp {
        to_blst(memory)
    }

    fn to_blst_y(memory: &Limbs<8>) -> blst_fp {
        let mut element = to_blst(memory);
        element.multiply(&RETURN);
        element
    }

    #[inline(always)]
    fn broadcast(memory: &Limbs<8>) -> Self {
        unsafe { Vector::broadcast(memory) }
    }

    #[inline(always)]
    fn load(memory: [&Limbs<8>; 8]) -> Self {
        unsafe { load(memory) }
    }

    #[inline(always)]
    fn store(&self) -> [Limbs<8>; 8] {
        unsafe { store(self) }
    }

    #[inline(always)]
    fn product(result: &mut Self, a: &Self, b: &Self) {
        unsafe { product(result, a, b) }
    }

    #[inline(always)]
    fn squared(result: &mut Self, a: &Self) {
        unsafe { squared(result, a) }
    }

    #[inline(always)]
    fn sum(a: &Self, b: &Self) -> Self {
        unsafe { add(a, b) }
    }

    #[inline(always)]
    fn difference(a: &Self, b: &Self) -> Self {
        unsafe { subtract(a, &Fp::TIMES_2, b) }
    }

    #[inline(always)]
    fn signed_difference(a: &Self, b: &Self, negative: __mmask8) -> Self {
        unsafe { signed_difference(a, b, negative) }
    }

    #[inline(always)]
    fn product_and_load(
        result: &mut Self,
        a: &Self,
        b: &Self,
        memory: [&[Limbs<8>; 2]; 8],
        x: &Self,
        point: (&mut Self, &mut Self),
        difference: &mut Self,
    ) {
        unsafe { product_and_load(result, a, b, memory, x, point, difference) }
    }

    #[inline(always)]
    fn product_and_signed_difference(
        result: &mut Self,
        a: &Self,
        b: &Self,
        [from, to]: [&Self; 2],
        negative: __mmask8,
        difference: &mut Self,
    ) {
        unsafe { product_and_signed_difference(result, a, b, from, to, negative, difference) }
    }

    #[inline(always)]
    fn square_of_slope(square: &mut Self, slope: &Self) {
        unsafe { square_of_slope(square, slope) }
    }

    #[inline(always)]
    fn square_and_x_and_run(
        square: &mut Self,
        slope: &Self,
        other: &Self,
        [x1, x2]: [&Self; 2],
        x: &mut Self,
        run: &mut Self,
    ) {
        unsafe { square_and_x_and_run(square, slope, other, x1, x2, x, run) }
    }

    #[inline(always)]
    fn product_of_run(product: &mut Self, slope: &Self, run: &Self) {
        unsafe { product_of_run(product, slope, run) }
    }

    #[inline(always)]
    fn product_and_y(product: &mut Self, slope: &Self, run: &Self, other: &Self, y1: &Self, y: &mut Self) {
        unsafe { product_and_y(product, slope, run, other, y1, y) }
    }

    // A product in Fp is hardly above p: five times p in all.
    #[inline(always)]
    fn fold_less_two(product: &Self, a: &Self, b: &Self) -> Self {
        unsafe { fold(less_two(product, a, b)) }
    }

    #[inline(always)]
    fn fold_less(product: &Self, a: &Self) -> Self {
        unsafe { fold(less(product, a)) }
    }

    #[inline(always)]
    fn choose(mask: __mmask8, a: &Self, b: &Self) -> Self {
        unsafe { Vector::choose(mask, a, b) }
    }

    #[inline(always)]
    fn zero_lanes(&self) -> __mmask8 {
        unsafe { Vector::zero_lanes(self) }
    }

    #[inline(always)]
    fn suspect_lanes(&self) -> __mmask8 {
        unsafe { suspect_lanes(self) }
    }

    #[inline(always)]
    fn multiple_lanes(&self) -> __mmask8 {
        unsafe { multiple_lanes(self) }
    }

    #[inline(always)]
    fn inverse(&self) -> Self {
        unsafe { invert_lanes(self) }
    }
}

/// Eight elements of Fp2: their real parts and their factors of u.
#[derive(Clone, Copy)]
pub(crate) struct Pair([Vector<8>; 2]);

/// Karatsuba's three products. The real part is below 2.01 p, the other below 4.01 p.
#[inline(never)]
#[target_feature(enable = "avx512f,avx512ifma,avx512vl,avx512dq,avx512bw,avx512vbmi")]
fn product_pair(result: &mut Pair, a: &Pair, b: &Pair) {
    let (mut real, mut both, mut cross) = (Vector::ZERO, Vector::ZERO, Vector::ZERO);
    product(&mut real, &a.0[0], &b.0[0]);
    product(&mut both, &a.0[1], &b.0[1]);
    product(&mut cross, &add(&a.0[0], &a.0[1]), &add(&b.0[0], &b.0[1]));
    let sum = add(&real, &both);
    // A product in Fp may exceed p by 2^-10 p: 2 p would not cover both.
    result.0 = [subtract(&real, &Fp::TIMES_2, &both), subtract(&cross, &Fp::TIMES_3, &sum)];
}

/// (a0 + a1)(a0 - a1) + 2 a0 a1 u, for parts below 8 p; both parts are below 2.01 p.
#[inline(never)]
#[target_feature(enable = "avx512f,avx512ifma,avx512vl,avx512dq,avx512bw,avx512vbmi")]
fn square_pair(result: &mut Pair, a: &Pair) {
    let (mut real, mut half) = (Vector::ZERO, Vector::ZERO);
    product(&mut real, &add(&a.0[0], &a.0[1]), &subtract(&a.0[0], &Fp::TIMES_8, &a.0[1]));
    product(&mut half, &a.0[0], &a.0[1]);
    result.0 = [real, add(&half, &half)];
}

/// (a0 - a1 u) / (a0^2 + a1^2)
#[target_feature(enable = "avx512f,avx512ifma,avx512vl,avx512dq,avx512bw,avx512vbmi")]
fn invert_pairs(value: &Pair) -> Pair {
    let [real, other] = &value.0;
    let norm = add(&square::<8, Fp>(real), &square::<8, Fp>(other));
    let inverse = invert_lanes(&norm);
    let minus = multiply::<8, Fp>(other, &inverse);
    Pair([multiply::<8, Fp>(real, &inverse), subtract(&Vector::ZERO, &Fp::TIMES_2, &minus)])
}

impl Pair {
    #[inline(always)]
    fn both(a: &Self, b: &Self, each: impl Fn(&Vector<8>, &Vector<8>) -> Vector<8>) -> Self {
        Pair([each(&a.0[0], &b.0[0]), each(&a.0[1], &b.0[1])])
    }
}

// SAFETY: (all blocks below) see the trait: the callers are compiled with these instructions.
impl Wide for Pair {
    type Element = blst_fp2;
    type Memory = [Limbs<8>; 2];

    const BATCH: usize = 64;
    const ZERO: Self = Pair([Vector::ZERO; 2]);
    const ZERO_MEMORY: [Limbs<8>; 2] = [[0; 8]; 2];

    #[inline(always)]
    fn one() -> Self {
        Pair([Vector::one(), Vector::ZERO])
    }

    #[inline(always)]
    fn from_blst_x(elements: [&blst_fp2; 8]) -> Self {
        Pair([0, 1].map(|part| Vector::from_blst_x(elements.map(|element| &element.fp[part]))))
    }

    #[inline(always)]
    fn from_blst_y(elements: [&blst_fp2; 8]) -> Self {
        Pair([0, 1].map(|part| Vector::from_blst_y(elements.map(|element| &element.fp[part]))))
    }

    fn to_blst_x(memory: &[Limbs<8>; 2]) -> blst_fp2 {
        blst_fp2 { fp: [0, 1].map(|part| Vector::to_blst_x(&memory[part])) }
    }

    fn to_blst_y(memory: &[Limbs<8>; 2]) -> blst_fp2 {
        blst_fp2 { fp: [0, 1].map(|part| Vector::to_blst_y(&memory[part])) }
    }

    #[inline(always)]
    fn broadcast(memory: &[Limbs<8>; 2]) -> Self {
        Pair([Wide::broadcast(&memory[0]), Wide::broadcast(&memory[1])])
    }

    #[inline(always)]
    fn load(memory: [&[Limbs<8>; 2]; 8]) -> Self {
        Pair([0, 1].map(|part| Wide::load(memory.map(|element| &element[part]))))
    }

    #[inline(always)]
    fn store(&self) -> [[Limbs<8>; 2]; 8] {
        let (real, other) = (self.0[0].store(), self.0[1].store());
        std::array::from_fn(|lane| [real[lane], other[lane]])
    }

    #[inline(always)]
    fn product(result: &mut Self, a: &Self, b: &Self) {
        unsafe { product_pair(result, a, b) }
    }

    #[inline(always)]
    fn squared(result: &mut Self, a: &Self) {
        unsafe { square_pair(result, a) }
    }

    #[inline(always)]
    fn sum(a: &Self, b: &Self) -> Self {
        Self::both(a, b, Wide::sum)
    }

    #[inline(always)]
    fn difference(a: &Self, b: &Self) -> Self {
        Self::both(a, b, Wide::difference)
    }

    #[inline(always)]
    fn signed_difference(a: &Self, b: &Self, negative: __mmask8) -> Self {
        Self::both(a, b, |a, b| Wide::signed_difference(a, b, negative))
    }

    // Products may have parts of more than 4 p: eight times p in all, and two rounds.
    #[inline(always)]
    fn fold_less_two(product: &Self, a: &Self, b: &Self) -> Self {
        Pair([0, 1].map(|part| unsafe { fold(fold(less_two(&product.0[part], &a.0[part], &b.0[part])).0) }))
    }

    #[inline(always)]
    fn fold_less(product: &Self, a: &Self) -> Self {
        Self::both(product, a, |product, a| unsafe { fold(fold(less(product, a)).0) })
    }

    #[inline(always)]
    fn choose(mask: __mmask8, a: &Self, b: &Self) -> Self {
        Self::both(a, b, |a, b| Wide::choose(mask, a, b))
    }

    #[inline(always)]
    fn zero_lanes(&self) -> __mmask8 {
        Wide::zero_lanes(&self.0[0]) & Wide::zero_lanes(&self.0[1])
    }

    #[inline(always)]
    fn suspect_lanes(&self) -> __mmask8 {
        self.0[0].suspect_lanes() & self.0[1].suspect_lanes()
    }

    #[inline(always)]
    fn multiple_lanes(&self) -> __mmask8 {
        self.0[0].multiple_lanes() & self.0[1].multiple_lanes()
    }

    #[inline(always)]
    fn inverse(&self) -> Self {
        unsafe { invert_pairs(self) }
    }
}

/// Whether a number is small, with all limbs carried.
#[cfg(test)]
pub(super) fn is_small(limbs: &Limbs<8>) -> bool {
    limbs::checked_difference(limbs, &Fp::TIMES_2).is_none() && limbs[..7].iter().all(|limb| *limb <= MASK)
}
