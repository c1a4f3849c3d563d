//! Filecoin's real circuits: the recorded shape has the known counts, and a real assignment evaluates to what
//! bellperson's own linear combinations give.

use std::convert::TryInto;
use std::path::Path;
use std::time::Instant;

use blstrs::Scalar;
use cuporep::pipeline::Control;
use cuporep::r1cs::{Matrix, R1cs, ShapeStore};
use ff::Field;
use filecoin_hashers::{Domain, Hasher};
use filecoin_proofs::constants::{
    DefaultPieceDomain, DefaultPieceHasher, SectorShape2KiB, SectorShape512MiB, SectorShape8MiB,
};
use filecoin_proofs::parameters::{public_params, setup_params};
use filecoin_proofs::MerkleTreeTrait;
use filecoin_proofs_api::seal::SealCommitPhase1Output;
use filecoin_proofs_api::RegisteredSealProof;
use storage_proofs_core::compound_proof::CompoundProof;
use storage_proofs_core::proof::ProofScheme;
use storage_proofs_porep::stacked::{self, StackedCircuit, StackedCompound, StackedDrg};

#[path = "../src/r1cs/testing/reference.rs"]
mod reference;

use reference::Reference;

type Tree = SectorShape2KiB;
type Real = StackedCircuit<Tree, DefaultPieceHasher>;
type Compound = StackedCompound<Tree, DefaultPieceHasher>;

fn record(proof: RegisteredSealProof) -> R1cs {
    // Sectors of 2 KiB, 8 MiB and 512 MiB have trees of the same type.
    let _: [Option<Tree>; 2] = [None::<SectorShape8MiB>, None::<SectorShape512MiB>];
    let params = public_params::<Tree>(&proof.as_v1_config()).expect("public parameters");
    let circuit = <Compound as CompoundProof<StackedDrg<Tree, DefaultPieceHasher>, Real>>::blank_circuit(&params);
    R1cs::record(circuit, &Control::new()).expect("recording")
}

/// The first partition's circuit of a C1 output.
fn circuit(case: &str) -> Real {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(case).join("c1.json.xz");
    let mut json = Vec::new();
    let packed = std::fs::read(path).expect("fixture");
    lzma_rs::xz_decompress(&mut packed.as_slice(), &mut json).expect("xz");
    let c1: SealCommitPhase1Output = serde_json::from_slice(&json).expect("C1 output");
    let params = setup_params(&c1.registered_proof.as_v1_config()).expect("set-up parameters");
    let params = StackedDrg::<Tree, DefaultPieceHasher>::setup(&params).expect("public parameters");
    let proofs: Vec<Vec<stacked::Proof<Tree, DefaultPieceHasher>>> =
        c1.vanilla_proofs.clone().try_into().expect("vanilla proofs");
    let replica_id: Scalar = c1.replica_id.into();
    let comm_r = <<Tree as MerkleTreeTrait>::Hasher as Hasher>::Domain::try_from_bytes(&c1.comm_r);
    let comm_d = DefaultPieceDomain::try_from_bytes(&c1.comm_d).expect("comm_d");
    let public = stacked::PublicInputs {
        replica_id: replica_id.into(),
        tau: Some(stacked::Tau { comm_d, comm_r: comm_r.expect("comm_r") }),
        k: Some(0),
        seed: Some(c1.seed),
    };
    Compound::circuit(&public, (), &proofs[0], &params, Some(0)).expect("circuit")
}

#[derive(Debug, PartialEq)]
struct Counts {
    rows: usize,
    inputs: usize,
    aux: usize,
    log_domain: u32,
    entries: [usize; 3],
    a_aux_density: usize,
    b_aux_density: usize,
    b_input_density: usize,
}

impl Counts {
    fn of(r1cs: &R1cs) -> Self {
        Counts {
            rows: r1cs.num_rows(),
            inputs: r1cs.num_inputs(),
            aux: r1cs.num_aux(),
            log_domain: r1cs.log_domain(),
            entries: [Matrix::A, Matrix::B, Matrix::C].map(|matrix| r1cs.num_entries(matrix)),
            a_aux_density: r1cs.a_aux_density().count_ones(),
            b_aux_density: r1cs.b_aux_density().count_ones(),
            b_input_density: r1cs.b_input_density().count_ones(),
        }
    }
}

