//! An open device: its context, its loaded kernels, and what happens when a call fails.

use std::collections::HashMap;
use std::fmt;
use std::marker::PhantomData;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use parking_lot::Mutex;

use super::device::look_at;
use super::driver::{Driver, Handle, Unavailable, OUT_OF_MEMORY, SUCCESS};
use super::launch::Function;
use super::tracer::Tracer;
use super::{modules, Buffer, Event, Pinned, Plain, Properties, Stream};
use crate::error::{Error, Result};

/// Threads that wait for the device sleep: their cores have other work.
const BLOCKING_SYNC: u32 = 4;

/// Codes after which a context is lost: every later call in it fails, until it is destroyed.
const STICKY: [i32; 18] = [4, 46, 214, 220, 226, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719, 721, 722, 999];

/// Codes of an image that this device cannot run.
const UNUSABLE_IMAGE: [i32; 5] = [200, 209, 218, 222, 223];

/// An open device. Cheap to clone; the last clone, and the last of its buffers and streams, closes it.
#[derive(Clone)]
pub struct Gpu(pub(super) Arc<Context>);

/// A device that is looked at only as long as it is open.
#[derive(Default)]
pub struct WeakGpu(Weak<Context>);

impl WeakGpu {
    /// The device if it is open; it stays so at least as long as the result lives.
    pub fn upgrade(&self) -> Option<Gpu> {
        self.0.upgrade().map(Gpu)
    }
}

/// A context of our own: if an error spoils it, it can be destroyed without harm to other users of the device.
pub(super) struct Context {
    pub driver: &'static Driver,
    handle: Handle,
    pub properties: Properties,
    modules: OnceLock<Vec<Handle>>,
    pub functions: Mutex<HashMap<&'static str, Function>>,
    /// The code of the error that spoiled the context, or zero.
    lost: AtomicI32,
    /// Bytes of all buffers.
    pub allocated: AtomicU64,
    pub tracer: Tracer,
}

// SAFETY: the driver's functions may be called from any thread with any handle; each call makes the context current on
// its own thread first.
unsafe impl Send for Context {}
// SAFETY: as above; what is not atomic is behind a lock or never changes.
unsafe impl Sync for Context {}

impl fmt::Debug for Gpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Gpu({})", self.label())
    }
}

impl Gpu {
    /// Opens a device and loads the kernels.
    ///
    /// # Errors
    /// [`Error::Device`] if it does not exist or the build has no kernels for it, [`Error::DeviceCall`].
    pub fn open(ordinal: u32) -> Result<Self> {
        let gpu = Gpu::bare(ordinal)?;
        let modules = {
            let _current = gpu.0.enter()?;
            gpu.0.load_modules()?
        };
        gpu.0.modules.set(modules).expect("nobody else has the context yet");
        Ok(gpu)
    }

    /// Opens a device without loading kernels: cheap enough to ask how much memory is free.
    pub(crate) fn bare(ordinal: u32) -> Result<Self> {
        let driver = Driver::get().map_err(Unavailable::into_error)?;
        let (device, properties) = look_at(driver, ordinal)?;
        let mut handle = null_mut();
        // SAFETY: the driver stores the new context and makes it current; the guard takes that back.
        let code = unsafe { (driver.context_create.function)(&mut handle, BLOCKING_SYNC, device) };
        let (lost, allocated) = (AtomicI32::new(SUCCESS), AtomicU64::new(0));
        let (functions, modules, tracer) = (Mutex::default(), OnceLock::new(), Tracer::default());
        let context = Context { driver, handle, properties, modules, functions, lost, allocated, tracer };
        context.check(driver.context_create.name, code)?;
        drop(Current { driver, not_send: PhantomData });
        Ok(Gpu(Arc::new(context)))
    }

    /// Does not keep the device open.
    pub fn downgrade(&self) -> WeakGpu {
        WeakGpu(Arc::downgrade(&self.0))
    }

    /// What is known of the device.
    pub fn properties(&self) -> &Properties {
        &self.0.properties
    }

    /// How messages call it, as `cuda:0 (NVIDIA H200)`.
    pub fn label(&self) -> String {
        self.0.properties.label()
    }

    /// Whether an error has spoiled the context: every call fails from then on. Drop all that belongs to it and open
    /// the device again.
    pub fn is_lost(&self) -> bool {
        self.0.lost.load(Ordering::Relaxed) != SUCCESS
    }

    /// Bytes of the device's memory that nobody holds.
    pub fn free_memory(&self) -> Result<u64> {
        let (mut free, mut total) = (0, 0);
        call!(self.0, memory_info(&mut free, &mut total))?;
        Ok(free as u64)
    }

    /// Bytes of the device's memory that buffers hold.
    pub fn allocated(&self) -> u64 {
        self.0.allocated.load(Ordering::Relaxed)
    }

    /// Memory on the device for `len` values, with whatever was in it; `what` names it in errors.
    ///
    /// # Errors
    /// [`Error::Memory`] if there is not enough, [`Error::DeviceCall`].
    pub fn allocate<T: Plain>(&self, len: usize, what: &'static str) -> Result<Buffer<T>> {
        Buffer::new(self, len, what)
    }

