//! Proof arithmetic on the CPU: transforms, multi-scalar multiplications and sums of selected points.
//! Knows no Filecoin. All loops run on the rayon pool that the caller is in.

mod backend;
mod bases;
pub mod bits;
pub mod lane;
mod memory;
pub mod msm;
pub mod ntt;
mod shared;
mod sums;

#[cfg(test)]
mod testing;

pub use backend::CpuBackend;
