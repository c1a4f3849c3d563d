//! Proofs on one GPU.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use parking_lot::Mutex;

use super::bases::Bases;
use super::bench;
use super::card::{devices, Card};
use super::gpu::{why_none, Gpu};
use super::proof::{host_memory, Loaded, Resident, Wanted};
use crate::backend::accelerator::{Accelerators, Measurement};
use crate::backend::{Backend, Device, DeviceMemory, Job, Load};
use crate::error::Result;
use crate::groth16::{Parameters, ProofParts};
use crate::pipeline::Control;
use crate::r1cs::Constraints;

/// One GPU. It is opened and tested when it is made, opened anew after its context was lost or released.
pub(crate) struct CudaBackend {
    card: Card<Resident>,
    /// Bytes of the device's memory that may be used; what is free if there is no number.
    memory: Option<u64>,
    /// Bytes of host memory that are kept.
    kept: AtomicU64,
    /// What the device's memory was used for when it was looked at last.
    uses: Mutex<DeviceMemory>,
}

impl CudaBackend {
    /// Opens a device, so that one that cannot be used is known before anything long is done.
    pub fn open(device: &Device, memory: Option<u64>) -> Result<Self> {
        let card = Card::new(device);
        card.with(|_, _| Ok(()))?;
        Ok(CudaBackend { card, memory, kept: AtomicU64::new(0), uses: Mutex::default() })
    }

    /// Takes bases that are made on the device.
    pub(super) fn install(&self, make: impl FnOnce(&Gpu) -> Result<Bases>) -> Result<()> {
        self.card.with(|gpu, resident| {
            let outcome = resident.install(|| make(gpu));
            self.note(resident);
            outcome
        })
    }

    /// As [`Backend::prove`], with bases that are made first where they are not there (any more).
    pub(super) fn prove_made(
        &self,
        job: &Loaded<'_>,
        make: impl FnOnce(&Gpu) -> Result<Bases>,
    ) -> Result<Vec<ProofParts>> {
        let Loaded { r1cs, witnesses, control, .. } = *job;
        let wanted = Wanted { r1cs, parameters: None, witnesses: witnesses.len(), memory: self.memory };
        self.card.with(|gpu, resident| {
            gpu.traced(control.trace(), || {
                if !resident.has_made_bases() {
                    resident.install(|| make(gpu))?;
                }
                self.load_noted(gpu, resident, &wanted, control)?;
                resident.prove_loaded(gpu, job, self.memory)
            })
        })
    }

    /// Loads what is kept, and notes what that takes: others ask for it while proofs are made.
    fn load_noted(&self, gpu: &Gpu, resident: &mut Resident, wanted: &Wanted<'_>, control: &Control) -> Result<()> {
        let outcome = resident.load(gpu, wanted, control);
        self.note(resident);
        outcome
    }

    fn note(&self, resident: &Resident) {
        self.kept.store(resident.host_bytes(), Ordering::Relaxed);
        *self.uses.lock() = resident.device_uses();
    }
}

impl Backend for CudaBackend {
    fn name(&self) -> &str {
        self.card.name()
    }

    fn host_memory(&self, load: &Load) -> u64 {
        host_memory(load)
    }

    fn kept_memory(&self) -> u64 {
        self.kept.load(Ordering::Relaxed)
    }

    fn device_memory(&self) -> u64 {
        self.card.memory()
    }

    fn device_memory_uses(&self) -> DeviceMemory {
        // Work that was interrupted by a release may have noted its memory after that.
        match self.device_memory() {
            0 => DeviceMemory::default(),
            _ => *self.uses.lock(),
        }
    }

    fn load(&self, r1cs: &dyn Constraints, parameters: &Parameters, witnesses: usize, control: &Control) -> Result<()> {
        let wanted = Wanted { r1cs, parameters: Some(parameters), witnesses, memory: self.memory };
        self.card.with(|gpu, resident| self.load_noted(gpu, resident, &wanted, control))
    }

    fn prove(&self, job: &Job<'_>) -> Result<Vec<ProofParts>> {
        let Job { r1cs, parameters, witnesses, control, .. } = *job;
        let wanted = Wanted { r1cs, parameters: Some(parameters), witnesses: witnesses.len(), memory: self.memory };
        self.card.with(|gpu, resident| {
            gpu.traced(control.trace(), || {
                self.load_noted(gpu, resident, &wanted, control)?;
                resident.prove(gpu, job, self.memory)
            })
        })
    }

    fn release(&self) {
        self.card.release();
        self.kept.store(0, Ordering::Relaxed);
    }
}

/// The GPUs that the CUDA driver shows.
pub(crate) struct CudaGpus;

impl Accelerators for CudaGpus {
    fn list(&self) -> Result<Vec<Device>> {
        devices()
    }

    fn why_none(&self) -> String {
        why_none()
    }

    fn host_memory(&self, load: &Load) -> u64 {
        host_memory(load)
    }

    fn open(&self, device: &Device, memory: Option<u64>) -> Result<Arc<dyn Backend>> {
        Ok(Arc::new(CudaBackend::open(device, memory)?))
    }

    fn measure(&self, device: &Device, measurement: &mut Measurement<'_>) -> Result<()> {
        bench::all(&Gpu::open(device.ordinal)?, measurement)
    }
}

#[cfg(all(test, feature = "emulator"))]
mod tests {
    use super::*;
    use crate::backend::cuda::gpu::emulated::{self, census};
    use crate::backend::cuda::testing;

    #[test]
    fn a_backend_opens_its_device_and_gives_it_back() {
        let Some(_machine) = testing::machine() else { return };
        let devices = CudaGpus.list().unwrap();
        let backend = CudaGpus.open(&devices[0], None).unwrap();
        assert!(backend.name().starts_with("cuda:0 Emulated GPU (GPU-"), "{}", backend.name());
        assert_eq!((census().contexts, backend.device_memory()), (1, 0));
        backend.release();
        assert_eq!(census(), Default::default());
        emulated::set_devices(0);
        assert!(CudaGpus.list().unwrap().is_empty());
        assert!(CudaGpus.why_none().contains("CUDA_VISIBLE_DEVICES"));
    }
}
