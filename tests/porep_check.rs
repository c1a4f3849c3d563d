//! Every case is accepted, by us as by the public verifier, and what that verifier refuses is refused.

mod common;

use std::panic::{catch_unwind, AssertUnwindSafe};
use std::time::{Duration, Instant};

use common::{fixture, Fixture, CASES, SMALL};
use cuporep::pipeline::{CancelToken, Control};
use cuporep::porep::{check, ids, C1Output, RegisteredProof};
use filecoin_hashers::poseidon::{PoseidonDomain, PoseidonHasher};
use filecoin_hashers::sha256::{Sha256Domain, Sha256Hasher};
use filecoin_proofs::constants::{SectorShape2KiB, SectorShape32GiB};
use filecoin_proofs_api::RegisteredSealProof;
use serde_json::Value;
use storage_proofs_core::merkle::MerkleTreeTrait;
use storage_proofs_core::proof::ProofScheme;
use storage_proofs_porep::stacked::{Proof, PublicInputs, PublicParams, StackedDrg, Tau};

/// The public verifier's input.
struct Public<Tree: 'static + MerkleTreeTrait<Hasher = PoseidonHasher>> {
    params: PublicParams<Tree>,
    inputs: PublicInputs<PoseidonDomain, Sha256Domain>,
    proofs: Vec<Vec<Proof<Tree, Sha256Hasher>>>,
}

impl<Tree: 'static + MerkleTreeTrait<Hasher = PoseidonHasher>> Public<Tree> {
    /// Reads a C1 output with the storage-proofs crates' own types.
    fn read(c1: &Value) -> serde_json::Result<Self> {
        let name = c1["registered_proof"].clone();
        let tag = RegisteredProof::from_name(name.as_str().unwrap()).unwrap().inner_tag();
        let config = serde_json::from_value::<RegisteredSealProof>(name)?.as_v1_config();
        let bytes = |field: &str| serde_json::from_value::<[u8; 32]>(c1[field].clone());
        Ok(Public {
            params: filecoin_proofs::parameters::public_params(&config).unwrap(),
            inputs: PublicInputs {
                replica_id: bytes("replica_id")?.into(),
                seed: Some(bytes("seed")?),
                tau: Some(Tau { comm_d: bytes("comm_d")?.into(), comm_r: bytes("comm_r")?.into() }),
                k: None,
            },
            proofs: serde_json::from_value(c1["vanilla_proofs"][tag].clone())?,
        })
    }

    fn verify(&self) -> bool {
        StackedDrg::<Tree, Sha256Hasher>::verify_all_partitions(&self.params, &self.inputs, &self.proofs).unwrap()
    }
}

fn accepts(fixture: &Fixture, c1: &[u8]) -> bool {
    C1Output::decode(c1).and_then(|c1| check(c1, fixture.sector, fixture.miner, &Control::new())).is_ok()
}

#[test]
fn every_case_is_accepted() {
    for name in CASES {
        let fixture = fixture(name);
        let c1 = C1Output::decode(&fixture.c1).unwrap();
        assert_eq!(c1.registered_proof().name(), fixture.registered_proof);
        assert_eq!(c1.comm_r().0, fixture.comm_r);
        assert_eq!(c1.comm_d().0, fixture.comm_d);
        assert_eq!(c1.replica_id().0, fixture.replica_id);
        assert_eq!(c1.seed().0, fixture.seed);
        assert_eq!(c1.ticket().0, fixture.ticket);
        assert_eq!(ids::prover_id(fixture.miner), fixture.prover_id);
        let checked =
            check(c1, fixture.sector, fixture.miner, &Control::new()).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(checked.registered_proof().proof_len(), fixture.proof.len());
        assert_eq!((checked.sector(), checked.miner()), (fixture.sector, Some(fixture.miner)));
    }
}

#[test]
fn the_public_verifier_accepts_the_same_cases() {
    for name in CASES.iter().filter(|name| !name.contains("32GiB")) {
        let c1 = serde_json::from_slice(&fixture(name).c1).unwrap();
        // 8 MiB and 512 MiB have the tree type of 2 KiB.
        assert!(Public::<SectorShape2KiB>::read(&c1).unwrap().verify(), "{name}");
    }
}

