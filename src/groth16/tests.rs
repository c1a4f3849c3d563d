//! The protocol as a whole, compared with bellperson.

use std::fs;
use std::io::Cursor;

use bellperson::groth16 as reference;
use bellperson::Circuit;
use blstrs::{Bls12, G1Affine, G1Projective, G2Affine, G2Projective, Scalar};
use ff::{Field, PrimeField};
use group::prime::PrimeCurveAffine;
use group::Group;
use sha2::{Digest, Sha256};

use super::testing::{naive_parts, Assignment, Chain, Fixture, Hash};
use super::{assemble, PreparedVerifyingKey, Proof, Randomness};
use crate::error::Error;

fn secret(name: &str, seed: u64) -> Scalar {
    let mut bytes: [u8; 32] = Sha256::digest([b"toxic", name.as_bytes(), &seed.to_le_bytes()].concat()).into();
    bytes[31] &= 0x3f;
    Scalar::from_repr(bytes).unwrap()
}

fn generated_by_bellperson(circuit: impl Circuit<Scalar>, seed: u64) -> reference::Parameters<Bls12> {
    let [alpha, beta, gamma, delta, tau] = ["alpha", "beta", "gamma", "delta", "tau"].map(|name| secret(name, seed));
    let (g1, g2) = (G1Projective::generator(), G2Projective::generator());
    reference::generate_parameters(circuit, g1, g2, alpha, beta, gamma, delta, tau).unwrap()
}

fn files_equal_those_of_bellperson(circuit: impl Circuit<Scalar> + Clone, seed: u64) {
    let fixture = Fixture::new(circuit.clone(), seed);
    let theirs = generated_by_bellperson(circuit, seed);
    let (mut params, mut vk) = (Vec::new(), Vec::new());
    theirs.write(&mut params).unwrap();
    theirs.vk.write(&mut vk).unwrap();
    assert!(fs::read(fixture.path("params")).unwrap() == params);
    assert!(fs::read(fixture.path("vk")).unwrap() == vk);
}

#[test]
fn generated_files_equal_those_of_bellperson_for_a_chain() {
    files_equal_those_of_bellperson(Chain::small(), 1);
    files_equal_those_of_bellperson(Chain { links: 0, start: 1 }, u64::MAX);
}

#[test]
fn generated_files_equal_those_of_bellperson_for_sha256() {
    files_equal_those_of_bellperson(Hash, 7);
}

#[test]
fn proofs_equal_those_of_bellperson_and_verify_by_both() {
    let circuit = Chain::small();
    let fixture = Fixture::new(circuit.clone(), 1);
    let params = fixture.open().unwrap();
    let assignment = Assignment::of(circuit.clone());
    let parts = naive_parts(&params, &fixture.r1cs, &assignment);
    let theirs = reference::Parameters::<Bls12>::read(fs::File::open(fixture.path("params")).unwrap(), true).unwrap();
    let (r, s) = (Scalar::from(0x1234_5678_9abc_def0), Scalar::from(0x0fed_cba9_8765_4321));
    for partition in [0, 1, 9] {
        let randomness = Randomness::fixed(r, s, partition);
        let proof = assemble(params.vk(), &parts, &randomness).unwrap().to_bytes();

        let k = Scalar::from(partition as u64);
        let expected = reference::create_proof::<Bls12, _, _>(circuit.clone(), &theirs, r + k, s + k).unwrap();
        let mut expected_bytes = Vec::new();
        expected.write(&mut expected_bytes).unwrap();
        assert_eq!(proof.to_vec(), expected_bytes);

        let public = &assignment.inputs[1..];
        assert!(PreparedVerifyingKey::new(params.vk()).verify(&proof, public).unwrap());
        let parsed = reference::Proof::read(Cursor::new(proof)).unwrap();
        assert!(reference::verify_proof(&reference::prepare_verifying_key(&theirs.vk), &parsed, public).unwrap());
    }
}

#[test]
fn fresh_randomness_gives_a_valid_proof() {
    let fixture = Fixture::new(Chain::small(), 2);
    let params = fixture.open().unwrap();
    let assignment = Assignment::of(Chain::small());
    let parts = naive_parts(&params, &fixture.r1cs, &assignment);
    let verifier = PreparedVerifyingKey::new(params.vk());
    let prove = || assemble(params.vk(), &parts, &Randomness::fresh().unwrap()).unwrap().to_bytes();
    let (one, two) = (prove(), prove());
    assert_ne!(one, two);
    assert!(verifier.verify(&one, &assignment.inputs[1..]).unwrap());
    assert!(verifier.verify(&two, &assignment.inputs[1..]).unwrap());
}

