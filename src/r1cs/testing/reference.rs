//! The slow, obvious way of bellperson's own prover, to compare with. Also included by tests outside the crate.

use bellperson::{Circuit, ConstraintSystem, Index, LinearCombination, SynthesisError, Variable};
use blstrs::Scalar;
use ff::Field;

/// What bellperson's prover computes while it synthesizes: values, evaluations and densities.
#[derive(Default)]
pub struct Reference {
    pub inputs: Vec<Scalar>,
    pub aux: Vec<Scalar>,
    pub evaluations: [Vec<Scalar>; 3],
    pub a_aux: Vec<bool>,
    pub b_input: Vec<bool>,
    pub b_aux: Vec<bool>,
}

impl Reference {
    pub fn of(circuit: impl Circuit<Scalar>) -> Self {
        let mut reference = Reference::default();
        reference.alloc_input(|| "", || Ok(Scalar::ONE)).expect("ONE");
        circuit.synthesize(&mut reference).expect("synthesis");
        for input in 0..reference.inputs.len() {
            reference.enforce(|| "", |lc| lc + Variable(Index::Input(input)), |lc| lc, |lc| lc);
        }
        reference
    }
}

impl ConstraintSystem<Scalar> for Reference {
    type Root = Self;

    fn alloc<F, A, AR>(&mut self, _: A, value: F) -> Result<Variable, SynthesisError>
    where
        F: FnOnce() -> Result<Scalar, SynthesisError>,
        A: FnOnce() -> AR,
        AR: Into<String>,
    {
        self.aux.push(value()?);
        self.a_aux.push(false);
        self.b_aux.push(false);
        Ok(Variable(Index::Aux(self.aux.len() - 1)))
    }

    fn alloc_input<F, A, AR>(&mut self, _: A, value: F) -> Result<Variable, SynthesisError>
    where
        F: FnOnce() -> Result<Scalar, SynthesisError>,
        A: FnOnce() -> AR,
        AR: Into<String>,
    {
        self.inputs.push(value()?);
        self.b_input.push(false);
        Ok(Variable(Index::Input(self.inputs.len() - 1)))
    }

    fn enforce<A, AR, LA, LB, LC>(&mut self, _: A, a: LA, b: LB, c: LC)
    where
        A: FnOnce() -> AR,
        AR: Into<String>,
        LA: FnOnce(LinearCombination<Scalar>) -> LinearCombination<Scalar>,
        LB: FnOnce(LinearCombination<Scalar>) -> LinearCombination<Scalar>,
        LC: FnOnce(LinearCombination<Scalar>) -> LinearCombination<Scalar>,
    {
        let sides = [a(LinearCombination::zero()), b(LinearCombination::zero()), c(LinearCombination::zero())];
        for (evaluations, side) in self.evaluations.iter_mut().zip(&sides) {
            evaluations.push(side.eval(&self.inputs, &self.aux));
        }
        let occurs = |coefficient: &Scalar| *coefficient != Scalar::ZERO;
        for (&index, _) in sides[0].iter_aux().filter(|entry| occurs(entry.1)) {
            self.a_aux[index] = true;
        }
        for (&index, _) in sides[1].iter_inputs().filter(|entry| occurs(entry.1)) {
            self.b_input[index] = true;
        }
        for (&index, _) in sides[1].iter_aux().filter(|entry| occurs(entry.1)) {
            self.b_aux[index] = true;
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
