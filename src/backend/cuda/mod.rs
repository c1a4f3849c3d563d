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
pub(crate) mod feeder;
pub mod gpu;
mod ntt;
mod proof;
mod queries;
mod quotient;
pub(crate) mod seeded;
mod selftest;
mod setup;
mod shape;
mod sums;
#[cfg(feature = "emulator")]
pub mod testing;
mod witness;
