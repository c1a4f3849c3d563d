//! Memory on the device.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Bound, RangeBounds};
use std::sync::atomic::Ordering;

use super::context::Gpu;
use super::driver::{Address, SUCCESS};
use super::Plain;
use crate::error::Result;

/// Owned memory on a device; freed when dropped, after the work that was queued before.
pub struct Buffer<T: Plain> {
    gpu: Gpu,
    span: Span<T>,
}

/// Some values in a device's memory: an address and a length. Owns nothing; a kernel or a copy that gets one whose
/// buffer is gone fails on the device, and the host takes no harm.
pub struct Span<T> {
    address: Address,
    len: usize,
    values: PhantomData<*const T>,
}

// SAFETY: a span is a number; the host never follows it.
unsafe impl<T: Plain> Send for Span<T> {}
// SAFETY: as above.
unsafe impl<T: Plain> Sync for Span<T> {}

impl<T> Clone for Span<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Span<T> {}

impl<T> fmt::Debug for Span<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Span({:#x}, {})", self.address, self.len)
    }
}

impl<T: Plain> Span<T> {
    /// A span of nothing at all, of a length: for plans.
    pub fn none(len: usize) -> Self {
        Span { address: 0, len, values: PhantomData }
    }

    /// How many values it has.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How many bytes it has.
    pub fn bytes(&self) -> usize {
        self.len * size_of::<T>()
    }

    /// Where it begins in the device's memory.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// A part of it.
    ///
    /// # Panics
    /// If the range is not within it.
    pub fn slice(&self, range: impl RangeBounds<usize>) -> Self {
        let begin = match range.start_bound() {
            Bound::Included(&begin) => begin,
            Bound::Excluded(&before) => before + 1,
            Bound::Unbounded => 0,
        };
        let end = match range.end_bound() {
            Bound::Included(&last) => last + 1,
            Bound::Excluded(&end) => end,
            Bound::Unbounded => self.len,
        };
        assert!(begin <= end && end <= self.len, "{begin}..{end} is not within a span of {} values", self.len);
        let address = self.address + (begin * size_of::<T>()) as Address;
        Span { address, len: end - begin, values: PhantomData }
    }

    /// The same bytes as values of another type.
    ///
    /// # Panics
    /// If they are not a whole number of such values, or not aligned for them.
    pub fn cast<U: Plain>(&self) -> Span<U> {
        let (bytes, size) = (self.bytes(), size_of::<U>());
        assert!(bytes.is_multiple_of(size), "{bytes} bytes are not a whole number of values of {size}");
        assert!(self.address.is_multiple_of(align_of::<U>() as Address), "the span is not aligned");
        Span { address: self.address, len: bytes / size, values: PhantomData }
    }
}

impl<T: Plain> Buffer<T> {
    pub(super) fn new(gpu: &Gpu, len: usize, what: &'static str) -> Result<Self> {
        let context = &gpu.0;
        let mut span = Span { address: 0, len, values: PhantomData };
        let bytes = len.saturating_mul(size_of::<T>());
        // The driver has no empty allocations.
        if bytes != 0 {
            let _current = context.enter()?;
            let entry = &context.driver.memory_allocate;
            // SAFETY: the driver stores the address.
            let code = unsafe { (entry.function)(&mut span.address, bytes) };
            if code != SUCCESS {
                let free = gpu.free_memory().unwrap_or(0);
                return Err(context.no_memory(entry.name, code, what, bytes as u64, free));
            }
            context.allocated.fetch_add(bytes as u64, Ordering::Relaxed);
        }
        Ok(Buffer { gpu: gpu.clone(), span })
    }

    /// How many values it has.
    pub fn len(&self) -> usize {
        self.span.len
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.span.is_empty()
    }

    /// All of it, to be passed to kernels and copies.
    pub fn span(&self) -> Span<T> {
        self.span
    }

    /// The device that it is on.
    pub fn gpu(&self) -> &Gpu {
        &self.gpu
    }
}

impl<T: Plain> fmt::Debug for Buffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buffer({:#x}, {} on {:?})", self.span.address, self.span.len, self.gpu)
    }
}

impl<T: Plain> Drop for Buffer<T> {
    fn drop(&mut self) {
        if self.span.address == 0 {
            return;
        }
        self.gpu.0.allocated.fetch_sub(self.span.bytes() as u64, Ordering::Relaxed);
        // The memory of a lost context is freed with the context.
        if self.gpu.is_lost() {
            return;
        }
        if let Err(error) = super::context::call!(self.gpu.0, memory_free(self.span.address)) {
            log::warn!("{error}");
        }
    }
}
