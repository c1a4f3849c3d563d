//! Whole proofs through the C ABI, with the insecure parameters of seed 1.

#![cfg(feature = "capi")]

mod common;

use std::ffi::{c_char, c_void, CStr, CString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use common::{fixture, test_parameters, Fixture, SMALL};
use cuporep::ffi::status::{cuporep_stage, cuporep_status};
use cuporep::ffi::types::{cuporep_cancel_token, cuporep_config, cuporep_event, cuporep_report, cuporep_request};
use cuporep::ffi::{
    cuporep_cancel_token_cancel, cuporep_cancel_token_free, cuporep_cancel_token_new, cuporep_evict, cuporep_preload,
    cuporep_prover, cuporep_prover_free, cuporep_prover_new, cuporep_prover_prove, cuporep_release, cuporep_verify,
};
use cuporep::porep::SectorSize;

/// A prover of the ABI. One at a time in this process, as each has threads for all cores and some tests look at time.
struct Handle(*mut cuporep_prover, #[allow(dead_code, reason = "held")] MutexGuard<'static, ()>);

// SAFETY: the header allows calls from any thread.
unsafe impl Sync for Handle {}

impl Handle {
    fn new(host_bytes: u64) -> Self {
        static ONE: Mutex<()> = Mutex::new(());
        let one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        let directory = CString::new(test_parameters(SectorSize::KiB2).as_os_str().as_bytes()).unwrap();
        let mut prover = ptr::null_mut();
        // SAFETY: all pointers are good during the call; zero is the default of each member.
        let code = unsafe {
            let config = cuporep_config {
                struct_size: size_of::<cuporep_config>(),
                parameter_dir: directory.as_ptr(),
                host_bytes,
                ..std::mem::zeroed()
            };
            cuporep_prover_new(&raw mut prover, ptr::null_mut(), 0, &raw const config)
        };
        assert_eq!(code, 0);
        Handle(prover, one)
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: made by `new`, used nowhere else.
        unsafe { cuporep_prover_free(self.0) };
    }
}

fn request(case: &Fixture) -> cuporep_request {
    // SAFETY: zero is the default of each member.
    let zero: cuporep_request = unsafe { std::mem::zeroed() };
    cuporep_request {
        struct_size: size_of::<cuporep_request>(),
        c1: case.c1.as_ptr(),
        c1_len: case.c1.len(),
        sector_number: case.sector,
        miner_actor_id: case.miner,
        ..zero
    }
}

struct Outcome {
    code: i32,
    message: String,
    proof: Vec<u8>,
    report: cuporep_report,
}

fn prove(prover: &Handle, request: &cuporep_request) -> Outcome {
    let (mut proof, mut length, mut message) = (vec![0xee; 200], 7usize, [0u8; 4096]);
    // SAFETY: all pointers are good during the call.
    let (code, report) = unsafe {
        let mut report = cuporep_report { struct_size: size_of::<cuporep_report>(), ..std::mem::zeroed() };
        let code = cuporep_prover_prove(
            prover.0,
            proof.as_mut_ptr(),
            proof.len(),
            &raw mut length,
            &raw mut report,
            message.as_mut_ptr().cast::<c_char>(),
            message.len(),
            request,
        );
        (code, report)
    };
    assert!(proof[length..].iter().all(|byte| *byte == 0xee), "nothing is written beyond the proof");
    proof.truncate(length);
    let message = CStr::from_bytes_until_nul(&message).unwrap().to_str().unwrap().to_owned();
    Outcome { code, message, proof, report }
}

fn verify(prover: &Handle, request: &cuporep_request, proof: &[u8]) -> i32 {
    // SAFETY: all pointers are good during the call.
    unsafe { cuporep_verify(prover.0, ptr::null_mut(), 0, request, proof.as_ptr(), proof.len()) }
}

unsafe extern "C-unwind" fn panics(user: *mut c_void, _event: *const cuporep_event) {
    // SAFETY: the test's counter.
    unsafe { &*user.cast::<AtomicU32>() }.fetch_add(1, Ordering::Relaxed);
    panic!("the callback's own");
}

#[test]
fn a_proof_is_made_verified_and_reported_although_its_callback_panics() {
    let (prover, case) = (Handle::new(0), fixture(SMALL));
    let calls = AtomicU32::new(0);
    let request = cuporep_request {
        progress: Some(panics),
        progress_user: (&raw const calls).cast_mut().cast(),
        ..request(&case)
    };
    let made = prove(&prover, &request);
    assert_eq!((made.code, made.message.as_str()), (0, ""));
    assert_eq!(made.proof.len(), 192);
    assert_eq!(calls.load(Ordering::Relaxed), 1);
    let report = &made.report;
    assert_eq!((report.progress_failed, report.insecure_parameters, report.partitions), (1, 1, 1));
    assert_eq!((report.registered_proof, report.fallbacks, report.device_bytes), (5, 0, 0));
    assert!(report.host_bytes > 1 << 30);
    for stage in [cuporep_stage::Check, cuporep_stage::Witness, cuporep_stage::SumH, cuporep_stage::Verify] {
        let time = report.stage_ns[stage as usize];
        assert!(time > 0 && time < report.total_ns, "{stage:?}: {time}");
    }
    // SAFETY: NUL-ended, by the header.
    assert_eq!(unsafe { CStr::from_ptr(report.device.as_ptr()) }, c"cpu");

    assert_eq!(verify(&prover, &request, &made.proof), 0);
    assert_eq!(verify(&prover, &request, &case.proof), 0, "that of other randomness too");
    assert_eq!(verify(&prover, &request, &made.proof[1..]), cuporep_status::ProofForm as i32);
    assert_eq!(
        verify(&prover, &request, &fixture("StackedDrg2KiBV1_1-001").proof),
        cuporep_status::ProofInvalid as i32
    );
    assert_ne!(made.proof, case.proof, "randomness is fresh");

    // SAFETY: all pointers are good during the calls.
    unsafe {
        assert_eq!(cuporep_evict(prover.0, ptr::null_mut(), 0, 2048), 0);
        assert_eq!(cuporep_preload(prover.0, ptr::null_mut(), 0, 2048, ptr::null()), 0);
        let begin = Instant::now();
        assert_eq!(cuporep_release(prover.0, ptr::null_mut(), 0), 0);
        assert!(begin.elapsed() < Duration::from_millis(500), "{:?}", begin.elapsed());
    }
    assert_eq!(verify(&prover, &request, &made.proof), 0, "what was released is loaded again");
}

#[test]
fn what_cannot_fit_is_refused_with_the_figures() {
    let made = prove(&Handle::new(1), &request(&fixture(SMALL)));
    assert_eq!(made.code, cuporep_status::Memory as i32);
    assert!(made.proof.is_empty() && made.message.contains(" 1 are available"), "{}", made.message);
}

/// Cancels its token when a stage begins.
struct Stop {
    stage: i32,
    token: *mut cuporep_cancel_token,
    begun: Instant,
    at: Mutex<Option<Duration>>,
}

unsafe extern "C-unwind" fn cancel_at(user: *mut c_void, event: *const cuporep_event) {
    // SAFETY: the test's struct, and an event that lives during this call.
    let (stop, event) = unsafe { (&*user.cast::<Stop>(), &*event) };
    if event.stage == stop.stage && event.ended == 0 {
        stop.at.lock().unwrap().get_or_insert(stop.begun.elapsed());
        // SAFETY: the token lives until the call has ended.
        unsafe { cuporep_cancel_token_cancel(stop.token) };
    }
}

fn cancelled_at(prover: &Handle, case: &Fixture, stage: i32) -> (i32, Duration) {
    let stop = Stop { stage, token: cuporep_cancel_token_new(), begun: Instant::now(), at: Default::default() };
    let request = cuporep_request {
        cancel_token: stop.token,
        progress: Some(cancel_at),
        progress_user: (&raw const stop).cast_mut().cast(),
        ..request(case)
    };
    let made = prove(prover, &request);
    let at = stop.at.lock().unwrap().unwrap_or_else(|| panic!("stage {stage} did not begin: {}", made.message));
    // SAFETY: not used any more.
    unsafe { cuporep_cancel_token_free(stop.token) };
    assert!(made.proof.is_empty());
    (made.code, stop.begun.elapsed() - at)
}

#[test]
fn a_cancel_at_any_stage_ends_the_call_and_the_next_one_works() {
    let (prover, case) = (Handle::new(0), fixture(SMALL));
    // The sums over l and a end fast enough to be over; the longest stages and those around them are here.
    let stages = [
        cuporep_stage::Decode,
        cuporep_stage::Check,
        cuporep_stage::Parameters,
        cuporep_stage::Queue,
        cuporep_stage::Shape,
        cuporep_stage::Witness,
        cuporep_stage::Evaluate,
        cuporep_stage::Transform,
        cuporep_stage::SumH,
    ];
    for stage in stages {
        let (code, waited) = cancelled_at(&prover, &case, stage as i32);
        assert_eq!(code, cuporep_status::Cancelled as i32, "{stage:?}");
        // The bound for a caller is half a second on two free cores; the tests share theirs.
        assert!(waited < Duration::from_secs(2), "{stage:?}: {waited:?}");
    }
    let late = cuporep_request { has_deadline: 1, deadline_ms: 200, ..request(&case) };
    assert_eq!(prove(&prover, &late).code, cuporep_status::Deadline as i32);
}

/// How many calls are inside a stage.
struct Inside {
    now: AtomicI32,
    most: AtomicI32,
}

impl Inside {
    const fn new() -> Self {
        Inside { now: AtomicI32::new(0), most: AtomicI32::new(0) }
    }

    fn linger(&self) {
        let inside = self.now.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(inside, Ordering::SeqCst);
        std::thread::sleep(Duration::from_millis(20));
        self.now.fetch_sub(1, Ordering::SeqCst);
    }
}

static WITNESSES: Inside = Inside::new();
static COMPUTING: Inside = Inside::new();

unsafe extern "C-unwind" fn linger(user: *mut c_void, event: *const cuporep_event) {
    // SAFETY: an event that lives during this call.
    let event = unsafe { &*event };
    if event.stage == cuporep_stage::Witness as i32 && event.ended == 0 {
        WITNESSES.linger();
    }
    if event.stage == cuporep_stage::Evaluate as i32 && event.ended == 0 {
        COMPUTING.linger();
        // SAFETY: the token lives until the call has ended.
        unsafe { cuporep_cancel_token_cancel(user.cast()) };
    }
}

#[test]
fn of_sixteen_calls_at_once_two_make_witnesses_and_one_computes() {
    let (prover, case) = (Handle::new(0), fixture(SMALL));
    std::thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| {
                let token = cuporep_cancel_token_new();
                let request = cuporep_request {
                    cancel_token: token,
                    progress: Some(linger),
                    progress_user: token.cast(),
                    ..request(&case)
                };
                assert_eq!(prove(&prover, &request).code, cuporep_status::Cancelled as i32);
                // SAFETY: not used any more.
                unsafe { cuporep_cancel_token_free(token) };
            });
        }
    });
    assert!(WITNESSES.most.load(Ordering::SeqCst) <= 2);
    assert_eq!(COMPUTING.most.load(Ordering::SeqCst), 1);
}

#[test]
#[ignore = "six proofs of 2 KiB, some minutes"]
fn five_proofs_leave_memory_and_files_as_they_were() {
    let (prover, case) = (Handle::new(0), fixture(SMALL));
    let state = || {
        let pages: u64 = fs::read_to_string("/proc/self/statm").unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        (fs::read_dir("/proc/self/fd").unwrap().count(), pages * 4096)
    };
    let mut states = vec![];
    for _ in 0..6 {
        let made = prove(&prover, &request(&case));
        assert_eq!(made.code, 0, "{}", made.message);
        states.push(state());
    }
    // The first one loads what is kept.
    let (first, last) = (states[0], states[5]);
    assert_eq!(first.0, last.0, "open files: {states:?}");
    assert!(last.1 < first.1 + (64 << 20), "resident bytes: {states:?}");
}
