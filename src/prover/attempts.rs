//! Makes a proof on the first device that can, and keeps account of those that could not.

use std::collections::VecDeque;
use std::sync::Arc;

use super::placement::{Candidate, Candidates};
use super::{Fallback, Placement, Prover};
use crate::backend::Backend;
use crate::error::{Error, Result};
use crate::porep::SectorSize;

/// The devices that are left to try.
pub(super) struct Attempts<'a> {
    prover: &'a Prover,
    /// A size whose proofs must fit into memory.
    size: Option<SectorSize>,
    left: VecDeque<Candidate>,
    fallbacks: Vec<Fallback>,
}

/// A device whose turn it is.
pub(super) struct Opened {
    pub backend: Arc<dyn Backend>,
    /// Bytes of host memory that a proof takes on it.
    pub memory: u64,
    /// No other device is left.
    pub last: bool,
}

/// What was made, and where.
pub(super) struct Made<T> {
    pub value: T,
    pub on: Opened,
    pub fallbacks: Vec<Fallback>,
}

impl Prover {
    /// What may be tried under a placement.
    pub(super) fn attempts(&self, request: &Placement, size: Option<SectorSize>) -> Result<Attempts<'_>> {
        let Candidates { candidates, fallbacks } = self.candidates(request)?;
        Ok(Attempts { prover: self, size, left: candidates.into(), fallbacks })
    }
}

impl Attempts<'_> {
    /// Opens the next device that can be opened and for which there is memory. Errors that another device may not have
    /// are passed over while there is another.
    pub fn open(&mut self) -> Result<Opened> {
        loop {
            let next = self.left.pop_front().ok_or_else(|| Error::internal("no device is left to try"))?;
            match self.try_open(&next) {
                Ok(opened) => return Ok(opened),
                Err(error) => self.pass_over(&name(&next), error)?,
            }
        }
    }

    fn try_open(&self, candidate: &Candidate) -> Result<Opened> {
        let backend = self.prover.backends.get(candidate)?;
        let memory = match self.size {
            Some(size) => self.prover.require_memory(&*backend, size)?,
            None => 0,
        };
        Ok(Opened { backend, memory, last: self.left.is_empty() })
    }

    /// Notes that a device failed, if another one may do what it could not; else that is the outcome.
    fn pass_over(&mut self, device: &str, error: Error) -> Result<()> {
        if self.left.is_empty() || !error.is_of_device() {
            return Err(error);
        }
        self.note(device, &error);
        Ok(())
    }

    fn note(&mut self, device: &str, error: &Error) {
        log::warn!("{device} failed, and the proof is tried again: {error}");
        self.fallbacks.push(Fallback::new(device, error));
    }

    /// Makes something on the opened device, else on those left. A context that was lost is opened anew and tried once
    /// more before the device is passed over.
    pub fn make<T>(mut self, mut opened: Opened, work: impl Fn(&Opened) -> Result<T>) -> Result<Made<T>> {
        let mut lost_before = false;
        loop {
            let device = opened.backend.name().to_string();
            match work(&opened) {
                Ok(value) => return Ok(Made { value, on: opened, fallbacks: self.fallbacks }),
                Err(error @ Error::DeviceLost { .. }) if !lost_before => {
                    self.note(&device, &error);
                    lost_before = true;
                }
                Err(error) => {
                    self.pass_over(&device, error)?;
                    // What it keeps may be what is wrong, and the next device may want the host's part of it.
                    opened.backend.release();
                    opened = self.open()?;
                    lost_before = false;
                }
            }
        }
    }
}

fn name(candidate: &Candidate) -> String {
    match candidate {
        Candidate::Gpu(device) => device.to_string(),
        Candidate::Cpu => "cpu".into(),
    }
}
