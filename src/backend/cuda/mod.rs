//! Proofs on NVIDIA GPUs.

mod arena;
#[cfg(all(test, feature = "emulator"))]
mod arithmetic_tests;
pub(crate) mod backend;
mod bases;
mod bench;
pub(crate) mod card;
mod curves;
mod digits;
mod evaluate;
mod feed;
pub(crate) mod feeder;
pub mod gpu;
mod host_bases;
mod memory_plan;
mod ntt;
pub(crate) mod proof;
mod queries;
mod quotient;
pub(crate) mod seeded;
mod selftest;
mod setup;
mod shape;
mod steps;
pub(crate) mod summary;
mod sums;
#[cfg(feature = "emulator")]
pub mod testing;
mod witness;

pub use summary::{GpuPlan, PlannedBases};

/// Bytes of a device's memory that proofs may use now. Opens it for a moment.
pub(crate) fn free_memory(ordinal: u32) -> crate::Result<u64> {
    proof::usable_memory(&gpu::Gpu::bare(ordinal)?)
}
