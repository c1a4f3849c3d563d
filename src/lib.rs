//! cuporep

pub mod backend;
pub mod curve;
pub mod environment;
pub mod error;
pub mod groth16;
mod panics;
pub mod pipeline;
pub mod porep;
mod prover;
pub mod r1cs;

pub use error::{Class, Error, Result};
pub use prover::{Config, FixedRandomness, ParameterReport, ProveRequest, Prover, SealProof};
