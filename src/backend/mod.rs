//! Where the heavy work of a proof is done. Knows constraint systems and parameters, and no Filecoin.

pub(crate) mod accelerator;
pub mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;

pub use accelerator::{Device, Figure};

use crate::error::Result;
use crate::groth16::{Expected, Parameters, ProofParts};
use crate::pipeline::Control;
use crate::r1cs::{Constraints, PartitionWitness};

/// What a backend is asked to prove: several witnesses of one constraint system.
#[derive(Clone, Copy)]
pub struct Job<'a> {
    /// The constraint system.
    pub r1cs: &'a dyn Constraints,
    /// Parameters that belong to it.
    pub parameters: &'a Parameters,
    /// One witness per proof.
    pub witnesses: &'a [PartitionWitness],
    /// The index of the first witness, for progress.
    pub first_partition: usize,
    /// Cancel, deadline and progress.
    pub control: &'a Control,
}

/// A processor or card that computes the sums of proofs.
pub trait Backend: Send + Sync {
    /// A short name for reports, such as `cpu`.
    fn name(&self) -> &str;

    /// The most bytes of host memory that one proof with such parameters takes, beyond what is held already.
    fn memory_needed(&self, expected: &Expected) -> u64;

    /// Bytes of device memory that it holds.
    fn device_memory(&self) -> u64 {
        0
    }

    /// Loads what is kept between proofs of `witnesses` witnesses together.
    fn load(&self, r1cs: &dyn Constraints, parameters: &Parameters, witnesses: usize, control: &Control) -> Result<()>;

    /// The sums of every witness, in order.
    fn prove(&self, job: &Job<'_>) -> Result<Vec<ProofParts>>;

    /// Gives back what is kept between proofs.
    fn release(&self);
}
