//! Every case is accepted, by us as by the public verifier, and what that verifier refuses is refused.

mod common;

use std::panic::{catch_unwind, AssertUnwindSafe};
use std::time::{Duration, Instant};

use common::public::{self, Public};
use common::{choose_from, fixture, mutate, Fixture, CASES, SMALL};
use cuporep::pipeline::{CancelToken, Control};
use cuporep::porep::{check, ids, C1Output};
use filecoin_hashers::poseidon::PoseidonHasher;
use filecoin_proofs::constants::{SectorShape2KiB, SectorShape32GiB};
use serde_json::Value;
use storage_proofs_core::merkle::MerkleTreeTrait;

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
fn every_case_is_encoded_as_its_node_wrote_it() {
    for name in CASES {
        let c1 = fixture(name).c1;
        assert!(C1Output::decode(&c1).unwrap().encode().unwrap() == c1, "{name}");
    }
}

#[test]
fn the_public_verifier_accepts_the_same_cases() {
    for name in CASES.iter().filter(|name| !name.contains("32GiB")) {
        let c1 = fixture(name).c1;
        let size = C1Output::decode(&c1).unwrap().registered_proof().size;
        assert!(public::accepts(size, &serde_json::from_slice(&c1).unwrap()).unwrap(), "{name}");
    }
}

#[test]
fn whatever_the_public_verifier_refuses_is_refused() {
    let fixture = fixture(SMALL);
    let whole: Value = serde_json::from_slice(&fixture.c1).unwrap();
    let mut choose = choose_from(1);
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
