//! Eight scalars in AVX-512 IFMA registers. Knows no transform.
//!
//! Data keep blst's Montgomery factor 2^256: transforms are linear, so only the factors that multiply them
//! need this arithmetic's own, 2^260. Values stay below 32 r between [`Eight::load`] and [`Eight::store`]:
//! a product of anything below 32 r and a factor is below 1.91 r, and every level adds at most 2 r. Limbs are
//! carried only before they are multiplied or stored: a product's are below 2^58, and each of at most fourteen
//! levels adds or subtracts one such, which 64 bits with a sign hold.

// Limbs of several operands advance together, by index.
#![allow(clippy::needless_range_loop)]

use std::arch::x86_64::*;

use blst::blst_fr;
use blstrs::Scalar;

use super::vector::Eight;
use crate::backend::cpu::lane::ifma::{
    multiply, multiply_beside, normalize, split, transpose, Field, Fr, Limbs, Modulus, Vector,
};
use crate::curve::layout;

/// Eight elements, each below 32 r, with limbs not yet carried.
#[derive(Clone, Copy)]
pub(super) struct Registers(Vector<5>);

/// A constant c as c 2^260 mod r: blst's form of 16 c.
fn limbs(value: &Scalar) -> Limbs<5> {
    split(&blst_fr::from(value * Scalar::from(16)).l)
}

// SAFETY: (all blocks below) values of this type are made and used only inside `enter`, or by plans that were
// made for it, and both are only reached where the instructions are available.
impl Eight for Registers {
    type Factor = Limbs<5>;

    const ZERO: Self = Registers(Vector::ZERO);
    const REDUCED: bool = false;

    fn factor(value: &Scalar) -> Limbs<5> {
        limbs(value)
    }

    fn factors(values: &[Scalar; 8]) -> Self {
        Registers(Vector::from_elements(&values.map(|value| limbs(&value))))
    }

    #[inline(always)]
    fn enter<R>(work: impl FnOnce() -> R) -> R {
        unsafe { with_instructions(work) }
    }

    #[inline(always)]
    fn load(values: &[Scalar; 8]) -> Self {
        unsafe { load(layout::scalars(values).try_into().unwrap()) }
    }

    #[inline(always)]
    fn store(&self, values: &mut [Scalar; 8]) {
        unsafe { store(&self.0, layout::scalars_mut(values).try_into().unwrap()) }
    }

    #[inline(always)]
    fn scale(&mut self, factor: &Limbs<5>) {
        unsafe {
            self.0 = Vector(multiply_beside::<5, Fr>(&normalize(self.0 .0), &Vector::broadcast(factor), |_| {}));
        }
    }

    #[inline(always)]
    fn multiply(&mut self, factors: &Self) {
        unsafe { self.0 = multiply::<5, Fr>(&normalize(self.0 .0), &factors.0) }
    }

    #[inline(always)]
    fn cross(a: &mut Self, b: &mut Self) {
        unsafe { cross(&mut a.0, &mut b.0, &Fr::TIMES_2) }
    }

    #[inline(always)]
    fn cross_first(a: &mut Self, b: &mut Self) {
        unsafe { cross(&mut a.0, &mut b.0, &Fr::TIMES_4) }
    }

    #[inline(always)]
    fn transpose(block: &mut [Self; 8]) {
        unsafe { transpose_all(block) }
    }
}

/// Compiles `work` with the instructions that this file needs.
#[target_feature(enable = "avx512f,avx512ifma,avx512vl,avx512dq,avx512bw,avx512vbmi")]
fn with_instructions<R>(work: impl FnOnce() -> R) -> R {
    work()
}

