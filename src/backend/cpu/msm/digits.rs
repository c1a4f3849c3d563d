//! Scalars as signed digits. Knows no points.
//!
//! A scalar above (r - 1) / 2 is replaced by its negative, so that 254 bits remain. Adding 2^(c - 1) to every
//! digit but the top one beforehand turns a signed digit into an unsigned one minus 2^(c - 1), so that each
//! window is read off by itself.

use blst::{blst_fr, blst_uint64_from_fr};
use blstrs::Scalar;
use rayon::prelude::*;

use super::Windows;
use crate::backend::cpu::shared::SharedSlice;
use crate::curve::layout;

/// The sign of a digit; the other bits are its magnitude, at most 2^(c - 1).
pub(super) const MINUS: u32 = 1 << 31;

/// Scalars that one task converts.
const RUN: usize = 4096;

/// r, low word first.
const MODULUS: [u64; 4] = [0xffff_ffff_0000_0001, 0x53bd_a402_fffe_5bfe, 0x3339_d808_09a1_d805, 0x73ed_a753_299d_7d48];

/// Writes digit `window` of scalar `index` to `digits[window * scalars.len() + index]`.
pub(super) fn split(scalars: &[Scalar], windows: Windows, digits: &mut [u32]) {
    assert_eq!(digits.len(), scalars.len() * windows.count);
    let stride = scalars.len();
    let offset = windows.offset();
    let target = SharedSlice::new(digits);
    layout::scalars(scalars).par_chunks(RUN).enumerate().for_each(|(run, part)| {
        let columns: Vec<&mut [u32]> = (0..windows.count)
            // SAFETY: the runs, and the windows of one run, cover disjoint parts of `digits`.
            .map(|window| unsafe { target.slice_mut(window * stride + run * RUN, part.len()) })
            .collect();
        let mut columns = columns;
        for (index, scalar) in part.iter().enumerate() {
            let (magnitude, sign) = fold(scalar);
            let shifted = add(&magnitude, &offset);
            for (window, column) in columns.iter_mut().enumerate() {
                column[index] = windows.digit(&shifted, window, sign);
            }
        }
    });
}

impl Windows {
    /// The sum of 2^(c - 1) over all windows but the top one.
    fn offset(&self) -> [u64; 4] {
        let mut offset = [0; 4];
        for window in 0..self.count - 1 {
            let bit = window * self.bits + self.bits - 1;
            offset[bit / 64] |= 1 << (bit % 64);
        }
        offset
    }

    #[inline(always)]
    fn digit(&self, shifted: &[u64; 4], window: usize, sign: u32) -> u32 {
        let (word, shift) = (window * self.bits / 64, window * self.bits % 64);
        let mut bits = shifted[word] >> shift;
        if shift + self.bits > 64 && word < 3 {
            bits |= shifted[word + 1] << (64 - shift);
        }
        let half = 1i64 << (self.bits - 1);
        let value = (bits & ((1 << self.bits) - 1)) as i64 - if window + 1 < self.count { half } else { 0 };
        let negative = if value < 0 { MINUS } else { 0 };
        value.unsigned_abs() as u32 | (negative ^ sign)
    }
}

/// The scalar or its negative, whichever is at most (r - 1) / 2, and [`MINUS`] if it is the negative.
#[inline(always)]
fn fold(scalar: &blst_fr) -> ([u64; 4], u32) {
    let mut words = [0; 4];
    // SAFETY: blst reads one element and writes four words.
    unsafe { blst_uint64_from_fr(words.as_mut_ptr(), scalar) };
    let negative = subtract(&MODULUS, &words);
    let smaller = words.iter().rev().le(negative.iter().rev());
    if smaller {
        (words, 0)
    } else {
        (negative, MINUS)
    }
}

fn subtract(a: &[u64; 4], b: &[u64; 4]) -> [u64; 4] {
    let mut borrow = false;
    std::array::from_fn(|i| {
        let (first, under) = a[i].overflowing_sub(b[i]);
        let (second, again) = first.overflowing_sub(borrow as u64);
        borrow = under | again;
        second
    })
}

fn add(a: &[u64; 4], b: &[u64; 4]) -> [u64; 4] {
    let mut carry = false;
    std::array::from_fn(|i| {
        let (first, over) = a[i].overflowing_add(b[i]);
        let (second, again) = first.overflowing_add(carry as u64);
        carry = over | again;
        second
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ff::Field;
    use rand::rngs::StdRng;
    use rand::SeedableRng;

    #[test]
    fn digits_weighted_by_their_windows_add_up_to_the_scalar_for_every_width() {
        let mut rng = StdRng::seed_from_u64(1);
        let two = Scalar::from(2);
        let half = -two.invert().unwrap();
        let mut scalars = vec![Scalar::ZERO, Scalar::ONE, -Scalar::ONE, half, half + Scalar::ONE, -two];
        scalars.extend((0..255).flat_map(|bit| {
            let power = two.pow_vartime([bit]);
            [power, -power, power - Scalar::ONE]
        }));
        scalars.extend((0..100).map(|_| Scalar::random(&mut rng)));
        for bits in 2..=20 {
            let windows = Windows::new(bits);
            let mut digits = vec![0; scalars.len() * windows.count];
            split(&scalars, windows, &mut digits);
            for (index, scalar) in scalars.iter().enumerate() {
                let mut sum = Scalar::ZERO;
                for window in (0..windows.count).rev() {
                    let digit = digits[window * scalars.len() + index];
                    let magnitude = digit & !MINUS;
                    assert!(magnitude as usize <= windows.buckets());
                    let value = Scalar::from(magnitude as u64);
                    sum = sum * two.pow_vartime([bits as u64]) + if digit & MINUS == 0 { value } else { -value };
                }
                assert_eq!(sum, *scalar, "{bits} bits, scalar {index}");
            }
        }
    }
}
