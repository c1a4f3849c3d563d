//! Provers in the C ABI: making them, and what is done with them.

use std::ffi::c_char;
use std::process;
use std::ptr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::boundary::{boundary, handle, output, slice, text};
use super::nanoseconds;
use super::request::{self, Request};
use super::status::cuporep_stage;
use super::types::{cuporep_c1_info, cuporep_config, cuporep_report, cuporep_request, Output, CUPOREP_STAGES_MAX};
use crate::error::{Error, Result};
use crate::pipeline::Control;
use crate::porep::{CheckedC1, ProofKind, RegisteredProof, SectorSize};
use crate::{Config, Fallback, Prover, SealProof};

/// Makes proofs; keeps parameters and circuits between calls.
pub struct cuporep_prover {
    prover: Arc<Prover>,
    /// A fork does not copy the prover's threads, so it belongs to one process.
    process: u32,
}

impl cuporep_prover {
    fn new(prover: Arc<Prover>) -> Self {
        cuporep_prover { prover, process: process::id() }
    }

    /// The prover, in the process that made it. A call keeps it until it ends, also if the handle is freed meanwhile.
    fn get(&self) -> Result<Arc<Prover>> {
        if self.process != process::id() {
            let detail = "belongs to the process that forked this one; make a new one here".into();
            return Err(Error::Argument { name: "prover", detail });
        }
        Ok(self.prover.clone())
    }
}

/// The process's default prover, made on first use.
fn default_prover() -> Result<Arc<Prover>> {
    static DEFAULT: Mutex<Option<cuporep_prover>> = Mutex::new(None);
    let mut default = DEFAULT.lock();
    if let Some(made) = default.as_ref().filter(|made| made.process == process::id()) {
        return Ok(made.prover.clone());
    }
    let prover = Arc::new(Prover::new(Config::default())?);
    // That of a parent process is not dropped: its threads do not exist here.
    std::mem::forget(default.replace(cuporep_prover::new(prover.clone())));
    Ok(prover)
}

/// Makes a seal proof: the whole job, with the process's default prover. Its parameters stay loaded for the next call.
///
/// Checks the C1 output and the parameters, waits until memory and a device are free, proves every partition, verifies
/// the bytes.
///
/// Returns: 0 or any status.
/// Out:     proof: 192 bytes a partition, in partition order; unchanged on failure.
///          proof_len: bytes of the proof. If proof_cap is too small (CUPOREP_STATUS_PROOF_BUFFER, found before
///          anything long is done), the needed length; 0 on all other failures.
/// In:      c1: output of seal commit phase 1, JSON.
///          sector_number, miner_actor_id: of the sector; 1000 for f01000.
#[no_mangle]
pub unsafe extern "C" fn prove_porep(
    proof: *mut u8,
    proof_cap: usize,
    proof_len: *mut usize,
    err: *mut c_char,
    err_cap: usize,
    c1: *const u8,
    c1_len: usize,
    sector_number: u64,
    miner_actor_id: u64,
) -> i32 {
    let request = cuporep_request { c1, c1_len, sector_number, miner_actor_id, ..super::types::zeroed() };
    let request = cuporep_request { struct_size: size_of::<cuporep_request>(), ..request };
    // SAFETY: the caller's promise.
    unsafe {
        boundary(err, err_cap, || {
            let buffer = Buffer::of_proof(proof, proof_cap, proof_len)?;
            let request = request::request(&raw const request)?;
            prove(&*default_prover()?, buffer, None, &request)
        })
    }
}

/// Makes a prover. It starts its threads, and loads nothing yet.
///
/// Returns: 0, or the status of a configuration that cannot be.
/// Out:     prover: to be freed by cuporep_prover_free(); NULL on failure.
/// In:      config: or NULL: everything from the environment, else from defaults.
#[no_mangle]
pub unsafe extern "C" fn cuporep_prover_new(
    prover: *mut *mut cuporep_prover,
    err: *mut c_char,
    err_cap: usize,
    config: *const cuporep_config,
) -> i32 {
    // SAFETY: the caller's promise.
    unsafe {
        boundary(err, err_cap, || {
            let out = output("prover", prover)?;
            *out = ptr::null_mut();
            let made = Prover::new(request::config(config)?)?;
            *out = Box::into_raw(Box::new(cuporep_prover::new(Arc::new(made))));
            Ok(())
        })
    }
}

