//! The constraints of each sector size as templates, and the names of the gadgets that they come from. Knows no witness.

use bellperson::Circuit;
use blstrs::Scalar;

use super::circuit::{visit_blank_circuit, visit_blank_circuit_with_challenges, CircuitVisitor};
use super::sector::SectorSize;
use crate::error::{Error, Result};
use crate::pipeline::Control;
use crate::r1cs::{self, Pass, Templates};

/// Runs a pass with the visited circuit.
struct Run<'a, 'p>(&'a mut Pass<'p>);

impl CircuitVisitor for Run<'_, '_> {
    type Output = Result<()>;

    fn visit<C: Circuit<Scalar>>(self, circuit: C) -> Self::Output {
        self.0.run(circuit)
    }
}

/// Records the constraints of the circuit of one partition, the same for all kinds of registered proofs of this size.
///
/// # Errors
/// [`Error::Internal`], [`Error::Cancelled`], [`Error::Deadline`].
pub fn templates(size: SectorSize, control: &Control) -> Result<Templates> {
    let synthesize =
        |challenges: usize, pass: &mut Pass<'_>| visit_blank_circuit_with_challenges(size, challenges, Run(pass))?;
    Templates::record(size.challenges_per_partition(), synthesize, control)
}

/// Finds the gadget of a row.
struct Find<'a> {
    row: usize,
    control: &'a Control,
}

impl CircuitVisitor for Find<'_> {
    type Output = Result<Option<String>>;

    fn visit<C: Circuit<Scalar>>(self, circuit: C) -> Self::Output {
        r1cs::gadget_of_row(circuit, self.row, self.control)
    }
}

/// The names of the gadgets around a row of the circuit of one partition, and of the row itself, joined by `/`.
///
/// The circuit is run up to the row: for the last ones of 32 GiB that takes about a minute.
///
/// # Errors
/// [`Error::Argument`] if there are not so many rows; [`Error::Internal`], [`Error::Cancelled`], [`Error::Deadline`].
pub fn gadget_of_row(size: SectorSize, row: usize, control: &Control) -> Result<String> {
    let found = visit_blank_circuit(size, Find { row, control })??;
    found.ok_or_else(|| Error::Argument {
        name: "row",
        detail: format!("{row}, the circuit of {size} has {}", size.parameters().counts.rows),
    })
}
