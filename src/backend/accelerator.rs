//! GPUs as the prover sees them: a list, and a backend for each that is opened when it is first used.

use std::fmt;
use std::sync::Arc;

use super::{Backend, Load};
use crate::error::{Error, Result};
use crate::r1cs::Constraints;

/// A GPU that can make proofs.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Device {
    /// Its number; `CUDA_VISIBLE_DEVICES` hides and reorders devices.
    pub ordinal: u32,
    /// The name that its maker gave it.
    pub name: String,
    /// What tells it apart from all others, as `GPU-` and a number.
    pub uuid: String,
    /// Compute capability, as (9, 0).
    pub compute: (u32, u32),
    /// Bytes of its memory.
    pub memory: u64,
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cuda:{} {} ({})", self.ordinal, self.name, self.uuid)
    }
}

impl Device {
    /// What metrics call a device of this name (as displayed): the UUID, since numbers change with what is visible to a
    /// process; `cpu` as it is.
    pub(crate) fn label(name: &str) -> &str {
        let uuid = name.rsplit_once('(').and_then(|(_, end)| end.strip_suffix(')'));
        uuid.unwrap_or(name)
    }

    /// Bytes of its memory that nobody holds now; `None` where it cannot be asked. Opens the device for a moment.
    pub fn free_memory(&self) -> Option<u64> {
        #[cfg(feature = "cuda")]
        return super::cuda::gpu::Gpu::bare(self.ordinal).and_then(|gpu| gpu.free_memory()).ok();
        #[cfg(not(feature = "cuda"))]
        None
    }
}

/// The time of a kernel, or of several that belong together.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Figure {
    /// What was measured.
    pub name: String,
    /// The median, in milliseconds on the device.
    pub milliseconds: f64,
    /// What its products or its memory traffic would take alone, in milliseconds.
    pub floor: f64,
}

/// What times of kernels are wanted.
#[cfg_attr(not(feature = "cuda"), expect(dead_code, reason = "no kernels, nobody to read it"))]
pub(crate) struct Measurement<'a> {
    /// The binary logarithm of the largest size.
    pub largest: u32,
    /// Constraint systems to evaluate, with their names.
    pub systems: &'a [(String, &'a dyn Constraints)],
    /// Takes each figure; an error of its own ends the measurement.
    pub report: &'a mut dyn FnMut(Figure) -> Result<()>,
}

/// Where GPUs come from.
pub(crate) trait Accelerators: Send + Sync {
    /// The GPUs that can make proofs.
    ///
    /// # Errors
    /// If there should be some and they cannot be asked.
    fn list(&self) -> Result<Vec<Device>>;

    /// Why the list is empty.
    fn why_none(&self) -> String;

    /// Bytes of host memory that a device's backend holds, as [`Backend::host_memory`].
    fn host_memory(&self, load: &Load) -> u64;

    /// A backend for a device, which may use so many bytes of its memory; `None`: what is free.
    fn open(&self, device: &Device, memory: Option<u64>) -> Result<Arc<dyn Backend>>;

    /// Times the kernels of a device.
    fn measure(&self, device: &Device, _: &mut Measurement<'_>) -> Result<()> {
        Err(Error::Device { device: device.to_string(), detail: "has no kernels to measure".into() })
    }
}

/// The GPUs that this build can use. Unit tests say themselves which they want: the emulated one serves one at a time.
#[cfg(all(feature = "cuda", not(test)))]
pub(crate) fn accelerators() -> Arc<dyn Accelerators> {
    Arc::new(super::cuda::backend::CudaGpus)
}

/// The GPUs that this build can use: none.
#[cfg(any(not(feature = "cuda"), test))]
pub(crate) fn accelerators() -> Arc<dyn Accelerators> {
    Arc::new(NoAccelerators)
}

/// A build without code for GPUs.
#[cfg(any(not(feature = "cuda"), test))]
struct NoAccelerators;

#[cfg(any(not(feature = "cuda"), test))]
impl Accelerators for NoAccelerators {
    fn list(&self) -> Result<Vec<Device>> {
        Ok(Vec::new())
    }

    fn why_none(&self) -> String {
        "this build has code for the CPU only".into()
    }

    fn host_memory(&self, _: &Load) -> u64 {
        0
    }

    fn open(&self, device: &Device, _: Option<u64>) -> Result<Arc<dyn Backend>> {
        Err(Error::Device { device: device.to_string(), detail: self.why_none() })
    }
}
