//! The constraint system that bellperson circuits are run through: it records rows without values, or
//! packs values without rows. One concrete type for both, since circuits are large generic code that is
//! compiled anew for each constraint system.

use bellperson::{Circuit, ConstraintSystem, Index, LinearCombination, SynthesisError, Variable};
use blstrs::Scalar;
use ff::Field;

use super::rows::{Builder, INPUT};
use super::witness::Packer;
use super::R1cs;
use crate::error::{Error, Result};
use crate::pipeline::{Control, Stage};

/// How many variables are allocated between two looks at the control: well below a millisecond of work.
const CHECK_EVERY: usize = 1 << 12;

/// Either half of what a circuit says: its rows or its values.
///
/// Not extensible, so that gadgets which may synthesize in parallel do it in order. Not a witness
/// generator either: gadgets may then allocate by other code than the one that makes the rows.
pub(super) struct Synthesis<'a> {
    inputs: usize,
    aux: usize,
    control: &'a Control,
    sink: Sink<'a>,
    /// The reason why synthesis was broken off, where bellperson's own error type has no words for it.
    failure: Option<Error>,
}

enum Sink<'a> {
    Rows(Box<Builder>),
    Values(Packer<'a>),
}

impl<'a> Synthesis<'a> {
    /// Runs `circuit` for its rows.
    fn record<C: Circuit<Scalar>>(circuit: C, control: &'a Control) -> Result<(usize, usize, Box<Builder>)> {
        let mut synthesis = Synthesis::new(Sink::Rows(Box::default()), control);
        synthesis.run(circuit, Stage::Shape)?;
        let (inputs, aux) = (synthesis.inputs, synthesis.aux);
        match synthesis.sink {
            Sink::Rows(mut builder) => {
                // As bellperson does: these rows make the inputs' polynomials independent.
                for input in 0..inputs {
                    builder.push(0, std::iter::once((INPUT | input as u32, &Scalar::ONE)));
                    builder.push(1, std::iter::empty());
                    builder.push(2, std::iter::empty());
                }
                Ok((inputs, aux, builder))
            }
            Sink::Values(_) => unreachable!("the sink is not replaced"),
        }
    }

    /// Runs `circuit` for its values.
    pub(super) fn assign<C: Circuit<Scalar>>(
        circuit: C,
        packer: Packer<'a>,
        control: &'a Control,
    ) -> Result<Packer<'a>> {
        let mut synthesis = Synthesis::new(Sink::Values(packer), control);
        synthesis.run(circuit, Stage::Witness)?;
        match synthesis.sink {
            Sink::Values(packer) => Ok(packer),
            Sink::Rows(_) => unreachable!("the sink is not replaced"),
        }
    }

    fn new(sink: Sink<'a>, control: &'a Control) -> Self {
        Synthesis { inputs: 0, aux: 0, control, sink, failure: None }
    }

    fn run<C: Circuit<Scalar>>(&mut self, circuit: C, stage: Stage) -> Result<()> {
        self.control.check(stage)?;
        let outcome = self.alloc_input(|| "", || Ok(Scalar::ONE)).and_then(|_| circuit.synthesize(self));
        match (self.failure.take(), outcome) {
            (Some(failure), _) => Err(failure),
            (None, Ok(())) => self.control.check(stage),
            (None, Err(source)) => {
                let detail = format!(
                    "synthesis stopped after {} inputs and {} auxiliary variables: {source}",
                    self.inputs, self.aux
                );
                Err(match source {
                    SynthesisError::Unsatisfiable | SynthesisError::DivisionByZero => Error::Unsatisfied { detail },
                    _ => Error::internal(detail),
                })
            }
        }
    }

    /// Keeps the reason and gives what makes bellperson stop.
    fn stop(&mut self, reason: Error) -> SynthesisError {
        self.failure.get_or_insert(reason);
        SynthesisError::Unsatisfiable
    }
}

impl ConstraintSystem<Scalar> for Synthesis<'_> {
    type Root = Self;

    fn alloc<F, A, AR>(&mut self, _: A, value: F) -> Result<Variable, SynthesisError>
    where
        F: FnOnce() -> Result<Scalar, SynthesisError>,
        A: FnOnce() -> AR,
        AR: Into<String>,
    {
        if self.aux.is_multiple_of(CHECK_EVERY) {
            if let Err(reason) = self.control.check("the synthesis of a circuit") {
                return Err(self.stop(reason));
            }
        }
        if let Sink::Values(packer) = &mut self.sink {
            if let Err(reason) = packer.push_aux(value()?) {
                return Err(self.stop(reason));
            }
        }
        self.aux += 1;
        Ok(Variable::new_unchecked(Index::Aux(self.aux - 1)))
    }

    fn alloc_input<F, A, AR>(&mut self, _: A, value: F) -> Result<Variable, SynthesisError>
    where
        F: FnOnce() -> Result<Scalar, SynthesisError>,
        A: FnOnce() -> AR,
        AR: Into<String>,
    {
        if let Sink::Values(packer) = &mut self.sink {
            if let Err(reason) = packer.push_input(value()?) {
                return Err(self.stop(reason));
            }
        }
        self.inputs += 1;
        Ok(Variable::new_unchecked(Index::Input(self.inputs - 1)))
    }

    fn enforce<A, AR, LA, LB, LC>(&mut self, _: A, a: LA, b: LB, c: LC)
    where
        A: FnOnce() -> AR,
        AR: Into<String>,
        LA: FnOnce(LinearCombination<Scalar>) -> LinearCombination<Scalar>,
        LB: FnOnce(LinearCombination<Scalar>) -> LinearCombination<Scalar>,
        LC: FnOnce(LinearCombination<Scalar>) -> LinearCombination<Scalar>,
    {
        if let Sink::Rows(builder) = &mut self.sink {
            builder.push(0, entries(&a(LinearCombination::zero())));
            builder.push(1, entries(&b(LinearCombination::zero())));
            builder.push(2, entries(&c(LinearCombination::zero())));
        }
    }

    fn push_namespace<NR, N>(&mut self, _: N)
    where
        NR: Into<String>,
        N: FnOnce() -> NR,
    {
    }

    fn pop_namespace(&mut self) {}

    fn get_root(&mut self) -> &mut Self::Root {
        self
    }
}

