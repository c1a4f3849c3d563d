//! Requests and configurations of the C ABI as those of the crate.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::boundary::{path, slice, string};
use super::callbacks::Progress;
use super::status::cuporep_policy;
use super::types::{self, cuporep_config, cuporep_request};
use crate::error::{Error, Result};
use crate::pipeline::Control;
use crate::{Config, DeviceName, Placement, Policy, ProveRequest};

/// A longer request id is cut.
const REQUEST_ID_CHARACTERS: usize = 128;

/// A caller's request in our terms.
pub(super) struct Request<'a> {
    pub prove: ProveRequest<'a>,
    /// The proof must be what goes on chain.
    pub on_chain: bool,
    pub progress: Arc<Progress>,
}

/// Reads a request.
///
/// # Safety
/// `pointer` is NULL or points to a request whose pointers are good while the result lives.
pub(super) unsafe fn request<'a>(pointer: *const cuporep_request) -> Result<Request<'a>> {
    // SAFETY: the caller's promise, here and below.
    let request = unsafe { types::read(pointer) }?;
    let (c1, names, id) = unsafe {
        (
            slice("c1", request.c1, request.c1_len)?,
            devices(slice("devices", request.devices, request.devices_len)?, string(request.device_names))?,
            string(request.request_id).unwrap_or_default(),
        )
    };
    let id: String = id.chars().take(REQUEST_ID_CHARACTERS).collect();
    let progress = Progress::new(request.progress, request.progress_user, &id);
    let mut control = Control::new().with_priority(request.priority).with_request_id(id);
    if request.progress.is_some() {
        let progress = progress.clone();
        control = control.with_progress(move |event| progress.report(event));
    }
    // SAFETY: the caller's promise.
    if let Some(token) = unsafe { request.cancel_token.as_ref() } {
        control = control.with_cancel(token.token.clone());
    }
    if flag("has_deadline", request.has_deadline)? {
        // A deadline beyond what the clock can say never comes.
        if let Some(deadline) = Instant::now().checked_add(Duration::from_millis(request.deadline_ms)) {
            control = control.with_deadline(deadline);
        }
    }
    let prove = ProveRequest {
        c1,
        sector: request.sector_number,
        miner: (!flag("miner_unknown", request.miner_unknown)?).then_some(request.miner_actor_id),
        parameter_dir: None,
        placement: Placement { policy: policy(request.policy)?, devices: names },
        fixed_randomness: None,
        control,
    };
    Ok(Request { prove, on_chain: flag("on_chain", request.on_chain)?, progress })
}

/// Reads a configuration; NULL is the default.
///
/// # Safety
/// `pointer` is NULL or points to a configuration whose pointers are good during this call.
pub(super) unsafe fn config(pointer: *const cuporep_config) -> Result<Config> {
    if pointer.is_null() {
        return Ok(Config::default());
    }
    // SAFETY: the caller's promise.
    unsafe {
        let config = types::read(pointer)?;
        let indices = slice("devices", config.devices, config.devices_len)?;
        let devices = devices(indices, string(config.device_names))?;
        Ok(Config {
            parameter_dir: path(config.parameter_dir),
            cache_dir: path(config.cache_dir),
            placement: Placement { policy: policy(config.policy)?, devices },
            threads: (config.threads != 0).then_some(config.threads as usize),
            memory: (config.host_bytes != 0).then_some(config.host_bytes),
            device_memory: (config.device_bytes != 0).then_some(config.device_bytes),
            gpu_workers: (config.gpu_workers != 0).then(|| config.gpu_workers.try_into().unwrap_or(usize::MAX)),
        })
    }
}

/// The devices of a list of indices or of names.
fn devices(indices: &[u32], names: Option<String>) -> Result<Vec<DeviceName>> {
    match names {
        Some(_) if !indices.is_empty() => {
            Err(Error::Argument { name: "device_names", detail: "is given together with devices".into() })
        }
        Some(names) => names.split(',').map(|name| name.trim().parse()).collect(),
        None => Ok(indices.iter().copied().map(DeviceName::from).collect()),
    }
}

fn flag(name: &'static str, number: i32) -> Result<bool> {
    match number {
        0 => Ok(false),
        1 => Ok(true),
        other => Err(Error::Argument { name, detail: format!("is {other}, neither 0 nor 1") }),
    }
}

fn policy(number: i32) -> Result<Option<Policy>> {
    let policies = [
        (cuporep_policy::Default, None),
        (cuporep_policy::GpuOnly, Some(Policy::GpuOnly)),
        (cuporep_policy::PreferGpu, Some(Policy::PreferGpu)),
        (cuporep_policy::Cpu, Some(Policy::Cpu)),
    ];
    let known = policies.into_iter().find(|(policy, _)| *policy as i32 == number);
    known
        .map(|(_, policy)| policy)
        .ok_or_else(|| Error::Argument { name: "policy", detail: format!("{number} is none of enum cuporep_policy") })
}