/// A handle to the process's default prover, which is the one of `prove_porep`.
///
/// Returns: 0, or the status of an environment that cannot be.
/// Out:     prover: to be freed by cuporep_prover_free(), which leaves the prover itself; NULL on failure.
#[no_mangle]
pub unsafe extern "C" fn cuporep_prover_default(
    prover: *mut *mut cuporep_prover,
    err: *mut c_char,
    err_cap: usize,
) -> i32 {
    // SAFETY: the caller's promise.
    unsafe {
        boundary(err, err_cap, || {
            let out = output("prover", prover)?;
            *out = ptr::null_mut();
            *out = Box::into_raw(Box::new(cuporep_prover::new(default_prover()?)));
            Ok(())
        })
    }
}

/// Frees a handle, with its prover unless that is the default one.
///
/// Calls that are in progress keep the prover until they end; none may begin with the handle from now on.
///
/// In:      prover: or NULL, which does nothing.
#[no_mangle]
pub unsafe extern "C" fn cuporep_prover_free(prover: *mut cuporep_prover) {
    if prover.is_null() {
        return;
    }
    // SAFETY: made by `cuporep_prover_new` or `_default`, and not used any more.
    let prover = unsafe { Box::from_raw(prover) };
    let free = || {
        match prover.process == process::id() {
            true => drop(prover),
            false => std::mem::forget(prover),
        }
        Ok(())
    };
    // SAFETY: no message is asked for.
    unsafe { boundary(ptr::null_mut(), 0, free) };
}

/// Makes a seal proof, as prove_porep(), with a prover and a request.
///
/// Returns: 0 or any status.
/// Out:     proof, proof_len: as with prove_porep().
///          report: how it was made, or NULL; its struct_size must be set. Written on failure too.
/// In:      request: all of it.
#[no_mangle]
pub unsafe extern "C" fn cuporep_prover_prove(
    prover: *const cuporep_prover,
    proof: *mut u8,
    proof_cap: usize,
    proof_len: *mut usize,
    report: *mut cuporep_report,
    err: *mut c_char,
    err_cap: usize,
    request: *const cuporep_request,
) -> i32 {
    // SAFETY: the caller's promise.
    unsafe {
        boundary(err, err_cap, || {
            let buffer = Buffer::of_proof(proof, proof_cap, proof_len)?;
            let report = Output::new(report)?;
            let prover = handle("prover", prover)?.get()?;
            prove(&prover, buffer, Some(&report), &request::request(request)?)
        })
    }
}

/// Checks a C1 output completely: form, counts, elements, ids, challenges, every hash. Needs no parameters.
///
/// Returns: 0; CUPOREP_CLASS_INPUT: the message names partition, challenge and part; or cancelled.
/// Out:     info: what is in it, or NULL; its struct_size must be set. Zero on failure.
/// In:      request: c1, sector_number, miner_actor_id, and what stops or watches the call.
#[no_mangle]
pub unsafe extern "C" fn cuporep_check_c1(
    prover: *const cuporep_prover,
    info: *mut cuporep_c1_info,
    err: *mut c_char,
    err_cap: usize,
    request: *const cuporep_request,
) -> i32 {
    // SAFETY: the caller's promise.
    unsafe {
        boundary(err, err_cap, || {
            let info = Output::new(info)?;
            let prover = handle("prover", prover)?.get()?;
            let request = request::request(request)?;
            info.set(describe(&check(&prover, &request)?));
            Ok(())
        })
    }
}

/// Verifies a proof against the public inputs that the ids of a C1 output give. Checks the C1 output first.
/// It verifies the proofs of the partitions, for a known miner.
///
/// Returns: 0: the proof is valid. CUPOREP_STATUS_PROOF_INVALID, CUPOREP_STATUS_PROOF_FORM, or another.
/// In:      request: c1, sector_number, miner_actor_id, and what stops or watches the call.
///          proof: 192 bytes a partition.
#[no_mangle]
pub unsafe extern "C" fn cuporep_verify(
    prover: *const cuporep_prover,
    err: *mut c_char,
    err_cap: usize,
    request: *const cuporep_request,
    proof: *const u8,
    proof_len: usize,
) -> i32 {
    // SAFETY: the caller's promise.
    unsafe {
        boundary(err, err_cap, || {
            let prover = handle("prover", prover)?.get()?;
            let proof = slice("proof", proof, proof_len)?;
            let request = request::request(request)?;
            if request.prove.miner.is_none() {
                let detail = "is 1, but a proof verifies only for a miner".into();
                return Err(Error::Argument { name: "miner_unknown", detail });
            }
            let c1 = check(&prover, &request)?;
            prover.verify(&c1, proof, &prover.parameter_dir(), &request.prove.control)
        })
    }
}

