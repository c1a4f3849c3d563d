//! Proofs on NVIDIA GPUs.

pub mod gpu;
#[cfg(feature = "emulator")]
pub mod testing;
