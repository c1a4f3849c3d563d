//! Streams and events: what runs in order, and what waits for what.

use std::ptr::null_mut;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use super::context::{call, Gpu};
use super::driver::{Handle, SUCCESS};
use super::launch::pointers;
use super::pinned::is_pinned;
use super::tracer::Size;
use super::{Arg, Pinned, Plain, Span};
use crate::error::Result;

/// Does not wait for the default stream, which others in the process may use.
const NON_BLOCKING: u32 = 1;
/// Threads that wait for an event sleep.
const BLOCKING_SYNC: u32 = 1;
/// The event's stream has not come to it.
const NOT_READY: i32 = 600;

/// How long a thread sleeps that waits and looks around.
const POLL: Duration = Duration::from_micros(200);

/// A queue of work for a device.
#[derive(Debug)]
pub struct Stream {
    gpu: Gpu,
    handle: Handle,
    /// One word; not zero while what is queued is to end early.
    stop: Pinned<u32>,
}

/// A mark in a stream.
#[derive(Debug)]
pub struct Event {
    gpu: Gpu,
    handle: Handle,
}

// SAFETY: the driver's functions take handles from any thread.
unsafe impl Send for Stream {}
// SAFETY: as above.
unsafe impl Sync for Stream {}
// SAFETY: as above.
unsafe impl Send for Event {}
// SAFETY: as above.
unsafe impl Sync for Event {}

impl Stream {
    pub(super) fn new(gpu: &Gpu) -> Result<Self> {
        let stop = gpu.pinned(1, "a flag")?;
        let mut handle = null_mut();
        call!(gpu.0, stream_create(&mut handle, NON_BLOCKING))?;
        Ok(Stream { gpu: gpu.clone(), handle, stop })
    }

    /// The device that it belongs to.
    pub fn gpu(&self) -> &Gpu {
        &self.gpu
    }

    /// Queues a kernel over `grid` blocks of `block` threads, with so many bytes of dynamic `shared` memory a block. An
    /// empty grid is nothing to do.
    pub fn launch(&self, kernel: &'static str, grid: u32, block: u32, shared: u32, args: &[Arg]) -> Result<()> {
        if grid == 0 {
            return Ok(());
        }
        let context = &self.gpu.0;
        let _current = context.enter()?;
        let function = context.function(kernel, shared)?;
        function.check(kernel, args)?;
        let mut pointers = pointers(args);
        let entry = &context.driver.launch;
        self.note(kernel, Size::Threads { grid, block }, || {
            // SAFETY: the arguments have the sizes of the kernel's parameters and live until the driver has copied
            // them. What a kernel does with device memory cannot harm the host.
            let code = unsafe {
                let arguments = pointers.as_mut_ptr();
                (entry.function)(function.handle, grid, 1, 1, block, 1, 1, shared, self.handle, arguments, null_mut())
            };
            context.check(entry.name, code)
        })
    }

    /// Copies values to the device. They may be changed when this returns: pinned ones are waited for, others the
    /// driver takes over.
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn upload<T: Plain>(&self, to: Span<T>, from: &[T]) -> Result<()> {
        self.copy_to_device(to, from)?;
        match is_pinned(from) {
            true => self.synchronize(),
            false => Ok(()),
        }
    }

    /// Queues a copy of pinned values, from `first` on, and returns at once.
    ///
    /// # Safety
    /// The values are neither written to nor dropped until the stream has come past the copy.
    ///
    /// # Panics
    /// If there are fewer values than the span has.
    pub unsafe fn upload_later<T: Plain>(&self, to: Span<T>, from: &Pinned<T>, first: usize) -> Result<()> {
        self.copy_to_device(to, &from[first..first + to.len()])
    }

    fn copy_to_device<T: Plain>(&self, to: Span<T>, from: &[T]) -> Result<()> {
        assert_eq!(to.len(), from.len(), "a copy between different lengths");
        if from.is_empty() {
            return Ok(());
        }
        let bytes = size_of_val(from);
        self.note("upload", Size::Bytes(bytes), || {
            call!(self.gpu.0, copy_to_device(to.address(), from.as_ptr().cast(), bytes, self.handle))
        })
    }

    /// Copies values from the device, after what was queued before, and waits for them.
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn download<T: Plain>(&self, from: Span<T>, to: &mut [T]) -> Result<()> {
        self.copy_to_host(from, to)?;
        self.synchronize()
    }

    /// Queues a copy to pinned values, from `first` on, and returns at once.
    ///
    /// # Safety
    /// The values are neither read, written to nor dropped until the stream has come past the copy.
    ///
    /// # Panics
    /// If there are fewer values than the span has.
    pub unsafe fn download_later<T: Plain>(&self, from: Span<T>, to: &mut Pinned<T>, first: usize) -> Result<()> {
        self.copy_to_host(from, &mut to[first..first + from.len()])
    }

