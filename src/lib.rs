//! Seal proofs for Filecoin storage providers: from the output of seal commit phase 1 (C1, vanilla proofs) to
//! the Groth16 proof over BLS12-381 that goes on chain (C2).
//!
//! ```no_run
//! use cuporep::pipeline::Control;
//! use cuporep::{Config, ProveRequest, Prover};
//!
//! fn main() -> cuporep::Result<()> {
//!     let c1 = std::fs::read("c1.json").expect("a C1 output");
//!     // Keep it: circuits and parameters stay loaded between proofs.
//!     let prover = Prover::new(Config::default())?;
//!     let proof = prover.prove(&ProveRequest {
//!         c1: &c1,
//!         sector: 963860,
//!         miner: Some(3454089),
//!         parameter_dir: None,
//!         fixed_randomness: None,
//!         placement: Default::default(),
//!         control: Control::new(),
//!     })?;
//!     assert_eq!(proof.bytes.len(), proof.registered_proof.proof_len());
//!     Ok(())
//! }
//! ```
//!
//! The way of the data, one module a step:
//!
//! | module | what it knows |
//! |---|---|
//! | [`porep`] | Filecoin: decodes and checks C1 outputs, makes witnesses and public inputs |
//! | [`r1cs`] | constraint systems: recorded once, kept on disk, evaluated for each witness |
//! | [`backend`] | where the sums and transforms of a proof are computed |
//! | [`groth16`] | the protocol: quotient, parameter files, assembly, verification, test parameters |
//! | [`pipeline`] | admission by bytes, order, cancel, deadline, progress |
//!
//! [`Prover`] puts them together, and makes many proofs at once on all devices that there are: calls wait until their
//! memory and a place on a device are free. [`Prover::status`] shows how many do, [`Prover::metrics`] counts for Prometheus,
//! [`Prover::release`] takes devices away and [`Prover::shutdown`] ends it. Every [`Error`] has a [`Class`] that says
//! whether trying again can help, and a fixed number. No proof is returned whose bytes were not verified. Nothing is written to standard output or
//! standard error; messages go to the `log` crate.

pub mod backend;
pub mod curve;
pub mod environment;
pub mod error;
#[cfg(feature = "capi")]
pub mod ffi;
pub mod groth16;
mod memory;
mod metrics;
mod panics;
pub mod pipeline;
pub mod porep;
mod prover;
pub mod r1cs;

#[cfg(feature = "cuda")]
pub use backend::cuda::{GpuPlan, PlannedBases};
pub use backend::{Device, DeviceMemory, Figure};
pub use error::{Class, Error, Result};
#[cfg(feature = "cuda")]
#[doc(hidden)]
pub use prover::InsecureGpu;
pub use prover::{
    devices, measure_kernels, why_no_devices, Config, DeviceName, DeviceStatus, Fallback, FixedRandomness,
    ParameterReport, Placement, Policy, ProveRequest, Prover, SealProof, Status, MEASURED_SIZES,
};
#[cfg(feature = "cuda")]
pub use prover::{plan_gpu, PlanRequest};
