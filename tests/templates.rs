//! Templates of Filecoin's circuits are the recorded circuits: rows, densities, full-width positions, evaluations.

mod common;

use std::fs;
use std::time::{Duration, Instant};

use bellperson::Circuit;
use blstrs::Scalar;
use common::{fixture, SMALL};
use cuporep::pipeline::Control;
use cuporep::porep::{
    check, full_positions, gadget_of_row, templates, visit_blank_circuit, witness, C1Output, CheckedC1, CircuitCounts,
    CircuitVisitor, SectorSize,
};
use cuporep::r1cs::{Bitmap, Constraints, Matrix, PartitionWitness, R1cs, ShapeStore, Templates};
use ff::Field;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

const MATRICES: [Matrix; 3] = [Matrix::A, Matrix::B, Matrix::C];

/// The most bytes that the file of any size may have.
const MAX_FILE: u64 = 32 << 20;

struct Record;

impl CircuitVisitor for Record {
    type Output = R1cs;

    fn visit<C: Circuit<Scalar>>(self, circuit: C) -> R1cs {
        R1cs::record(circuit, &Control::new()).expect("recording")
    }
}

/// Compares every row with the circuit's while that is synthesized.
struct Difference<'a>(&'a Templates);

impl CircuitVisitor for Difference<'_> {
    type Output = Option<String>;

    fn visit<C: Circuit<Scalar>>(self, circuit: C) -> Option<String> {
        self.0.first_difference(circuit, &Control::new()).expect("synthesis")
    }
}

fn make(size: SectorSize) -> Templates {
    let begin = Instant::now();
    let templates = templates(size, &Control::new()).expect("templates");
    let (blocks, rows) = (templates.num_blocks(), templates.num_stored_rows());
    println!("{size}: made in {:?}; {blocks} blocks, {rows} rows stored; {}", begin.elapsed(), memory());
    templates
}

/// The most memory that the process ever held.
fn memory() -> String {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    status.lines().filter(|line| line.starts_with("VmHWM") || line.starts_with("VmRSS")).collect()
}

/// Writes, reads back, and looks at the length.
fn keep(size: SectorSize, templates: &Templates) {
    let directory = tempfile::tempdir().expect("directory");
    let store = ShapeStore::new(vec![directory.path().to_path_buf()]);
    assert!(store.keep("key", templates, &Control::new()).expect("storing"));
    let path = directory.path().join(ShapeStore::file_name::<Templates>("key"));
    let len = fs::metadata(path).expect("file").len();
    let begin = Instant::now();
    let loaded = store.load::<Templates>("key", &Control::new()).expect("loading").expect("stored templates");
    println!("{size}: file of {len} bytes, loaded in {:?}", begin.elapsed());
    assert!(loaded == *templates);
    assert!(len <= MAX_FILE, "{size}: {len}");
}

fn counts(system: &dyn Constraints) -> CircuitCounts {
    CircuitCounts {
        rows: system.num_rows(),
        inputs: system.num_inputs(),
        aux: system.num_aux(),
        domain_log: system.log_domain(),
        a_aux_density: system.a_aux_density().count_ones(),
        b_aux_density: system.b_aux_density().count_ones(),
    }
}

/// The evaluation, and the shortest of some times.
fn evaluate(system: &dyn Constraints, matrix: Matrix, witness: &PartitionWitness) -> (Vec<Scalar>, Duration) {
    let mut out = vec![Scalar::from(7); 1 << system.log_domain()];
    let mut time = || {
        let begin = Instant::now();
        system.evaluate(matrix, witness, &mut out, &Control::new()).expect("evaluation");
        begin.elapsed()
    };
    let shortest = (0..5).map(|_| time()).min().unwrap_or_default();
    (out, shortest)
}

/// Any values at all: evaluation needs no satisfied system.
fn random_witness(system: &dyn Constraints, seed: u64) -> PartitionWitness {
    let mut rng = StdRng::seed_from_u64(seed);
    let mut bits = Bitmap::zeros(system.num_aux());
    let full = system.full_positions();
    (0..system.num_aux()).filter(|_| rng.gen()).for_each(|index| bits.set(index));
    full.iter().for_each(|&position| bits.clear(position as usize));
    let mut scalars = |count: usize| (0..count).map(|_| Scalar::random(&mut rng)).collect::<Vec<_>>();
    let (mut inputs, full) = (scalars(system.num_inputs()), scalars(full.len()));
    inputs[0] = Scalar::ONE;
    PartitionWitness { inputs, bits, full }
}

