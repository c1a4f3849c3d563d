//! cuporep

pub mod backend;
pub mod curve;
pub mod error;
pub mod groth16;
pub mod pipeline;
pub mod r1cs;

pub use error::{Class, Error, Result};