/// Opens, checks and loads the parameters of a sector size and loads or records its circuit, so that the first proof
/// need not; on all devices that the prover uses. Waits as a proof does.
///
/// Returns: 0; CUPOREP_CLASS_PARAMETERS; or another.
/// In:      sector_size: bytes of the sector, such as 34359738368.
///          request: what stops or watches the call, or NULL.
#[no_mangle]
pub unsafe extern "C" fn cuporep_preload(
    prover: *const cuporep_prover,
    err: *mut c_char,
    err_cap: usize,
    sector_size: u64,
    request: *const cuporep_request,
) -> i32 {
    // SAFETY: the caller's promise.
    unsafe {
        boundary(err, err_cap, || {
            let prover = handle("prover", prover)?.get()?;
            let control = match request.is_null() {
                true => Control::new(),
                false => request::request(request)?.prove.control,
            };
            prover.preload(size(sector_size)?, &prover.parameter_dir(), &control)
        })
    }
}

/// Forgets the parameters and the circuit of a sector size. A proof that is being made keeps them until it ends.
///
/// Returns: 0, CUPOREP_STATUS_ARGUMENT for an unknown size.
/// In:      sector_size: bytes of the sector.
#[no_mangle]
pub unsafe extern "C" fn cuporep_evict(
    prover: *const cuporep_prover,
    err: *mut c_char,
    err_cap: usize,
    sector_size: u64,
) -> i32 {
    // SAFETY: the caller's promise.
    unsafe {
        boundary(err, err_cap, || {
            handle("prover", prover)?.get()?.evict(size(sector_size)?);
            Ok(())
        })
    }
}

/// Gives back all memory that is kept between proofs, and all memory of devices, also in the middle of a proof: within
/// 500 ms it is free when this returns.
///
/// A proof that was interrupted waits for a second, then takes the device again when its turn comes, loads again and
/// makes anew what was interrupted, within its call; so do calls that waited already. Its cancel token and deadline count
/// meanwhile. Calls that begin after this returned may take the device at once. A proof on the CPU keeps what it needs
/// until it ends.
///
/// Returns: 0.
#[no_mangle]
pub unsafe extern "C" fn cuporep_release(prover: *const cuporep_prover, err: *mut c_char, err_cap: usize) -> i32 {
    // SAFETY: the caller's promise.
    unsafe {
        boundary(err, err_cap, || {
            handle("prover", prover)?.get()?.release();
            Ok(())
        })
    }
}

/// Ends a prover's work: accepts no more calls, lets those in progress, waiting ones included, end for so long, stops
/// the rest, and gives everything back. Refused and stopped calls return CUPOREP_STATUS_SHUT_DOWN; stopping takes at
/// most 500 ms. Returns when no call is in progress any more. The handle is still to be freed.
///
/// Through any handle of the default prover it ends that for the whole process. Not to be called from a callback.
///
/// Returns: 0.
/// Out:     stopped: 1 if a call had to be stopped, else 0; or NULL.
/// In:      drain_ms: milliseconds. 0: stop all now. UINT64_MAX: wait as long as they take.
#[no_mangle]
pub unsafe extern "C" fn cuporep_prover_shutdown(
    prover: *const cuporep_prover,
    stopped: *mut i32,
    err: *mut c_char,
    err_cap: usize,
    drain_ms: u64,
) -> i32 {
    // SAFETY: the caller's promise.
    unsafe {
        boundary(err, err_cap, || {
            let prover = handle("prover", prover)?.get()?;
            let drain = if drain_ms == u64::MAX { Duration::MAX } else { Duration::from_millis(drain_ms) };
            let drained = prover.shutdown(drain);
            if let Some(stopped) = stopped.as_mut() {
                *stopped = i32::from(!drained);
            }
            Ok(())
        })
    }
}