    /// Memory on the host that the device can copy from and to by itself, filled with zeros.
    ///
    /// # Errors
    /// [`Error::Memory`] if there is not enough, [`Error::DeviceCall`].
    pub fn pinned<T: Plain>(&self, len: usize, what: &'static str) -> Result<Pinned<T>> {
        Pinned::new(self, len, what)
    }

    /// A stream: what is queued on it runs in order, beside what is queued on others.
    pub fn stream(&self) -> Result<Stream> {
        Stream::new(self)
    }

    /// An event, to wait for and to measure times with.
    pub fn event(&self) -> Result<Event> {
        Event::new(self)
    }
}

impl Context {
    fn load_modules(&self) -> Result<Vec<Handle>> {
        let emulated = cfg!(feature = "emulator") && is_emulated();
        if !modules::has_images() && !emulated {
            return Err(self.unusable("this build holds no kernels for real devices".into()));
        }
        let load = |module: &'static modules::Module| {
            let image = module.image(emulated);
            let mut handle = null_mut();
            // SAFETY: the image is a whole fatbin, which the driver copies.
            let code = unsafe { (self.driver.module_load.function)(&mut handle, image.as_ptr().cast()) };
            if UNUSABLE_IMAGE.contains(&code) {
                return Err(self.unusable(format!(
                    "its compute capability is {}.{}, and the kernels {} were built for {}: {}",
                    self.properties.compute.0,
                    self.properties.compute.1,
                    module.name,
                    modules::architectures(),
                    self.driver.describe(code)
                )));
            }
            self.check(self.driver.module_load.name, code).map(|()| handle)
        };
        modules::all().iter().map(load).collect()
    }

    fn unusable(&self, detail: String) -> Error {
        Error::Device { device: self.properties.label(), detail }
    }

    /// The loaded modules.
    pub fn modules(&self) -> impl Iterator<Item = Handle> + '_ {
        self.modules.get().into_iter().flatten().copied()
    }

    /// Makes the context current on this thread until the guard is dropped; whatever was current before is so again
    /// then: other libraries in the process may rely on theirs.
    pub fn enter(&self) -> Result<Current> {
        match self.lost.load(Ordering::Relaxed) {
            SUCCESS => (),
            code => return Err(self.lost("the context was given up", code)),
        }
        // SAFETY: the context lives as long as `self`.
        let code = unsafe { (self.driver.context_push.function)(self.handle) };
        self.check(self.driver.context_push.name, code)?;
        Ok(Current { driver: self.driver, not_send: PhantomData })
    }

    /// Turns a code into an error; one that spoils the context is remembered.
    pub fn check(&self, call: &'static str, code: i32) -> Result<()> {
        if code == SUCCESS {
            return Ok(());
        }
        if STICKY.contains(&code) {
            self.lost.store(code, Ordering::Relaxed);
            return Err(self.lost(&format!("{call} failed"), code));
        }
        let detail = self.driver.describe(code);
        Err(Error::DeviceCall { device: self.properties.label(), call, code, detail })
    }

    fn lost(&self, what: &str, code: i32) -> Error {
        let detail = format!("{what} with {}", self.driver.describe(code));
        Error::DeviceLost { device: self.properties.label(), detail }
    }

    /// The error of an allocation that failed with this code.
    pub fn no_memory(&self, call: &'static str, code: i32, what: &'static str, needed: u64, free: u64) -> Error {
        match self.check(call, code) {
            Err(error) if code != OUT_OF_MEMORY => error,
            _ => Error::Memory {
                what: format!("{what} on {}", self.properties.label()),
                needed,
                available: free,
                advice: "end other programs that use the device, or use one with more memory".into(),
            },
        }
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        if self.handle.is_null() {
            return;
        }
        // SAFETY: everything that belongs to the context held it alive and is gone. Frees all that is in it.
        let code = unsafe { (self.driver.context_destroy.function)(self.handle) };
        if code != SUCCESS {
            log::debug!("{}: cuCtxDestroy failed with {}", self.properties.label(), self.driver.describe(code));
        }
    }
}

/// While it lives a context is current on its thread.
pub(super) struct Current {
    driver: &'static Driver,
    /// The driver's current context belongs to a thread.
    not_send: PhantomData<*mut ()>,
}

impl Drop for Current {
    fn drop(&mut self) {
        let mut handle = null_mut();
        // SAFETY: takes back the push that made this guard.
        unsafe { (self.driver.context_pop.function)(&mut handle) };
    }
}

#[cfg(feature = "emulator")]
fn is_emulated() -> bool {
    super::emulated::wanted()
}

#[cfg(not(feature = "emulator"))]
fn is_emulated() -> bool {
    false
}

/// Calls a function of the driver with the context current, and checks its code.
macro_rules! call {
    ($context:expr, $function:ident($($argument:expr),* $(,)?)) => {
        $context.enter().and_then(|_current| {
            let entry = &$context.driver.$function;
            // SAFETY: the arguments are handles that the context owns, live memory of the lengths given, and places
            // for results.
            let code = unsafe { (entry.function)($($argument),*) };
            $context.check(entry.name, code)
        })
    };
}
pub(super) use call;
