//! How a prover is doing: all the numbers that its metrics are made of.

use std::time::Duration;

use super::Prover;
use crate::backend::DeviceMemory;

/// How a [`Prover`] is doing at one moment.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Status {
    /// Calls that have checked their input and wait for memory or a place on a device.
    pub waiting: usize,
    /// Calls that were admitted and have not ended: proofs, and loading of parameters or circuits.
    pub running: usize,
    /// Bytes of host memory that are set aside for these, and for what stays loaded between them.
    pub host_reserved: u64,
    /// The most bytes that were ever set aside.
    pub host_peak: u64,
    /// Bytes that may be set aside; `None` where the system does not tell.
    pub host_budget: Option<u64>,
    /// The prover was shut down.
    pub shut_down: bool,
    /// The GPUs that were asked for so far, then the CPU.
    pub devices: Vec<DeviceStatus>,
}

/// How a device of a prover is doing.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct DeviceStatus {
    /// What [`SealProof::device`](crate::SealProof::device) calls it.
    pub name: String,
    /// What tells a GPU apart from all others; empty for the CPU.
    pub uuid: String,
    /// It failed, and is passed over for so long where there are others. `None`: it is up.
    pub set_aside: Option<Duration>,
    /// Proofs that have a place there.
    pub proofs: usize,
    /// Partitions in work there.
    pub partitions: usize,
    /// Bytes of its own memory that are allocated.
    pub bytes: u64,
    /// What these are used for: all but small buffers.
    pub memory: DeviceMemory,
}

impl DeviceStatus {
    /// Whether it is used like any other.
    pub fn is_up(&self) -> bool {
        self.set_aside.is_none()
    }
}

impl Prover {
    /// How it is doing. Cheap, and waits for nothing.
    pub fn status(&self) -> Status {
        let numbers = self.admission.numbers();
        Status {
            waiting: numbers.waiting,
            running: numbers.running,
            host_reserved: numbers.reserved,
            host_peak: numbers.peak,
            host_budget: numbers.budget,
            shut_down: self.calls.are_over(),
            devices: self.lanes.status(|key| numbers.places.get(key).copied().unwrap_or(0)),
        }
    }
}
