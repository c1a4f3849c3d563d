//! Numbers in limbs of 52 bits, one at a time and at compile time. Knows no vectors.

/// Bits of a limb.
pub(super) const BITS: usize = 52;

/// A limb's bits.
pub(super) const MASK: u64 = (1 << BITS) - 1;

/// A number of 64-bit words in limbs; `N` limbs hold all of it.
pub(crate) const fn split<const M: usize, const N: usize>(words: &[u64; M]) -> [u64; N] {
    let mut limbs = [0; N];
    let mut index = 0;
    while index < N {
        let (word, shift) = (BITS * index / 64, BITS * index % 64);
        if word < M {
            limbs[index] = words[word] >> shift;
            if shift > 64 - BITS && word + 1 < M {
                limbs[index] |= words[word + 1] << (64 - shift);
            }
        }
        limbs[index] &= MASK;
        index += 1;
    }
    limbs
}

/// Limbs, each below 2^52, as 64-bit words; `M` words hold all of it.
pub(super) const fn join<const N: usize, const M: usize>(limbs: &[u64; N]) -> [u64; M] {
    let mut words = [0; M];
    let mut index = 0;
    while index < N {
        let (word, shift) = (BITS * index / 64, BITS * index % 64);
        if word < M {
            words[word] |= limbs[index] << shift;
            if shift > 64 - BITS && word + 1 < M {
                words[word + 1] |= limbs[index] >> (64 - shift);
            }
        }
        index += 1;
    }
    words
}

/// `factor` times a number; the top limb keeps what exceeds it.
pub(super) const fn multiple<const N: usize>(limbs: &[u64; N], factor: u64) -> [u64; N] {
    let mut product = [0; N];
    let mut carry = 0;
    let mut index = 0;
    while index < N {
        let value = limbs[index] * factor + carry;
        if index + 1 < N {
            product[index] = value & MASK;
            carry = value >> BITS;
        } else {
            product[index] = value;
        }
        index += 1;
    }
    product
}

/// -1 / `low` modulo 2^52, for odd `low`: each round doubles the number of correct bits.
pub(super) const fn negative_inverse(low: u64) -> u64 {
    let mut inverse = 1u64;
    let mut round = 0;
    while round < 6 {
        inverse = inverse.wrapping_mul(2u64.wrapping_sub(low.wrapping_mul(inverse)));
        round += 1;
    }
    inverse.wrapping_neg() & MASK
}

/// `a - b`, or nothing if that is negative.
pub(super) const fn checked_difference<const N: usize>(a: &[u64; N], b: &[u64; N]) -> Option<[u64; N]> {
    let mut difference = [0; N];
    let mut borrow = 0i64;
    let mut index = 0;
    while index < N {
        let value = a[index] as i64 - b[index] as i64 + borrow;
        if index + 1 < N {
            difference[index] = value as u64 & MASK;
            borrow = value >> BITS;
        } else if value < 0 {
            return None;
        } else {
            difference[index] = value as u64;
        }
        index += 1;
    }
    Some(difference)
}

/// 2^`exponent` modulo `modulus`, which has a spare bit in its limbs.
pub(super) const fn power_of_two<const N: usize>(modulus: &[u64; N], exponent: usize) -> [u64; N] {
    let mut value = [0; N];
    value[0] = 1;
    let mut step = 0;
    while step < exponent {
        value = multiple(&value, 2);
        if let Some(difference) = checked_difference(&value, modulus) {
            value = difference;
        }
        step += 1;
    }
    value
}

/// The representative below `modulus` of a small multiple of it plus that.
pub(super) fn reduce<const N: usize>(mut limbs: [u64; N], modulus: &[u64; N]) -> [u64; N] {
    while let Some(difference) = checked_difference(&limbs, modulus) {
        limbs = difference;
    }
    limbs
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODULUS: [u64; 4] =
        [0xffff_ffff_0000_0001, 0x53bd_a402_fffe_5bfe, 0x3339_d808_09a1_d805, 0x73ed_a753_299d_7d48];

    #[test]
    fn words_survive_the_way_to_limbs_and_back() {
        for words in [MODULUS, [0; 4], [u64::MAX, 0, u64::MAX, u64::MAX >> 1], [1, 2, 3, 4]] {
            let limbs: [u64; 5] = split(&words);
            assert!(limbs.iter().all(|limb| *limb <= MASK));
            assert_eq!(join::<5, 4>(&limbs), words);
        }
    }

    #[test]
    fn multiples_reduce_to_the_remainder() {
        let modulus: [u64; 5] = split(&MODULUS);
        let mut sum = multiple(&modulus, 7);
        sum[0] += 1;
        assert_eq!(reduce(sum, &modulus), [1, 0, 0, 0, 0]);
        assert_eq!(modulus[0].wrapping_mul(negative_inverse(modulus[0])) & MASK, MASK);
        let sixteen = blstrs::Scalar::from(16);
        assert_eq!(join::<5, 4>(&power_of_two(&modulus, 260)), blst::blst_fr::from(sixteen).l);
    }
}