/// A valid proof, its public inputs and the verifier.
fn proved() -> ([u8; 192], Vec<Scalar>, PreparedVerifyingKey) {
    let fixture = Fixture::new(Chain::small(), 3);
    let params = fixture.open().unwrap();
    let assignment = Assignment::of(Chain::small());
    let parts = naive_parts(&params, &fixture.r1cs, &assignment);
    let proof = assemble(params.vk(), &parts, &Randomness::fresh().unwrap()).unwrap();
    (proof.to_bytes(), assignment.inputs[1..].to_vec(), PreparedVerifyingKey::new(params.vk()))
}

#[test]
fn wrong_inputs_and_exchanged_points_do_not_verify() {
    let (bytes, inputs, verifier) = proved();
    assert!(verifier.verify(&bytes, &inputs).unwrap());
    for i in 0..inputs.len() {
        let mut changed = inputs.clone();
        changed[i] += Scalar::ONE;
        assert!(!verifier.verify(&bytes, &changed).unwrap());
    }
    let proof = Proof::from_bytes(&bytes).unwrap();
    let wrong = [
        Proof { a: proof.c, c: proof.a, ..proof },
        Proof { a: -proof.a, ..proof },
        Proof { b: -proof.b, ..proof },
        Proof { c: G1Affine::generator(), ..proof },
    ];
    for proof in wrong {
        assert!(!verifier.verify(&proof.to_bytes(), &inputs).unwrap());
    }
    // Both signs changed is the same proof of the same statement.
    assert!(verifier.verify(&Proof { a: -proof.a, b: -proof.b, ..proof }.to_bytes(), &inputs).unwrap());
}

#[test]
fn a_wrong_number_of_inputs_is_an_argument_error() {
    let (bytes, inputs, verifier) = proved();
    for wrong in [&inputs[1..], &[inputs.clone(), inputs.clone()].concat(), &[]] {
        assert!(matches!(verifier.verify(&bytes, wrong), Err(Error::Argument { name: "inputs", .. })));
    }
}

#[test]
fn bytes_that_are_no_proof_are_refused_by_form() {
    let (bytes, inputs, verifier) = proved();
    let refused = |bytes: &[u8]| matches!(verifier.verify(bytes, &inputs), Err(Error::ProofForm { .. }));
    for length in [0, 1, 48, 191] {
        assert!(refused(&bytes[..length]));
    }
    assert!(refused(&[&bytes[..], &[0]].concat()));
    assert!(refused(&[0; 192]) && refused(&[0xff; 192]));
    for (at, identity) in [
        (0, G1Affine::identity().to_compressed().to_vec()),
        (48, G2Affine::identity().to_compressed().to_vec()),
        (144, G1Affine::identity().to_compressed().to_vec()),
    ] {
        let mut changed = bytes;
        changed[at..at + identity.len()].copy_from_slice(&identity);
        assert!(refused(&changed));
        // The same points uncompressed in their flag.
        let mut changed = bytes;
        changed[at] &= 0x7f;
        assert!(refused(&changed));
    }
    // (0, 2) is on the curve and has order 3.
    let mut outside = bytes;
    outside[..48].fill(0);
    outside[0] = 0x80;
    assert!(refused(&outside));
}

#[test]
fn no_single_byte_of_a_proof_can_be_changed() {
    let (bytes, inputs, verifier) = proved();
    for position in 0..bytes.len() {
        let mut changed = bytes;
        changed[position] ^= 0x04;
        match verifier.verify(&changed, &inputs) {
            Ok(valid) => assert!(!valid, "byte {position}"),
            Err(error) => assert!(matches!(error, Error::ProofForm { .. })),
        }
    }
}

#[test]
fn verify_all_names_the_partition_that_fails() {
    let (bytes, inputs, verifier) = proved();
    let mut proofs = bytes.repeat(3);
    let mut all = vec![inputs; 3];
    verifier.verify_all(&proofs, &all).unwrap();
    assert!(matches!(verifier.verify_all(&proofs[1..], &all), Err(Error::ProofForm { .. })));
    all[1][0] += Scalar::ONE;
    let Err(Error::ProofInvalid { detail }) = verifier.verify_all(&proofs, &all) else { panic!() };
    assert!(detail.contains("partition 1"));
    proofs[192] = 0;
    let Err(Error::ProofForm { detail }) = verifier.verify_all(&proofs, &all) else { panic!() };
    assert!(detail.contains("partition 1"));
}

#[test]
fn verifies_inside_a_pool_of_one_thread() {
    let (bytes, inputs, verifier) = proved();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    assert!(pool.install(|| verifier.verify(&bytes, &inputs)).unwrap());
}