/// Changes one byte of one random array of 32 bytes, or one random number, somewhere in the document.
fn mutate(value: &mut Value, choose: &mut impl FnMut(usize) -> usize) -> String {
    match value {
        Value::Object(fields) => {
            let at = choose(fields.len());
            let (name, field) = fields.iter_mut().nth(at).unwrap();
            format!(".{name}{}", mutate(field, choose))
        }
        Value::Array(elements) => {
            let at = choose(elements.len());
            format!("[{at}]{}", mutate(&mut elements[at], choose))
        }
        Value::Number(number) => {
            let changed = (number.as_u64().unwrap() ^ (1 << choose(6))) & 0xffff_ffff;
            *value = changed.into();
            format!(" = {changed}")
        }
        other => format!(" = {other} (unchanged)"),
    }
}

#[test]
fn whatever_the_public_verifier_refuses_is_refused() {
    let fixture = fixture(SMALL);
    let whole: Value = serde_json::from_slice(&fixture.c1).unwrap();
    let mut state = 1u64;
    let mut choose = |below: usize| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) as usize % below
    };
    let (mut refused_by_both, mut refused_by_us_only) = (0, 0);
    for _ in 0..150 {
        let mut altered = whole.clone();
        let what = mutate(&mut altered["vanilla_proofs"], &mut choose);
        let public = catch_unwind(AssertUnwindSafe(|| {
            Public::<SectorShape2KiB>::read(&altered).is_ok_and(|public| public.verify())
        }));
        let ours = accepts(&fixture, &serde_json::to_vec(&altered).unwrap());
        if altered == whole {
            assert!(ours, "{what}");
            continue;
        }
        assert!(!ours, "we accept {what}");
        match public {
            Ok(true) => refused_by_us_only += 1,
            Ok(false) | Err(_) => refused_by_both += 1,
        }
    }
    assert!(refused_by_both > 50, "the mutations reach the public verifier's checks: {refused_by_both}");
    assert!(refused_by_us_only > 0, "some are in what it does not look at");
}

/// Medians of three: decode, check, and the public verifier.
fn times<Tree: 'static + MerkleTreeTrait<Hasher = PoseidonHasher>>(name: &str) -> [Duration; 3] {
    let fixture = fixture(name);
    let public = Public::<Tree>::read(&serde_json::from_slice(&fixture.c1).unwrap()).unwrap();
    let time = |work: &mut dyn FnMut()| {
        let mut times = [Duration::ZERO; 3].map(|_| {
            let begin = Instant::now();
            work();
            begin.elapsed()
        });
        times.sort();
        times[1]
    };
    let decode = time(&mut || drop(C1Output::decode(&fixture.c1).unwrap()));
    let c1 = C1Output::decode(&fixture.c1).unwrap();
    let ours = time(&mut || drop(check(c1.clone(), fixture.sector, fixture.miner, &Control::new()).unwrap()));
    let theirs = time(&mut || assert!(public.verify()));
    println!("{name}: decode {decode:.1?}, check {ours:.1?}, public verifier {theirs:.1?}");
    [decode, ours, theirs]
}

#[test]
fn checking_32_gib_takes_no_longer_than_the_public_verifier() {
    times::<SectorShape2KiB>(SMALL);
    let [_, ours, theirs] = times::<SectorShape32GiB>("StackedDrg32GiBV1_1-fab-001");
    assert!(ours < theirs, "check {ours:?}, public verifier {theirs:?}");
}

#[test]
fn a_cancelled_check_stops_early() {
    let fixture = fixture(SMALL);
    let token = CancelToken::new();
    token.cancel();
    let c1 = C1Output::decode(&fixture.c1).unwrap();
    let error = check(c1, fixture.sector, fixture.miner, &Control::new().with_cancel(token)).unwrap_err();
    assert_eq!(error.code(), 400, "{error}");
    let past = Instant::now();
    let c1 = C1Output::decode(&fixture.c1).unwrap();
    let error = check(c1, fixture.sector, fixture.miner, &Control::new().with_deadline(past)).unwrap_err();
    assert_eq!(error.code(), 401, "{error}");
}

#[test]
fn a_check_that_is_cancelled_midway_ends_within_half_a_second() {
    let fixture = fixture("StackedDrg32GiBV1_1-fab-001");
    let c1 = C1Output::decode(&fixture.c1).unwrap();
    let token = CancelToken::new();
    let control = Control::new().with_cancel(token.clone());
    let cancelled = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(100));
        token.cancel();
        Instant::now()
    });
    let error = check(c1, fixture.sector, fixture.miner, &control).unwrap_err();
    let ended = Instant::now();
    assert_eq!(error.code(), 400, "{error}");
    let late = ended.duration_since(cancelled.join().unwrap());
    assert!(late < Duration::from_millis(500), "{late:?}");
}
