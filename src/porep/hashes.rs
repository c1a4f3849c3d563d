//! What a sealed sector is computed with: the hashes of its labels, columns and trees, and the sum that encodes a node.
//! Knows no path, no document and no circuit.

use ff::PrimeField;
use filecoin_hashers::poseidon::{PoseidonFunction, PoseidonHasher};
use filecoin_hashers::HashFunction;
use sha2::{Digest, Sha256};
use storage_proofs_porep::stacked::Column;

use super::c1::Node;
use super::ids::truncate;
use super::sector::LABEL_PARENTS;
use crate::error::{Error, Result};

/// The label of `node` in `layer` (from 1) over the distinct labels of its parents.
pub(super) fn label(replica_id: Node, layer: usize, node: u64, parents: &[Node]) -> Node {
    let mut block = [0; 64];
    block[..32].copy_from_slice(&replica_id.0);
    block[32..36].copy_from_slice(&(layer as u32).to_be_bytes());
    block[36..44].copy_from_slice(&node.to_be_bytes());
    let mut hasher = Sha256::new_with_prefix(block);
    for parent in parents.iter().cycle().take(LABEL_PARENTS) {
        hasher.update(parent.0);
    }
    Node(truncate(hasher.finalize().into()))
}

/// The replica's node: the data's plus the key, in the field. Both must be canonical.
pub(super) fn encode(data: Node, key: Node) -> Result<Node> {
    let scalar = |node: Node| {
        Option::<blstrs::Scalar>::from(blstrs::Scalar::from_repr(node.0))
            .ok_or_else(|| Error::internal(format!("{node} passed as canonical")))
    };
    Ok(Node((scalar(data)? + scalar(key)?).to_repr()))
}

/// The parent of two nodes of the tree over the data.
pub(super) fn hash_data(left: Node, right: Node) -> Node {
    Node(truncate(Sha256::new().chain_update(left.0).chain_update(right.0).finalize().into()))
}

/// The leaf that a column of labels gives in the tree over columns.
pub(super) fn hash_column(rows: &[Node]) -> Result<Node> {
    let rows = rows.iter().map(|label| label.0.into()).collect();
    let column =
        Column::<PoseidonHasher>::new(0, rows).map_err(|error| Error::internal(format!("column: {error:#}")))?;
    Ok(Node(column.hash().to_repr()))
}

/// The parent of canonical nodes, given one after the other, in the trees over columns and replica.
pub(super) fn hash_siblings(bytes: &[u8]) -> Node {
    Node(<PoseidonFunction as HashFunction<_>>::hash(bytes).into())
}

/// comm_r over the roots of the two trees.
pub(super) fn comm_r(comm_c: Node, comm_r_last: Node) -> Node {
    Node(PoseidonFunction::hash2(&comm_c.0.into(), &comm_r_last.0.into()).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_hash_each_parent_in_turn() {
        let parents: Vec<Node> = (0..14).map(|i| Node([i; 32])).collect();
        let mut bytes = vec![7; 32];
        bytes.extend([0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 1, 2]);
        bytes.resize(64, 0);
        for j in 0..LABEL_PARENTS {
            bytes.extend(parents[j % 14].0);
        }
        let expected = truncate(Sha256::digest(&bytes).into());
        assert_eq!(label(Node([7; 32]), 3, 0x102, &parents), Node(expected));
    }
}
