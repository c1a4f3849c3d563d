//! Devices for tests: an emulated one, or a real one if `CUPOREP_TEST_GPU` is its number.

use std::ops::Deref;

use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::gpu::{emulated, Gpu, Limits};
use crate::environment::TEST_GPU_VARIABLE;

/// Tests share the emulated machine unless one changes it.
static MACHINE: RwLock<()> = RwLock::new(());

/// An open device that other tests may use at the same time.
pub struct Shared {
    // Dropped first: the device is closed before another test may change the machine.
    gpu: Gpu,
    _machine: RwLockReadGuard<'static, ()>,
}

impl Deref for Shared {
    type Target = Gpu;

    fn deref(&self) -> &Gpu {
        &self.gpu
    }
}

impl From<&Shared> for Limits {
    fn from(shared: &Shared) -> Self {
        Limits::from(&shared.gpu)
    }
}

/// The device that tests of kernels run on.
pub fn gpu() -> Shared {
    // Recursive: a test that asks twice must not wait for one that wants the machine alone.
    let machine = MACHINE.read_recursive();
    let ordinal = std::env::var(TEST_GPU_VARIABLE).ok().and_then(|value| value.parse().ok()).unwrap_or(0);
    Shared { gpu: Gpu::open(ordinal).expect("the test device can be opened"), _machine: machine }
}

/// The emulated machine for one test alone, to order faults, other devices and other amounts of memory of it. It is as
/// it was when this is dropped.
pub struct Machine {
    _alone: RwLockWriteGuard<'static, ()>,
}

/// Waits until no other test uses the machine. `None` where a real device is tested.
pub fn machine() -> Option<Machine> {
    let alone = MACHINE.write();
    if !emulated::wanted() {
        return None;
    }
    emulated::reset();
    Some(Machine { _alone: alone })
}

impl Drop for Machine {
    fn drop(&mut self) {
        emulated::reset();
    }
}