/// What the prover has done and how it is: counters, histograms and gauges in Prometheus' text format (version 0.0.4), to
/// be served to a scraper as it is. Cheap, and waits for no proof. The metrics are listed in the documentation of the
/// Rust function `Prover::metrics` and in the README. For prove_porep() use the handle of cuporep_prover_default().
///
/// Returns: 0, or CUPOREP_STATUS_TEXT_BUFFER.
/// Out:     text: UTF-8 without a final NUL; unchanged on failure. NULL with 0 asks for the length.
///          text_len: bytes of the text. If text_cap is too small, the needed length, and some more a moment later:
///          call in a loop, or with room to spare (16 KiB hold it on most machines). 0 on all other failures.
#[no_mangle]
pub unsafe extern "C" fn cuporep_prover_metrics(
    prover: *const cuporep_prover,
    text: *mut c_char,
    text_cap: usize,
    text_len: *mut usize,
    err: *mut c_char,
    err_cap: usize,
) -> i32 {
    // SAFETY: the caller's promise.
    unsafe {
        boundary(err, err_cap, || {
            let buffer = Buffer::new(("text", "text_len"), text.cast(), text_cap, text_len)?;
            let text = handle("prover", prover)?.get()?.metrics()?;
            let (needed, given) = (text.len(), buffer.capacity);
            if needed > given {
                *buffer.length = needed;
                return Err(Error::TextBuffer { needed, given });
            }
            buffer.write(text.as_bytes());
            Ok(())
        })
    }
}

/// Where a proof or a text goes.
struct Buffer<'a> {
    pointer: *mut u8,
    capacity: usize,
    length: &'a mut usize,
}

impl<'a> Buffer<'a> {
    /// For a proof.
    ///
    /// # Safety
    /// As [`Buffer::new`].
    unsafe fn of_proof(pointer: *mut u8, capacity: usize, length: *mut usize) -> Result<Self> {
        // SAFETY: the caller's promise.
        unsafe { Buffer::new(("proof", "proof_len"), pointer, capacity, length) }
    }

    /// With the names of the pointer and of the length.
    ///
    /// # Safety
    /// `pointer` is NULL or has `capacity` writable bytes; `length` is NULL or writable.
    unsafe fn new(
        names: (&'static str, &'static str),
        pointer: *mut u8,
        capacity: usize,
        length: *mut usize,
    ) -> Result<Self> {
        // SAFETY: the caller's promise.
        let length = unsafe { output(names.1, length) }?;
        *length = 0;
        if pointer.is_null() && capacity != 0 {
            let detail = format!("is NULL with capacity {capacity}");
            return Err(Error::Argument { name: names.0, detail });
        }
        Ok(Buffer { pointer, capacity, length })
    }

    /// Writes bytes for which there is room, and their length.
    fn write(self, bytes: &[u8]) {
        assert!(bytes.len() <= self.capacity);
        // SAFETY: the buffer has the room, by the promise of `Buffer::new`.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), self.pointer, bytes.len()) };
        *self.length = bytes.len();
    }
}

fn prove(
    prover: &Prover,
    buffer: Buffer<'_>,
    report: Option<&Output<cuporep_report>>,
    request: &Request<'_>,
) -> Result<()> {
    let begin = Instant::now();
    let accept = |c1: &CheckedC1| {
        if request.on_chain {
            refuse_aggregate(c1.registered_proof())?;
        }
        let needed = c1.registered_proof().proof_len();
        if needed > buffer.capacity {
            *buffer.length = needed;
            return Err(Error::ProofBuffer { needed, given: buffer.capacity });
        }
        Ok(())
    };
    let outcome = prover.prove_if(&request.prove, accept);
    if let Some(report) = report {
        report.set(summarise(outcome.as_ref().ok(), begin, request));
    }
    let bytes = outcome?.bytes;
    if bytes.len() > buffer.capacity {
        return Err(Error::internal(format!("a proof of {} bytes where fewer were announced", bytes.len())));
    }
    buffer.write(&bytes);
    Ok(())
}

