//! The members of a request of the C ABI that say what kind of proof is wanted and for whom.

#![cfg(feature = "capi")]

mod common;

use std::ffi::CStr;
use std::mem::zeroed;
use std::ptr;

use common::{fixture, Fixture, SMALL};
use cuporep::ffi::types::{cuporep_config, cuporep_request};
use cuporep::ffi::{
    cuporep_check_c1, cuporep_prover, cuporep_prover_free, cuporep_prover_new, cuporep_prover_prove, cuporep_verify,
};

const ARGUMENT: i32 = 100;
const PROOF_TYPE: i32 = 104;
const IDENTITY: i32 = 107;
const PARAMS_MISSING: i32 = 200;

/// What three functions say about one request, each with its message.
struct Outcomes {
    check: (i32, String),
    prove: (i32, String),
    verify: (i32, String),
}

/// Calls with a prover that has no parameters.
fn outcomes(fixture: &Fixture, change: impl FnOnce(&mut cuporep_request)) -> Outcomes {
    let outcome = |call: &dyn Fn(*mut std::ffi::c_char, usize) -> i32| {
        let mut message = vec![0u8; 4096];
        let code = call(message.as_mut_ptr().cast(), message.len());
        (code, CStr::from_bytes_until_nul(&message).unwrap().to_str().unwrap().to_owned())
    };
    // SAFETY: zero is the default of each member; all pointers are good during the calls.
    unsafe {
        let mut config: cuporep_config = zeroed();
        config.struct_size = size_of::<cuporep_config>();
        config.parameter_dir = c"/nonexistent/parameters".as_ptr();
        let mut prover: *mut cuporep_prover = ptr::null_mut();
        assert_eq!(cuporep_prover_new(&raw mut prover, ptr::null_mut(), 0, &raw const config), 0);

        let mut request: cuporep_request = zeroed();
        request.struct_size = size_of::<cuporep_request>();
        (request.c1, request.c1_len) = (fixture.c1.as_ptr(), fixture.c1.len());
        (request.sector_number, request.miner_actor_id) = (fixture.sector, fixture.miner);
        change(&mut request);

        let (mut proof, mut length) = (vec![0u8; 24192], 0);
        let check = outcome(&|err, cap| cuporep_check_c1(prover, ptr::null_mut(), err, cap, &raw const request));
        let (buffer, length) = (proof.as_mut_ptr(), &raw mut length);
        let prove = outcome(&|err, cap| {
            let report = ptr::null_mut();
            cuporep_prover_prove(prover, buffer, 24192, length, report, err, cap, &raw const request)
        });
        let verify = outcome(&|err, cap| {
            cuporep_verify(prover, err, cap, &raw const request, fixture.proof.as_ptr(), fixture.proof.len())
        });
        cuporep_prover_free(prover);
        assert_eq!(*length, 0);
        Outcomes { check, prove, verify }
    }
}

#[test]
fn an_aggregate_is_refused_before_parameters_are_looked_for() {
    let fixture = fixture("StackedDrg2KiBV1_2_Feat_NonInteractivePoRep-000");
    let refused = outcomes(&fixture, |request| request.on_chain = 1);
    assert_eq!(refused.check.0, 0, "{}", refused.check.1);
    assert_eq!(refused.prove.0, PROOF_TYPE, "{}", refused.prove.1);
    for word in ["aggregate", "StackedDrg2KiBV1_2_Feat_NonInteractivePoRep", "circuit proofs"] {
        assert!(refused.prove.1.contains(word), "{}", refused.prove.1);
    }
    assert_eq!(outcomes(&fixture, |_| {}).prove.0, PARAMS_MISSING);
}

#[test]
fn interactive_proofs_are_what_goes_on_chain() {
    for name in [SMALL, "StackedDrg2KiBV1-000", "StackedDrg2KiBV1_1_Feat_SyntheticPoRep-000"] {
        assert_eq!(outcomes(&fixture(name), |request| request.on_chain = 1).prove.0, PARAMS_MISSING, "{name}");
    }
}

#[test]
fn an_unknown_miner_is_ignored_when_proving_and_refused_when_verifying() {
    let fixture = fixture(SMALL);
    let wrong = outcomes(&fixture, |request| request.miner_actor_id += 1);
    assert_eq!((wrong.check.0, wrong.prove.0, wrong.verify.0), (IDENTITY, IDENTITY, IDENTITY));
    let unknown = outcomes(&fixture, |request| {
        request.miner_actor_id += 1;
        request.miner_unknown = 1;
    });
    assert_eq!((unknown.check.0, unknown.prove.0, unknown.verify.0), (0, PARAMS_MISSING, ARGUMENT));
    assert!(unknown.verify.1.contains("miner_unknown"), "{}", unknown.verify.1);
}

#[test]
fn other_numbers_than_0_and_1_are_refused_by_name() {
    type Set = fn(&mut cuporep_request, i32);
    let flags: [(&str, Set); 3] = [
        ("has_deadline", |request, number| request.has_deadline = number),
        ("miner_unknown", |request, number| request.miner_unknown = number),
        ("on_chain", |request, number| request.on_chain = number),
    ];
    let fixture = fixture(SMALL);
    for (name, set) in flags {
        for number in [-1, 2, i32::MIN, i32::MAX] {
            let refused = outcomes(&fixture, |request| set(request, number));
            for (code, message) in [refused.check, refused.prove, refused.verify] {
                assert_eq!(code, ARGUMENT, "{name} = {number}: {message}");
                assert!(message.contains(name) && message.contains(&number.to_string()), "{message}");
            }
        }
    }
}
