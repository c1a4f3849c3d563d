//! The Groth16 protocol over BLS12-381 for any constraint system, with bellperson's conventions and file
//! format. Knows no Filecoin and no device.

pub mod domain;
pub mod params;
mod points;
mod prove;
mod quotient;
pub mod setup;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod verify;
mod vk;

use blstrs::{G1Projective, G2Projective};

pub use params::{Counts, Digests, Expected, G1Section, Known, Parameters};
#[cfg(feature = "cuda")]
pub(crate) use points::FilePoint;
pub use prove::{assemble, Proof, Randomness, PROOF_BYTES};
pub use quotient::quotient;
pub use verify::PreparedVerifyingKey;
pub use vk::VerifyingKey;

/// The sums of one partition's proof, as a backend returns them. Public inputs are included where the
/// query has bases for them (a: all inputs; b: those with a non-zero polynomial).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProofParts {
    /// Quotient coefficients on h.
    pub h: G1Projective,
    /// Auxiliary variables on l.
    pub l: G1Projective,
    /// Inputs and auxiliary variables on a.
    pub a: G1Projective,
    /// Inputs and auxiliary variables on b in G1.
    pub b_g1: G1Projective,
    /// Inputs and auxiliary variables on b in G2.
    pub b_g2: G2Projective,
}
