//! A device over the life of a prover: opened and tested when it is needed, opened anew after it was lost, given up when
//! its memory is wanted back.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use parking_lot::{Mutex, MutexGuard};

use super::gpu::{Gpu, WeakGpu};
use super::selftest;
use crate::backend::Device;
use crate::error::Result;

/// A device with what is kept on it between proofs.
pub(crate) struct Card<K> {
    ordinal: u32,
    name: String,
    open: Mutex<Option<Open<K>>>,
    /// The open device, to be asked while it is in use.
    watched: Mutex<WeakGpu>,
    /// Somebody wants its memory back and could not have it at once.
    wanted_back: AtomicBool,
}

struct Open<K> {
    // Dropped before the context is.
    kept: K,
    gpu: Gpu,
}

impl<K: Default> Card<K> {
    /// A device that is not open yet.
    pub fn new(device: &Device) -> Self {
        let (ordinal, name) = (device.ordinal, device.to_string());
        let (open, watched, wanted_back) = (Mutex::new(None), Mutex::default(), AtomicBool::new(false));
        Card { ordinal, name, open, watched, wanted_back }
    }

    /// How reports call it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Does something on the device with what is kept there, alone; opens and tests it first if it is not open. After an
    /// error that spoiled the context, and after a panic, everything on the device is given up.
    pub fn with<T>(&self, work: impl FnOnce(&Gpu, &mut K) -> Result<T>) -> Result<T> {
        let mut slot = self.open.lock();
        // Out of its place while it is worked with: a panic drops it.
        let kept = slot.take().filter(|open| !open.gpu.is_lost());
        let mut open = match kept {
            Some(open) => open,
            None => self.open()?,
        };
        let outcome = work(&open.gpu, &mut open.kept);
        if !open.gpu.is_lost() {
            *slot = Some(open);
        }
        self.leave(slot);
        outcome
    }

    fn open(&self) -> Result<Open<K>> {
        let gpu = Gpu::open(self.ordinal)?;
        selftest::check(&gpu)?;
        *self.watched.lock() = gpu.downgrade();
        log::debug!("{}: opened, the self-test passed", self.name);
        Ok(Open { kept: K::default(), gpu })
    }

    /// Gives the device's memory back: at once, or when the work that is being done there ends.
    pub fn release(&self) {
        self.wanted_back.store(true, Ordering::SeqCst);
        self.settle();
    }

    fn leave(&self, slot: MutexGuard<'_, Option<Open<K>>>) {
        drop(slot);
        self.settle();
    }

    /// Does what [`Card::release`] asked for unless somebody works on the device, who then does it afterwards.
    fn settle(&self) {
        while self.wanted_back.load(Ordering::SeqCst) {
            let Some(mut slot) = self.open.try_lock() else { return };
            if self.wanted_back.swap(false, Ordering::SeqCst) {
                let begin = Instant::now();
                drop(slot.take());
                log::debug!("{} closed in {:.0?}", self.name, begin.elapsed());
            }
        }
    }

    /// Bytes of the device's memory that are allocated, also while somebody works there; 0 where it is not open.
    pub fn memory(&self) -> u64 {
        self.watched.lock().upgrade().map_or(0, |gpu| gpu.allocated())
    }
}

/// The GPUs that the driver shows.
pub(crate) fn devices() -> Result<Vec<Device>> {
    let found = super::gpu::properties_of_all()?;
    let device = |properties: super::gpu::Properties| Device {
        ordinal: properties.ordinal,
        name: properties.name,
        uuid: properties.uuid,
        compute: properties.compute,
        memory: properties.memory,
    };
    Ok(found.into_iter().map(device).collect())
}

#[cfg(all(test, feature = "emulator"))]
mod tests {
    use super::*;
    use crate::backend::cuda::gpu::emulated::{self, census};
    use crate::backend::cuda::gpu::Buffer;
    use crate::backend::cuda::testing;
    use crate::error::Error;

    /// Keeps a buffer.
    type Keeper = Card<Option<Buffer<u64>>>;

    fn card() -> Keeper {
        Card::new(&devices().unwrap()[0])
    }

    /// Allocates what is kept unless it is there, and says whether it was.
    fn keep(card: &Keeper) -> Result<bool> {
        card.with(|gpu, kept| {
            let there = kept.is_some();
            if !there {
                *kept = Some(gpu.allocate(100, "kept")?);
            }
            Ok(there)
        })
    }

    #[test]
    fn the_self_test_passes_and_what_is_kept_stays_until_it_is_released() {
        let Some(_machine) = testing::machine() else { return };
        let card = card();
        assert!(card.name().starts_with("cuda:0 ") && card.name().contains("GPU-"), "{}", card.name());
        assert_eq!(census(), Default::default(), "nothing is opened before the first use");
        assert_eq!((keep(&card).unwrap(), keep(&card).unwrap()), (false, true));
        assert_eq!((census().contexts, census().bytes, card.memory()), (1, 800, 800));
        card.release();
        assert_eq!(census(), Default::default());
        card.release();
        assert!(!keep(&card).unwrap());
    }

    #[test]
    fn a_device_that_computes_wrongly_is_not_used() {
        let Some(_machine) = testing::machine() else { return };
        for copy in 0..3 {
            emulated::corrupt(copy);
            let error = keep(&card()).unwrap_err();
            assert!(matches!(&error, Error::Device { detail, .. } if detail.contains("1 of 8 blocks")), "{error}");
            assert_eq!(census(), Default::default());
        }
        assert!(!keep(&card()).unwrap());
    }

    #[test]
    fn a_lost_context_is_opened_anew_by_the_next_use() {
        let Some(_machine) = testing::machine() else { return };
        let card = card();
        keep(&card).unwrap();
        emulated::fault("cuStreamCreate", 0, 700, true);
        let error = card.with(|gpu, _| gpu.stream().map(drop)).unwrap_err();
        assert!(matches!(error, Error::DeviceLost { .. }), "{error}");
        assert_eq!(census(), Default::default(), "nothing of the lost context is left");
        assert_eq!((keep(&card).unwrap(), keep(&card).unwrap()), (false, true));
        // An error that spoils nothing leaves what is kept.
        emulated::fault("cuStreamCreate", 0, 2, false);
        let error = card.with(|gpu, _| gpu.stream().map(drop)).unwrap_err();
        assert!(matches!(error, Error::DeviceCall { .. }), "{error}");
        assert!(keep(&card).unwrap());
    }

    #[test]
    fn release_during_work_returns_at_once_and_happens_at_its_end() {
        let Some(_machine) = testing::machine() else { return };
        let card = card();
        keep(&card).unwrap();
        let during = card.with(|_, _| {
            card.release();
            Ok(census().contexts)
        });
        assert_eq!(during.unwrap(), 1);
        assert_eq!(census(), Default::default());
    }

    #[test]
    fn a_panic_gives_up_the_device_and_the_next_use_works() {
        let Some(_machine) = testing::machine() else { return };
        let card = card();
        keep(&card).unwrap();
        let panics = || card.with(|_, _| -> Result<()> { std::panic::resume_unwind(Box::new("injected")) });
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(panics)).is_err());
        assert_eq!(census(), Default::default());
        assert!(!keep(&card).unwrap());
    }
}
