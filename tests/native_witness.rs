//! The witness that is written straight from a C1 output is the one that the real circuit synthesizes, wire by wire.

mod common;

use std::time::{Duration, Instant};

use bellperson::{Circuit, ConstraintSystem, Index, LinearCombination, SynthesisError, Variable};
use blstrs::Scalar;
use common::{fixture, forget_peak, memory, CASES, SMALL};
use cuporep::pipeline::{CancelToken, Control};
use cuporep::porep::{
    check, fabricate, full_positions, public_inputs, visit_blank_circuit, visit_partition_circuit, witness, C1Output,
    CheckedC1, CircuitVisitor, Fabrication, ProofKind, RegisteredProof, SectorSize,
};
use cuporep::r1cs::{PartitionWitness, R1cs};
use ff::Field;

/// How many differences are listed.
const LISTED: usize = 5;

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
            if self.names.is_some() && self.differences.len() == LISTED {
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

/// Compares all partitions of the cases of one size with the real circuit, and the last one's constraints.
fn compare_cases(size: SectorSize, cases: &[CheckedC1]) {
    let control = Control::new();
    let r1cs = visit_blank_circuit(size, Record).unwrap();
    assert!(full_positions(size).unwrap() == r1cs.full_positions());
    for checked in cases {
        let name = format!("{} of sector {}", checked.registered_proof(), checked.sector());
        let partitions = checked.registered_proof().partitions();
        for partition in 0..partitions {
            let begin = Instant::now();
            let native = witness(checked, partition, r1cs.full_positions(), &control).unwrap();
            let time = begin.elapsed();
            let circuit = compare(checked, partition, &native, r1cs.full_positions());
            println!("{name} {partition}: {time:?}; the circuit takes {circuit:?}");
            if partition == partitions - 1 {
                let begin = Instant::now();
                let assigned = visit_partition_circuit(checked, partition, Assign(&r1cs)).unwrap();
                println!("{name} {partition}: packed by way of the circuit {:?}", begin.elapsed());
                assert!(native == assigned, "{name}");
                assert_eq!(r1cs.first_unsatisfied(&native, &control).unwrap(), None, "{name}");
            }
        }
    }
}

#[test]
fn every_wire_of_every_2kib_case_is_the_real_circuits() {
    let cases: Vec<CheckedC1> = CASES.into_iter().filter(|name| name.contains("2KiB")).map(checked).collect();
    assert_eq!(cases.len(), 7);
    compare_cases(SectorSize::KiB2, &cases);
}

#[test]
fn every_wire_of_the_8mib_case_is_the_real_circuits() {
    compare_cases(SectorSize::MiB8, &[checked("StackedDrg8MiBV1_1-000")]);
}

#[test]
fn every_wire_of_the_512mib_case_and_of_a_fabricated_one_is_the_real_circuits() {
    let control = Control::new();
    let proof = RegisteredProof::new(SectorSize::MiB512, ProofKind::V1);
    let fabricated = fabricate(&Fabrication::new(proof, 1), &control).unwrap();
    let fabricated = check(fabricated.c1, fabricated.sector, fabricated.miner, &control).unwrap();
    compare_cases(SectorSize::MiB512, &[checked("StackedDrg512MiBV1_1-fab-007"), fabricated]);
}

#[test]
#[ignore = "takes minutes: synthesizes two 32 GiB partitions gadget by gadget"]
fn every_wire_of_32_gib_partitions_is_the_real_circuits() {
    const MOST_MEMORY: u64 = 100 << 20;
    let control = Control::new();
    let checked = checked("StackedDrg32GiBV1_1-fab-001");
    let begin = Instant::now();
    let positions = full_positions(SectorSize::GiB32).unwrap();
    println!("{} full-width positions in {:?}", positions.len(), begin.elapsed());
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    for partition in [0, 7] {
        let before = memory("VmRSS");
        forget_peak();
        let begin = Instant::now();
        let native = pool.install(|| witness(&checked, partition, &positions, &control)).unwrap();
        let time = begin.elapsed();
        let used = memory("VmHWM") - before;
        let circuit = compare(&checked, partition, &native, &positions);
        let ratio = circuit.as_secs_f64() / time.as_secs_f64();
        println!(
            "partition {partition}: {time:?} of one core, {used} bytes; the circuit {circuit:?}, {ratio:.0} times"
        );
        assert!(used <= MOST_MEMORY, "{used} bytes");
    }
}

#[test]
fn the_comparison_finds_a_wrong_bit_a_wrong_element_and_a_wrong_input_and_names_the_gadget() {
    let checked = checked(SMALL);
    let positions = full_positions(SectorSize::KiB2).unwrap();
    let mut wrong = witness(&checked, 0, &positions, &Control::new()).unwrap();
    let last = wrong.full.len() - 1;
    wrong.full[last] += Scalar::ONE;
    wrong.inputs[20] += Scalar::ONE;
    let bit = (2_000_000..).find(|&index| wrong.bits.get(index)).unwrap();
    wrong.bits.clear(bit);
    let mut compare = Compare::new(&wrong, &positions, true);
    visit_partition_circuit(&checked, 0, &mut compare).unwrap().unwrap();
    let found: Vec<&str> = compare.differences.iter().map(String::as_str).collect();
    let expected = ["input 20 ", &format!("variable {bit} "), &format!("variable {} ", positions[last])];
    assert_eq!(found.len(), expected.len(), "{found:?}");
    for expected in expected {
        assert!(found.iter().any(|found| found.starts_with(expected) && found.contains("challenge_")), "{found:?}");
    }
}

#[test]
fn positions_of_another_circuit_are_internal_errors_and_more_full_width_ones_are_followed() {
    let control = Control::new();
    let checked = checked(SMALL);
    let positions = full_positions(SectorSize::KiB2).unwrap();
    let native = witness(&checked, 0, &positions, &control).unwrap();
    for wrong in [
        &full_positions(SectorSize::MiB8).unwrap()[..],
        &full_positions(SectorSize::GiB32).unwrap(),
        &[],
        &positions[1..],
        &positions[..positions.len() - 1],
        &positions.iter().rev().copied().collect::<Vec<_>>(),
    ] {
        let error = witness(&checked, 0, wrong, &control).unwrap_err();
        assert_eq!(error.code(), 500, "{error}");
    }
    // A bit may stand at a full-width position: the second variable, the replica id's lowest bit.
    assert_eq!(positions[..2], [0, 256]);
    let mut more = positions.clone();
    more.insert(1, 1);
    let other = witness(&checked, 0, &more, &control).unwrap();
    assert_eq!(other.full[1], Scalar::from(u64::from(native.bits.get(1))));
    assert!(other.full[0] == native.full[0] && other.full[2..] == native.full[1..] && !other.bits.get(1));
    assert_eq!(other.bits.count_ones() + usize::from(native.bits.get(1)), native.bits.count_ones());
}

#[test]
fn a_partition_out_of_range_is_the_argument_at_fault_and_a_cancelled_call_stops() {
    let checked = checked(SMALL);
    let positions = full_positions(SectorSize::KiB2).unwrap();
    let error = witness(&checked, 1, &positions, &Control::new()).unwrap_err();
    assert_eq!((error.code(), error.to_string().contains("partition")), (100, true), "{error}");
    let token = CancelToken::new();
    token.cancel();
    let error = witness(&checked, 0, &positions, &Control::new().with_cancel(token)).unwrap_err();
    assert_eq!(error.code(), 400);
}
