//! cuporep

pub mod backend;
pub mod curve;
pub mod environment;
pub mod error;
#[cfg(feature = "capi")]
pub mod ffi;
pub mod groth16;
mod panics;
pub mod pipeline;
pub mod porep;
mod prover;
pub mod r1cs;

pub use error::{Class, Error, Result};
pub use prover::{
    devices, Config, Device, FixedRandomness, ParameterReport, Placement, Policy, ProveRequest, Prover, SealProof,
};
