//! Large buffers on large pages. Knows no contents.

use std::alloc::Layout;

use blstrs::Scalar;
use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::pipeline::available_memory;

/// Elements that one task writes first.
const PIECE: usize = 1 << 14;

/// `len` copies of `value`, on huge pages where the system has them: random access to a table of many
/// megabytes otherwise misses the translation buffer nearly every time.
pub(crate) fn huge_vec<T: Copy + Send + Sync>(value: T, len: usize) -> Vec<T> {
    let mut buffer = Vec::with_capacity(len);
    let places = &mut buffer.spare_capacity_mut()[..len];
    advise(places);
    places.par_chunks_mut(PIECE).for_each(|places| {
        for place in places {
            place.write(value);
        }
    });
    // SAFETY: each of the `len` places was written.
    unsafe { buffer.set_len(len) };
    buffer
}

/// `len` zeros on huge pages. Large buffers come from the system as they are: a page becomes memory when it is first
/// written, by the thread that writes it.
///
/// # Errors
/// [`Error::Memory`], which calls them `what`.
pub(crate) fn zero_scalars(len: usize, what: &str) -> Result<Vec<Scalar>> {
    allocate_zeros(len).ok_or_else(|| Error::Memory {
        what: what.into(),
        needed: (len as u64).saturating_mul(size_of::<Scalar>() as u64),
        available: available_memory().unwrap_or(0),
        advice: "free some memory or lift the limit on this process's address space".into(),
    })
}

fn allocate_zeros(len: usize) -> Option<Vec<Scalar>> {
    let layout = Layout::array::<Scalar>(len).ok()?;
    if layout.size() == 0 {
        return Some(Vec::new());
    }
    // SAFETY: the layout has a size.
    let start = unsafe { std::alloc::alloc_zeroed(layout) }.cast::<Scalar>();
    if start.is_null() {
        return None;
    }
    // SAFETY: the global allocator gave memory for exactly `len` scalars, and all bits zero are the scalar zero.
    let mut buffer = unsafe { Vec::from_raw_parts(start, len, len) };
    advise(&mut buffer);
    Some(buffer)
}

/// Asks for huge pages for memory that has not been written yet. Changes no contents.
#[cfg(target_os = "linux")]
fn advise<T>(memory: &mut [T]) {
    const HUGE_PAGE: usize = 1 << 21;
    let start = (memory.as_ptr() as usize).next_multiple_of(HUGE_PAGE);
    let end = (memory.as_ptr() as usize + size_of_val(memory)) & !(HUGE_PAGE - 1);
    if start < end {
        // SAFETY: the range lies inside memory that is borrowed exclusively, and the advice changes no
        // contents. A refusal does no harm.
        unsafe { libc::madvise(start as *mut libc::c_void, end - start, libc::MADV_HUGEPAGE) };
    }
}

#[cfg(not(target_os = "linux"))]
fn advise<T>(_: &mut [T]) {}

#[cfg(test)]
mod tests {
    use ff::Field;

    use super::*;

    #[test]
    fn buffers_of_any_size_hold_their_value() {
        for len in [0, 1, 1000, 1 << 20] {
            let buffer = huge_vec([7u64; 3], len);
            assert!(buffer.len() == len && buffer.iter().all(|element| *element == [7; 3]));
        }
    }

    #[test]
    fn zeros_are_the_field_s_and_refused_where_they_do_not_fit() {
        for len in [0, 1, 1000, 1 << 20] {
            let zeros = zero_scalars(len, "a test").unwrap();
            assert!(zeros.len() == len && zeros.iter().all(|zero| *zero == Scalar::ZERO));
        }
        for len in [1 << 55, usize::MAX] {
            assert!(matches!(zero_scalars(len, "a test"), Err(Error::Memory { .. })));
        }
    }
}
