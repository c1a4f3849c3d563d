//! Identities: miner, prover id, replica id. Knows how they are encoded, not where they come from.

use sha2::{Digest, Sha256};

use crate::error::{Error, Result};

/// The prover id of a miner's actor id: unsigned LEB128, left-aligned in 32 bytes.
pub fn prover_id(miner: u64) -> [u8; 32] {
    let mut id = [0; 32];
    let mut rest = miner;
    for byte in &mut id {
        *byte = (rest & 0x7f) as u8;
        rest >>= 7;
        if rest == 0 {
            break;
        }
        *byte |= 0x80;
    }
    id
}

/// The actor id in `t01000`, `f01000` or `1000`.
///
/// # Errors
/// [`Error::Argument`] for any other text. Addresses of other protocols (`f1`, `f2`, `f3`) hold no actor id.
pub fn parse_miner(text: &str) -> Result<u64> {
    let refuse = |detail: &str| Error::Argument {
        name: "miner",
        detail: format!("{:?} {detail}; give the miner's id address, such as f01000", super::sector::excerpt(text)),
    };
    let digits = match text.as_bytes() {
        [b'f' | b't', b'0', ..] => &text[2..],
        [b'f' | b't', b'1'..=b'4', ..] => return Err(refuse("is an address without an actor id")),
        _ => text,
    };
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(refuse("is not a miner"));
    }
    digits.parse().map_err(|_| refuse("is larger than any actor id"))
}

/// The replica id: SHA-256 of the ids below, in this order, as a field element of 254 bits.
///
/// `sector` enters big-endian. `porep_id` is that of the registered proof.
pub fn replica_id(
    prover_id: &[u8; 32],
    sector: u64,
    ticket: &[u8; 32],
    comm_d: &[u8; 32],
    porep_id: &[u8; 32],
) -> [u8; 32] {
    let hash = Sha256::new()
        .chain_update(prover_id)
        .chain_update(sector.to_be_bytes())
        .chain_update(ticket)
        .chain_update(comm_d)
        .chain_update(porep_id)
        .finalize();
    truncate(hash.into())
}

/// Clears the two top bits, so that the little-endian number is a field element.
pub(crate) fn truncate(mut hash: [u8; 32]) -> [u8; 32] {
    hash[31] &= 0x3f;
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prover_ids_are_leb128() {
        assert_eq!(prover_id(0), [0; 32]);
        assert_eq!(prover_id(1000)[..4], [0xe8, 0x07, 0, 0]);
        assert_eq!(prover_id(127)[..2], [0x7f, 0]);
        assert_eq!(prover_id(128)[..3], [0x80, 0x01, 0]);
        let mut largest = [0; 32];
        largest[..9].fill(0xff);
        largest[9] = 1;
        assert_eq!(prover_id(u64::MAX), largest);
    }

    #[test]
    fn miners_parse_with_and_without_prefix() {
        for text in ["1000", "f01000", "t01000"] {
            assert_eq!(parse_miner(text).unwrap(), 1000);
        }
        assert_eq!(parse_miner("0").unwrap(), 0);
        assert_eq!(parse_miner("18446744073709551615").unwrap(), u64::MAX);
        for text in
            ["", "f0", "t", "x01000", "f01000 ", "+5", "-5", "1e3", "f1abc", "t3q", "18446744073709551616", "f0é"]
        {
            let error = parse_miner(text).unwrap_err();
            assert_eq!(error.code(), 100, "{text}: {error}");
        }
        assert!(parse_miner("t3qabc").unwrap_err().to_string().contains("without an actor id"));
    }

    #[test]
    fn replica_ids_agree_with_storage_proofs() {
        use filecoin_hashers::poseidon::PoseidonHasher;
        for seed in 0..20u64 {
            let bytes = |tag: u8| -> [u8; 32] {
                Sha256::new().chain_update([tag]).chain_update(seed.to_le_bytes()).finalize().into()
            };
            let (prover, ticket, comm_d, porep) = (bytes(0), bytes(1), bytes(2), bytes(3));
            let sector = u64::from_le_bytes(bytes(4)[..8].try_into().unwrap());
            let expected: [u8; 32] = storage_proofs_porep::stacked::generate_replica_id::<PoseidonHasher, _>(
                &prover, sector, &ticket, comm_d, &porep,
            )
            .into();
            assert_eq!(replica_id(&prover, sector, &ticket, &comm_d, &porep), expected);
        }
    }
}
