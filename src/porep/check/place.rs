//! Names for the openings inside one challenge's vanilla proof, as the C1 JSON spells them.

use std::fmt;

use crate::porep::c1::{ColumnProof, MerkleProof, VanillaProof};
use crate::porep::sector::DRG_PARENTS;

/// A column opened in one challenge's proof.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ColumnName {
    Challenged,
    Drg(usize),
    Exp(usize),
}

impl fmt::Display for ColumnName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ColumnName::Challenged => f.write_str("replica_column_proofs.c_x"),
            ColumnName::Drg(i) => write!(f, "replica_column_proofs.drg_parents[{i}]"),
            ColumnName::Exp(i) => write!(f, "replica_column_proofs.exp_parents[{i}]"),
        }
    }
}

impl ColumnName {
    /// The name of parent `i`, counting those of the same layer first.
    pub fn parent(i: usize) -> Self {
        if i < DRG_PARENTS {
            ColumnName::Drg(i)
        } else {
            ColumnName::Exp(i - DRG_PARENTS)
        }
    }
}

/// A path opened in one challenge's proof.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PathName {
    Data,
    Replica,
    Column(ColumnName),
}

impl fmt::Display for PathName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PathName::Data => f.write_str("comm_d_proofs"),
            PathName::Replica => f.write_str("comm_r_last_proof"),
            PathName::Column(column) => write!(f, "{column}.inclusion_proof"),
        }
    }
}

/// All columns: the challenged node's, then its parents', those of the same layer first.
pub(super) fn columns(proof: &VanillaProof) -> impl Iterator<Item = (ColumnName, &ColumnProof)> {
    let drg = proof.drg_parents.iter().enumerate().map(|(i, column)| (ColumnName::Drg(i), column));
    let exp = proof.exp_parents.iter().enumerate().map(|(i, column)| (ColumnName::Exp(i), column));
    std::iter::once((ColumnName::Challenged, &proof.c_x)).chain(drg).chain(exp)
}

/// All paths in Poseidon trees: the replica's, then the columns'.
pub(super) fn poseidon_paths(proof: &VanillaProof) -> impl Iterator<Item = (PathName, &MerkleProof)> {
    let columns = columns(proof).map(|(name, column)| (PathName::Column(name), &column.inclusion_proof));
    std::iter::once((PathName::Replica, &proof.comm_r_last_proof)).chain(columns)
}

/// All paths: the data's, then those in Poseidon trees.
pub(super) fn paths(proof: &VanillaProof) -> impl Iterator<Item = (PathName, &MerkleProof)> {
    std::iter::once((PathName::Data, &proof.comm_d_proof)).chain(poseidon_paths(proof))
}
