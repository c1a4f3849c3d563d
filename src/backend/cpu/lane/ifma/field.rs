//! Eight elements of Fp (eight limbs) or Fr (five limbs) in Montgomery form with R = 2^(52 N), one element a
//! 64-bit lane. Knows neither points nor transforms.
//!
//! Values are kept below a small multiple of the modulus, each limb below 2^52 but for the top one, which may
//! hold more. A product of a < A m and b < B m is below (A B m / R + 1) m: m / R is 2^-35 for Fp, and 2^-5.14
//! for Fr.

// Limbs of several operands advance together, by index.
#![allow(clippy::needless_range_loop)]

use std::arch::x86_64::*;

use super::limbs::{self, BITS, MASK};

pub(crate) type Limbs<const N: usize> = [u64; N];

/// Constants of a field.
pub(crate) trait Modulus<const N: usize>: 'static {
    /// The modulus.
    const ONCE: Limbs<N>;
    /// -1 / modulus modulo 2^52.
    const INVERSE: u64 = limbs::negative_inverse(Self::ONCE[0]);
}

/// The field of coordinates.
pub(crate) struct Fp;

/// The field of scalars.
pub(crate) struct Fr;

/// p, low word first.
const P: [u64; 6] = [
    0xb9fe_ffff_ffff_aaab,
    0x1eab_fffe_b153_ffff,
    0x6730_d2a0_f6b0_f624,
    0x6477_4b84_f385_12bf,
    0x4b1b_a7b6_434b_acd7,
    0x1a01_11ea_397f_e69a,
];

/// r, low word first.
const R: [u64; 4] = [0xffff_ffff_0000_0001, 0x53bd_a402_fffe_5bfe, 0x3339_d808_09a1_d805, 0x73ed_a753_299d_7d48];

impl Modulus<8> for Fp {
    const ONCE: Limbs<8> = limbs::split(&P);
}

impl Modulus<5> for Fr {
    const ONCE: Limbs<5> = limbs::split(&R);
}

/// More constants that follow from those.
pub(crate) trait Field<const N: usize>: Modulus<N> {
    /// Twice the modulus.
    const TIMES_2: Limbs<N> = limbs::multiple(&Self::ONCE, 2);
    /// Three times the modulus.
    const TIMES_3: Limbs<N> = limbs::multiple(&Self::ONCE, 3);
    /// Four times the modulus.
    const TIMES_4: Limbs<N> = limbs::multiple(&Self::ONCE, 4);
    /// Eight times the modulus.
    const TIMES_8: Limbs<N> = limbs::multiple(&Self::ONCE, 8);
    /// One in Montgomery form.
    const ONE: Limbs<N> = limbs::power_of_two(&Self::ONCE, N * BITS);
}

impl Field<8> for Fp {}
impl Field<5> for Fr {}

/// Limb i of all eight elements in register i.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct Vector<const N: usize>(pub(crate) [__m512i; N]);

impl<const N: usize> Vector<N> {
    /// Eight elements, all zero.
    pub(crate) const ZERO: Self = {
        // SAFETY: any bits are a vector register's value.
        let zero = unsafe { std::mem::transmute::<[u64; 8], __m512i>([0; 8]) };
        Vector([zero; N])
    };

    /// Element by element.
    pub(crate) fn from_elements(elements: &[Limbs<N>; 8]) -> Self {
        Vector(std::array::from_fn(|limb| {
            let column: [u64; 8] = std::array::from_fn(|lane| elements[lane][limb]);
            // SAFETY: the same size, and any bits are a vector register's value.
            unsafe { std::mem::transmute::<[u64; 8], __m512i>(column) }
        }))
    }

    /// The element of one lane.
    pub(crate) fn element(&self, lane: usize) -> Limbs<N> {
        // SAFETY: the same size, and any bits are eight integers.
        self.0.map(|limb| unsafe { std::mem::transmute::<__m512i, [u64; 8]>(limb) }[lane])
    }

