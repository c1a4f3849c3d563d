//! The C ABI. Checks pointers, catches panics, turns errors into numbers and messages; has no logic of its own.
//!
//! `include/cuporep.h` is made from the documentation here; what holds for all functions is said there at the top
//! (`cbindgen.toml`). Safety, for all functions: pointers are NULL or point to what the documentation says.

#![allow(non_camel_case_types, reason = "the names are those of the C header")]
#![allow(clippy::missing_safety_doc, reason = "stated once, above")]

mod boundary;
mod callbacks;
mod process;
mod prover;
mod request;
pub mod status;
pub mod types;
mod unwind;

use std::time::Duration;

pub use process::*;
pub use prover::*;

fn nanoseconds(time: Duration) -> u64 {
    time.as_nanos().try_into().unwrap_or(u64::MAX)
}