fn checked(name: &str) -> CheckedC1 {
    let fixture = fixture(name);
    check(C1Output::decode(&fixture.c1).unwrap(), fixture.sector, fixture.miner, &Control::new()).unwrap()
}

/// Everything that can be compared at a size whose rows fit in memory.
fn compare(size: SectorSize, case: &str) {
    let templates = make(size);
    let r1cs = visit_blank_circuit(size, Record).unwrap();
    assert!(templates.expand(&Control::new()).expect("expansion") == r1cs);
    assert_eq!(visit_blank_circuit(size, Difference(&templates)).unwrap(), None);
    assert_eq!(counts(&templates), size.parameters().counts);
    assert_eq!(MATRICES.map(|matrix| templates.num_entries(matrix)), MATRICES.map(|matrix| r1cs.num_entries(matrix)));
    assert_eq!(templates.num_coefficients(), r1cs.num_coefficients());
    assert!(templates.a_aux_density() == r1cs.a_aux_density());
    assert!(templates.b_aux_density() == r1cs.b_aux_density());
    assert!(templates.b_input_density() == r1cs.b_input_density());
    assert!(templates.full_positions() == r1cs.full_positions());
    assert!(templates.full_positions() == full_positions(size).unwrap());
    keep(size, &templates);

    let control = Control::new();
    let real = witness(&checked(case), 0, templates.full_positions(), &control).unwrap();
    for (name, witness) in [("random", &random_witness(&r1cs, size as u64)), ("real", &real)] {
        for matrix in MATRICES {
            let (expected, by_rows) = evaluate(&r1cs, matrix, witness);
            let (found, by_templates) = evaluate(&templates, matrix, witness);
            println!("{size}: {matrix:?}, {name}: rows {by_rows:?}, templates {by_templates:?}");
            assert!(found == expected, "{size} {matrix:?} {name}");
        }
        let first = |system: &dyn Constraints| system.first_unsatisfied(witness, &control).expect("check");
        assert_eq!(first(&templates), first(&r1cs));
        assert_eq!(first(&templates).is_none(), name == "real");
    }
    // One wire at a time, in the head, at both ends of the blocks, and in between.
    let aux = templates.num_aux();
    for index in [10, 255, 1000, aux / 3, aux / 2, aux / 2 + 1, aux - 1000, aux - 1] {
        let mut wrong = real.clone();
        match templates.full_positions().binary_search(&(index as u32)) {
            Ok(position) => wrong.full[position] += Scalar::ONE,
            Err(_) if wrong.bits.get(index) => wrong.bits.clear(index),
            Err(_) => wrong.bits.set(index),
        }
        let found = templates.first_unsatisfied(&wrong, &control).expect("check");
        assert!(found.is_some(), "{size} {index}");
        assert_eq!(found, r1cs.first_unsatisfied(&wrong, &control).expect("check"), "{size} {index}");
    }
}

#[test]
fn templates_of_2_kib_are_the_recorded_circuit() {
    compare(SectorSize::KiB2, SMALL);
}

#[test]
fn templates_of_8_mib_are_the_recorded_circuit() {
    compare(SectorSize::MiB8, "StackedDrg8MiBV1_1-000");
}

#[test]
fn templates_of_512_mib_are_the_recorded_circuit() {
    compare(SectorSize::MiB512, "StackedDrg512MiBV1_1-fab-007");
}

#[test]
fn templates_of_another_size_differ_from_the_circuit() {
    let templates = make(SectorSize::KiB2);
    let difference = visit_blank_circuit(SectorSize::MiB8, Difference(&templates)).unwrap().expect("a difference");
    assert!(difference.contains("is another one"), "{difference}");
}

#[test]
fn rows_are_named_by_their_gadgets() {
    let control = Control::new();
    let name = |row| gadget_of_row(SectorSize::KiB2, row, &control).unwrap();
    assert!(name(0).starts_with("replica_id_input/"), "{}", name(0));
    let rows = SectorSize::KiB2.parameters().counts.rows;
    assert!(name(rows / 3).starts_with("challenge_0/"), "{}", name(rows / 3));
    assert!(name(rows - 41).starts_with("challenge_1/"), "{}", name(rows - 41));
    assert_eq!(name(rows - 1), "the appended row of input 39");
    let error = gadget_of_row(SectorSize::KiB2, rows, &control).unwrap_err();
    assert_eq!((error.code(), error.to_string().contains("row")), (100, true), "{error}");
}

