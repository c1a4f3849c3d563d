//! The two coordinate fields, Fp and Fp2, behind one trait. Knows no curve.
//!
//! Operations write into `self`: blst stores results in 64-bit words, and copying a result right after it
//! was stored would stall on the store buffer.

use blst::{
    blst_fp, blst_fp2, blst_fp2_add, blst_fp2_cneg, blst_fp2_inverse, blst_fp2_mul, blst_fp2_sqr, blst_fp2_sub,
    blst_fp_add, blst_fp_cneg, blst_fp_inverse, blst_fp_mul, blst_fp_sqr, blst_fp_sub,
};

/// An element of a coordinate field, in blst's Montgomery form.
pub trait Coordinate: Copy + Default + PartialEq + Send + Sync + 'static {
    /// The neutral element of multiplication.
    const ONE: Self;

    /// `self = a + b`
    fn set_sum(&mut self, a: &Self, b: &Self);

    /// `self = a - b`
    fn set_difference(&mut self, a: &Self, b: &Self);

    /// `self = a * b`
    fn set_product(&mut self, a: &Self, b: &Self);

    /// `self = a^2`
    fn set_square(&mut self, a: &Self);

    /// `self = self - b`
    fn subtract(&mut self, b: &Self);

    /// `self = self * b`
    fn multiply(&mut self, b: &Self);

    /// `self = -self`
    fn negate(&mut self);

    /// `self = 1 / self`; zero stays zero.
    fn invert(&mut self);

    /// Whether it is zero.
    fn is_zero(&self) -> bool;
}

/// 2^384 mod p, low word first: one in Montgomery form.
const ONE: blst_fp = blst_fp {
    l: [
        0x7609_0000_0002_fffd,
        0xebf4_000b_c40c_0002,
        0x5f48_9857_53c7_58ba,
        0x77ce_5853_7052_5745,
        0x5c07_1a97_a256_ec6d,
        0x15f6_5ec3_fa80_e493,
    ],
};

macro_rules! coordinate {
    ($field:ty, $one:expr, $bits:expr, $add:ident, $sub:ident, $mul:ident, $sqr:ident, $cneg:ident, $inverse:ident) => {
        // SAFETY: (all blocks below) blst reads and writes exactly one element behind each pointer, and every
        // pointer comes from a reference. blst allows the result to be one of the operands.
        impl Coordinate for $field {
            const ONE: Self = $one;

            #[inline(always)]
            fn set_sum(&mut self, a: &Self, b: &Self) {
                unsafe { $add(self, a, b) }
            }

            #[inline(always)]
            fn set_difference(&mut self, a: &Self, b: &Self) {
                unsafe { $sub(self, a, b) }
            }

            #[inline(always)]
            fn set_product(&mut self, a: &Self, b: &Self) {
                unsafe { $mul(self, a, b) }
            }

            #[inline(always)]
            fn set_square(&mut self, a: &Self) {
                unsafe { $sqr(self, a) }
            }

            #[inline(always)]
            fn subtract(&mut self, b: &Self) {
                let this: *mut Self = self;
                unsafe { $sub(this, this, b) }
            }

            #[inline(always)]
            fn multiply(&mut self, b: &Self) {
                let this: *mut Self = self;
                unsafe { $mul(this, this, b) }
            }

            #[inline(always)]
            fn negate(&mut self) {
                let this: *mut Self = self;
                unsafe { $cneg(this, this, true) }
            }

            #[inline(always)]
            fn invert(&mut self) {
                let this: *mut Self = self;
                unsafe { $inverse(this, this) }
            }

            #[inline(always)]
            fn is_zero(&self) -> bool {
                // A comparison of arrays would call memcmp.
                let bits: fn(&Self) -> u64 = $bits;
                bits(self) == 0
            }
        }
    };
}

const ZERO: blst_fp = blst_fp { l: [0; 6] };

/// The bits that any word has set.
#[inline(always)]
fn set_bits(value: &blst_fp) -> u64 {
    value.l.iter().fold(0, |bits, word| bits | word)
}

coordinate!(blst_fp, ONE, set_bits, blst_fp_add, blst_fp_sub, blst_fp_mul, blst_fp_sqr, blst_fp_cneg, blst_fp_inverse);

coordinate!(
    blst_fp2,
    blst_fp2 { fp: [ONE, ZERO] },
    |value| set_bits(&value.fp[0]) | set_bits(&value.fp[1]),
    blst_fp2_add,
    blst_fp2_sub,
    blst_fp2_mul,
    blst_fp2_sqr,
    blst_fp2_cneg,
    blst_fp2_inverse
);

#[cfg(test)]
mod tests {
    use super::*;

    fn ring_laws<C: Coordinate>(a: C) {
        let mut inverse = a;
        inverse.invert();
        let mut product = C::default();
        product.set_product(&a, &inverse);
        assert!(product == C::ONE);
        product.multiply(&a);
        assert!(product == a);
        let mut square = C::default();
        square.set_square(&a);
        product.multiply(&a);
        assert!(square == product);
        let mut minus = a;
        minus.negate();
        let mut sum = C::default();
        sum.set_sum(&a, &minus);
        assert!(sum.is_zero());
        sum.subtract(&a);
        assert!(sum == minus);
        sum.set_difference(&minus, &minus);
        assert!(sum.is_zero() && !a.is_zero());
        sum.invert();
        assert!(sum.is_zero());
    }

    #[test]
    fn one_is_neutral_and_inverse_negation_and_square_agree_with_products() {
        let fp = blst_fp { l: [5, 6, 7, 8, 9, 10] };
        ring_laws(fp);
        ring_laws(blst_fp2 { fp: [fp, blst_fp { l: [1, 0, 0, 0, 0, 1] }] });
        ring_laws(blst_fp2 { fp: [ZERO, fp] });
    }
}
