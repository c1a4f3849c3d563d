//! A packed assignment: nearly all of it is bits.

use blstrs::Scalar;

use super::Bitmap;

/// The assignment of one partition (or of any one instance of a circuit), packed.
///
/// Which auxiliary variables are full-width is a property of the circuit (`R1cs::full_positions`), never
/// of a sample assignment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionWitness {
    /// Public inputs, the constant ONE first.
    pub inputs: Vec<Scalar>,
    /// One bit per auxiliary variable; zero at full-width positions.
    pub bits: Bitmap,
    /// The values at the circuit's full-width positions, in the order of those positions.
    pub full: Vec<Scalar>,
}
