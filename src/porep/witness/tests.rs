//! What the checks would refuse gives a witness that the circuit refuses.

use std::path::Path;

use bellperson::Circuit;

use super::*;
use crate::porep::c1::{MerkleProof, Node};
use crate::porep::{visit_blank_circuit, CircuitVisitor, SectorSize};
use crate::r1cs::R1cs;

struct Record;

impl CircuitVisitor for Record {
    type Output = R1cs;

    fn visit<C: Circuit<Scalar>>(self, circuit: C) -> R1cs {
        R1cs::record(circuit, &Control::new()).unwrap()
    }
}

fn c1() -> C1Output {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/StackedDrg2KiBV1_1-000/c1.json.xz");
    let mut json = Vec::new();
    lzma_rs::xz_decompress(&mut &std::fs::read(path).unwrap()[..], &mut json).unwrap();
    C1Output::decode(&json).unwrap()
}

/// Another field element.
fn alter(node: &mut Node) {
    node.0[3] ^= 0x10;
}

fn alter_sibling(path: &mut MerkleProof) {
    alter(&mut path.base.last_mut().unwrap().hashes[0]);
}

#[test]
fn a_c1_output_altered_behind_the_checks_gives_a_witness_that_the_circuit_refuses() {
    let control = Control::new();
    let r1cs = visit_blank_circuit(SectorSize::KiB2, Record).unwrap();
    let unsatisfied = |alter: &dyn Fn(&mut C1Output)| {
        let mut c1 = c1();
        alter(&mut c1);
        let witness = of_partition(&c1, 0, r1cs.full_positions(), &control).unwrap();
        r1cs.first_unsatisfied(&witness, &control).unwrap()
    };
    assert_eq!(unsatisfied(&|_| {}), None);
    let alterations: [&dyn Fn(&mut C1Output); 15] = [
        &|c1| alter(&mut c1.replica_id),
        &|c1| alter(&mut c1.comm_d),
        &|c1| alter(&mut c1.comm_r),
        &|c1| alter(&mut c1.vanilla_proofs[0][0].comm_r_last_proof.root),
        &|c1| alter(&mut c1.vanilla_proofs[0][0].c_x.inclusion_proof.root),
        &|c1| alter(&mut c1.vanilla_proofs[0][1].comm_d_proof.leaf),
        &|c1| alter_sibling(&mut c1.vanilla_proofs[0][1].comm_d_proof),
        &|c1| alter_sibling(&mut c1.vanilla_proofs[0][0].comm_r_last_proof),
        &|c1| alter_sibling(&mut c1.vanilla_proofs[0][1].c_x.inclusion_proof),
        &|c1| alter_sibling(&mut c1.vanilla_proofs[0][1].drg_parents[5].inclusion_proof),
        &|c1| alter_sibling(&mut c1.vanilla_proofs[0][0].exp_parents[7].inclusion_proof),
        &|c1| alter(&mut c1.vanilla_proofs[0][1].drg_parents[3].rows[0]),
        &|c1| alter(&mut c1.vanilla_proofs[0][0].exp_parents[0].rows[1]),
        &|c1| c1.vanilla_proofs[0][1].labeling_proofs[0].node ^= 1 << 40,
        &|c1| c1.vanilla_proofs[0][1].comm_r_last_proof.base[1].index ^= 1,
    ];
    for (i, alter) in (0..).zip(alterations) {
        assert!(unsatisfied(alter).is_some(), "alteration {i}");
    }
}

#[test]
fn elements_that_are_no_field_elements_and_missing_parts_are_internal_errors() {
    let control = Control::new();
    let positions = full_positions(SectorSize::KiB2).unwrap();
    let alterations: [&dyn Fn(&mut C1Output); 6] = [
        &|c1| c1.replica_id = Node([0xff; 32]),
        &|c1| c1.vanilla_proofs[0][1].drg_parents[0].rows[1] = Node([0xff; 32]),
        &|c1| c1.vanilla_proofs[0][0].labeling_proofs.clear(),
        &|c1| c1.vanilla_proofs[0][0].exp_parents[4].rows.clear(),
        &|c1| c1.vanilla_proofs[0][1].comm_d_proof.base.truncate(3),
        &|c1| c1.vanilla_proofs[0].truncate(1),
    ];
    for (i, alter) in (0..).zip(alterations) {
        let mut c1 = c1();
        alter(&mut c1);
        let error = of_partition(&c1, 0, &positions, &control).unwrap_err();
        assert_eq!(error.code(), 500, "{i}: {error}");
    }
}
