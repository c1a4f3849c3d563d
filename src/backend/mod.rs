//! Where the heavy work of a proof is done. Knows constraint systems and parameters, and no Filecoin.

pub(crate) mod accelerator;
pub mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;
mod witnesses;

pub use accelerator::{Device, Figure};
pub use witnesses::Witnesses;

use crate::error::Result;
use crate::groth16::{Counts, Parameters, ProofParts};
use crate::pipeline::Control;
use crate::r1cs::Constraints;

/// What a backend is asked to prove: several witnesses of one constraint system.
#[derive(Clone, Copy)]
pub struct Job<'a> {
    /// The constraint system.
    pub r1cs: &'a dyn Constraints,
    /// Parameters that belong to it.
    pub parameters: &'a Parameters,
    /// One witness per proof.
    pub witnesses: Witnesses<'a>,
    /// The index of the first witness, for progress.
    pub first_partition: usize,
    /// Cancel, deadline and progress.
    pub control: &'a Control,
}

/// What proofs are like as far as their memory goes.
#[derive(Debug, Clone, Copy)]
pub struct Load {
    /// The circuit's counts.
    pub counts: Counts,
    /// Its full-width variables.
    pub full: usize,
    /// Witnesses of a proof.
    pub witnesses: usize,
    /// Threads that compute.
    pub threads: usize,
}

impl Load {
    /// Bytes of host memory that a proof's witnesses take.
    pub fn witness_bytes(&self) -> u64 {
        const SCALAR: usize = 32;
        let one = self.counts.aux.div_ceil(64) * size_of::<u64>() + (self.full + self.counts.inputs) * SCALAR;
        (self.witnesses * one) as u64
    }
}

/// What the memory of a device that a backend holds is used for, in bytes, as it was planned.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeviceMemory {
    /// The circuit's tables.
    pub tables: u64,
    /// Bases that stay there between proofs.
    pub bases: u64,
    /// Witnesses, vectors and scratch of proofs, kept between them as well.
    pub proofs: u64,
}

/// A processor or card that computes the sums of proofs.
///
/// Whoever asks for proofs sees to it that one is made at a time; release and memory may be asked for meanwhile. Its
/// functions are called from threads of their own, which may wait; what has parallel loops they give to
/// [`Control`]'s threads.
pub trait Backend: Send + Sync {
    /// A short name for reports, such as `cpu`.
    fn name(&self) -> &str;

    /// Bytes of host memory that it holds when it makes such proofs, what it keeps between them included. Witnesses are
    /// apart.
    fn host_memory(&self, load: &Load) -> u64;

    /// Bytes of host memory that it keeps now.
    fn kept_memory(&self) -> u64;

    /// Bytes of device memory that it holds.
    fn device_memory(&self) -> u64 {
        0
    }

    /// What these are used for, as far as that is known.
    fn device_memory_uses(&self) -> DeviceMemory {
        DeviceMemory::default()
    }

    /// Loads what is kept between proofs of `witnesses` witnesses together.
    fn load(&self, r1cs: &dyn Constraints, parameters: &Parameters, witnesses: usize, control: &Control) -> Result<()>;

    /// The sums of every witness, in order.
    fn prove(&self, job: &Job<'_>) -> Result<Vec<ProofParts>>;

    /// Gives back what is kept between proofs: at once, or when the proof that is being made ends.
    fn release(&self);
}
