//! Any circuit through the Rust API: proofs equal what bellperson verifies, and nothing that does not verify
//! ever comes out.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::LazyLock;

use bellperson::gadgets::boolean::{AllocatedBit, Boolean};
use bellperson::gadgets::multipack;
use bellperson::gadgets::sha256::sha256;
use bellperson::{groth16, Circuit, ConstraintSystem, SynthesisError};
use blstrs::{Bls12, Scalar};
use cuporep::groth16::setup::{self, Target};
use cuporep::groth16::{Counts, Expected, G1Section, Parameters};
use cuporep::pipeline::Control;
use cuporep::r1cs::R1cs;
use cuporep::{Class, Config, Prover};
use ff::Field;
use sha2::{Digest, Sha256};

/// Knows 64 bytes with a public SHA-256 hash.
#[derive(Clone)]
struct Preimage {
    bytes: Option<[u8; 64]>,
    panics: bool,
}

impl Preimage {
    fn of(bytes: [u8; 64]) -> Self {
        Preimage { bytes: Some(bytes), panics: false }
    }

    fn inputs(bytes: &[u8; 64]) -> Vec<Scalar> {
        multipack::compute_multipacking(&multipack::bytes_to_bits(&Sha256::digest(bytes)))
    }
}

impl Circuit<Scalar> for Preimage {
    fn synthesize<CS: ConstraintSystem<Scalar>>(self, cs: &mut CS) -> Result<(), SynthesisError> {
        assert!(!self.panics, "injected");
        let bit = |index: usize| self.bytes.map(|bytes| bytes[index / 8] >> (7 - index % 8) & 1 == 1);
        let bits = (0..512)
            .map(|index| AllocatedBit::alloc(cs.namespace(|| format!("bit {index}")), bit(index)).map(Boolean::from))
            .collect::<Result<Vec<_>, _>>()?;
        let hash = sha256(cs.namespace(|| "hash"), &bits)?;
        multipack::pack_into_inputs(cs.namespace(|| "inputs"), &hash)
    }
}

static R1CS: LazyLock<R1cs> =
    LazyLock::new(|| R1cs::record(Preimage { bytes: None, panics: false }, &Control::new()).unwrap());

fn prover() -> &'static Prover {
    static PROVER: LazyLock<Prover> =
        LazyLock::new(|| Prover::new(Config { threads: Some(2), ..Config::default() }).unwrap());
    &PROVER
}

fn expected() -> Expected {
    Expected { stem: "preimage".into(), counts: Counts::of(&*R1CS), official: None, known: Vec::new() }
}

fn make_parameters(directory: &Path) -> Parameters {
    let target = Target { directory, stem: "preimage", meta: "{}" };
    setup::generate(&*R1CS, 3, &target, &Control::new(), &mut |_, _| ()).unwrap();
    Parameters::open(directory, &expected(), &Control::new()).unwrap()
}

fn prove(bytes: [u8; 64], parameters: &Parameters) -> cuporep::Result<[u8; 192]> {
    prover().prove_circuit(Preimage::of(bytes), &Preimage::inputs(&bytes), &R1CS, parameters, &Control::new())
}

#[test]
fn a_proof_is_accepted_by_bellperson() {
    let directory = tempfile::tempdir().unwrap();
    let parameters = make_parameters(directory.path());
    let key = std::fs::read(directory.path().join("preimage.vk")).unwrap();
    let key = groth16::VerifyingKey::<Bls12>::read(key.as_slice()).unwrap();
    let key = groth16::prepare_verifying_key(&key);
    for bytes in [[0; 64], [0xff; 64], std::array::from_fn(|index| index as u8)] {
        let proof = prove(bytes, &parameters).unwrap();
        let proof = groth16::Proof::<Bls12>::read(proof.as_slice()).unwrap();
        let mut inputs = Preimage::inputs(&bytes);
        assert!(groth16::verify_proof(&key, &proof, &inputs).unwrap());
        inputs[0] += Scalar::ONE;
        assert!(!groth16::verify_proof(&key, &proof, &inputs).unwrap());
    }
}

/// Where the points of a section begin in the file.
fn section_start(parameters: &Parameters, section: G1Section) -> u64 {
    let counts = parameters.counts();
    let before: usize = G1Section::ALL.iter().take_while(|&&other| other != section).map(|&s| counts.len(s)).sum();
    let sections_before = section as u64;
    3 * 96 + 3 * 192 + 4 + 96 * counts.inputs as u64 + 4 * (sections_before + 1) + 96 * before as u64
}

