//! Proves to ourselves that a C1 output is true before any proving: shape, elements, identity, challenges, parents,
//! then every hash that the circuit will compute. Knows no circuit.
//!
//! Cheap checks come first. The first fault in the order of the document is the one that is reported.

mod challenges;
mod columns;
mod elements;
mod identity;
mod place;
mod shape;
mod trees;

pub(in crate::porep) use challenges::{challenged_nodes, graph, parents, verifier_inputs, Parents, StackedGraph};
pub(in crate::porep) use elements::is_canonical;

use rayon::prelude::*;

use super::c1::{C1Output, VanillaProof};
use super::sector::RegisteredProof;
use crate::error::Result;
use crate::pipeline::Control;

/// A C1 output that is known to be true, for its sector and miner if that was given. Made by [`check`] only.
#[derive(Debug)]
pub struct CheckedC1 {
    c1: C1Output,
    sector: u64,
    miner: Option<u64>,
    challenges: Vec<Vec<u64>>,
}

impl CheckedC1 {
    /// The C1 output.
    pub fn c1(&self) -> &C1Output {
        &self.c1
    }

    /// The registered proof.
    pub fn registered_proof(&self) -> RegisteredProof {
        self.c1.registered_proof
    }

    /// The sector number that it was checked for.
    pub fn sector(&self) -> u64 {
        self.sector
    }

    /// The miner's actor id that it was checked for; `None` if its replica id was taken as it is.
    pub fn miner(&self) -> Option<u64> {
        self.miner
    }

    /// The challenged nodes, by partition.
    pub fn challenges(&self) -> &[Vec<u64>] {
        &self.challenges
    }
}

/// Checks everything about a C1 output, for this sector number and miner's actor id.
///
/// The checks: tag, partition and challenge counts, lengths and tree shapes of the registered proof; elements canonical,
/// commitments and seed not zero; the replica id; challenges and parents; every Merkle path, column hash, label,
/// encoding, the redundant copies of the parents' labels, and comm_r.
///
/// Without a miner (`None`) the replica id is taken as it is: labels, challenges and encoding are checked against it,
/// but not that it belongs to the sector. A verifier derives it itself, so a foreign one only wastes the proof.
///
/// Runs on the current rayon pool.
///
/// # Errors
/// [`Error::C1Shape`](crate::Error::C1Shape), [`Error::C1Element`](crate::Error::C1Element),
/// [`Error::C1Identity`](crate::Error::C1Identity), [`Error::C1Challenge`](crate::Error::C1Challenge) and
/// [`Error::C1Vanilla`](crate::Error::C1Vanilla) name partition, challenge and part. Cancel and deadline of `control`
/// stop it.
pub fn check(c1: C1Output, sector: u64, miner: impl Into<Option<u64>>, control: &Control) -> Result<CheckedC1> {
    let miner = miner.into();
    shape::check(&c1)?;
    elements::check(&c1)?;
    identity::check(&c1, sector, miner)?;
    let challenges = challenges::check(&c1)?;
    columns::check(&c1, &challenges, control)?;
    trees::check(&c1, control)?;
    Ok(CheckedC1 { c1, sector, miner, challenges })
}

/// Runs `check` on every challenge's proof, in parallel, and returns the first fault in the order of the document.
fn for_each_proof(c1: &C1Output, check: impl Fn(usize, usize, &VanillaProof) -> Result<()> + Sync) -> Result<()> {
    let proofs = numbered(c1);
    match proofs.par_iter().find_map_first(|&(partition, challenge, proof)| check(partition, challenge, proof).err()) {
        Some(error) => Err(error),
        None => Ok(()),
    }
}

/// All proofs with partition and challenge, in the order of the document.
fn numbered(c1: &C1Output) -> Vec<(usize, usize, &VanillaProof)> {
    let partitions = c1.vanilla_proofs.iter().enumerate();
    partitions.flat_map(|(k, proofs)| proofs.iter().enumerate().map(move |(i, proof)| (k, i, proof))).collect()
}
