//! What a prover needs of a constraint system, however it is stored.

use blstrs::Scalar;

use super::{Bitmap, Layout, Matrix, PartitionWitness, R1cs, Templates};
use crate::error::Result;
use crate::pipeline::Control;

/// A rank-1 constraint system: row by row ([`R1cs`]) or as templates ([`Templates`]), with the same results.
pub trait Constraints: Send + Sync {
    /// How many inputs there are, the constant ONE included.
    fn num_inputs(&self) -> usize;

    /// How many auxiliary variables there are.
    fn num_aux(&self) -> usize;

    /// How many rows there are, the appended one per input included.
    fn num_rows(&self) -> usize;

    /// The smallest k with 2^k >= [`Constraints::num_rows`].
    fn log_domain(&self) -> u32 {
        self.num_rows().next_power_of_two().trailing_zeros()
    }

    /// How many non-zero entries a matrix has.
    fn num_entries(&self, matrix: Matrix) -> usize;

    /// Which auxiliary variables occur in A. (All inputs do, by the appended rows.)
    fn a_aux_density(&self) -> &Bitmap;

    /// Which inputs occur in B.
    fn b_input_density(&self) -> &Bitmap;

    /// Which auxiliary variables occur in B.
    fn b_aux_density(&self) -> &Bitmap;

    /// The auxiliary variables that the rows do not prove to be bits, ascending.
    fn full_positions(&self) -> &[u32];

    /// The rows as they are stored, for a device that evaluates them itself.
    fn layout(&self) -> Layout<'_>;

    /// `out = M w` for one of the matrices; see [`R1cs::evaluate`].
    ///
    /// # Errors
    /// As [`R1cs::evaluate`].
    fn evaluate(&self, matrix: Matrix, witness: &PartitionWitness, out: &mut [Scalar], control: &Control)
        -> Result<()>;

    /// The same for a place of exactly as many elements as there are rows.
    ///
    /// # Errors
    /// As [`R1cs::evaluate`].
    fn evaluate_rows(
        &self,
        matrix: Matrix,
        witness: &PartitionWitness,
        out: &mut [Scalar],
        control: &Control,
    ) -> Result<()>;

    /// The first row that the witness does not satisfy.
    ///
    /// # Errors
    /// As [`R1cs::evaluate`].
    fn first_unsatisfied(&self, witness: &PartitionWitness, control: &Control) -> Result<Option<usize>>;
}

/// Both types have the methods themselves, so that callers who know the type need no trait.
macro_rules! forward {
    ($type:ty) => {
        impl Constraints for $type {
            fn num_inputs(&self) -> usize {
                self.num_inputs()
            }

            fn num_aux(&self) -> usize {
                self.num_aux()
            }

            fn num_rows(&self) -> usize {
                self.num_rows()
            }

            fn num_entries(&self, matrix: Matrix) -> usize {
                self.num_entries(matrix)
            }

            fn a_aux_density(&self) -> &Bitmap {
                self.a_aux_density()
            }

            fn b_input_density(&self) -> &Bitmap {
                self.b_input_density()
            }

            fn b_aux_density(&self) -> &Bitmap {
                self.b_aux_density()
            }

            fn full_positions(&self) -> &[u32] {
                self.full_positions()
            }

            fn layout(&self) -> Layout<'_> {
                self.layout()
            }

            fn evaluate(
                &self,
                matrix: Matrix,
                witness: &PartitionWitness,
                out: &mut [Scalar],
                control: &Control,
            ) -> Result<()> {
                self.evaluate(matrix, witness, out, control)
            }

            fn evaluate_rows(
                &self,
                matrix: Matrix,
                witness: &PartitionWitness,
                out: &mut [Scalar],
                control: &Control,
            ) -> Result<()> {
                self.evaluate_rows(matrix, witness, out, control)
            }

            fn first_unsatisfied(&self, witness: &PartitionWitness, control: &Control) -> Result<Option<usize>> {
                self.first_unsatisfied(witness, control)
            }
        }
    };
}

forward!(R1cs);
forward!(Templates);
