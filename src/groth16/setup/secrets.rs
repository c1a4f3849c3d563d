//! The secrets of test parameters: the only place where they exist.

use blstrs::Scalar;
use ff::PrimeField;
use sha2::{Digest, Sha256};

/// What nobody may know of real parameters. Here everybody does: they follow from a small number.
pub(super) struct Secrets {
    pub(super) alpha: Scalar,
    pub(super) beta: Scalar,
    pub(super) gamma: Scalar,
    pub(super) delta: Scalar,
    pub(super) tau: Scalar,
}

impl Secrets {
    /// Each is SHA-256("toxic" || its name || seed as u64 little-endian), read little-endian, without the two
    /// top bits.
    pub(super) fn from_seed(seed: u64) -> Self {
        let secret = |name: &str| {
            let hash = Sha256::new().chain_update("toxic").chain_update(name).chain_update(seed.to_le_bytes());
            let mut bytes: [u8; 32] = hash.finalize().into();
            bytes[31] &= 0x3f;
            Option::from(Scalar::from_repr(bytes)).expect("254 bits are below the modulus")
        };
        Secrets {
            alpha: secret("alpha"),
            beta: secret("beta"),
            gamma: secret("gamma"),
            delta: secret("delta"),
            tau: secret("tau"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_the_masked_hash_of_its_name_and_the_seed() {
        // printf 'toxicalpha\1\0\0\0\0\0\0\0' | sha256sum
        let hash = "a61f7b162aea0afbd2c8535886bbf1f0e6f7b354c1a68274a4b3308a38de5263";
        let mut bytes: [u8; 32] = hex::decode(hash).unwrap().try_into().unwrap();
        bytes[31] &= 0x3f;
        assert_eq!(Secrets::from_seed(1).alpha.to_repr(), bytes);
    }
}