/// The entries of a linear combination: inputs, then auxiliary variables, each ascending. Bellperson has
/// merged repeated variables already, perhaps to a zero coefficient.
fn entries(combination: &LinearCombination<Scalar>) -> impl Iterator<Item = (u32, &Scalar)> {
    // Numbers past the limit are refused before anything reads them: `Builder::finish` checks the counts.
    let inputs = combination.iter_inputs().map(|(&index, coefficient)| (INPUT | index as u32, coefficient));
    inputs.chain(combination.iter_aux().map(|(&index, coefficient)| (index as u32, coefficient)))
}

impl R1cs {
    /// Records the constraints of `circuit`, whose values are never asked for, and finds out which of its
    /// variables are bits.
    ///
    /// Like bellperson's prover: ONE is input 0, zero coefficients are dropped, and one row `input * 0 = 0` for
    /// each input follows the circuit's own rows.
    ///
    /// # Errors
    /// [`Error::Argument`] if the circuit is larger than 2^31 variables or 2^32 entries a matrix,
    /// [`Error::Unsatisfied`] or [`Error::Internal`] if synthesis itself fails, [`Error::Cancelled`], [`Error::Deadline`].
    pub fn record<C: Circuit<Scalar>>(circuit: C, control: &Control) -> Result<R1cs> {
        let (inputs, aux, builder) = Synthesis::record(circuit, control)?;
        let (dictionary, matrices) = builder.finish(inputs, aux)?;
        R1cs::from_rows(inputs, aux, dictionary, matrices, control)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Class;

    type Synthesized<T> = Result<T, SynthesisError>;

    /// Does whatever the function does with a way to do steps.
    struct Custom(fn(&mut dyn FnMut(Step) -> Synthesized<Variable>) -> Synthesized<()>);

    /// What a [`Custom`] circuit can do.
    enum Step {
        Alloc,
        Use(Index),
    }

    impl Circuit<Scalar> for Custom {
        fn synthesize<CS: ConstraintSystem<Scalar>>(self, cs: &mut CS) -> Result<(), SynthesisError> {
            self.0(&mut |step| match step {
                Step::Alloc => cs.alloc(|| "variable", || panic!("recording asks for no value")),
                Step::Use(index) => {
                    let variable = Variable::new_unchecked(index);
                    cs.enforce(|| "row", |lc| lc + variable, |lc| lc + variable, |lc| lc);
                    Ok(variable)
                }
            })
        }
    }

    #[test]
    fn a_row_over_a_variable_that_does_not_exist_is_refused() {
        let control = Control::new();
        let good = |step: &mut dyn FnMut(Step) -> Synthesized<Variable>| {
            step(Step::Alloc)?;
            step(Step::Use(Index::Aux(0)))?;
            step(Step::Use(Index::Input(0)))?;
            Ok(())
        };
        assert_eq!(R1cs::record(Custom(good), &control).expect("recording").num_rows(), 3);
        for bad in [
            Custom(|step| step(Step::Use(Index::Aux(0))).map(|_| ())),
            Custom(|step| step(Step::Use(Index::Input(1))).map(|_| ())),
        ] {
            let error = R1cs::record(bad, &control).expect_err("must fail");
            assert!(matches!(error, Error::Argument { name: "circuit", .. }), "{error}");
        }
    }

    #[test]
    fn the_circuits_own_failures_keep_their_reason() {
        let control = Control::new();
        let record = |circuit| R1cs::record(Custom(circuit), &control).expect_err("must fail");
        let error = record(|_| Err(SynthesisError::Unsatisfiable));
        assert_eq!(error.class(), Class::Input);
        assert!(error.to_string().contains("unsatisfiable constraint system"), "{error}");
        let error = record(|_| Err(SynthesisError::PolynomialDegreeTooLarge));
        assert_eq!(error.class(), Class::Internal);
        assert!(error.to_string().contains("polynomial degree is too large"), "{error}");
    }
}
