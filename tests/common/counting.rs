//! The system's allocator, counting the bytes in use and their peak, for test binaries of their own.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

static IN_USE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

/// Bytes in use; what is more than these is the peak from now on.
pub fn begin() -> usize {
    let now = in_use();
    PEAK.store(now, Ordering::Relaxed);
    now
}

/// Bytes in use.
pub fn in_use() -> usize {
    IN_USE.load(Ordering::Relaxed)
}

/// The most bytes in use since the count began.
pub fn peak() -> usize {
    PEAK.load(Ordering::Relaxed)
}

fn add(bytes: usize) {
    let in_use = IN_USE.fetch_add(bytes, Ordering::Relaxed) + bytes;
    PEAK.fetch_max(in_use, Ordering::Relaxed);
}

// SAFETY: every call goes to the system's allocator unchanged. `realloc` keeps the default, which allocates anew before
// it frees, so that the peak is an upper bound.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        add(layout.size());
        // SAFETY: the caller's contract is that of the system's allocator.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        add(layout.size());
        // SAFETY: the caller's contract is that of the system's allocator.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        IN_USE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's contract is that of the system's allocator.
        unsafe { System.dealloc(pointer, layout) }
    }
}