#[test]
fn the_2kib_circuit_has_the_known_counts_and_its_real_assignment_evaluates_as_in_bellperson() {
    let control = Control::new();
    let begin = Instant::now();
    let r1cs = record(RegisteredSealProof::StackedDrg2KiBV1_1);
    println!("record and positions {:?}", begin.elapsed());
    assert_eq!(
        Counts::of(&r1cs),
        Counts {
            rows: 2_687_961,
            inputs: 40,
            aux: 2_685_673,
            log_domain: 22,
            // The first with the appended row of each input.
            entries: [6_420_965 + 40, 2_689_006, 5_824_682],
            a_aux_density: 2_674_908,
            b_aux_density: 685_521,
            b_input_density: 1,
        }
    );
    assert_eq!(r1cs.full_positions().len(), 43_806);

    let directory = tempfile::tempdir().expect("directory");
    let store = ShapeStore::new(vec![directory.path().to_path_buf()]);
    let begin = Instant::now();
    assert!(store.keep("2KiB", &r1cs, &control).expect("storing"));
    println!("store {:?}", begin.elapsed());
    let begin = Instant::now();
    let loaded = store.load::<R1cs>("2KiB", &control).expect("loading").expect("a stored shape");
    println!("load {:?}", begin.elapsed());
    let path = directory.path().join(ShapeStore::file_name::<R1cs>("2KiB"));
    println!("file {} bytes", std::fs::metadata(path).expect("file").len());
    assert!(loaded == r1cs);
    drop(r1cs);
    let r1cs = loaded;

    let real = circuit("StackedDrg2KiBV1_1-000");
    let begin = Instant::now();
    let witness = r1cs.assign(real.clone(), &control).expect("assignment");
    println!("assign {:?}", begin.elapsed());
    let begin = Instant::now();
    let reference = Reference::of(real);
    println!("bellperson-like synthesis {:?}", begin.elapsed());

    assert!(witness.inputs == reference.inputs);
    assert_eq!(reference.aux.len(), r1cs.num_aux());
    let mut full = r1cs.full_positions().iter().zip(&witness.full).peekable();
    for (index, value) in reference.aux.iter().enumerate() {
        match full.next_if(|(&position, _)| position as usize == index) {
            Some((_, packed)) => assert_eq!(packed, value, "variable {index}"),
            None => assert_eq!(Scalar::from(u64::from(witness.bits.get(index))), *value, "variable {index}"),
        }
    }
    let density = |bits: &cuporep::r1cs::Bitmap| (0..bits.len()).map(|index| bits.get(index)).collect::<Vec<_>>();
    assert!(density(r1cs.a_aux_density()) == reference.a_aux);
    assert!(density(r1cs.b_input_density()) == reference.b_input);
    assert!(density(r1cs.b_aux_density()) == reference.b_aux);

    let mut out = vec![Scalar::ONE; 1 << 22];
    for (matrix, expected) in [Matrix::A, Matrix::B, Matrix::C].into_iter().zip(&reference.evaluations) {
        let begin = Instant::now();
        r1cs.evaluate(matrix, &witness, &mut out, &control).expect("evaluation");
        println!("evaluate {matrix:?} {:?}", begin.elapsed());
        let (inside, past) = out.split_at(r1cs.num_rows());
        assert!(inside == expected.as_slice(), "{matrix:?}");
        assert!(past.iter().all(|value| *value == Scalar::ZERO), "{matrix:?}");
    }
    assert_eq!(r1cs.first_unsatisfied(&witness, &control).expect("check"), None);
}

#[test]
fn the_8mib_and_512mib_circuits_have_the_known_counts() {
    let r1cs = record(RegisteredSealProof::StackedDrg8MiBV1_1);
    assert_eq!(
        Counts::of(&r1cs),
        Counts {
            rows: 3_844_969,
            inputs: 40,
            aux: 3_842_449,
            log_domain: 22,
            // The first with the appended row of each input.
            entries: [9_388_413 + 40, 3_847_886, 8_234_882],
            a_aux_density: 3_814_996,
            b_aux_density: 1_011_289,
            b_input_density: 1,
        }
    );
    let r1cs = record(RegisteredSealProof::StackedDrg512MiBV1_1);
    assert_eq!(
        Counts::of(&r1cs),
        Counts {
            rows: 4_423_473,
            inputs: 40,
            aux: 4_420_837,
            log_domain: 23,
            entries: [10_872_137 + 40, 4_427_326, 9_439_982],
            a_aux_density: 4_385_040,
            b_aux_density: 1_174_173,
            b_input_density: 1,
        }
    );
}
