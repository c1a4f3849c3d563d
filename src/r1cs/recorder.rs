//! The constraint system that bellperson circuits are run through: it records rows without values, or
//! packs values without rows. One concrete type for both, since circuits are large generic code that is
//! compiled anew for each constraint system.

use bellperson::{Circuit, ConstraintSystem, Index, LinearCombination, SynthesisError, Variable};
use blstrs::Scalar;
use ff::Field;

use super::rows::{Builder, INPUT};
use super::template::Spans;
use super::witness::Packer;
use super::R1cs;
use crate::error::{Error, Result};
use crate::pipeline::{Control, Stage};

/// How many variables are allocated between two looks at the control: well below a millisecond of work.
const CHECK_EVERY: usize = 1 << 12;

/// What is told of a circuit's rows and gadgets while it is synthesized.
pub(super) trait Watcher: Send {
    /// The next row.
    fn row(&mut self, row: &[LinearCombination<Scalar>; 3], name: Name<'_>) -> Result<()>;
    /// A gadget begins.
    fn open(&mut self, _name: Name<'_>) {}
    /// The innermost gadget ends.
    fn close(&mut self) {}
}

/// A name that is made only if it is asked for.
pub(super) type Name<'a> = &'a mut dyn FnMut() -> String;

/// The rows of a circuit, and where its larger gadgets are among them.
pub(super) struct Recording {
    pub(super) inputs: usize,
    pub(super) aux: usize,
    pub(super) builder: Box<Builder>,
    pub(super) spans: Spans,
}

/// How large a circuit is, without the appended row of each input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) inputs: usize,
    pub(super) aux: usize,
    pub(super) rows: usize,
}

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
    Rows(Box<Builder>, Option<Spans>),
    Values(Packer<'a>),
    Count(usize),
    Watch(&'a mut dyn Watcher),
}

impl<'a> Synthesis<'a> {
    /// Runs `circuit` for its rows, the appended ones included, and perhaps for the places of its gadgets.
    pub(super) fn record<C: Circuit<Scalar>>(
        circuit: C,
        spans: Option<Spans>,
        control: &'a Control,
    ) -> Result<Recording> {
        let mut synthesis = Synthesis::new(Sink::Rows(Box::default(), spans), control);
        synthesis.run(circuit, Stage::Shape)?;
        let (inputs, aux) = (synthesis.inputs, synthesis.aux);
        let Sink::Rows(mut builder, spans) = synthesis.sink else { unreachable!("the sink is not replaced") };
        // As bellperson does: these rows make the inputs' polynomials independent.
        for input in 0..inputs {
            builder.push(0, std::iter::once((INPUT | input as u32, &Scalar::ONE)));
            builder.push(1, std::iter::empty());
            builder.push(2, std::iter::empty());
        }
        Ok(Recording { inputs, aux, builder, spans: spans.unwrap_or_default() })
    }

    /// Runs `circuit` for its size alone.
    pub(super) fn count<C: Circuit<Scalar>>(circuit: C, control: &'a Control) -> Result<Size> {
        let mut synthesis = Synthesis::new(Sink::Count(0), control);
        synthesis.run(circuit, Stage::Shape)?;
        let Sink::Count(rows) = synthesis.sink else { unreachable!("the sink is not replaced") };
        Ok(Size { inputs: synthesis.inputs, aux: synthesis.aux, rows })
    }

    /// Runs `circuit` and tells `watcher` of its rows, without the appended ones, and gadgets. When the watcher fails,
    /// synthesis ends soon after.
    pub(super) fn watch<C: Circuit<Scalar>>(
        circuit: C,
        watcher: &'a mut dyn Watcher,
        control: &'a Control,
    ) -> Result<(usize, usize)> {
        let mut synthesis = Synthesis::new(Sink::Watch(watcher), control);
        synthesis.run(circuit, Stage::Shape)?;
        Ok((synthesis.inputs, synthesis.aux))
    }

    /// Runs `circuit` for its values.
    pub(super) fn assign<C: Circuit<Scalar>>(
        circuit: C,
        packer: Packer<'a>,
        control: &'a Control,
    ) -> Result<Packer<'a>> {
        let mut synthesis = Synthesis::new(Sink::Values(packer), control);
        synthesis.run(circuit, Stage::Witness)?;
        let Sink::Values(packer) = synthesis.sink else { unreachable!("the sink is not replaced") };
        Ok(packer)
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
        if self.failure.is_some() {
            return Err(SynthesisError::Unsatisfiable);
        }
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

    fn enforce<A, AR, LA, LB, LC>(&mut self, annotation: A, a: LA, b: LB, c: LC)
    where
        A: FnOnce() -> AR,
        AR: Into<String>,
        LA: FnOnce(LinearCombination<Scalar>) -> LinearCombination<Scalar>,
        LB: FnOnce(LinearCombination<Scalar>) -> LinearCombination<Scalar>,
        LC: FnOnce(LinearCombination<Scalar>) -> LinearCombination<Scalar>,
    {
        match &mut self.sink {
            Sink::Rows(builder, _) => {
                builder.push(0, entries(&a(LinearCombination::zero())));
                builder.push(1, entries(&b(LinearCombination::zero())));
                builder.push(2, entries(&c(LinearCombination::zero())));
            }
            Sink::Values(_) => {}
            Sink::Count(rows) => *rows += 1,
            Sink::Watch(watcher) if self.failure.is_none() => {
                let row = [a(LinearCombination::zero()), b(LinearCombination::zero()), c(LinearCombination::zero())];
                let mut annotation = Some(annotation);
                let name = &mut || annotation.take().map_or_else(String::new, |name| name().into());
                self.failure = watcher.row(&row, name).err();
            }
            Sink::Watch(_) => {}
        }
    }

    fn push_namespace<NR, N>(&mut self, name: N)
    where
        NR: Into<String>,
        N: FnOnce() -> NR,
    {
        match &mut self.sink {
            Sink::Rows(builder, Some(spans)) => spans.open(builder.rows(), self.aux),
            Sink::Watch(watcher) => {
                let mut name = Some(name);
                watcher.open(&mut || name.take().map_or_else(String::new, |name| name().into()));
            }
            _ => {}
        }
    }

    fn pop_namespace(&mut self) {
        match &mut self.sink {
            Sink::Rows(builder, Some(spans)) => spans.close(builder.rows(), self.aux),
            Sink::Watch(watcher) => watcher.close(),
            _ => {}
        }
    }

    fn get_root(&mut self) -> &mut Self::Root {
        self
    }
}

/// The entries of a linear combination: inputs, then auxiliary variables, each ascending. Bellperson has
/// merged repeated variables already, perhaps to a zero coefficient.
pub(super) fn entries(combination: &LinearCombination<Scalar>) -> impl Iterator<Item = (u32, &Scalar)> {
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
        let Recording { inputs, aux, builder, .. } = Synthesis::record(circuit, None, control)?;
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
