//! What concerns the whole process in the C ABI: version, devices, log; and cancel tokens.

use std::ffi::{c_char, c_void};

use super::boundary::{boundary, output, text};
use super::types::{cuporep_cancel_token, cuporep_device, cuporep_log_fn, Output};
use crate::error::Error;
use crate::pipeline::CancelToken;
use crate::porep::RegisteredProof;

/// The version of the library, such as `0.1.0`.
#[no_mangle]
pub extern "C" fn cuporep_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// What the library was built with, separated by commas: `cpu`, and `cuda` where it has code for GPUs.
#[no_mangle]
pub extern "C" fn cuporep_features() -> *const c_char {
    match cfg!(feature = "cuda") {
        true => c"cpu,cuda".as_ptr(),
        false => c"cpu".as_ptr(),
    }
}

/// The length of a registered proof. (Any buffer of CUPOREP_PROOF_BYTES_MAX bytes is large enough.)
///
/// Returns: 0, CUPOREP_STATUS_PROOF_TYPE for a number that is not known.
/// Out:     proof_len: bytes of the proof.
/// In:      registered_proof: the number on chain (abi.RegisteredSealProof), such as 8 for StackedDrg32GiBV1_1.
#[no_mangle]
pub unsafe extern "C" fn cuporep_proof_len(
    proof_len: *mut usize,
    err: *mut c_char,
    err_cap: usize,
    registered_proof: u64,
) -> i32 {
    // SAFETY: the caller's promise.
    unsafe {
        boundary(err, err_cap, || {
            let proof_len = output("proof_len", proof_len)?;
            let known = RegisteredProof::all().find(|proof| proof.number() == registered_proof);
            let proof = known.ok_or_else(|| Error::ProofType {
                what: format!("registered proof number {registered_proof}"),
                supported: "0 to 19".into(),
                version: env!("CARGO_PKG_VERSION"),
            })?;
            *proof_len = proof.proof_len();
            Ok(())
        })
    }
}

/// Counts the devices that can make proofs. Without any, proofs are made on the CPU.
///
/// Returns: 0.
/// Out:     count: how many there are.
#[no_mangle]
pub unsafe extern "C" fn cuporep_devices(count: *mut usize, err: *mut c_char, err_cap: usize) -> i32 {
    // SAFETY: the caller's promise.
    unsafe {
        boundary(err, err_cap, || {
            *output("count", count)? = crate::devices().len();
            Ok(())
        })
    }
}

/// Describes a device. It is opened for a moment, to see how much of its memory is free.
///
/// Returns: 0, CUPOREP_STATUS_DEVICE if there is none of this index.
/// Out:     device: its struct_size must be set.
/// In:      index: from 0, below the count of cuporep_devices().
#[no_mangle]
pub unsafe extern "C" fn cuporep_device_info(
    device: *mut cuporep_device,
    err: *mut c_char,
    err_cap: usize,
    index: usize,
) -> i32 {
    // SAFETY: the caller's promise.
    unsafe {
        boundary(err, err_cap, || {
            let out = Output::new(output("device", device)?)?;
            let devices = crate::devices();
            let found = devices.get(index).ok_or_else(|| Error::Device {
                device: index.to_string(),
                detail: format!("does not exist; {} devices are usable", devices.len()),
            })?;
            out.set(cuporep_device {
                struct_size: 0,
                memory: found.memory,
                name: text(&found.name),
                uuid: text(&found.uuid),
                free_memory: found.free_memory().unwrap_or(0),
                ordinal: found.ordinal,
                compute_capability: 10 * found.compute.0 + found.compute.1,
            });
            Ok(())
        })
    }
}

/// Sends the log of this library to a function; the default is no log at all.
///
/// There is one for the whole process. When this returns, the previous function is not called any more. It must not
/// be called from a callback.
///
/// Returns: 0, CUPOREP_STATUS_ARGUMENT for an unknown level.
/// In:      function: receives lines, from any thread, also several at once. NULL: no log.
///          user: its first argument.
///          level: one of `enum cuporep_log_level`: lines of this and the lower numbers are sent.
#[no_mangle]
pub unsafe extern "C" fn cuporep_set_log(
    err: *mut c_char,
    err_cap: usize,
    function: cuporep_log_fn,
    user: *mut c_void,
    level: i32,
) -> i32 {
    // SAFETY: the caller's promise.
    unsafe { boundary(err, err_cap, || super::callbacks::set_log(function, user, level)) }
}

/// Makes a cancel token, which is not cancelled. Any number of calls may carry it.
///
/// Returns: the token, to be freed by cuporep_cancel_token_free().
#[no_mangle]
pub extern "C" fn cuporep_cancel_token_new() -> *mut cuporep_cancel_token {
    Box::into_raw(Box::new(cuporep_cancel_token { token: CancelToken::new() }))
}

/// Asks all calls that carry the token to stop; they return CUPOREP_STATUS_CANCELLED soon. It stays cancelled.
///
/// In:      token: or NULL, which does nothing.
#[no_mangle]
pub unsafe extern "C" fn cuporep_cancel_token_cancel(token: *const cuporep_cancel_token) {
    // SAFETY: the caller's promise.
    if let Some(token) = unsafe { token.as_ref() } {
        token.token.cancel();
    }
}

/// Frees a token. Calls that carry it go on.
///
/// In:      token: or NULL, which does nothing.
#[no_mangle]
pub unsafe extern "C" fn cuporep_cancel_token_free(token: *mut cuporep_cancel_token) {
    if !token.is_null() {
        // SAFETY: made by `cuporep_cancel_token_new`, and not used any more.
        drop(unsafe { Box::from_raw(token) });
    }
}
