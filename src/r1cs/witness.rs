//! A packed assignment: nearly all of it is bits.

use bellperson::Circuit;
use blstrs::Scalar;
use ff::Field;

use super::recorder::Synthesis;
use super::{Bitmap, R1cs};
use crate::error::{Error, Result};
use crate::pipeline::Control;

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

/// Packs values in the order of allocation.
pub(super) struct Packer<'a> {
    r1cs: &'a R1cs,
    aux: usize,
    witness: PartitionWitness,
}

impl<'a> Packer<'a> {
    fn new(r1cs: &'a R1cs) -> Self {
        Packer {
            r1cs,
            aux: 0,
            witness: PartitionWitness {
                inputs: Vec::with_capacity(r1cs.num_inputs()),
                bits: Bitmap::zeros(r1cs.num_aux()),
                full: Vec::with_capacity(r1cs.full_positions().len()),
            },
        }
    }

    pub(super) fn push_input(&mut self, value: Scalar) -> Result<()> {
        if self.witness.inputs.len() == self.r1cs.num_inputs() {
            return Err(too_many("inputs", self.r1cs.num_inputs()));
        }
        self.witness.inputs.push(value);
        Ok(())
    }

    pub(super) fn push_aux(&mut self, value: Scalar) -> Result<()> {
        let index = self.aux;
        if index == self.r1cs.num_aux() {
            return Err(too_many("auxiliary variables", index));
        }
        self.aux += 1;
        // The next full-width position is the one after those that have their value.
        if self.r1cs.full_positions().get(self.witness.full.len()).is_some_and(|&next| next as usize == index) {
            self.witness.full.push(value);
        } else if value == Scalar::ONE {
            self.witness.bits.set(index);
        } else if !value.is_zero_vartime() {
            return Err(Error::Unsatisfied {
                detail: format!("auxiliary variable {index} must be 0 or 1 by its constraints and has another value"),
            });
        }
        Ok(())
    }

    fn finish(self) -> Result<PartitionWitness> {
        let (inputs, aux) = (self.witness.inputs.len(), self.aux);
        if (inputs, aux) != (self.r1cs.num_inputs(), self.r1cs.num_aux()) {
            return Err(Error::internal(format!(
                "the circuit assigned {inputs} inputs and {aux} auxiliary variables; its recorded shape has {} and {}",
                self.r1cs.num_inputs(),
                self.r1cs.num_aux()
            )));
        }
        Ok(self.witness)
    }
}

fn too_many(what: &str, limit: usize) -> Error {
    Error::internal(format!("the circuit assigns more than the {limit} {what} of its recorded shape"))
}

impl R1cs {
    /// Runs `circuit` for its values alone and packs them. The circuit must be one of the recorded shape.
    ///
    /// That the packed assignment satisfies all rows is not checked here: see [`R1cs::first_unsatisfied`].
    ///
    /// # Errors
    /// [`Error::Unsatisfied`] names the first auxiliary variable that must be a bit and is not;
    /// [`Error::Internal`] if a value is missing or the circuit allocates other variables than it did when it was
    /// recorded; [`Error::Cancelled`], [`Error::Deadline`].
    pub fn assign<C: Circuit<Scalar>>(&self, circuit: C, control: &Control) -> Result<PartitionWitness> {
        Synthesis::assign(circuit, Packer::new(self), control)?.finish()
    }
}
