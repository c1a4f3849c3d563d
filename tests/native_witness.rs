//! The witness that is written straight from a C1 output is the one that the real circuit synthesizes, wire by wire.

mod common;

use std::time::{Duration, Instant};

use bellperson::{Circuit, ConstraintSystem, Index, LinearCombination, SynthesisError, Variable};
use blstrs::Scalar;
use common::{fixture, CASES, SMALL};
use cuporep::pipeline::{CancelToken, Control};
use cuporep::porep::{
    check, full_positions, public_inputs, visit_blank_circuit, visit_partition_circuit, witness, C1Output, CheckedC1,
    CircuitVisitor, SectorSize,
};
use cuporep::r1cs::{PartitionWitness, R1cs};
use ff::Field;

/// Compares each variable that a circuit allocates with a packed witness, and keeps nothing.
struct Compare<'a> {
    witness: &'a PartitionWitness,
    positions: &'a [u32],
    inputs: usize,
    aux: usize,
    full: usize,
    /// The first variables that differ.
    differences: Vec<String>,
    /// The names of the enclosing gadgets, kept when a difference is to be explained.
    names: Option<Vec<String>>,
}

impl<'a> Compare<'a> {
    fn new(witness: &'a PartitionWitness, positions: &'a [u32], with_names: bool) -> Self {
        let (differences, names) = (Vec::new(), with_names.then(Vec::new));
        Compare { witness, positions, inputs: 1, aux: 0, full: 0, differences, names }
    }

    /// The witness's value of the next auxiliary variable.
    fn packed(&mut self) -> Option<Scalar> {
        if self.positions.get(self.full).is_some_and(|&position| position as usize == self.aux) {
            self.full += 1;
            return self.witness.full.get(self.full - 1).copied();
        }
        let inside = self.aux < self.witness.bits.len();
        inside.then(|| if self.witness.bits.get(self.aux) { Scalar::ONE } else { Scalar::ZERO })
    }

    fn differ(&mut self, what: String, value: Scalar, packed: Option<Scalar>) {
        const LISTED: usize = 5;
        if self.differences.len() < LISTED {
            let place = self.names.as_ref().map(|names| names.join("/")).unwrap_or_default();
            self.differences.push(format!("{what} {place}: {value:?} in the circuit, {packed:?} in the witness"));
        }
    }
}

impl ConstraintSystem<Scalar> for Compare<'_> {
    type Root = Self;

    fn alloc<F, A, AR>(&mut self, _: A, value: F) -> Result<Variable, SynthesisError>
    where
        F: FnOnce() -> Result<Scalar, SynthesisError>,
        A: FnOnce() -> AR,
        AR: Into<String>,
    {
        let (value, packed) = (value()?, self.packed());
        if packed != Some(value) {
            self.differ(format!("variable {}", self.aux), value, packed);
            if self.names.is_some() && self.differences.len() == 5 {
                return Err(SynthesisError::Unsatisfiable);
            }
        }
        self.aux += 1;
        Ok(Variable(Index::Aux(self.aux - 1)))
    }

    fn alloc_input<F, A, AR>(&mut self, _: A, value: F) -> Result<Variable, SynthesisError>
    where
        F: FnOnce() -> Result<Scalar, SynthesisError>,
        A: FnOnce() -> AR,
        AR: Into<String>,
    {
        let (value, packed) = (value()?, self.witness.inputs.get(self.inputs).copied());
        if packed != Some(value) {
            self.differ(format!("input {}", self.inputs), value, packed);
        }
        self.inputs += 1;
        Ok(Variable(Index::Input(self.inputs - 1)))
    }

    fn enforce<A, AR, LA, LB, LC>(&mut self, _: A, _: LA, _: LB, _: LC)
    where
        A: FnOnce() -> AR,
        AR: Into<String>,
        LA: FnOnce(LinearCombination<Scalar>) -> LinearCombination<Scalar>,
        LB: FnOnce(LinearCombination<Scalar>) -> LinearCombination<Scalar>,
        LC: FnOnce(LinearCombination<Scalar>) -> LinearCombination<Scalar>,
    {
    }

    fn push_namespace<NR: Into<String>, N: FnOnce() -> NR>(&mut self, name: N) {
        if let Some(names) = &mut self.names {
            names.push(name().into());
        }
    }

    fn pop_namespace(&mut self) {
        if let Some(names) = &mut self.names {
            names.pop();
        }
    }

    fn get_root(&mut self) -> &mut Self {
        self
    }
}

