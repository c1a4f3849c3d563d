//! The backends of a prover: the CPU, and a GPU's from its first use on.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use super::placement::Candidate;
use crate::backend::accelerator::Accelerators;
use crate::backend::Backend;
use crate::error::Result;

pub(super) struct Backends {
    cpu: Arc<dyn Backend>,
    accelerators: Arc<dyn Accelerators>,
    /// By UUID.
    gpus: Mutex<HashMap<String, Arc<dyn Backend>>>,
    /// Bytes that may be used on each device.
    device_memory: Option<u64>,
}

impl Backends {
    pub fn new(cpu: Arc<dyn Backend>, accelerators: Arc<dyn Accelerators>, device_memory: Option<u64>) -> Self {
        Backends { cpu, accelerators, gpus: Mutex::default(), device_memory }
    }

    pub fn accelerators(&self) -> &dyn Accelerators {
        &*self.accelerators
    }

    /// The candidate's backend, opened if it is not yet.
    pub fn get(&self, candidate: &Candidate) -> Result<Arc<dyn Backend>> {
        let Candidate::Gpu(device) = candidate else { return Ok(self.cpu.clone()) };
        if let Some(opened) = self.gpus.lock().get(&device.uuid) {
            return Ok(opened.clone());
        }
        // Without the lock: opening takes long, and giving memory back must not wait for it. Whoever opens has its turn
        // in the prover's queue, so nobody else does.
        let opened = self.accelerators.open(device, self.device_memory)?;
        self.gpus.lock().insert(device.uuid.clone(), opened.clone());
        Ok(opened)
    }

    /// Gives back what all of them keep between proofs.
    pub fn release(&self) {
        self.cpu.release();
        let opened: Vec<_> = self.gpus.lock().values().cloned().collect();
        opened.iter().for_each(|gpu| gpu.release());
    }
}
