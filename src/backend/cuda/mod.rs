//! Proofs on NVIDIA GPUs.

mod arena;
pub(crate) mod backend;
mod bench;
pub(crate) mod card;
mod curves;
mod digits;
pub mod gpu;
mod selftest;
mod sums;
#[cfg(feature = "emulator")]
pub mod testing;
