//! Proofs on NVIDIA GPUs.

mod arena;
mod bench;
mod curves;
mod digits;
pub mod gpu;
mod sums;
#[cfg(feature = "emulator")]
pub mod testing;
