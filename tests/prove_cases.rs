//! Real sectors, from the C1 bytes to verified proof bytes, with the parameters of seed 1. For fixed
//! randomness the bytes must be those that bellperson gives; the public verifier must accept them.

mod common;

use bellperson::groth16;
use blstrs::{Bls12, Scalar};
use common::{fixture, placement, prover, test_parameters, Fixture};
use cuporep::groth16::PROOF_BYTES;
use cuporep::pipeline::{CancelToken, Control, Event, Stage};
use cuporep::porep::SectorSize;
use cuporep::{Class, Error, ProveRequest, Result, SealProof};
use filecoin_proofs_api::{seal, RegisteredSealProof, SectorId};

const RANDOMNESS: &str = "123456789abcdef0,0fedcba987654321";

fn request<'a>(case: &'a Fixture, size: SectorSize) -> ProveRequest<'a> {
    ProveRequest {
        c1: &case.c1,
        sector: case.sector,
        miner: Some(case.miner),
        parameter_dir: Some(test_parameters(size).to_path_buf()),
        placement: placement(),
        fixed_randomness: Some(RANDOMNESS.parse().unwrap()),
        control: Control::new(),
    }
}

fn prove(case: &Fixture, size: SectorSize) -> Result<SealProof> {
    prover().prove(&request(case, size))
}

fn public_proof_type(case: &Fixture) -> RegisteredSealProof {
    serde_json::from_value(case.registered_proof.clone().into()).unwrap()
}

/// Where storage-proofs looks for verifying keys; it keeps the first that it finds for each size.
fn point_storage_proofs_at(size: SectorSize) {
    std::env::set_var(cuporep::environment::PARAMETER_DIR_VARIABLE, test_parameters(size));
}

fn accepted_by_verify_seal(case: &Fixture, proof: &[u8]) -> bool {
    seal::verify_seal(
        public_proof_type(case),
        case.comm_r,
        case.comm_d,
        case.prover_id,
        SectorId::from(case.sector),
        case.ticket,
        case.seed,
        proof,
    )
    .unwrap()
}

fn assert_expected_proof(name: &str, size: SectorSize) {
    point_storage_proofs_at(size);
    let case = fixture(name);
    let proof = prove(&case, size).unwrap();
    assert_eq!(hex::encode(&proof.bytes), hex::encode(&case.proof), "{name}");
    assert!(proof.insecure_parameters);
    assert!(accepted_by_verify_seal(&case, &proof.bytes), "{name}");
    let mut altered = proof.bytes;
    altered.swap(0, PROOF_BYTES - 1);
    assert!(prover()
        .verify(
            &prover().check(&case.c1, case.sector, case.miner, &Control::new()).unwrap(),
            &altered,
            test_parameters(size),
            &Control::new()
        )
        .is_err());
}

#[test]
fn v1_2kib_equals_the_expected_bytes() {
    assert_expected_proof("StackedDrg2KiBV1-000", SectorSize::KiB2);
}

#[test]
fn v1_1_2kib_with_random_data_equals_the_expected_bytes() {
    assert_expected_proof("StackedDrg2KiBV1_1-000", SectorSize::KiB2);
}

#[test]
fn v1_1_2kib_with_zero_data_equals_the_expected_bytes() {
    assert_expected_proof("StackedDrg2KiBV1_1-001", SectorSize::KiB2);
}

#[test]
fn v1_1_2kib_with_two_pieces_equals_the_expected_bytes() {
    assert_expected_proof("StackedDrg2KiBV1_1-002", SectorSize::KiB2);
}

#[test]
fn v1_1_2kib_of_another_miner_equals_the_expected_bytes() {
    assert_expected_proof("StackedDrg2KiBV1_1-003", SectorSize::KiB2);
}

#[test]
fn synthetic_2kib_equals_the_expected_bytes() {
    assert_expected_proof("StackedDrg2KiBV1_1_Feat_SyntheticPoRep-000", SectorSize::KiB2);
}

#[test]
fn v1_1_8mib_equals_the_expected_bytes() {
    assert_expected_proof("StackedDrg8MiBV1_1-000", SectorSize::MiB8);
}

#[test]
#[ignore = "makes 2 GB of parameters, a few minutes"]
fn v1_1_512mib_fabricated_equals_the_expected_bytes() {
    assert_expected_proof("StackedDrg512MiBV1_1-fab-007", SectorSize::MiB512);
}

#[test]
fn non_interactive_2kib_gives_the_expected_circuit_proofs() {
    let case = fixture("StackedDrg2KiBV1_2_Feat_NonInteractivePoRep-000");
    let proof = prove(&case, SectorSize::KiB2).unwrap();
    assert_eq!(proof.bytes.len(), 13 * PROOF_BYTES);
    assert_eq!(hex::encode(&proof.bytes), hex::encode(&case.proof));
    let vk = groth16::VerifyingKey::<Bls12>::read(&mut case.vk.as_slice()).unwrap();
    let vk = groth16::prepare_verifying_key(&vk);
    let inputs: Vec<Vec<Scalar>> = seal::get_seal_inputs(
        public_proof_type(&case),
        case.comm_r,
        case.comm_d,
        case.prover_id,
        SectorId::from(case.sector),
        case.ticket,
        case.seed,
    )
    .unwrap();
    assert_eq!(inputs.len(), 13);
    for (bytes, inputs) in proof.bytes.chunks(PROOF_BYTES).zip(&inputs) {
        let proof = groth16::Proof::<Bls12>::read(bytes).unwrap();
        assert!(groth16::verify_proof(&vk, &proof, inputs).unwrap());
    }
}