impl CircuitVisitor for &mut Compare<'_> {
    type Output = Result<(), SynthesisError>;

    fn visit<C: Circuit<Scalar>>(self, circuit: C) -> Self::Output {
        circuit.synthesize(self)
    }
}

struct Record;

impl CircuitVisitor for Record {
    type Output = R1cs;

    fn visit<C: Circuit<Scalar>>(self, circuit: C) -> R1cs {
        R1cs::record(circuit, &Control::new()).unwrap()
    }
}

struct Assign<'a>(&'a R1cs);

impl CircuitVisitor for Assign<'_> {
    type Output = PartitionWitness;

    fn visit<C: Circuit<Scalar>>(self, circuit: C) -> PartitionWitness {
        self.0.assign(circuit, &Control::new()).unwrap()
    }
}

fn checked(name: &str) -> CheckedC1 {
    let fixture = fixture(name);
    check(C1Output::decode(&fixture.c1).unwrap(), fixture.sector, fixture.miner, &Control::new()).unwrap()
}

/// Runs the real circuit beside the witness and returns the time of its synthesis.
fn compare(checked: &CheckedC1, partition: usize, witness: &PartitionWitness, positions: &[u32]) -> Duration {
    let begin = Instant::now();
    let mut plain = Compare::new(witness, positions, false);
    visit_partition_circuit(checked, partition, &mut plain).unwrap().unwrap();
    let time = begin.elapsed();
    let counts = (plain.inputs, plain.aux, plain.full);
    if !plain.differences.is_empty() {
        let mut named = Compare::new(witness, positions, true);
        let _ = visit_partition_circuit(checked, partition, &mut named).unwrap();
        panic!("partition {partition}: {:#?}", named.differences);
    }
    assert_eq!(counts, (witness.inputs.len(), witness.bits.len(), witness.full.len()));
    assert_eq!(witness.inputs[0], Scalar::ONE);
    assert_eq!(witness.inputs[1..], public_inputs(checked, partition).unwrap(), "partition {partition}");
    time
}

#[test]
fn every_wire_of_every_small_case_is_that_of_the_real_circuit() {
    let control = Control::new();
    let mut recorded: Option<(SectorSize, R1cs)> = None;
    for name in CASES.into_iter().filter(|name| !name.contains("32GiB")) {
        let checked = checked(name);
        let size = checked.registered_proof().size;
        if recorded.as_ref().is_none_or(|&(recorded, _)| recorded != size) {
            recorded = None;
            let r1cs = visit_blank_circuit(size, Record).unwrap();
            assert!(full_positions(size).unwrap() == r1cs.full_positions(), "{size}");
            recorded = Some((size, r1cs));
        }
        let (_, r1cs) = recorded.as_ref().unwrap();
        for partition in 0..checked.registered_proof().partitions() {
            let begin = Instant::now();
            let native = witness(&checked, partition, r1cs.full_positions(), &control).unwrap();
            let time = begin.elapsed();
            let generic = compare(&checked, partition, &native, r1cs.full_positions());
            println!("{name} {partition}: native {time:?}, circuit {generic:?}");
        }
        let last = checked.registered_proof().partitions() - 1;
        let native = witness(&checked, last, r1cs.full_positions(), &control).unwrap();
        assert!(native == visit_partition_circuit(&checked, last, Assign(r1cs)).unwrap(), "{name}");
        assert_eq!(r1cs.first_unsatisfied(&native, &control).unwrap(), None, "{name}");
    }
}