#[test]
fn a_wrong_wire_leads_to_its_gadget() {
    let (size, control) = (SectorSize::KiB2, Control::new());
    let templates = make(size);
    let real = witness(&checked(SMALL), 0, templates.full_positions(), &control).unwrap();
    let gadget = |wrong: &PartitionWitness| {
        let row = templates.first_unsatisfied(wrong, &control).expect("check").expect("a broken row");
        gadget_of_row(size, row, &control).unwrap()
    };
    let mut wrong = real.clone();
    wrong.inputs[2] += Scalar::ONE;
    assert!(gadget(&wrong).starts_with("comm_d_input/"), "{}", gadget(&wrong));
    let mut wrong = real.clone();
    if wrong.bits.get(10) {
        wrong.bits.clear(10);
    } else {
        wrong.bits.set(10);
    }
    assert!(gadget(&wrong).starts_with("replica_id_bits/"), "{}", gadget(&wrong));
    let mut wrong = real;
    *wrong.full.last_mut().unwrap() += Scalar::ONE;
    assert!(gadget(&wrong).starts_with("challenge_1/"), "{}", gadget(&wrong));
}

#[test]
#[ignore = "takes a minute"]
fn the_last_rows_of_32_gib_are_named() {
    let counts = SectorSize::GiB32.parameters().counts;
    let begin = Instant::now();
    let name = gadget_of_row(SectorSize::GiB32, counts.rows - counts.inputs - 1, &Control::new()).unwrap();
    println!("{name} after {:?}", begin.elapsed());
    assert!(name.starts_with("challenge_17/"), "{name}");
}

/// Makes templates of a large size and compares all that is known without the rows.
fn compare_large(size: SectorSize) -> Templates {
    let templates = make(size);
    assert_eq!(counts(&templates), size.parameters().counts);
    assert!(templates.full_positions() == full_positions(size).unwrap());
    keep(size, &templates);
    println!("{size}: {} full-width positions; {}", templates.full_positions().len(), memory());
    templates
}

#[test]
#[ignore = "takes half a minute"]
fn templates_of_32_gib_have_the_known_counts_and_positions() {
    let templates = compare_large(SectorSize::GiB32);
    // The first with the appended row of each input.
    let entries = [309_404_723 + 328, 130_327_340, 282_656_500];
    assert_eq!(MATRICES.map(|matrix| templates.num_entries(matrix)), entries);
    assert_eq!(templates.num_coefficients(), 2_466);
    assert_eq!(templates.full_positions().len(), 1_699_102);
}

#[test]
#[ignore = "takes half a minute"]
fn templates_of_64_gib_have_the_known_counts_and_positions() {
    let templates = compare_large(SectorSize::GiB64);
    // The first with the appended row of each input.
    let entries = [311_892_197 + 328, 131_235_764, 284_512_534];
    assert_eq!(MATRICES.map(|matrix| templates.num_entries(matrix)), entries);
}

#[test]
#[ignore = "takes two minutes"]
fn templates_of_32_gib_are_the_circuit_row_by_row() {
    let templates = make(SectorSize::GiB32);
    let begin = Instant::now();
    assert_eq!(visit_blank_circuit(SectorSize::GiB32, Difference(&templates)).unwrap(), None);
    println!("compared in {:?}; {}", begin.elapsed(), memory());
}

#[test]
#[ignore = "needs 5 GiB and a minute"]
fn a_real_32_gib_witness_satisfies_the_templates_and_a_wrong_wire_does_not() {
    let (templates, control) = (make(SectorSize::GiB32), Control::new());
    let real = witness(&checked("StackedDrg32GiBV1_1-fab-001"), 0, templates.full_positions(), &control).unwrap();
    let begin = Instant::now();
    assert_eq!(templates.first_unsatisfied(&real, &control).expect("check"), None);
    println!("checked in {:?}", begin.elapsed());
    for matrix in [Matrix::A, Matrix::B] {
        let (_, time) = evaluate(&templates, matrix, &real);
        println!("evaluated {matrix:?} in {time:?}; {}", memory());
    }
    let mut wrong = real;
    *wrong.full.last_mut().unwrap() += Scalar::ONE;
    assert!(templates.first_unsatisfied(&wrong, &control).expect("check").is_some());
}