    fn copy_to_host<T: Plain>(&self, from: Span<T>, to: &mut [T]) -> Result<()> {
        assert_eq!(to.len(), from.len(), "a copy between different lengths");
        if to.is_empty() {
            return Ok(());
        }
        let bytes = size_of_val(to);
        self.note("download", Size::Bytes(bytes), || {
            call!(self.gpu.0, copy_to_host(to.as_mut_ptr().cast(), from.address(), bytes, self.handle))
        })
    }

    /// Queues a copy within the device.
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn copy<T: Plain>(&self, to: Span<T>, from: Span<T>) -> Result<()> {
        assert_eq!(to.len(), from.len(), "a copy between different lengths");
        if to.is_empty() {
            return Ok(());
        }
        self.note("copy", Size::Bytes(to.bytes()), || {
            call!(self.gpu.0, copy_on_device(to.address(), from.address(), to.bytes(), self.handle))
        })
    }

    /// Queues zeros.
    pub fn zero<T: Plain>(&self, to: Span<T>) -> Result<()> {
        if to.is_empty() {
            return Ok(());
        }
        self.note("zero", Size::Bytes(to.bytes()), || {
            call!(self.gpu.0, set_bytes(to.address(), 0, to.bytes(), self.handle))
        })
    }

    /// Marks the end of what was queued so far.
    pub fn record(&self, event: &Event) -> Result<()> {
        call!(self.gpu.0, event_record(event.handle, self.handle))
    }

    /// What is queued from now on begins after the event.
    pub fn wait(&self, event: &Event) -> Result<()> {
        call!(self.gpu.0, stream_wait(self.handle, event.handle, 0))
    }

    /// Waits until all that was queued is done. Errors of kernels appear here at the latest.
    pub fn synchronize(&self) -> Result<()> {
        self.gpu.0.tracer.wait(|| call!(self.gpu.0, stream_synchronize(self.handle)))
    }

    /// Waits like [`Stream::synchronize`] after telling long kernels to end early. Nobody may use what they leave.
    pub fn abandon(&self) -> Result<()> {
        self.stop().store(1, Ordering::SeqCst);
        let outcome = self.synchronize();
        self.stop().store(0, Ordering::SeqCst);
        outcome
    }

    /// Where long kernels see whether they are to end early: an address that the device reads by itself.
    pub fn stop_flag(&self) -> u64 {
        self.stop.address().addr() as u64
    }

    pub(in crate::backend::cuda) fn stop(&self) -> &AtomicU32 {
        // SAFETY: the word is aligned, lives as long as `self`, and the host accesses it in no other way.
        unsafe { AtomicU32::from_ptr(self.stop.address()) }
    }

    /// What tells it apart from other streams.
    pub(super) fn address(&self) -> usize {
        self.handle.addr()
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if self.gpu.is_lost() {
            return;
        }
        if let Err(error) = call!(self.gpu.0, stream_destroy(self.handle)) {
            log::warn!("{error}");
        }
    }
}

impl Event {
    pub(super) fn new(gpu: &Gpu) -> Result<Self> {
        let mut handle = null_mut();
        call!(gpu.0, event_create(&mut handle, BLOCKING_SYNC))?;
        Ok(Event { gpu: gpu.clone(), handle })
    }

    /// Waits until the stream has come to it.
    pub fn synchronize(&self) -> Result<()> {
        self.gpu.0.tracer.wait(|| call!(self.gpu.0, event_synchronize(self.handle)))
    }

    /// Whether the stream has come to it. Errors of kernels before it appear here.
    pub fn is_reached(&self) -> Result<bool> {
        let context = &self.gpu.0;
        let _current = context.enter()?;
        let entry = &context.driver.event_query;
        // SAFETY: the event lives.
        match unsafe { (entry.function)(self.handle) } {
            NOT_READY => Ok(false),
            SUCCESS => Ok(true),
            code => context.check(entry.name, code).map(|()| true),
        }
    }

    /// Waits until the stream has come to it, and asks every now and then whether to go on waiting.
    pub fn wait_while(&self, go_on: impl Fn() -> Result<()>) -> Result<()> {
        self.gpu.0.tracer.wait(|| {
            while !self.is_reached()? {
                go_on()?;
                std::thread::sleep(POLL);
            }
            Ok(())
        })
    }

    /// Milliseconds on the device since an earlier event; both must have been reached.
    pub fn since(&self, earlier: &Event) -> Result<f32> {
        let mut milliseconds = 0.0;
        call!(self.gpu.0, event_elapsed(&mut milliseconds, earlier.handle, self.handle))?;
        Ok(milliseconds)
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        if self.gpu.is_lost() {
            return;
        }
        if let Err(error) = call!(self.gpu.0, event_destroy(self.handle)) {
            log::warn!("{error}");
        }
    }
}
