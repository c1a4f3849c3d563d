//! Streams and events: what runs in order, and what waits for what.

use std::ptr::null_mut;

use super::context::{call, Gpu};
use super::driver::Handle;
use super::launch::pointers;
use super::pinned::is_pinned;
use super::tracer::Size;
use super::{Arg, Pinned, Plain, Span};
use crate::error::Result;

/// Does not wait for the default stream, which others in the process may use.
const NON_BLOCKING: u32 = 1;
/// Threads that wait for an event sleep.
const BLOCKING_SYNC: u32 = 1;

/// A queue of work for a device.
#[derive(Debug)]
pub struct Stream {
    gpu: Gpu,
    handle: Handle,
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
        let mut handle = null_mut();
        call!(gpu.0, stream_create(&mut handle, NON_BLOCKING))?;
        Ok(Stream { gpu: gpu.clone(), handle })
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
