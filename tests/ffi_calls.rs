//! The C ABI without parameters: every error of the Rust API arrives with its number and message, and calls leave
//! nothing behind. Pointers, buffers, structs, threads and fork are tested from C, in `tests/c`.

#![cfg(feature = "capi")]

mod common;

use std::ffi::{c_char, c_void, CStr, CString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;
use std::sync::mpsc::{channel, Receiver, Sender};
use std::sync::Mutex;
use std::time::Duration;

use common::{fixture, Fixture, CASES, SMALL};
use cuporep::ffi::types::{cuporep_c1_info, cuporep_config, cuporep_event, cuporep_request};
use cuporep::ffi::{
    cuporep_check_c1, cuporep_preload, cuporep_prover, cuporep_prover_free, cuporep_prover_new,
    cuporep_prover_shutdown, cuporep_release, prove_porep,
};
use cuporep::pipeline::Control;
use cuporep::porep::{check, C1Output, SectorSize};
use serde_json::{json, Value};

/// A prover of the ABI.
struct Handle(*mut cuporep_prover);

// SAFETY: the header allows calls from any thread.
unsafe impl Sync for Handle {}

impl Handle {
    fn new(parameters: &Path) -> Self {
        let directory = CString::new(parameters.as_os_str().as_bytes()).unwrap();
        let mut prover = ptr::null_mut();
        // SAFETY: all pointers are good during the call; zero is the default of each member.
        let code = unsafe {
            let config = cuporep_config {
                struct_size: size_of::<cuporep_config>(),
                parameter_dir: directory.as_ptr(),
                ..std::mem::zeroed()
            };
            cuporep_prover_new(&raw mut prover, ptr::null_mut(), 0, &raw const config)
        };
        assert_eq!(code, 0);
        Handle(prover)
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: made by `new`, used nowhere else.
        unsafe { cuporep_prover_free(self.0) };
    }
}

fn request(c1: &[u8], sector: u64, miner: u64) -> cuporep_request {
    // SAFETY: zero is the default of each member.
    let zero: cuporep_request = unsafe { std::mem::zeroed() };
    let struct_size = size_of::<cuporep_request>();
    cuporep_request {
        struct_size,
        c1: c1.as_ptr(),
        c1_len: c1.len(),
        sector_number: sector,
        miner_actor_id: miner,
        ..zero
    }
}

/// Calls with an error buffer; the code and the message.
fn outcome(call: impl FnOnce(*mut c_char, usize) -> i32) -> (i32, String) {
    let mut message = vec![0u8; 4096];
    let code = call(message.as_mut_ptr().cast(), message.len());
    (code, CStr::from_bytes_until_nul(&message).unwrap().to_str().unwrap().to_owned())
}

fn abi_check(prover: &Handle, c1: &[u8], sector: u64, miner: u64) -> (i32, String) {
    let request = request(c1, sector, miner);
    // SAFETY: all pointers are good during the call.
    outcome(|err, cap| unsafe { cuporep_check_c1(prover.0, ptr::null_mut(), err, cap, &raw const request) })
}

/// The same through the Rust API.
fn rust_check(c1: &[u8], sector: u64, miner: u64) -> (i32, String) {
    match C1Output::decode(c1).and_then(|c1| check(c1, sector, miner, &Control::new())) {
        Ok(_) => (0, String::new()),
        Err(error) => (error.code(), error.to_string()),
    }
}

fn nowhere() -> &'static Path {
    Path::new("/nonexistent/parameters")
}

