//! What Poseidon says: column hashes, the paths in the trees over columns and replica, and comm_r.
//!
//! All paths climb together, level by level, and each distinct group of nodes is hashed once: near the roots most paths
//! share their nodes, and neighbours share theirs near the leaves.

use std::collections::HashMap;
use std::hash::Hash;

use rayon::prelude::*;

use super::numbered;
use super::place::{columns, poseidon_paths, PathName};
use crate::error::{Error, Place, Result};
use crate::pipeline::Control;
use crate::porep::c1::{C1Output, MerkleProof, Node};
use crate::porep::hashes::{comm_r, hash_column, hash_siblings};

/// The largest arity of a tree.
const ARITY: usize = 8;

/// Children in order. A level of lower arity leaves the rest zero.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Children {
    arity: usize,
    bytes: [u8; ARITY * 32],
}

/// A path on its way up.
struct Climb<'a> {
    place: (usize, usize, PathName),
    proof: &'a MerkleProof,
    node: Node,
}

pub(super) fn check(c1: &C1Output, control: &Control) -> Result<()> {
    check_comm_r(c1)?;
    check_column_hashes(c1, control)?;
    let mut climbs: Vec<Climb<'_>> = numbered(c1)
        .into_iter()
        .flat_map(|(k, i, proof)| {
            poseidon_paths(proof).map(move |(name, path)| Climb { place: (k, i, name), proof: path, node: path.leaf })
        })
        .collect();
    let levels = c1.vanilla_proofs[0][0].comm_r_last_proof.path().count();
    for level in 0..levels {
        let groups: Vec<Children> = climbs.iter().map(|climb| children(climb, level)).collect();
        let parents = map_distinct(&groups, control, |group| Ok(hash_siblings(&group.bytes[..group.arity * 32])))?;
        for (climb, parent) in climbs.iter_mut().zip(parents) {
            climb.node = parent;
        }
    }
    match climbs.iter().find(|climb| climb.node != climb.proof.root) {
        None => Ok(()),
        Some(Climb { place: (k, i, name), proof, node }) => Err(Error::C1Vanilla {
            place: Place::at(*k, *i, name.to_string()),
            detail: format!("the path leads to {node} instead of its root {}", proof.root),
        }),
    }
}

/// comm_r is the hash of the two roots; that all roots agree is checked before.
fn check_comm_r(c1: &C1Output) -> Result<()> {
    let first = &c1.vanilla_proofs[0][0];
    let (comm_c, comm_r_last) = (first.c_x.inclusion_proof.root, first.comm_r_last_proof.root);
    let hash = comm_r(comm_c, comm_r_last);
    if hash == c1.comm_r {
        return Ok(());
    }
    let detail = format!("it is {}; the roots comm_c {comm_c} and comm_r_last {comm_r_last} give {hash}", c1.comm_r);
    Err(Error::C1Vanilla { place: Place::top("comm_r"), detail })
}

fn check_column_hashes(c1: &C1Output, control: &Control) -> Result<()> {
    let columns: Vec<_> = numbered(c1)
        .into_iter()
        .flat_map(|(k, i, proof)| columns(proof).map(move |(name, column)| (k, i, name, column)))
        .collect();
    let rows: Vec<&[Node]> = columns.iter().map(|(_, _, _, column)| &column.rows[..]).collect();
    let hashes = map_distinct(&rows, control, |rows| hash_column(rows))?;
    for ((k, i, name, column), hash) in columns.into_iter().zip(hashes) {
        let leaf = column.inclusion_proof.leaf;
        if leaf != hash {
            let place = Place::at(k, i, format!("{name}.inclusion_proof.leaf"));
            return Err(Error::C1Vanilla { place, detail: format!("it is {leaf}; the column's labels give {hash}") });
        }
    }
    Ok(())
}

fn children(climb: &Climb<'_>, level: usize) -> Children {
    let mut bytes = [0; ARITY * 32];
    let mut arity = 0;
    if let Some(element) = climb.proof.path().nth(level) {
        let (before, after) = element.hashes.split_at(element.index as usize);
        let nodes = before.iter().chain([&climb.node]).chain(after);
        for (slot, node) in bytes.chunks_exact_mut(32).zip(nodes) {
            slot.copy_from_slice(&node.0);
            arity += 1;
        }
    }
    Children { arity, bytes }
}

/// `map` of each key, computed once for each distinct key and in parallel.
fn map_distinct<K, V>(keys: &[K], control: &Control, map: impl Fn(&K) -> Result<V> + Sync) -> Result<Vec<V>>
where
    K: Eq + Hash + Sync,
    V: Copy + Send,
{
    let mut distinct: Vec<&K> = Vec::new();
    let mut slots: HashMap<&K, usize> = HashMap::with_capacity(keys.len());
    let which: Vec<usize> = keys
        .iter()
        .map(|key| {
            *slots.entry(key).or_insert_with(|| {
                distinct.push(key);
                distinct.len() - 1
            })
        })
        .collect();
    let values: Vec<V> = distinct
        .into_par_iter()
        .map(|key| {
            control.check("the check of Merkle paths")?;
            map(key)
        })
        .collect::<Result<_>>()?;
    Ok(which.into_iter().map(|slot| values[slot]).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn each_distinct_key_is_mapped_once_and_every_key_gets_its_value() {
        let keys = [3, 1, 3, 3, 2, 1];
        let calls = AtomicUsize::new(0);
        let values = map_distinct(&keys, &Control::new(), |key| {
            calls.fetch_add(1, Ordering::Relaxed);
            Ok(key * 10)
        });
        assert_eq!(values.unwrap(), [30, 10, 30, 30, 20, 10]);
        assert_eq!(calls.into_inner(), 3);
    }

    #[test]
    fn a_cancelled_call_stops_hashing() {
        let token = crate::pipeline::CancelToken::new();
        token.cancel();
        let error = map_distinct(&[1], &Control::new().with_cancel(token), |key| Ok(*key)).unwrap_err();
        assert_eq!(error.code(), 400);
    }
}
