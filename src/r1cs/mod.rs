//! Rank-1 constraint systems: recorded once per circuit, stored, evaluated for each witness.
//! Knows no Filecoin and no device: any bellperson `Circuit<Scalar>` will do.

mod bitmap;
mod checked_file;
mod constraints;
mod evaluate;
mod gadget;
mod layout;
mod positions;
mod recorder;
mod rows;
mod shape_file;
mod store;
mod system;
mod template;
#[cfg(test)]
pub(crate) mod testing;
mod witness;

pub use bitmap::Bitmap;
pub use constraints::Constraints;
pub use gadget::gadget_of_row;
pub use layout::{Layout, Run, StoredRows};
pub use store::{Shape, ShapeStore};
pub use system::{R1cs, Row};
pub use template::{Pass, Templates};
pub use witness::PartitionWitness;

/// One of the three matrices of a constraint system: A w * B w = C w, row by row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Matrix {
    A,
    B,
    C,
}
