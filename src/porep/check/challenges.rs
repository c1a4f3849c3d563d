//! Which nodes must be opened: challenges from the ids, parents from the graph; and whether those are opened.

use filecoin_hashers::poseidon::{PoseidonDomain, PoseidonHasher};
use filecoin_hashers::sha256::Sha256Domain;
use storage_proofs_core::drgraph::Graph;
use storage_proofs_porep::stacked::{PublicInputs, StackedBucketGraph, Tau};

use super::place::{ColumnName, PathName};
use super::{for_each_proof, place};
use crate::error::{Error, Place, Result};
use crate::porep::c1::{C1Output, MerkleProof, Node, VanillaProof};
use crate::porep::sector::{RegisteredProof, DRG_PARENTS, EXP_PARENTS};

pub(in crate::porep) type StackedGraph = StackedBucketGraph<PoseidonHasher>;

/// Parents of one node: those in the same layer, then those in the previous one.
pub(in crate::porep) type Parents = [u32; DRG_PARENTS + EXP_PARENTS];

/// The graph of a registered proof.
pub(in crate::porep) fn graph(proof: RegisteredProof) -> Result<StackedGraph> {
    let nodes = proof.size.nodes() as usize;
    StackedGraph::new_stacked(nodes, DRG_PARENTS, EXP_PARENTS, proof.porep_id(), proof.api_version())
        .map_err(|error| Error::internal(format!("graph of {proof}: {error:#}")))
}

/// What the verifier derives challenges and public inputs from. `comm_r`, `comm_d` and `replica_id` must be canonical.
pub(in crate::porep) fn verifier_inputs(
    comm_r: Node,
    comm_d: Node,
    replica_id: Node,
    seed: Node,
    partition: usize,
) -> PublicInputs<PoseidonDomain, Sha256Domain> {
    PublicInputs {
        replica_id: replica_id.0.into(),
        seed: Some(seed.0),
        tau: Some(Tau { comm_d: comm_d.0.into(), comm_r: comm_r.0.into() }),
        k: Some(partition),
    }
}

/// The challenged nodes of each partition. `comm_r`, `comm_d` and `replica_id` must be canonical; interactive proofs
/// make nothing of `comm_r` here.
pub(in crate::porep) fn challenged_nodes(
    proof: RegisteredProof,
    comm_r: Node,
    comm_d: Node,
    replica_id: Node,
    seed: Node,
) -> Vec<Vec<u64>> {
    let derivation = proof.challenges();
    (0..proof.partitions())
        .map(|k| {
            let inputs = verifier_inputs(comm_r, comm_d, replica_id, seed, k);
            let nodes = inputs.challenges(&derivation, proof.size.nodes() as usize, Some(k));
            nodes.into_iter().map(|node| node as u64).collect()
        })
        .collect()
}

/// The parents of a node.
pub(in crate::porep) fn parents(graph: &StackedGraph, node: u64) -> Result<Parents> {
    let mut parents = [0; DRG_PARENTS + EXP_PARENTS];
    graph
        .parents(node as usize, &mut parents)
        .map_err(|error| Error::internal(format!("parents of node {node}: {error:#}")))?;
    Ok(parents)
}

/// The challenged nodes of each partition, after checking that every proof opens its own.
pub(super) fn check(c1: &C1Output) -> Result<Vec<Vec<u64>>> {
    let proof = c1.registered_proof;
    let graph = graph(proof)?;
    let challenges = challenged_nodes(proof, c1.comm_r, c1.comm_d, c1.replica_id, c1.seed);
    for_each_proof(c1, |k, i, vanilla| {
        let node = challenges[k][i];
        check_proof(vanilla, node, &parents(&graph, node)?, |part| Place::at(k, i, part))
    })?;
    Ok(challenges)
}

