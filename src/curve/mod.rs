//! Arithmetic on many points of BLS12-381's G1 and G2 at once, above blst's field functions. Knows neither
//! the protocol nor any constraint system.

mod affine;
mod coordinate;
pub(crate) mod layout;

pub use affine::{AffinePoint, BatchAdder};
pub use coordinate::Coordinate;
