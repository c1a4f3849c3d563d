//! A slice that several threads write at places known to be disjoint. Knows no contents.

use std::marker::PhantomData;

use super::lane::prefetch;

/// An exclusively borrowed slice, handed to tasks that each touch their own elements.
#[derive(Clone, Copy)]
pub(super) struct SharedSlice<'a, T> {
    start: *mut T,
    len: usize,
    borrow: PhantomData<&'a mut [T]>,
}

// SAFETY: the only accesses are the unsafe methods below, whose callers keep them disjoint.
unsafe impl<T: Send> Send for SharedSlice<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for SharedSlice<'_, T> {}

impl<'a, T> SharedSlice<'a, T> {
    pub(super) fn new(slice: &'a mut [T]) -> Self {
        SharedSlice { start: slice.as_mut_ptr(), len: slice.len(), borrow: PhantomData }
    }

    /// Writes element `index`; panics past the end.
    ///
    /// # Safety
    /// No other thread accesses this element at the same time.
    #[inline(always)]
    pub(super) unsafe fn write(&self, index: usize, value: T)
    where
        T: Copy,
    {
        assert!(index < self.len);
        // SAFETY: in bounds; the caller keeps others away.
        unsafe { *self.start.add(index) = value }
    }

    /// Asks for element `index` to be brought near the core. One past the end does no harm.
    #[inline(always)]
    pub(super) fn bring(&self, index: usize) {
        prefetch(self.start.wrapping_add(index));
    }

    /// The same for `N` elements.
    #[inline(always)]
    pub(super) fn bring_array<const N: usize>(&self, start: usize) {
        prefetch(self.start.wrapping_add(start).cast::<[T; N]>());
    }

    /// Element `index`; panics past the end.
    ///
    /// # Safety
    /// No other thread writes this element at the same time.
    #[inline(always)]
    pub(super) unsafe fn read(&self, index: usize) -> T
    where
        T: Copy,
    {
        assert!(index < self.len);
        // SAFETY: in bounds; the caller keeps writers away.
        unsafe { *self.start.add(index) }
    }

    /// Elements `start..start + len`; panics past the end.
    ///
    /// # Safety
    /// Nobody else accesses these elements while the result lives.
    #[inline(always)]
    #[allow(clippy::mut_from_ref)]
    pub(super) unsafe fn slice_mut(&self, start: usize, len: usize) -> &'a mut [T] {
        assert!(start <= self.len && len <= self.len - start);
        // SAFETY: in bounds; the caller keeps others away.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(start), len) }
    }
}
