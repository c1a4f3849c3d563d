//! AVX-512 IFMA: eight field elements at a time in limbs of 52 bits. Knows no algorithm.
//!
//! Everything here may only run where [`available`] is true; the types that algorithms use check that when
//! they are made.

mod field;
mod limbs;
mod points;
mod wide;

#[cfg(test)]
pub(crate) use field::add;
pub(crate) use field::{multiply, multiply_beside, normalize, transpose, Field, Fr, Limbs, Modulus, Vector};
pub(crate) use limbs::split;
pub(crate) use points::{G1, G2};

/// Whether this processor has every instruction that this module uses.
pub(crate) fn available() -> bool {
    is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512ifma")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vbmi")
}
