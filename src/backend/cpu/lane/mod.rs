//! Which instructions the CPU backend computes with. Knows no algorithm.

/// The choice of arithmetic.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Lanes {
    /// The fastest that this processor has.
    #[default]
    Auto,
    /// blst's field functions, on any processor.
    Portable,
}

mod points;

pub(crate) use points::{PointLane, Portable, Reference, NEGATIVE, NONE};
