//! What SHA-256 and addition say: the data's path, labels, the encoding, and the redundant copies of parents' labels.

use super::for_each_proof;
use super::place::{poseidon_paths, ColumnName, PathName};
use crate::error::{Error, Place, Result};
use crate::pipeline::Control;
use crate::porep::c1::{C1Output, LabelingProof, MerkleProof, Node, VanillaProof};
use crate::porep::hashes::{encode, hash_data, label};

pub(super) fn check(c1: &C1Output, challenges: &[Vec<u64>], control: &Control) -> Result<()> {
    let first = &c1.vanilla_proofs[0][0];
    let (comm_c, comm_r_last) = (first.c_x.inclusion_proof.root, first.comm_r_last_proof.root);
    for_each_proof(c1, |k, i, proof| {
        control.check("the check of labels")?;
        let at = |part: String| Place::at(k, i, part);
        check_roots(proof, c1.comm_d, comm_c, comm_r_last, &at)?;
        check_data_path(&proof.comm_d_proof, &at)?;
        let node = challenges[k][i];
        let mut key = Node([0; 32]);
        for (index, labeling) in proof.labeling_proofs.iter().enumerate() {
            let parents = parent_labels(proof, index);
            check_copies(labeling, index + 1, &parents, || format!("labeling_proofs[{index}]"), &at)?;
            key = label(c1.replica_id, index + 1, node, &parents);
            if proof.c_x.rows[index] != key {
                let detail = format!("the label is {}, its parents give {key}", proof.c_x.rows[index]);
                return fault(at(format!("{}.column.rows[{index}]", ColumnName::Challenged)), detail);
            }
        }
        let layers = proof.labeling_proofs.len();
        let parents = parent_labels(proof, layers - 1);
        check_copies(&proof.encoding_proof, layers, &parents, || "encoding_proof".to_owned(), &at)?;
        check_encoding(proof, key, &at)
    })
}

fn fault<T>(place: Place, detail: String) -> Result<T> {
    Err(Error::C1Vanilla { place, detail })
}

fn check_roots(
    proof: &VanillaProof,
    comm_d: Node,
    comm_c: Node,
    comm_r_last: Node,
    at: &impl Fn(String) -> Place,
) -> Result<()> {
    if proof.comm_d_proof.root != comm_d {
        return fault(at("comm_d_proofs.root".to_owned()), format!("it is not comm_d, {comm_d}"));
    }
    for (name, path) in poseidon_paths(proof) {
        let expected = if name == PathName::Replica { comm_r_last } else { comm_c };
        if path.root != expected {
            let detail = format!("it differs from that of the first challenge, {expected}");
            return fault(at(format!("{name}.root")), detail);
        }
    }
    Ok(())
}

fn check_data_path(path: &MerkleProof, at: &impl Fn(String) -> Place) -> Result<()> {
    let root = path.base.iter().fold(path.leaf, |node, level| {
        let sibling = level.hashes[0];
        if level.index == 0 {
            hash_data(node, sibling)
        } else {
            hash_data(sibling, node)
        }
    });
    if root == path.root {
        return Ok(());
    }
    fault(at("comm_d_proofs".to_owned()), format!("the path leads to {root} instead of its root {}", path.root))
}

/// The labels that are hashed into the label of layer `index` (from 0): those of the parents in this layer, then those
/// in the layer before, which the first layer does not have.
fn parent_labels(proof: &VanillaProof, index: usize) -> Vec<Node> {
    let same = proof.drg_parents.iter().map(|column| column.rows[index]);
    let before = proof.exp_parents.iter().filter(|_| index > 0).map(|column| column.rows[index - 1]);
    same.chain(before).collect()
}

/// The copies of parents' labels in a labeling or encoding proof, which no circuit reads.
fn check_copies(
    copy: &LabelingProof,
    layer: usize,
    parents: &[Node],
    name: impl Fn() -> String,
    at: &impl Fn(String) -> Place,
) -> Result<()> {
    if copy.layer_index as usize != layer {
        let detail = format!("layer {}, expected {layer}", copy.layer_index);
        return fault(at(format!("{}.layer_index", name())), detail);
    }
    for (j, (actual, expected)) in copy.parents.iter().zip(parents.iter().cycle()).enumerate() {
        if actual != expected {
            let column = ColumnName::parent(j % parents.len());
            let detail = format!("{actual} is not the label {expected} of {column}");
            return fault(at(format!("{}.parents[{j}]", name())), detail);
        }
    }
    Ok(())
}

/// The replica's node is the data's plus the key, in the field.
fn check_encoding(proof: &VanillaProof, key: Node, at: &impl Fn(String) -> Place) -> Result<()> {
    let encoded = encode(proof.comm_d_proof.leaf, key)?;
    let actual = proof.comm_r_last_proof.leaf;
    if actual == encoded {
        return Ok(());
    }
    fault(at("comm_r_last_proof.leaf".to_owned()), format!("it is {actual}; data and key give {encoded}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::porep::sector::{DRG_PARENTS, EXP_PARENTS, LABEL_PARENTS};

    #[test]
    fn parent_copies_repeat_to_the_length_that_labels_hash() {
        for distinct in [DRG_PARENTS, DRG_PARENTS + EXP_PARENTS] {
            let parents: Vec<Node> = (0..distinct as u8).map(|i| Node([i; 32])).collect();
            let copy = LabelingProof {
                parents: (0..LABEL_PARENTS).map(|j| parents[j % distinct]).collect(),
                layer_index: 1,
                node: 0,
            };
            let name = || "x".to_owned();
            let at = |part: String| Place::top(part);
            check_copies(&copy, 1, &parents, name, &at).unwrap();
            for j in 0..LABEL_PARENTS {
                let mut wrong = copy.clone();
                wrong.parents[j].0[0] ^= 0x40;
                let error = check_copies(&wrong, 1, &parents, name, &at).unwrap_err();
                assert!(error.to_string().contains(&format!("x.parents[{j}]")), "{error}");
            }
            assert!(check_copies(&copy, 2, &parents, name, &at).is_err());
        }
    }
}