/// `(a, b) = (a + b, a - b)` for b below `multiple`.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma,avx512vl,avx512dq,avx512bw,avx512vbmi")]
fn cross(a: &mut Vector<5>, b: &mut Vector<5>, multiple: &Limbs<5>) {
    for limb in 0..5 {
        let (left, right) = (a.0[limb], b.0[limb]);
        a.0[limb] = _mm512_add_epi64(left, right);
        b.0[limb] = _mm512_sub_epi64(_mm512_add_epi64(left, word(multiple[limb])), right);
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512ifma,avx512vl,avx512dq,avx512bw,avx512vbmi")]
fn transpose_all(block: &mut [Registers; 8]) {
    for limb in 0..5 {
        let mut rows = [_mm512_setzero_si512(); 8];
        for (row, vector) in rows.iter_mut().zip(block.iter()) {
            *row = vector.0 .0[limb];
        }
        for (row, vector) in transpose(&rows).iter().zip(block.iter_mut()) {
            vector.0 .0[limb] = *row;
        }
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512ifma,avx512vl,avx512dq,avx512bw,avx512vbmi")]
fn word(value: u64) -> __m512i {
    _mm512_set1_epi64(value as i64)
}

/// Eight times four words to five limbs.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma,avx512vl,avx512dq,avx512bw,avx512vbmi")]
fn load(values: &[blst_fr; 8]) -> Registers {
    let memory = values.as_ptr().cast::<i64>();
    let mut pairs = [_mm512_setzero_si512(); 4];
    for (index, pair) in pairs.iter_mut().enumerate() {
        // SAFETY: `values` holds 32 words.
        *pair = unsafe { _mm512_loadu_epi64(memory.add(8 * index)) };
    }
    // Words 0 and 1 (then 2 and 3) of four elements.
    let low = _mm512_set_epi64(13, 9, 5, 1, 12, 8, 4, 0);
    let high = _mm512_set_epi64(15, 11, 7, 3, 14, 10, 6, 2);
    let [a, b, c, d] = pairs;
    let (first, second) = (_mm512_permutex2var_epi64(a, low, b), _mm512_permutex2var_epi64(c, low, d));
    let (third, fourth) = (_mm512_permutex2var_epi64(a, high, b), _mm512_permutex2var_epi64(c, high, d));
    let words = [
        _mm512_shuffle_i64x2::<0x44>(first, second),
        _mm512_shuffle_i64x2::<0xee>(first, second),
        _mm512_shuffle_i64x2::<0x44>(third, fourth),
        _mm512_shuffle_i64x2::<0xee>(third, fourth),
    ];
    let mask = word((1 << 52) - 1);
    let limb1 = _mm512_or_si512(_mm512_srli_epi64::<52>(words[0]), _mm512_slli_epi64::<12>(words[1]));
    let limb2 = _mm512_or_si512(_mm512_srli_epi64::<40>(words[1]), _mm512_slli_epi64::<24>(words[2]));
    let limb3 = _mm512_or_si512(_mm512_srli_epi64::<28>(words[2]), _mm512_slli_epi64::<36>(words[3]));
    Registers(Vector([
        _mm512_and_si512(words[0], mask),
        _mm512_and_si512(limb1, mask),
        _mm512_and_si512(limb2, mask),
        _mm512_and_si512(limb3, mask),
        _mm512_srli_epi64::<16>(words[3]),
    ]))
}

/// Values below 32 r, limbs carried, to canonical ones.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma,avx512vl,avx512dq,avx512bw,avx512vbmi")]
fn canonical(value: &Vector<5>) -> Vector<5> {
    /// floor(2^265 / r): an estimate of the quotient from the bits above 2^213, too small by one at most.
    const RECIPROCAL: u64 = 1130;
    let top = _mm512_srli_epi64::<5>(value.0[4]);
    let quotient = _mm512_madd52hi_epu64(_mm512_setzero_si512(), top, word(RECIPROCAL));
    let mut product = [_mm512_setzero_si512(); 5];
    for limb in 0..5 {
        product[limb] = _mm512_madd52lo_epu64(product[limb], quotient, word(Fr::ONCE[limb]));
        if limb > 0 {
            product[limb] = _mm512_madd52hi_epu64(product[limb], quotient, word(Fr::ONCE[limb - 1]));
        }
    }
    let mut limbs = value.0;
    for limb in 0..5 {
        limbs[limb] = _mm512_sub_epi64(limbs[limb], product[limb]);
    }
    // Below 2 r now.
    let rest = normalize(limbs);
    let mut limbs = rest.0;
    for limb in 0..5 {
        limbs[limb] = _mm512_sub_epi64(limbs[limb], word(Fr::ONCE[limb]));
    }
    let less = normalize(limbs);
    let negative = _mm512_movepi64_mask(less.0[4]);
    Vector::choose(negative, &less, &rest)
}

/// Five limbs to eight times four words, canonical.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma,avx512vl,avx512dq,avx512bw,avx512vbmi")]
fn store(value: &Vector<5>, values: &mut [blst_fr; 8]) {
    let limbs = canonical(&normalize(value.0)).0;
    let words = [
        _mm512_or_si512(limbs[0], _mm512_slli_epi64::<52>(limbs[1])),
        _mm512_or_si512(_mm512_srli_epi64::<12>(limbs[1]), _mm512_slli_epi64::<40>(limbs[2])),
        _mm512_or_si512(_mm512_srli_epi64::<24>(limbs[2]), _mm512_slli_epi64::<28>(limbs[3])),
        _mm512_or_si512(_mm512_srli_epi64::<36>(limbs[3]), _mm512_slli_epi64::<16>(limbs[4])),
    ];
    // Words 0 1 (and 2 3) of elements 0 2 4 6, then of elements 1 3 5 7.
    let even = [_mm512_unpacklo_epi64(words[0], words[1]), _mm512_unpacklo_epi64(words[2], words[3])];
    let odd = [_mm512_unpackhi_epi64(words[0], words[1]), _mm512_unpackhi_epi64(words[2], words[3])];
    let low = _mm512_set_epi64(11, 10, 3, 2, 9, 8, 1, 0);
    let high = _mm512_set_epi64(15, 14, 7, 6, 13, 12, 5, 4);
    // Two elements each: 0 2, 4 6, 1 3, 5 7.
    let pairs = [
        (0, _mm512_permutex2var_epi64(even[0], low, even[1])),
        (4, _mm512_permutex2var_epi64(even[0], high, even[1])),
        (1, _mm512_permutex2var_epi64(odd[0], low, odd[1])),
        (5, _mm512_permutex2var_epi64(odd[0], high, odd[1])),
    ];
    let memory = values.as_mut_ptr();
    for (element, pair) in pairs {
        // SAFETY: four words each into elements 0 to 7 of `values`.
        unsafe {
            _mm256_storeu_si256(memory.add(element).cast(), _mm512_castsi512_si256(pair));
            _mm256_storeu_si256(memory.add(element + 2).cast(), _mm512_extracti64x4_epi64::<1>(pair));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::cpu::lane::ifma::{add, available};
    use ff::Field as _;
    use rand::rngs::StdRng;
    use rand::SeedableRng;

    #[test]
    fn every_multiple_of_the_modulus_that_may_occur_is_stored_canonically() {
        if !available() {
            return;
        }
        let mut rng = StdRng::seed_from_u64(1);
        let one = Scalar::ONE;
        let mut samples = vec![Scalar::ZERO, Scalar::from(blst_fr { l: [1, 0, 0, 0] }), one, -one];
        samples.extend((0..20).map(|_| Scalar::random(&mut rng)));
        samples.push(-Scalar::from(blst_fr { l: [1, 0, 0, 0] }));
        samples.push(Scalar::from(blst_fr { l: [0, 0, 0, 0x73ed_a753_299d_7d48] }));
        for sample in samples {
            let values = [sample; 8];
            let mut sum = Registers::load(&values);
            let multiple = Vector::from_elements(&[Fr::ONCE; 8]);
            for _ in 0..32 {
                let mut stored = [Scalar::ZERO; 8];
                sum.store(&mut stored);
                assert_eq!(stored, values);
                // SAFETY: the instructions are available.
                sum.0 = unsafe { add(&sum.0, &multiple) };
            }
        }
    }
}
