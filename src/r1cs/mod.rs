//! Rank-1 constraint systems: recorded once per circuit, stored, evaluated for each witness.
//! Knows no Filecoin and no device: any bellperson `Circuit<Scalar>` will do.

mod bitmap;
mod evaluate;
mod positions;
mod recorder;
mod rows;
mod shape_file;
mod store;
mod system;
#[cfg(test)]
mod testing;
mod witness;

pub use bitmap::Bitmap;
pub use store::ShapeStore;
pub use system::{R1cs, Row};
pub use witness::PartitionWitness;

/// One of the three matrices of a constraint system: A w * B w = C w, row by row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Matrix {
    A,
    B,
    C,
}