    /// The same element in all lanes.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma,avx512vl,avx512dq,avx512bw,avx512vbmi")]
    pub(crate) fn broadcast(element: &Limbs<N>) -> Self {
        let mut registers = [_mm512_setzero_si512(); N];
        for limb in 0..N {
            registers[limb] = constant(element[limb]);
        }
        Vector(registers)
    }

    /// `b` in the lanes of `mask`, `a` in the others.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma,avx512vl,avx512dq,avx512bw,avx512vbmi")]
    pub(crate) fn choose(mask: __mmask8, a: &Self, b: &Self) -> Self {
        let mut registers = a.0;
        for limb in 0..N {
            registers[limb] = _mm512_mask_blend_epi64(mask, a.0[limb], b.0[limb]);
        }
        Vector(registers)
    }

    /// The lanes whose element is all zero bits.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma,avx512vl,avx512dq,avx512bw,avx512vbmi")]
    pub(crate) fn zero_lanes(&self) -> __mmask8 {
        let low = _mm512_testn_epi64_mask(self.0[0], self.0[0]);
        if low == 0 {
            return 0;
        }
        let mut bits = self.0[0];
        for limb in 1..N {
            bits = _mm512_or_si512(bits, self.0[limb]);
        }
        _mm512_testn_epi64_mask(bits, bits)
    }

