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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Class;
    use crate::pipeline::CancelToken;
    use crate::r1cs::testing::Bare;

    /// x is a bit, y and z = 2 y are not.
    fn circuit(values: &[u64]) -> Bare {
        let rows = vec![
            [vec![(None, 1), (Some(0), -1)], vec![(Some(0), 1)], vec![]],
            [vec![(Some(1), 2)], vec![(None, 1)], vec![(Some(2), 1)]],
        ];
        Bare { count: 3, rows, values: values.iter().map(|&value| Scalar::from(value)).collect() }
    }

    #[test]
    fn values_go_where_the_circuit_says_not_where_they_look_like_bits() {
        let control = Control::new();
        let r1cs = R1cs::record(circuit(&[]), &control).expect("recording");
        assert_eq!(r1cs.full_positions(), [1, 2]);
        for (x, y, z) in [(0, 0, 0), (1, 1, 2), (1, 7, 14)] {
            let witness = r1cs.assign(circuit(&[x, y, z]), &control).expect("assignment");
            assert_eq!(witness.inputs, [Scalar::ONE]);
            assert_eq!(witness.full, [Scalar::from(y), Scalar::from(z)]);
            assert_eq!(witness.bits.ones().collect::<Vec<_>>(), if x == 1 { vec![0] } else { vec![] });
        }
    }

    #[test]
    fn another_value_than_a_bit_is_an_error_that_names_the_variable() {
        let control = Control::new();
        let r1cs = R1cs::record(circuit(&[]), &control).expect("recording");
        let error = r1cs.assign(circuit(&[2, 1, 2]), &control).expect_err("two is not a bit");
        assert!(matches!(error, Error::Unsatisfied { .. }), "{error}");
        assert!(error.to_string().contains("auxiliary variable 0 must be 0 or 1"), "{error}");
    }

    #[test]
    fn missing_values_and_other_shapes_are_internal_errors() {
        let control = Control::new();
        let r1cs = R1cs::record(circuit(&[]), &control).expect("recording");
        let mut longer = circuit(&[1, 1, 2, 1]);
        longer.count = 4;
        let mut shorter = circuit(&[1, 1]);
        (shorter.count, shorter.rows) = (2, Vec::new());
        for (circuit, words) in
            [(circuit(&[1, 1]), "could not be computed"), (longer, "more than"), (shorter, "2 auxiliary")]
        {
            let error = r1cs.assign(circuit, &control).expect_err("must fail");
            assert_eq!(error.class(), Class::Internal, "{error}");
            assert!(error.to_string().contains(words), "{error}");
        }
    }

    #[test]
    fn a_cancel_stops_recording_and_assigning() {
        let r1cs = R1cs::record(circuit(&[]), &Control::new()).expect("recording");
        let token = CancelToken::new();
        let control = Control::new().with_cancel(token.clone());
        token.cancel();
        let error = r1cs.assign(circuit(&[1, 1, 2]), &control).expect_err("cancelled");
        assert_eq!(error.class(), Class::Cancelled);
        let error = R1cs::record(circuit(&[]), &control).expect_err("cancelled");
        assert_eq!(error.class(), Class::Cancelled);
    }
}
