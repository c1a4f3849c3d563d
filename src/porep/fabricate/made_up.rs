//! Values that stand for what no one computed: told apart by what they are for and where they stand, the same for the
//! same seed.

use sha2::{Digest, Sha256};

use crate::porep::c1::Node;
use crate::porep::check::is_canonical;
use crate::porep::ids::truncate;

/// The source of made-up values.
#[derive(Debug, Clone, Copy)]
pub(super) struct MadeUp {
    seed: u64,
}

impl MadeUp {
    pub fn new(seed: u64) -> Self {
        MadeUp { seed }
    }

    /// Thirty-two bytes for this use and place.
    pub fn bytes(self, what: &str, place: &[u64]) -> [u8; 32] {
        let mut hasher = Sha256::new_with_prefix("cuporep fabricate\0");
        hasher.update(what);
        hasher.update([0]);
        hasher.update(self.seed.to_le_bytes());
        for number in place {
            hasher.update(number.to_le_bytes());
        }
        hasher.finalize().into()
    }

    /// A number.
    pub fn number(self, what: &str) -> u64 {
        let [a, b, c, d, e, f, g, h, ..] = self.bytes(what, &[]);
        u64::from_le_bytes([a, b, c, d, e, f, g, h])
    }

    /// Of 254 bits, as labels, data, and nodes of SHA-256 trees are.
    pub fn short(self, what: &str, place: [u64; 2]) -> Node {
        Node(truncate(self.bytes(what, &place)))
    }

    /// Any field element, as nodes of Poseidon trees are.
    pub fn element(self, what: &str, [a, b]: [u64; 2]) -> Node {
        let mut attempt = 0;
        loop {
            let mut bytes = self.bytes(what, &[a, b, attempt]);
            bytes[31] &= 0x7f;
            // Nine in ten numbers of 255 bits are below the modulus.
            if is_canonical(&Node(bytes)) {
                return Node(bytes);
            }
            attempt += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn values_differ_by_seed_use_and_place_and_elements_use_all_bits() {
        let mut seen = HashSet::new();
        let (mut count, mut long) = (0, 0);
        for seed in [0, 1, u64::MAX] {
            for what in ["a", "b"] {
                for place in (0..10).flat_map(|a| (0..10).map(move |b| [a, b])) {
                    let (short, element) =
                        (MadeUp::new(seed).short(what, place), MadeUp::new(seed).element(what, place));
                    assert_eq!(element, MadeUp::new(seed).element(what, place));
                    assert!(short.0[31] < 0x40 && is_canonical(&element));
                    long += usize::from(element.0[31] >= 0x40);
                    count += 2;
                    seen.extend([short, element]);
                }
            }
        }
        assert_eq!(seen.len(), count);
        assert!(long > count / 8, "{long} of {}", count / 2);
    }
}