#[test]
fn verifying_keys_are_those_of_the_expected_proofs() {
    for (name, size) in [("StackedDrg2KiBV1_1-000", SectorSize::KiB2), ("StackedDrg8MiBV1_1-000", SectorSize::MiB8)] {
        let path = test_parameters(size).join(size.parameters().vk_name());
        assert_eq!(std::fs::read(path).unwrap(), fixture(name).vk, "{name}");
    }
}

#[test]
fn fresh_randomness_gives_different_proofs_that_both_verify() {
    point_storage_proofs_at(SectorSize::KiB2);
    let case = fixture("StackedDrg2KiBV1_1-000");
    let proofs: Vec<SealProof> = (0..2)
        .map(|_| prover().prove(&ProveRequest { fixed_randomness: None, ..request(&case, SectorSize::KiB2) }).unwrap())
        .collect();
    assert_ne!(proofs[0].bytes, proofs[1].bytes);
    for proof in &proofs {
        assert!(accepted_by_verify_seal(&case, &proof.bytes));
    }
}

#[test]
fn a_proof_cancelled_in_any_stage_ends_soon_and_the_next_one_works() {
    let case = fixture("StackedDrg2KiBV1_1-000");
    for stage in [Stage::Check, Stage::Witness, Stage::Evaluate, Stage::Transform, Stage::SumH, Stage::SumB2] {
        let token = CancelToken::new();
        let at_stage = token.clone();
        let cancelled_at = std::sync::Arc::new(parking_lot::Mutex::new(None));
        let noted = cancelled_at.clone();
        let control = Control::new().with_cancel(token).with_progress(move |event: &Event| {
            if event.stage == stage && event.elapsed.is_none() {
                at_stage.cancel();
                *noted.lock() = Some(std::time::Instant::now());
            }
        });
        let error = prover().prove(&ProveRequest { control, ..request(&case, SectorSize::KiB2) }).unwrap_err();
        assert_eq!(error.class(), Class::Cancelled, "{stage}: {error}");
        let waited = cancelled_at.lock().expect("the stage was reached").elapsed();
        // The bound for a caller is half a second on two free cores; the tests share theirs.
        assert!(waited.as_millis() < 2000, "{stage}: {waited:?}");
    }
    assert_eq!(prove(&case, SectorSize::KiB2).unwrap().bytes, case.proof);
}

#[test]
fn a_deadline_in_the_past_is_refused_at_once() {
    let case = fixture("StackedDrg2KiBV1_1-000");
    let control = Control::new().with_deadline(std::time::Instant::now());
    let error = prover().prove(&ProveRequest { control, ..request(&case, SectorSize::KiB2) }).unwrap_err();
    assert!(matches!(error, Error::Deadline { .. }), "{error}");
}

#[test]
fn what_does_not_fit_into_memory_is_refused_with_the_figures() {
    let case = fixture("StackedDrg2KiBV1_1-000");
    let small = cuporep::Prover::new(cuporep::Config { memory: Some(100 << 20), ..Default::default() }).unwrap();
    match small.prove(&request(&case, SectorSize::KiB2)).unwrap_err() {
        Error::Memory { needed, available, .. } => {
            assert_eq!(available, 100 << 20);
            assert!(needed > 1_114_707_768, "at least the parameters: {needed}");
        }
        other => panic!("{other}"),
    }
}

#[test]
fn missing_parameters_are_named_before_anything_long_is_done() {
    let case = fixture("StackedDrg2KiBV1_1-000");
    let directory = tempfile::tempdir().unwrap();
    let request = ProveRequest { parameter_dir: Some(directory.path().into()), ..request(&case, SectorSize::KiB2) };
    let begin = std::time::Instant::now();
    let error = prover().prove(&request).unwrap_err();
    assert_eq!(error.code(), 200);
    let message = error.to_string();
    assert!(message.contains(directory.path().to_str().unwrap()), "{message}");
    assert!(message.contains("FIL_PROOFS_PARAMETER_CACHE"), "{message}");
    assert!(begin.elapsed().as_secs() < 20);
}

#[test]
#[ignore = "one proof by bellperson, about a minute"]
fn the_public_prover_accepts_the_made_parameter_file() {
    point_storage_proofs_at(SectorSize::KiB2);
    let case = fixture("StackedDrg2KiBV1_1-000");
    let c1: seal::SealCommitPhase1Output = serde_json::from_slice(&case.c1).unwrap();
    // Verifies the proof itself before it returns.
    let output = seal::seal_commit_phase2(c1, case.prover_id, SectorId::from(case.sector)).unwrap();
    let checked = prover().check(&case.c1, case.sector, case.miner, &Control::new()).unwrap();
    prover().verify(&checked, &output.proof, test_parameters(SectorSize::KiB2), &Control::new()).unwrap();
}