/// Replaces bases by other valid ones, which no check but that of the whole file can see.
fn swap_bases(directory: &Path, parameters: &Parameters, section: G1Section) {
    let start = section_start(parameters, section);
    let file = OpenOptions::new().read(true).write(true).open(directory.join("preimage.params")).unwrap();
    // A run of bases, so that the sum changes whatever the witness is.
    let (mut first, mut second) = (vec![0; 96 * 512], vec![0; 96 * 512]);
    file.read_exact_at(&mut first, start + 96 * 1000).unwrap();
    file.read_exact_at(&mut second, start + 96 * 5000).unwrap();
    file.write_all_at(&second, start + 96 * 1000).unwrap();
    file.write_all_at(&first, start + 96 * 5000).unwrap();
}

#[test]
fn wrong_bases_give_an_error_and_no_proof() {
    for section in [G1Section::H, G1Section::L, G1Section::A] {
        let directory = tempfile::tempdir().unwrap();
        let right = make_parameters(directory.path());
        swap_bases(directory.path(), &right, section);
        let wrong = Parameters::open(directory.path(), &expected(), &Control::new()).unwrap();
        let error = prove([7; 64], &wrong).unwrap_err();
        assert_eq!(error.code(), 502, "{error}");
        assert_eq!(error.class(), Class::Internal);
        assert!(error.to_string().contains("withheld"), "{error}");
        // The handle from before the change must notice it instead of mixing old and new bases.
        assert_eq!(prove([7; 64], &right).unwrap_err().code(), 205);
    }
    let directory = tempfile::tempdir().unwrap();
    prove([7; 64], &make_parameters(directory.path())).expect("the next call works");
}

#[test]
fn a_base_off_the_curve_is_not_taken_for_wrong_input() {
    let directory = tempfile::tempdir().unwrap();
    let right = make_parameters(directory.path());
    let file = OpenOptions::new().read(true).write(true).open(directory.path().join("preimage.params")).unwrap();
    let last_byte_of_y = section_start(&right, G1Section::H) + 96 * 1001 - 1;
    let mut byte = [0];
    file.read_exact_at(&mut byte, last_byte_of_y).unwrap();
    file.write_all_at(&[byte[0] ^ 1], last_byte_of_y).unwrap();
    let outcome = Parameters::open(directory.path(), &expected(), &Control::new());
    // The samples may happen to find it; if not, the proof's own verification does.
    let error = outcome.and_then(|wrong| prove([7; 64], &wrong)).unwrap_err();
    assert!([203, 502].contains(&error.code()), "{error}");
}

#[test]
fn inputs_that_are_not_those_of_the_witness_give_an_error_and_no_proof() {
    let directory = tempfile::tempdir().unwrap();
    let parameters = make_parameters(directory.path());
    let mut inputs = Preimage::inputs(&[1; 64]);
    inputs[1] += Scalar::ONE;
    let error =
        prover().prove_circuit(Preimage::of([1; 64]), &inputs, &R1CS, &parameters, &Control::new()).unwrap_err();
    assert_eq!(error.class(), Class::Input, "{error}");
    inputs.pop();
    let error =
        prover().prove_circuit(Preimage::of([1; 64]), &inputs, &R1CS, &parameters, &Control::new()).unwrap_err();
    assert_eq!(error.class(), Class::Input, "{error}");
}

#[test]
fn a_panic_in_the_circuit_is_an_error_with_message_and_place() {
    let directory = tempfile::tempdir().unwrap();
    let parameters = make_parameters(directory.path());
    let circuit = Preimage { bytes: Some([0; 64]), panics: true };
    let inputs = Preimage::inputs(&[0; 64]);
    let error = prover().prove_circuit(circuit, &inputs, &R1CS, &parameters, &Control::new()).unwrap_err();
    assert_eq!(error.code(), 501);
    let message = error.to_string();
    assert!(message.contains("injected") && message.contains("prove_circuit.rs"), "{message}");
    prove([0; 64], &parameters).expect("the next call works");
}

#[test]
fn calls_from_many_threads_take_turns_and_all_succeed() {
    let directory = tempfile::tempdir().unwrap();
    let parameters = make_parameters(directory.path());
    std::thread::scope(|scope| {
        let calls: Vec<_> = (0..16u8)
            .map(|index| {
                scope.spawn({
                    let parameters = &parameters;
                    move || prove([index; 64], parameters)
                })
            })
            .collect();
        calls.into_iter().for_each(|call| assert!(call.join().unwrap().is_ok()));
    });
}

/// Resident memory of this process in bytes.
fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    text.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
}

fn open_files() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

#[test]
#[ignore = "200 proofs, about a minute"]
fn two_hundred_proofs_leave_memory_and_files_as_they_were() {
    let directory = tempfile::tempdir().unwrap();
    let parameters = make_parameters(directory.path());
    for index in 0..10 {
        prove([index; 64], &parameters).unwrap();
    }
    let (memory, files) = (resident(), open_files());
    for index in 0..200 {
        prove([index; 64], &parameters).unwrap();
    }
    assert_eq!(open_files(), files);
    let grown = resident().saturating_sub(memory);
    assert!(grown < 16 << 20, "grew by {grown} bytes");
}
