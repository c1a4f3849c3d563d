//! Memory on the host that the device reads and writes by itself.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::ptr::{null_mut, NonNull};

use parking_lot::Mutex;

use super::context::{call, Gpu};
use super::driver::SUCCESS;
use super::Plain;
use crate::error::Result;

/// Memory that every context may copy from, not only its own.
const PORTABLE: u32 = 1;

/// Where pinned memory is, by its beginning, with its number of bytes. Copies from it return before they are done.
static RANGES: Mutex<BTreeMap<usize, usize>> = Mutex::new(BTreeMap::new());

/// Pinned values; copies from and to them run at full speed beside other work.
pub struct Pinned<T: Plain> {
    gpu: Gpu,
    values: NonNull<T>,
    len: usize,
}

// SAFETY: owns its memory, like a Vec.
unsafe impl<T: Plain> Send for Pinned<T> {}
// SAFETY: as above.
unsafe impl<T: Plain> Sync for Pinned<T> {}

impl<T: Plain> Pinned<T> {
    pub(super) fn new(gpu: &Gpu, len: usize, what: &'static str) -> Result<Self> {
        let bytes = len.saturating_mul(size_of::<T>());
        let mut pointer = null_mut();
        if bytes != 0 {
            let context = &gpu.0;
            let _current = context.enter()?;
            let entry = &context.driver.host_allocate;
            // SAFETY: the driver stores the address.
            let code = unsafe { (entry.function)(&mut pointer, bytes, PORTABLE) };
            if code != SUCCESS {
                let available = crate::pipeline::available_memory().unwrap_or(0);
                return Err(context.no_memory(entry.name, code, what, bytes as u64, available));
            }
            // SAFETY: so many bytes were just allocated.
            unsafe { pointer.cast::<u8>().write_bytes(0, bytes) };
            RANGES.lock().insert(pointer as usize, bytes);
        }
        let values = NonNull::new(pointer.cast()).unwrap_or(NonNull::dangling());
        Ok(Pinned { gpu: gpu.clone(), values, len })
    }
}

impl<T: Plain> Pinned<T> {
    /// Where the values are, for the host and for every device.
    pub(super) fn address(&self) -> *mut T {
        self.values.as_ptr()
    }
}

/// Whether any of these values are in pinned memory.
pub(super) fn is_pinned<T>(values: &[T]) -> bool {
    let begin = values.as_ptr() as usize;
    let end = begin + size_of_val(values);
    RANGES.lock().range(..end).next_back().is_some_and(|(&start, &bytes)| start + bytes > begin)
}

impl<T: Plain> Deref for Pinned<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: so many values were allocated and filled with zeros, which are values of a Plain type.
        unsafe { std::slice::from_raw_parts(self.values.as_ptr(), self.len) }
    }
}

impl<T: Plain> DerefMut for Pinned<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above, and `self` is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.values.as_ptr(), self.len) }
    }
}

impl<T: Plain> fmt::Debug for Pinned<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pinned({} on {:?})", self.len, self.gpu)
    }
}

impl<T: Plain> Drop for Pinned<T> {
    fn drop(&mut self) {
        if self.len == 0 || size_of::<T>() == 0 {
            return;
        }
        let pointer = self.values.as_ptr();
        RANGES.lock().remove(&(pointer as usize));
        // The memory of a lost context is freed with the context.
        if self.gpu.is_lost() {
            return;
        }
        if let Err(error) = call!(self.gpu.0, host_free(pointer.cast())) {
            log::warn!("{error}");
        }
    }
}