    /// The lanes whose normalized element is exactly `limbs`.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma,avx512vl,avx512dq,avx512bw,avx512vbmi")]
    pub(crate) fn equal_lanes(&self, limbs: &Limbs<N>) -> __mmask8 {
        let mut equal = _mm512_cmpeq_epi64_mask(self.0[0], constant(limbs[0]));
        if equal != 0 {
            for limb in 1..N {
                equal &= _mm512_cmpeq_epi64_mask(self.0[limb], constant(limbs[limb]));
            }
        }
        equal
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512ifma,avx512vl,avx512dq,avx512bw,avx512vbmi")]
pub(super) fn constant(value: u64) -> __m512i {
    _mm512_set1_epi64(value as i64)
}

/// Carries between the limbs, which may be negative or exceed 52 bits. The top limb keeps the rest.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma,avx512vl,avx512dq,avx512bw,avx512vbmi")]
pub(crate) fn normalize<const N: usize>(mut limbs: [__m512i; N]) -> Vector<N> {
    let mask = constant(MASK);
    for limb in 0..N - 1 {
        let carry = _mm512_srai_epi64::<52>(limbs[limb]);
        limbs[limb + 1] = _mm512_add_epi64(limbs[limb + 1], carry);
        limbs[limb] = _mm512_and_si512(limbs[limb], mask);
    }
    Vector(limbs)
}

/// `a + b`
#[inline]
#[target_feature(enable = "avx512f,avx512ifma,avx512vl,avx512dq,avx512bw,avx512vbmi")]
pub(crate) fn add<const N: usize>(a: &Vector<N>, b: &Vector<N>) -> Vector<N> {
    let mut limbs = a.0;
    for limb in 0..N {
        limbs[limb] = _mm512_add_epi64(limbs[limb], b.0[limb]);
    }
    normalize(limbs)
}

/// `a + multiple - b`, where `multiple` of the modulus is larger than b.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma,avx512vl,avx512dq,avx512bw,avx512vbmi")]
pub(crate) fn subtract<const N: usize>(a: &Vector<N>, multiple: &Limbs<N>, b: &Vector<N>) -> Vector<N> {
    let mut limbs = a.0;
    for limb in 0..N {
        limbs[limb] = _mm512_sub_epi64(_mm512_add_epi64(limbs[limb], constant(multiple[limb])), b.0[limb]);
    }
    normalize(limbs)
}

/// Repeats a block with an index from 0 to 7, which is a constant in each copy.
macro_rules! eight_times {
    ($index:ident, $body:block) => {
        eight_times!($index, $body, 0 1 2 3 4 5 6 7)
    };
    ($index:ident, $body:block, $($value:literal)*) => {
        $({
            let $index: usize = $value;
            $body
        })*
    };
}

/// `a b / R`: the full product, then a reduction.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma,avx512vl,avx512dq,avx512bw,avx512vbmi")]
pub(crate) fn multiply<const N: usize, F: Field<N>>(a: &Vector<N>, b: &Vector<N>) -> Vector<N> {
    // SAFETY: the instructions are available.
    normalize(unsafe { multiply_beside::<N, F>(a, b, |_| {}) })
}

/// The same with limbs not yet carried, each below 2^58, and with other work after each of 2 N steps. Products keep
/// two of a core's four vector units busy; what stands between their instructions runs in the others nearly for
/// free. What stands before or after them does not: the core looks ahead over half a product at most.
///
/// # Safety
/// Only inlined into code that is compiled with this module's instructions.
#[inline(always)]
pub(crate) unsafe fn multiply_beside<const N: usize, F: Field<N>>(
    a: &Vector<N>,
    b: &Vector<N>,
    mut beside: impl FnMut(usize),
) -> [__m512i; N] {
    let mut columns = [_mm512_setzero_si512(); 16];
    eight_times!(i, {
        if i < N {
            for j in 0..N {
                columns[i + j] = _mm512_madd52lo_epu64(columns[i + j], a.0[i], b.0[j]);
            }
            for j in 0..N {
                columns[i + j + 1] = _mm512_madd52hi_epu64(columns[i + j + 1], a.0[i], b.0[j]);
            }
            beside(i);
        }
    });
    reduce::<N, F>(columns, beside)
}

/// `a^2 / R`
#[inline]
#[target_feature(enable = "avx512f,avx512ifma,avx512vl,avx512dq,avx512bw,avx512vbmi")]
pub(crate) fn square<const N: usize, F: Field<N>>(a: &Vector<N>) -> Vector<N> {
    // SAFETY: the instructions are available.
    normalize(unsafe { square_beside::<N, F>(a, |_| {}) })
}

/// The same with limbs not yet carried, each below 2^58, and with other work as in [`multiply_beside`].
///
/// # Safety
/// As there.
#[inline(always)]
pub(crate) unsafe fn square_beside<const N: usize, F: Field<N>>(
    a: &Vector<N>,
    mut beside: impl FnMut(usize),
) -> [__m512i; N] {
    let mut columns = [_mm512_setzero_si512(); 16];
    eight_times!(i, {
        if i < N {
            for j in i + 1..N {
                columns[i + j] = _mm512_madd52lo_epu64(columns[i + j], a.0[i], a.0[j]);
            }
            for j in i + 1..N {
                columns[i + j + 1] = _mm512_madd52hi_epu64(columns[i + j + 1], a.0[i], a.0[j]);
            }
            beside(i);
        }
    });
    for column in &mut columns {
        *column = _mm512_add_epi64(*column, *column);
    }
    for i in 0..N {
        columns[2 * i] = _mm512_madd52lo_epu64(columns[2 * i], a.0[i], a.0[i]);
        columns[2 * i + 1] = _mm512_madd52hi_epu64(columns[2 * i + 1], a.0[i], a.0[i]);
    }
    reduce::<N, F>(columns, beside)
}

/// Montgomery's reduction of the first 2 N columns, limb by limb, and steps N to 2 N - 1 of other work. Each column
/// has taken at most 4 N products of 52 bits, far below 64. The result's limbs are not yet carried.
///
/// # Safety
/// As in [`multiply_beside`].
#[inline(always)]
unsafe fn reduce<const N: usize, F: Field<N>>(
    mut columns: [__m512i; 16],
    mut beside: impl FnMut(usize),
) -> [__m512i; N] {
    let mask = constant(MASK);
    let inverse = constant(F::INVERSE);
    eight_times!(i, {
        if i < N {
            let quotient = _mm512_madd52lo_epu64(_mm512_setzero_si512(), columns[i], inverse);
            // The low limb of the column plus quotient * modulus is zero by construction: it carries one unless
            // the column's low limb is zero itself.
            let carry = _mm512_srli_epi64::<52>(_mm512_add_epi64(columns[i], mask));
            let carry = _mm512_madd52hi_epu64(carry, quotient, constant(F::ONCE[0]));
            columns[i + 1] = _mm512_add_epi64(columns[i + 1], carry);
            for j in 1..N {
                columns[i + j] = _mm512_madd52lo_epu64(columns[i + j], quotient, constant(F::ONCE[j]));
            }
            for j in 1..N {
                columns[i + j + 1] = _mm512_madd52hi_epu64(columns[i + j + 1], quotient, constant(F::ONCE[j]));
            }
            beside(N + i);
        }
    });
    let mut result = [_mm512_setzero_si512(); N];
    result.copy_from_slice(&columns[N..2 * N]);
    result
}

/// Register i holds eight words of lane i; afterwards register j holds word j of all lanes.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma,avx512vl,avx512dq,avx512bw,avx512vbmi")]
pub(crate) fn transpose(rows: &[__m512i; 8]) -> [__m512i; 8] {
    transpose_quads(&transpose_pairs(&transpose_words(rows)))
}

/// The first third of [`transpose`]: words 0 2 4 6 (then 1 3 5 7) of rows 2 i and 2 i + 1, alternating.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma,avx512vl,avx512dq,avx512bw,avx512vbmi")]
pub(super) fn transpose_words(rows: &[__m512i; 8]) -> [__m512i; 8] {
    let mut words = [_mm512_setzero_si512(); 8];
    for i in 0..4 {
        words[2 * i] = _mm512_unpacklo_epi64(rows[2 * i], rows[2 * i + 1]);
        words[2 * i + 1] = _mm512_unpackhi_epi64(rows[2 * i], rows[2 * i + 1]);
    }
    words
}

/// The second third: words odd and odd + 4, then words odd + 2 and odd + 6, of four rows.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma,avx512vl,avx512dq,avx512bw,avx512vbmi")]
pub(super) fn transpose_pairs(words: &[__m512i; 8]) -> [__m512i; 8] {
    let mut pairs = [_mm512_setzero_si512(); 8];
    for half in 0..2 {
        for odd in 0..2 {
            let (low, high) = (words[4 * half + odd], words[4 * half + 2 + odd]);
            pairs[4 * half + odd] = _mm512_shuffle_i64x2::<0x88>(low, high);
            pairs[4 * half + 2 + odd] = _mm512_shuffle_i64x2::<0xdd>(low, high);
        }
    }
    pairs
}

/// The last third: single words of all rows.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma,avx512vl,avx512dq,avx512bw,avx512vbmi")]
pub(super) fn transpose_quads(pairs: &[__m512i; 8]) -> [__m512i; 8] {
    let mut words = [_mm512_setzero_si512(); 8];
    for odd in 0..2 {
        words[odd] = _mm512_shuffle_i64x2::<0x88>(pairs[odd], pairs[4 + odd]);
        words[odd + 4] = _mm512_shuffle_i64x2::<0xdd>(pairs[odd], pairs[4 + odd]);
        words[odd + 2] = _mm512_shuffle_i64x2::<0x88>(pairs[2 + odd], pairs[6 + odd]);
        words[odd + 6] = _mm512_shuffle_i64x2::<0xdd>(pairs[2 + odd], pairs[6 + odd]);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use blst::{blst_fp, blst_fp_mul, blst_fr, blst_fr_mul};
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    /// 0, 1, 2, m - 1, m - 2, every power of two and every run of ones below m, and random values.
    fn samples<const N: usize>(modulus: &Limbs<N>, rng: &mut StdRng) -> Vec<Limbs<N>> {
        let mut samples = Vec::new();
        for small in 0..3u64 {
            let mut limbs = [0; N];
            limbs[0] = small;
            samples.push(limbs);
            limbs[0] = small + 1;
            samples.push(limbs::checked_difference(modulus, &limbs).unwrap());
        }
        for bit in 0..N * BITS {
            let mut power = [0; N];
            power[bit / BITS] = 1 << (bit % BITS);
            let mut one = [0; N];
            one[0] = 1;
            samples.push(power);
            samples.push(limbs::checked_difference(&power, &one).unwrap());
        }
        for _ in 0..300 {
            samples.push(std::array::from_fn(|_| rng.gen_range(0..=MASK)));
        }
        samples.retain(|sample| limbs::checked_difference(sample, modulus).is_none());
        samples
    }

    /// Every pair of samples, with multiples of the modulus added to both, against `expected` (which
    /// multiplies modulo m, with blst's R).
    fn products_equal<const N: usize, F: Field<N>>(most: u64, expected: impl Fn(&Limbs<N>, &Limbs<N>) -> Limbs<N>) {
        if !super::super::available() {
            return;
        }
        let mut rng = StdRng::seed_from_u64(1);
        let samples = samples::<N>(&F::ONCE, &mut rng);
        // Products here divide by R = 2^(52 N), blst's by its own R: multiplying by R mod m with blst's product
        // turns the one into the other.
        let plus = |limbs: &Limbs<N>, factor: u64| {
            let multiple = limbs::multiple(&F::ONCE, factor);
            let mut carry = 0;
            std::array::from_fn(|i| {
                let sum = limbs[i] + multiple[i] + carry;
                carry = if i + 1 < N { sum >> BITS } else { 0 };
                sum - (carry << BITS)
            })
        };
        for a in samples.iter() {
            for chunk in samples.chunks(8) {
                let b: [Limbs<N>; 8] = std::array::from_fn(|lane| chunk[lane % chunk.len()]);
                let factors: [[u64; 2]; 8] = std::array::from_fn(|_| [rng.gen_range(0..=most), rng.gen_range(0..=1)]);
                let left: [Limbs<N>; 8] = std::array::from_fn(|lane| plus(a, factors[lane][0]));
                let right: [Limbs<N>; 8] = std::array::from_fn(|lane| plus(&b[lane], factors[lane][1]));
                let (left, right) = (Vector::from_elements(&left), Vector::from_elements(&right));
                // SAFETY: the instructions are available.
                let (product, square) = unsafe { (multiply::<N, F>(&left, &right), square::<N, F>(&right)) };
                for lane in 0..8 {
                    let reduced = limbs::reduce(product.element(lane), &F::ONCE);
                    assert_eq!(expected(&reduced, &F::ONE), expected(a, &b[lane]));
                    let reduced = limbs::reduce(square.element(lane), &F::ONCE);
                    assert_eq!(expected(&reduced, &F::ONE), expected(&b[lane], &b[lane]));
                }
            }
        }
    }

    #[test]
    fn products_in_fr_equal_blsts_on_edge_values_and_unreduced_operands() {
        products_equal::<5, Fr>(30, |a, b| {
            let (a, b) = (blst_fr { l: limbs::join(a) }, blst_fr { l: limbs::join(b) });
            let mut product = blst_fr::default();
            // SAFETY: three valid elements.
            unsafe { blst_fr_mul(&mut product, &a, &b) };
            split_words(&product.l)
        });
    }

    #[test]
    fn products_in_fp_equal_blsts_on_edge_values_and_unreduced_operands() {
        products_equal::<8, Fp>(30, |a, b| {
            let (a, b) = (blst_fp { l: limbs::join(a) }, blst_fp { l: limbs::join(b) });
            let mut product = blst_fp::default();
            // SAFETY: three valid elements.
            unsafe { blst_fp_mul(&mut product, &a, &b) };
            split_words(&product.l)
        });
    }

    fn split_words<const M: usize, const N: usize>(words: &[u64; M]) -> Limbs<N> {
        limbs::split(words)
    }

    #[test]
    fn transposing_exchanges_lanes_and_words() {
        if !super::super::available() {
            return;
        }
        let elements: [Limbs<8>; 8] = std::array::from_fn(|i| std::array::from_fn(|j| (8 * i + j) as u64));
        let vector = Vector::from_elements(&elements);
        // SAFETY: the instructions are available.
        let turned = Vector(unsafe { transpose(&vector.0) });
        for lane in 0..8 {
            assert_eq!(turned.element(lane), std::array::from_fn(|word| elements[word][lane]));
        }
    }
}
