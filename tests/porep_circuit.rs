//! The circuits have the counts of the official parameters, and checked data satisfies them with the verifier's inputs.

mod common;

use bellperson::{Circuit, ConstraintSystem, Index, LinearCombination, SynthesisError, Variable};
use blstrs::Scalar;
use common::{fixture, SMALL};
use cuporep::pipeline::Control;
use cuporep::porep::{
    check, public_inputs, public_inputs_for, visit_blank_circuit, visit_partition_circuit, C1Output, CheckedC1,
    CircuitCounts, CircuitVisitor, RegisteredProof, SectorSize,
};
use ff::Field;

/// Counts as bellperson's key generator does; with values, evaluates every constraint.
struct Counter {
    values: Option<(Vec<Scalar>, Vec<Scalar>)>,
    inputs: usize,
    rows: usize,
    a_aux: Vec<bool>,
    b_aux: Vec<bool>,
    unsatisfied: usize,
}

impl Counter {
    fn evaluate(&self, combination: &LinearCombination<Scalar>) -> Scalar {
        let (inputs, aux) = self.values.as_ref().unwrap();
        combination
            .iter()
            .map(|(Variable(index), coefficient)| match index {
                Index::Input(i) => inputs[i] * coefficient,
                Index::Aux(i) => aux[i] * coefficient,
            })
            .sum()
    }
}

fn mark(density: &mut [bool], combination: &LinearCombination<Scalar>) {
    for (&i, coefficient) in combination.iter_aux() {
        density[i] |= !coefficient.is_zero_vartime();
    }
}

impl ConstraintSystem<Scalar> for Counter {
    type Root = Self;

    fn alloc<F, A, AR>(&mut self, _: A, value: F) -> Result<Variable, SynthesisError>
    where
        F: FnOnce() -> Result<Scalar, SynthesisError>,
        A: FnOnce() -> AR,
        AR: Into<String>,
    {
        if let Some((_, aux)) = &mut self.values {
            aux.push(value()?);
        }
        self.a_aux.push(false);
        self.b_aux.push(false);
        Ok(Variable(Index::Aux(self.a_aux.len() - 1)))
    }

    fn alloc_input<F, A, AR>(&mut self, _: A, value: F) -> Result<Variable, SynthesisError>
    where
        F: FnOnce() -> Result<Scalar, SynthesisError>,
        A: FnOnce() -> AR,
        AR: Into<String>,
    {
        if let Some((inputs, _)) = &mut self.values {
            inputs.push(value()?);
        }
        self.inputs += 1;
        Ok(Variable(Index::Input(self.inputs - 1)))
    }

    fn enforce<A, AR, LA, LB, LC>(&mut self, _: A, a: LA, b: LB, c: LC)
    where
        A: FnOnce() -> AR,
        AR: Into<String>,
        LA: FnOnce(LinearCombination<Scalar>) -> LinearCombination<Scalar>,
        LB: FnOnce(LinearCombination<Scalar>) -> LinearCombination<Scalar>,
        LC: FnOnce(LinearCombination<Scalar>) -> LinearCombination<Scalar>,
    {
        let (a, b, c) = (a(LinearCombination::zero()), b(LinearCombination::zero()), c(LinearCombination::zero()));
        self.rows += 1;
        mark(&mut self.a_aux, &a);
        mark(&mut self.b_aux, &b);
        if self.values.is_some() && self.evaluate(&a) * self.evaluate(&b) != self.evaluate(&c) {
            self.unsatisfied += 1;
        }
    }

    fn push_namespace<NR: Into<String>, N: FnOnce() -> NR>(&mut self, _: N) {}

    fn pop_namespace(&mut self) {}

    fn get_root(&mut self) -> &mut Self {
        self
    }
}

/// Synthesizes into a [`Counter`].
struct Synthesize {
    with_values: bool,
}

impl CircuitVisitor for Synthesize {
    type Output = Counter;

    fn visit<C: Circuit<Scalar>>(self, circuit: C) -> Counter {
        let mut counter = Counter {
            values: self.with_values.then(|| (vec![Scalar::ONE], Vec::new())),
            inputs: 1,
            rows: 0,
            a_aux: Vec::new(),
            b_aux: Vec::new(),
            unsatisfied: 0,
        };
        circuit.synthesize(&mut counter).unwrap();
        counter
    }
}

