//! Eight scalars in blst's form. Knows no transform.

use blst::{blst_fr, blst_fr_mul};
use blstrs::Scalar;

use super::vector::Eight;
use crate::curve::layout;

/// Eight elements, each fully reduced, in Montgomery form.
#[derive(Clone, Copy)]
pub(super) struct Scalars([blst_fr; 8]);

/// The modulus, low word first.
const MODULUS: [u64; 4] = [0xffff_ffff_0000_0001, 0x53bd_a402_fffe_5bfe, 0x3339_d808_09a1_d805, 0x73ed_a753_299d_7d48];

impl Eight for Scalars {
    type Factor = blst_fr;

    const ZERO: Self = Scalars([blst_fr { l: [0; 4] }; 8]);

    const REDUCED: bool = true;

    fn factor(value: &Scalar) -> blst_fr {
        (*value).into()
    }

    fn factors(values: &[Scalar; 8]) -> Self {
        Self::load(values)
    }

    #[inline(always)]
    fn enter<R>(work: impl FnOnce() -> R) -> R {
        work()
    }

    #[inline(always)]
    fn load(values: &[Scalar; 8]) -> Self {
        let raw: &[blst_fr; 8] = layout::scalars(values).try_into().unwrap();
        Scalars(*raw)
    }

    #[inline(always)]
    fn store(&self, values: &mut [Scalar; 8]) {
        layout::scalars_mut(values).copy_from_slice(&self.0);
    }

    #[inline(always)]
    fn scale(&mut self, factor: &blst_fr) {
        for value in &mut self.0 {
            let value: *mut blst_fr = value;
            // SAFETY: valid pointers to one element each; blst allows the result to be an operand.
            unsafe { blst_fr_mul(value, value, factor) };
        }
    }

    #[inline(always)]
    fn multiply(&mut self, factors: &Self) {
        for (value, factor) in self.0.iter_mut().zip(&factors.0) {
            let value: *mut blst_fr = value;
            // SAFETY: as in `scale`.
            unsafe { blst_fr_mul(value, value, factor) };
        }
    }

    #[inline(always)]
    fn cross(a: &mut Self, b: &mut Self) {
        for (a, b) in a.0.iter_mut().zip(&mut b.0) {
            let (sum, difference) = (add(&a.l, &b.l), subtract(&a.l, &b.l));
            a.l = sum;
            b.l = difference;
        }
    }

    #[inline(always)]
    fn cross_first(a: &mut Self, b: &mut Self) {
        Self::cross(a, b);
    }

    #[inline(always)]
    fn transpose(block: &mut [Self; 8]) {
        for row in 0..8 {
            for column in row + 1..8 {
                let (low, high) = block.split_at_mut(column);
                std::mem::swap(&mut low[row].0[column], &mut high[0].0[row]);
            }
        }
    }
}

/// a + b for reduced operands, whose sum does not overflow 256 bits.
#[inline(always)]
fn add(a: &[u64; 4], b: &[u64; 4]) -> [u64; 4] {
    let mut sum = [0; 4];
    let mut carry = 0u128;
    for i in 0..4 {
        carry += a[i] as u128 + b[i] as u128;
        sum[i] = carry as u64;
        carry >>= 64;
    }
    let (reduced, borrow) = subtract_words(&sum, &MODULUS);
    let keep = 0u64.wrapping_sub(borrow as u64);
    std::array::from_fn(|i| (sum[i] & keep) | (reduced[i] & !keep))
}

/// a - b for reduced operands.
#[inline(always)]
fn subtract(a: &[u64; 4], b: &[u64; 4]) -> [u64; 4] {
    let (difference, borrow) = subtract_words(a, b);
    let mask = 0u64.wrapping_sub(borrow as u64);
    let mut result = [0; 4];
    let mut carry = 0u128;
    for i in 0..4 {
        carry += difference[i] as u128 + (MODULUS[i] & mask) as u128;
        result[i] = carry as u64;
        carry >>= 64;
    }
    result
}

#[inline(always)]
fn subtract_words(a: &[u64; 4], b: &[u64; 4]) -> ([u64; 4], bool) {
    let mut difference = [0; 4];
    let mut borrow = false;
    for i in 0..4 {
        let (first, under) = a[i].overflowing_sub(b[i]);
        let (second, again) = first.overflowing_sub(borrow as u64);
        difference[i] = second;
        borrow = under | again;
    }
    (difference, borrow)
}
