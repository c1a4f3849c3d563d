//! Every 32 bytes that become a field element are one, and what must not be zero is not.
//!
//! Nodes of the SHA-256 tree have 254 bits when they are honest; here they need only be below the modulus, as the
//! circuit takes them as field elements too. That they are the right ones follows from the hashes.

use super::for_each_proof;
use super::place::{columns, paths};
use crate::error::{Error, Place, Result};
use crate::porep::c1::{C1Output, Node, VanillaProof};

pub(super) fn check(c1: &C1Output) -> Result<()> {
    for (name, node) in [("comm_r", c1.comm_r), ("comm_d", c1.comm_d), ("replica_id", c1.replica_id)] {
        canonical(&node, || Place::top(name))?;
    }
    for (name, node) in [("comm_r", c1.comm_r), ("comm_d", c1.comm_d), ("seed", c1.seed)] {
        if node == Node([0; 32]) {
            return Err(Error::C1Element { place: Place::top(name), detail: "it is zero".to_owned() });
        }
    }
    for_each_proof(c1, check_proof)
}

fn check_proof(k: usize, i: usize, proof: &VanillaProof) -> Result<()> {
    for (name, path) in paths(proof) {
        canonical(&path.leaf, || Place::at(k, i, format!("{name}.leaf")))?;
        canonical(&path.root, || Place::at(k, i, format!("{name}.root")))?;
        for (height, level) in path.path().enumerate() {
            for (j, hash) in level.hashes.iter().enumerate() {
                canonical(hash, || Place::at(k, i, format!("{name}.path[{height}].hashes[{j}]")))?;
            }
        }
    }
    for (name, column) in columns(proof) {
        for (row, label) in column.rows.iter().enumerate() {
            canonical(label, || Place::at(k, i, format!("{name}.column.rows[{row}]")))?;
        }
    }
    for (layer, labeling) in proof.labeling_proofs.iter().enumerate() {
        for (j, label) in labeling.parents.iter().enumerate() {
            canonical(label, || Place::at(k, i, format!("labeling_proofs[{layer}].parents[{j}]")))?;
        }
    }
    for (j, label) in proof.encoding_proof.parents.iter().enumerate() {
        canonical(label, || Place::at(k, i, format!("encoding_proof.parents[{j}]")))?;
    }
    Ok(())
}

fn canonical(node: &Node, place: impl FnOnce() -> Place) -> Result<()> {
    if is_canonical(node) {
        return Ok(());
    }
    Err(Error::C1Element { place: place(), detail: format!("{node} is not below the field's modulus") })
}

/// Whether the little-endian number is below the order of BLS12-381's scalar field.
pub(in crate::porep) fn is_canonical(node: &Node) -> bool {
    /// The order, least significant limb first.
    const ORDER: [u64; 4] =
        [0xffff_ffff_0000_0001, 0x53bd_a402_fffe_5bfe, 0x3339_d808_09a1_d805, 0x73ed_a753_299d_7d48];
    for (limb, bytes) in node.0.chunks_exact(8).enumerate().rev() {
        let value = u64::from_le_bytes(bytes.try_into().unwrap_or_default());
        if value != ORDER[limb] {
            return value < ORDER[limb];
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use blstrs::Scalar;
    use ff::{Field, PrimeField};

    #[test]
    fn canonical_is_what_the_field_accepts() {
        let mut largest = (-Scalar::ONE).to_repr();
        let mut cases = vec![[0; 32], [0xff; 32], largest];
        largest[0] += 1;
        cases.push(largest);
        for byte in 0..32 {
            for delta in [1, 0x80, 0xff] {
                let mut near = largest;
                near[byte] = near[byte].wrapping_add(delta);
                cases.push(near);
            }
        }
        let mut rng = <rand::rngs::StdRng as rand::SeedableRng>::seed_from_u64(1);
        cases.extend((0..1000).map(|_| rand::Rng::gen::<[u8; 32]>(&mut rng)));
        let mut accepted = 0;
        for case in &cases {
            let expected = bool::from(Scalar::from_repr(*case).is_some());
            accepted += usize::from(expected);
            assert_eq!(is_canonical(&Node(*case)), expected, "{case:?}");
        }
        assert!(accepted > 100 && accepted < cases.len() - 100);
    }
}