impl Counter {
    fn counts(&self) -> CircuitCounts {
        let rows = self.rows + self.inputs;
        let count = |density: &[bool]| density.iter().filter(|&&used| used).count();
        CircuitCounts {
            rows,
            inputs: self.inputs,
            aux: self.a_aux.len(),
            domain_log: rows.next_power_of_two().trailing_zeros(),
            a_aux_density: count(&self.a_aux),
            b_aux_density: count(&self.b_aux),
        }
    }
}

fn checked(name: &str) -> CheckedC1 {
    let fixture = fixture(name);
    check(C1Output::decode(&fixture.c1).unwrap(), fixture.sector, fixture.miner, &Control::new()).unwrap()
}

#[test]
fn blank_circuits_have_the_counts_of_the_official_parameters() {
    for size in [SectorSize::KiB2, SectorSize::MiB8, SectorSize::MiB512] {
        let counter = visit_blank_circuit(size, Synthesize { with_values: false }).unwrap();
        assert_eq!(counter.counts(), size.parameters().counts, "{size}");
    }
}

#[test]
fn every_kind_of_checked_output_satisfies_its_circuit_with_the_verifiers_inputs() {
    for name in [
        "StackedDrg2KiBV1-000",
        SMALL,
        "StackedDrg2KiBV1_1_Feat_SyntheticPoRep-000",
        "StackedDrg2KiBV1_2_Feat_NonInteractivePoRep-000",
        "StackedDrg8MiBV1_1-000",
        "StackedDrg512MiBV1_1-fab-007",
    ] {
        let checked = checked(name);
        let partition = checked.registered_proof().partitions() - 1;
        let counter = visit_partition_circuit(&checked, partition, Synthesize { with_values: true }).unwrap();
        assert_eq!(counter.unsatisfied, 0, "{name}");
        assert_eq!(counter.counts(), checked.registered_proof().size.parameters().counts, "{name}");
        let (inputs, _) = counter.values.unwrap();
        assert_eq!(inputs[1..], public_inputs(&checked, partition).unwrap(), "{name}");
    }
}

#[test]
fn a_32_gib_partition_makes_a_circuit_and_its_inputs() {
    struct Reached;
    impl CircuitVisitor for Reached {
        type Output = bool;
        fn visit<C: Circuit<Scalar>>(self, _: C) -> bool {
            true
        }
    }
    let checked = checked("StackedDrg32GiBV1_1-fab-001");
    let counts = SectorSize::GiB32.parameters().counts;
    for partition in 0..10 {
        assert!(visit_partition_circuit(&checked, partition, Reached).unwrap());
        assert_eq!(public_inputs(&checked, partition).unwrap().len() + 1, counts.inputs);
    }
    assert!(visit_blank_circuit(SectorSize::GiB32, Reached).unwrap());
    assert!(visit_blank_circuit(SectorSize::GiB64, Reached).unwrap());
}

#[test]
fn partitions_out_of_range_and_foreign_elements_are_arguments_at_fault() {
    let checked = checked(SMALL);
    let error = public_inputs(&checked, 1).unwrap_err();
    assert_eq!((error.code(), error.to_string().contains("partition")), (100, true), "{error}");
    let error = visit_partition_circuit(&checked, 1, Synthesize { with_values: true }).err().unwrap();
    assert_eq!(error.code(), 100, "{error}");
    let proof = RegisteredProof::from_name("StackedDrg64GiBV1_2_Feat_NonInteractivePoRep").unwrap();
    let (one, large) = ([1; 32], [0xff; 32]);
    assert_eq!(public_inputs_for(proof, one, one, one, one, 125).unwrap().len(), 327);
    for (comm_r, comm_d, replica_id, name) in
        [(large, one, one, "comm_r"), (one, large, one, "comm_d"), (one, one, large, "replica_id")]
    {
        let error = public_inputs_for(proof, comm_r, comm_d, replica_id, one, 0).unwrap_err();
        assert_eq!((error.code(), error.to_string().contains(name)), (100, true), "{error}");
    }
}