/// The partitions' proofs of a non-interactive proof must not pass for the aggregate that goes on chain.
fn refuse_aggregate(proof: RegisteredProof) -> Result<()> {
    if proof.kind != ProofKind::NonInteractivePoRep {
        return Ok(());
    }
    Err(Error::ProofType {
        what: format!("the aggregate of {proof}, which goes on chain,"),
        supported: "the circuit proofs of its partitions, 192 bytes each".into(),
        version: env!("CARGO_PKG_VERSION"),
    })
}

fn check(prover: &Prover, request: &Request<'_>) -> Result<CheckedC1> {
    let request = &request.prove;
    prover.check(request.c1, request.sector, request.miner, &request.control)
}

fn size(bytes: u64) -> Result<SectorSize> {
    SectorSize::ALL.into_iter().find(|size| size.bytes() == bytes).ok_or_else(|| Error::Argument {
        name: "sector_size",
        detail: format!(
            "{bytes} is not the size of a sector; known are {:?} bytes",
            SectorSize::ALL.map(SectorSize::bytes)
        ),
    })
}

fn summarise(proof: Option<&SealProof>, begin: Instant, request: &Request<'_>) -> cuporep_report {
    let mut stage_ns = [0u64; CUPOREP_STAGES_MAX];
    for event in request.prove.control.times() {
        let sum = &mut stage_ns[cuporep_stage::from(event.stage) as usize];
        *sum = sum.saturating_add(event.elapsed.map_or(0, nanoseconds));
    }
    let always = cuporep_report {
        progress_failed: request.progress.failed().into(),
        total_ns: nanoseconds(begin.elapsed()),
        stage_ns,
        ..super::types::zeroed()
    };
    match proof {
        None => always,
        Some(proof) => cuporep_report {
            registered_proof: proof.registered_proof.number(),
            partitions: proof.registered_proof.partitions() as u32,
            insecure_parameters: proof.insecure_parameters.into(),
            fallbacks: proof.fallbacks.len() as u32,
            host_bytes: proof.memory,
            device_bytes: proof.device_memory,
            device: text(&proof.device),
            fallback_reasons: text(&reasons(&proof.fallbacks)),
            ..always
        },
    }
}

fn reasons(fallbacks: &[Fallback]) -> String {
    let lines: Vec<&str> = fallbacks.iter().map(|fallback| fallback.reason.as_str()).collect();
    lines.join("\n")
}

fn describe(c1: &CheckedC1) -> cuporep_c1_info {
    let proof = c1.registered_proof();
    cuporep_c1_info {
        struct_size: 0,
        registered_proof: proof.number(),
        sector_size: proof.size.bytes(),
        partitions: proof.partitions(),
        proof_len: proof.proof_len(),
        comm_r: c1.c1().comm_r().0,
        comm_d: c1.c1().comm_d().0,
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::CStr;

    use super::*;

    #[test]
    fn a_panic_on_a_worker_thread_arrives_as_text_and_the_next_call_works() {
        let mut prover = ptr::null_mut();
        let mut message = [0u8; 256];
        let config =
            cuporep_config { struct_size: size_of::<cuporep_config>(), threads: 2, ..crate::ffi::types::zeroed() };
        // SAFETY: all pointers are good during the calls; the handle is freed last.
        unsafe {
            assert_eq!(cuporep_prover_new(&raw mut prover, ptr::null_mut(), 0, &raw const config), 0);
            let code = boundary(message.as_mut_ptr().cast(), message.len(), || {
                handle("prover", prover)?
                    .get()?
                    .run(|| -> Result<()> { panic!("injected on {}", rayon::current_num_threads()) })
            });
            let text = CStr::from_bytes_until_nul(&message).unwrap().to_str().unwrap();
            assert_eq!(code, 501);
            assert!(text.contains("injected on 2") && text.contains("prover.rs:"), "{text}");
            let code = cuporep_evict(prover, message.as_mut_ptr().cast(), message.len(), 2048);
            assert_eq!((code, message[0]), (0, 0));
            let request = cuporep_request { struct_size: size_of::<cuporep_request>(), ..crate::ffi::types::zeroed() };
            assert_eq!(cuporep_check_c1(prover, ptr::null_mut(), ptr::null_mut(), 0, &raw const request), 101);
            cuporep_prover_free(prover);
        }
    }
}