fn check_proof(proof: &VanillaProof, node: u64, parents: &[u32], at: impl Fn(String) -> Place) -> Result<()> {
    let same = |actual: u64, expected: u64, part: &dyn Fn() -> String| {
        if actual == expected {
            return Ok(());
        }
        let detail = format!("node {actual} is opened, expected {expected}");
        Err(Error::C1Challenge { place: at(part()), detail })
    };
    same(node_of(&proof.comm_d_proof, 2), node, &|| format!("{}.path", PathName::Data))?;
    same(node_of(&proof.comm_r_last_proof, 8), node, &|| format!("{}.path", PathName::Replica))?;
    let expected = |name: ColumnName| match name {
        ColumnName::Challenged => node,
        ColumnName::Drg(i) => u64::from(parents[i]),
        ColumnName::Exp(i) => u64::from(parents[DRG_PARENTS + i]),
    };
    for (name, column) in place::columns(proof) {
        same(u64::from(column.index), expected(name), &|| format!("{name}.column.index"))?;
        same(node_of(&column.inclusion_proof, 8), expected(name), &|| format!("{name}.inclusion_proof.path"))?;
    }
    for (layer, labeling) in proof.labeling_proofs.iter().enumerate() {
        same(labeling.node, node, &|| format!("labeling_proofs[{layer}].node"))?;
    }
    same(proof.encoding_proof.node, node, &|| "encoding_proof.node".to_owned())
}

/// The node that a path of checked shape leads to. Sub and top tree have one level each, so that every level but the
/// last has arity `base`.
fn node_of(proof: &MerkleProof, base: u64) -> u64 {
    proof.path().fold((0, 1), |(node, weight), level| (node + weight * level.index, weight * base)).0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::porep::c1::PathElement;
    use crate::porep::sector::SectorSize;
    use filecoin_hashers::sha256::Sha256Hasher;
    use filecoin_hashers::PoseidonArity;
    use generic_array::typenum::{U0, U2, U8};
    use rand::{rngs::StdRng, Rng, SeedableRng};
    use storage_proofs_core::merkle::{MerkleProof as TreeProof, MerkleProofTrait};

    /// A path to `node` through levels of these arities, bottom up; its hashes are zero.
    fn path_to(node: u64, arities: &[usize]) -> Vec<PathElement> {
        let mut rest = node;
        arities
            .iter()
            .map(|&arity| {
                let index = rest % arity as u64;
                rest /= arity as u64;
                PathElement { hashes: vec![Node([0; 32]); arity - 1], index }
            })
            .collect()
    }

    fn public_index<B, S, T>(path: &[PathElement]) -> u64
    where
        B: 'static + PoseidonArity,
        S: 'static + PoseidonArity,
        T: 'static + PoseidonArity,
    {
        let zero = PoseidonDomain::default();
        let path = path.iter().map(|level| (vec![zero; level.hashes.len()], level.index as usize)).collect();
        TreeProof::<PoseidonHasher, B, S, T>::from_parts(zero, zero, path).path_index() as u64
    }

    #[test]
    fn paths_lead_to_the_node_that_storage_proofs_says() {
        let mut rng = StdRng::seed_from_u64(1);
        for size in SectorSize::ALL {
            let arities = size.path_arities();
            let last = size.nodes() - 1;
            for node in (0..100).map(|_| rng.gen_range(0..=last)).chain([0, 1, last]) {
                let mut path = path_to(node, &arities);
                let expected = match size {
                    SectorSize::KiB2 | SectorSize::MiB8 | SectorSize::MiB512 => public_index::<U8, U0, U0>(&path),
                    SectorSize::GiB32 => public_index::<U8, U8, U0>(&path),
                    SectorSize::GiB64 => public_index::<U8, U8, U2>(&path),
                };
                let upper = path.split_off(size.base_path_len());
                let mut upper = upper.into_iter().map(|level| vec![level]);
                let (sub, top) = (upper.next(), upper.next());
                let proof = MerkleProof { leaf: Node([0; 32]), root: Node([0; 32]), base: path, sub, top };
                assert_eq!((node_of(&proof, 8), expected), (node, node), "{size}");

                let base = path_to(node, &vec![2; size.data_path_len()]);
                let zero = Sha256Domain::default();
                let path = base.iter().map(|level| (vec![zero], level.index as usize)).collect();
                let public = TreeProof::<Sha256Hasher, U2>::from_parts(zero, zero, path).path_index() as u64;
                let proof = MerkleProof { leaf: Node([0; 32]), root: Node([0; 32]), base, sub: None, top: None };
                assert_eq!((node_of(&proof, 2), public), (node, node), "{size}");
            }
        }
    }
}
