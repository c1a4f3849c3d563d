//! Fabricated C1 outputs are what sealed ones are to everybody who looks at them.

mod common;

use std::time::{Duration, Instant};

use common::{choose_from, forget_peak, memory, mutate, prover, public};
use cuporep::pipeline::{CancelToken, Control};
use cuporep::porep::{check, fabricate, C1Output, Fabricated, Fabrication, ProofKind, RegisteredProof, SectorSize};
use filecoin_proofs_api::seal::SealCommitPhase1Output;
use serde_json::Value;

fn make(size: SectorSize, kind: ProofKind, seed: u64) -> Fabricated {
    fabricate(&Fabrication::new(RegisteredProof::new(size, kind), seed), &Control::new()).unwrap()
}

fn bytes(fabrication: Fabrication) -> Vec<u8> {
    fabricate(&fabrication, &Control::new()).unwrap().c1.encode().unwrap()
}

/// Reads and verifies the bytes with public code only.
fn assert_public(size: SectorSize, c1: &[u8]) {
    let read: SealCommitPhase1Output = serde_json::from_slice(c1).unwrap();
    assert!(serde_json::to_vec(&read).unwrap() == c1, "the same form");
    assert!(public::accepts(size, &serde_json::from_slice(c1).unwrap()).unwrap());
}

/// All kinds of one size: accepted by our check and the public verifier, with witnesses that satisfy every constraint.
fn assert_all_kinds(size: SectorSize) {
    for kind in ProofKind::ALL {
        let begin = Instant::now();
        let Fabricated { c1, sector, miner } = make(size, kind, 1);
        let made = begin.elapsed();
        let c1 = c1.encode().unwrap();
        let checked = prover().check_full(&c1, sector, miner, &Control::new()).unwrap();
        assert_eq!(checked.registered_proof(), RegisteredProof::new(size, kind));
        assert_public(size, &c1);
        println!("{}: {made:.1?} of {:.1?}", checked.registered_proof(), begin.elapsed());
    }
}

#[test]
fn all_kinds_of_2kib_are_accepted_and_satisfy_every_constraint() {
    assert_all_kinds(SectorSize::KiB2);
}

#[test]
fn all_kinds_of_8mib_are_accepted_and_satisfy_every_constraint() {
    assert_all_kinds(SectorSize::MiB8);
}

#[test]
fn the_same_values_give_the_same_bytes_and_others_give_others() {
    for kind in ProofKind::ALL {
        let this = Fabrication::new(RegisteredProof::new(SectorSize::KiB2, kind), 1);
        let expected = bytes(this);
        assert!(bytes(this) == expected);
        assert!(bytes(Fabrication { seed: 2, ..this }) != expected);
        let made = make(SectorSize::KiB2, kind, 1);
        let (sector, miner) = (Some(made.sector), Some(made.miner));
        assert!(bytes(Fabrication { sector, miner, ..this }) == expected, "what follows from the seed can be given");
        for other in
            [Fabrication { sector: Some(made.sector + 1), ..this }, Fabrication { miner: Some(u64::MAX), ..this }]
        {
            let other = fabricate(&other, &Control::new()).unwrap();
            assert!(other.c1.replica_id() != made.c1.replica_id());
            check(other.c1, other.sector, other.miner, &Control::new()).unwrap();
        }
    }
}

#[test]
fn whatever_is_altered_is_refused() {
    let Fabricated { c1, sector, miner } = make(SectorSize::MiB8, ProofKind::V1_1, 1);
    let whole: Value = serde_json::from_slice(&c1.encode().unwrap()).unwrap();
    let refuses = |c1: &Value, sector, miner| {
        let c1 = C1Output::decode(&serde_json::to_vec(c1).unwrap());
        c1.and_then(|c1| check(c1, sector, miner, &Control::new())).is_err()
    };
    assert!(!refuses(&whole, sector, miner));
    assert!(refuses(&whole, sector + 1, miner) && refuses(&whole, sector, miner + 1));
    let mut choose = choose_from(1);
    for _ in 0..100 {
        let mut altered = whole.clone();
        let what = mutate(&mut altered, &mut choose);
        assert!(altered == whole || refuses(&altered, sector, miner), "accepted: {what}");
    }
}

#[test]
fn what_only_sealing_can_make_is_refused_and_a_cancelled_call_stops() {
    for size in [SectorSize::GiB32, SectorSize::GiB64] {
        for kind in [ProofKind::SyntheticPoRep, ProofKind::NonInteractivePoRep] {
            let proof = RegisteredProof::new(size, kind);
            let error = fabricate(&Fabrication::new(proof, 1), &Control::new()).unwrap_err();
            assert_eq!(error.code(), 104);
            assert!(error.to_string().contains(proof.name()) && error.to_string().contains("comm_r"), "{error}");
        }
    }
    let token = CancelToken::new();
    token.cancel();
    let proof = RegisteredProof::new(SectorSize::GiB32, ProofKind::V1_1);
    let error = fabricate(&Fabrication::new(proof, 1), &Control::new().with_cancel(token)).unwrap_err();
    assert_eq!(error.code(), 400, "{error}");
}

/// Fabricates a large sector within bounds, and has it accepted.
fn assert_large(size: SectorSize, kind: ProofKind) {
    const MOST_MEMORY: u64 = 4 << 30;
    forget_peak();
    let begin = Instant::now();
    let Fabricated { c1, sector, miner } = make(size, kind, 1);
    let c1 = c1.encode().unwrap();
    let (time, peak) = (begin.elapsed(), memory("VmHWM"));
    println!("{size} {kind}: {time:.1?}, {} bytes of JSON, peak {} MiB", c1.len(), peak >> 20);
    prover().check(&c1, sector, miner, &Control::new()).unwrap();
    assert_public(size, &c1);
    assert!(peak < MOST_MEMORY, "{peak}");
    if !matches!(kind, ProofKind::SyntheticPoRep | ProofKind::NonInteractivePoRep) {
        assert!(time < Duration::from_secs(120), "{time:?}");
    }
}

#[test]
fn a_64gib_sector_is_made_in_little_time_and_memory_and_is_accepted() {
    assert_large(SectorSize::GiB64, ProofKind::V1_1);
}

#[test]
#[ignore = "has the public verifier look at six large sectors"]
fn all_large_sectors_are_made_in_little_time_and_memory_and_are_accepted() {
    for size in [SectorSize::MiB512, SectorSize::GiB32, SectorSize::GiB64] {
        for kind in [ProofKind::V1, ProofKind::V1_1] {
            assert_large(size, kind);
        }
    }
}

#[test]
#[ignore = "takes minutes: labels every node of a 512 MiB sector"]
fn a_whole_512mib_sector_is_labelled_and_accepted() {
    assert_large(SectorSize::MiB512, ProofKind::SyntheticPoRep);
}