/// A change of one place of the document, and the code that it must give.
type Change = (&'static str, fn(&mut Value), i32);

const CHANGES: [Change; 8] = [
    ("/registered_proof", |value| *value = json!("StackedDrg2KiBV9"), 104),
    ("/vanilla_proofs/StackedDrg2KiBV1/0", |value| drop(value.as_array_mut().unwrap().pop()), 105),
    ("/comm_r", |value| *value = json!([0u8; 32].as_slice()), 106),
    ("/comm_d", |value| *value = json!([255u8; 32].as_slice()), 106),
    ("/seed/0", |value| *value = json!(value.as_u64().unwrap() ^ 1), 107),
    ("/ticket/0", |value| *value = json!(value.as_u64().unwrap() ^ 1), 107),
    ("/vanilla_proofs/StackedDrg2KiBV1/0/0/encoding_proof/node", |value| *value = json!(64), 107),
    (
        "/vanilla_proofs/StackedDrg2KiBV1/0/1/encoding_proof/parents/0/0",
        |value| *value = json!(value.as_u64().unwrap() ^ 1),
        109,
    ),
];

#[test]
fn every_bad_input_has_its_number_and_message() {
    let prover = Handle::new(nowhere());
    let Fixture { c1, sector, miner, .. } = fixture(SMALL);
    let document: Value = serde_json::from_slice(&c1).unwrap();
    let mut inputs: Vec<(Vec<u8>, Option<i32>)> = vec![
        (b"".to_vec(), Some(101)),
        (b"[]".to_vec(), Some(101)),
        ([&c1[..], b"\0"].concat(), Some(101)),
        (b"{}".to_vec(), Some(102)),
        (c1[..c1.len() / 2].to_vec(), Some(102)),
        (vec![b' '; cuporep::porep::MAX_C1_BYTES + 1], Some(103)),
    ];
    for (pointer, change, code) in CHANGES {
        let mut changed = document.clone();
        change(changed.pointer_mut(pointer).unwrap_or_else(|| panic!("no {pointer}")));
        assert_ne!(changed, document);
        inputs.push((serde_json::to_vec(&changed).unwrap(), (code != 107).then_some(code)));
    }
    for (input, code) in &inputs {
        let (found, message) = abi_check(&prover, input, sector, miner);
        assert_eq!((found, message.clone()), rust_check(input, sector, miner));
        assert_eq!(found / 100, 1, "{message}");
        assert!(code.is_none_or(|code| found == code), "{message}");
        // The short way in has the same checks.
        let (mut proof, mut length) = ([0u8; 192], 7usize);
        // SAFETY: all pointers are good during the call.
        let short = outcome(|err, cap| unsafe {
            prove_porep(proof.as_mut_ptr(), 192, &raw mut length, err, cap, input.as_ptr(), input.len(), sector, miner)
        });
        assert_eq!((short, length, proof), ((found, message), 0, [0; 192]));
    }
    assert_eq!(abi_check(&prover, &c1, sector + 1, miner).0, 107);
    assert_eq!(abi_check(&prover, &c1, sector, miner + 1), rust_check(&c1, sector, miner + 1));
    assert_eq!(abi_check(&prover, &c1, sector, miner), (0, String::new()), "and the next call works");
}

#[test]
fn good_inputs_of_all_kinds_are_described() {
    let prover = Handle::new(nowhere());
    for name in CASES {
        let case = fixture(name);
        let request = request(&case.c1, case.sector, case.miner);
        // SAFETY: zero is valid; all pointers are good during the call.
        let info = unsafe {
            let mut info = cuporep_c1_info { struct_size: size_of::<cuporep_c1_info>(), ..std::mem::zeroed() };
            assert_eq!(cuporep_check_c1(prover.0, &raw mut info, ptr::null_mut(), 0, &raw const request), 0, "{name}");
            info
        };
        let proof = cuporep::porep::RegisteredProof::from_name(&case.registered_proof).unwrap();
        assert_eq!((info.registered_proof, info.sector_size), (proof.number(), proof.size.bytes()), "{name}");
        assert_eq!((info.partitions, info.proof_len), (proof.partitions(), proof.proof_len()), "{name}");
        assert_eq!((info.comm_r, info.comm_d), (case.comm_r, case.comm_d), "{name}");
    }
}

#[test]
fn wrong_parameter_files_have_their_numbers() {
    let directory = tempfile::tempdir().unwrap();
    let prover = Handle::new(directory.path());
    // SAFETY: all pointers are good during the call.
    let preload = || outcome(|err, cap| unsafe { cuporep_preload(prover.0, err, cap, 2048, ptr::null()) });
    let (code, message) = preload();
    assert_eq!(code, 200, "{message}");
    assert!(message.contains(directory.path().to_str().unwrap()), "{message}");
    let set = SectorSize::KiB2.parameters();
    let file = directory.path().join(format!("{}.params", set.stem));
    fs::write(&file, b"<html>not found</html>").unwrap();
    let (code, message) = preload();
    assert_eq!(code, 202, "{message}");
    assert!(message.contains("22 bytes") && message.contains(&set.params_bytes.to_string()), "{message}");
    // The right size, and nothing in it.
    fs::File::create(&file).unwrap().set_len(set.params_bytes).unwrap();
    fs::write(file.with_extension("vk"), [0; 4708]).unwrap();
    let (code, message) = preload();
    assert_eq!(code, 203, "{message}");
    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    assert_eq!(preload().0 / 100, 2);
}

#[test]
fn a_prover_that_is_shut_down_refuses_calls() {
    let Fixture { c1, sector, miner, .. } = fixture(SMALL);
    for drain_ms in [0, 1000, u64::MAX] {
        let prover = Handle::new(nowhere());
        assert_eq!(abi_check(&prover, &c1, sector, miner).0, 0);
        let mut stopped = 77;
        // SAFETY: all pointers are good during the call.
        let end = |err, cap| unsafe { cuporep_prover_shutdown(prover.0, &raw mut stopped, err, cap, drain_ms) };
        assert_eq!(outcome(end).0, 0);
        assert_eq!(stopped, 0, "nothing was in progress");
        let (code, message) = abi_check(&prover, &c1, sector, miner);
        assert!(code == 305 && message.contains("shut down"), "{code}: {message}");
        // SAFETY: as above.
        assert_eq!(outcome(|err, cap| unsafe { cuporep_release(prover.0, err, cap) }).0, 0);
    }
}

/// Says that a stage has begun, and goes on when it may.
struct Pause {
    begun: Sender<()>,
    go_on: Mutex<Receiver<()>>,
}

unsafe extern "C-unwind" fn pause(user: *mut c_void, event: *const cuporep_event) {
    // SAFETY: what the call was given, and an event that lives during this call.
    let (pause, event) = unsafe { (&*user.cast::<Pause>(), &*event) };
    if event.ended == 0 && pause.begun.send(()).is_ok() {
        let _ = pause.go_on.lock().unwrap().recv_timeout(Duration::from_secs(20));
    }
}

#[test]
fn a_handle_that_is_freed_during_a_call_lets_it_end() {
    let Fixture { c1, sector, miner, .. } = fixture(SMALL);
    let ((begun, is_begun), (may_go_on, go_on)) = (channel(), channel());
    let pause_at = Pause { begun, go_on: Mutex::new(go_on) };
    let prover = Handle::new(nowhere());
    let (handle, user) = (prover.0 as usize, &raw const pause_at as usize);
    std::thread::scope(|scope| {
        let call = scope.spawn(|| {
            let request = cuporep_request {
                progress: Some(pause),
                progress_user: user as *mut c_void,
                ..request(&c1, sector, miner)
            };
            // SAFETY: the handle is freed when the call has begun; all else is good during it.
            outcome(|err, cap| unsafe {
                cuporep_check_c1(handle as *const cuporep_prover, ptr::null_mut(), err, cap, &raw const request)
            })
        });
        is_begun.recv_timeout(Duration::from_secs(20)).expect("the call begins");
        drop(is_begun);
        drop(prover);
        may_go_on.send(()).unwrap();
        assert_eq!(call.join().unwrap(), (0, String::new()));
    });
}

fn open_files() -> usize {
    fs::read_dir("/proc/self/fd").unwrap().count()
}

fn resident() -> usize {
    let pages: usize = fs::read_to_string("/proc/self/statm").unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4096
}

fn threads() -> usize {
    fs::read_dir("/proc/self/task").unwrap().count()
}

/// A process of its own, since other tests open files and start threads.
#[test]
fn calls_and_handles_leave_nothing_behind() {
    const VARIABLE: &str = "FFI_CALLS_ALONE";
    if std::env::var_os(VARIABLE).is_none() {
        let alone = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "calls_and_handles_leave_nothing_behind", "--test-threads=1"])
            .env(VARIABLE, "1")
            .output()
            .unwrap();
        assert!(alone.status.success(), "{}", String::from_utf8_lossy(&alone.stdout));
        return;
    }
    let Fixture { c1, sector, miner, .. } = fixture(SMALL);
    let round = || {
        let prover = Handle::new(nowhere());
        for _ in 0..20 {
            assert_eq!(abi_check(&prover, &c1, sector, miner).0, 0);
            assert_eq!(abi_check(&prover, &c1, sector, miner + 1).0, 107);
            assert_eq!(abi_check(&prover, &c1[..c1.len() - 5], sector, miner).0, 102);
        }
    };
    // What is set up once, and the allocator's own.
    (0..3).for_each(|_| round());
    let before = (open_files(), resident());
    (0..10).for_each(|_| round());
    // Threads of the last prover may still be ending.
    let patience = std::time::Instant::now();
    while threads() > 2 && patience.elapsed().as_secs() < 10 {
        std::thread::yield_now();
    }
    assert_eq!(open_files(), before.0);
    assert!(threads() <= 2, "{} threads", threads());
    assert!(resident() < before.1 + (16 << 20), "{} bytes, before {}", resident(), before.1);
}
