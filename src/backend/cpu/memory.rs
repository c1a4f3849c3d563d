//! Large buffers on large pages. Knows no contents.

/// `len` copies of `value`, on huge pages where the system has them: random access to a table of many
/// megabytes otherwise misses the translation buffer nearly every time.
pub(super) fn huge_vec<T: Copy>(value: T, len: usize) -> Vec<T> {
    let mut buffer = Vec::with_capacity(len);
    advise(buffer.spare_capacity_mut());
    buffer.resize(len, value);
    buffer
}

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
    use super::huge_vec;

    #[test]
    fn buffers_of_any_size_hold_their_value() {
        for len in [0, 1, 1000, 1 << 20] {
            let buffer = huge_vec([7u64; 3], len);
            assert!(buffer.len() == len && buffer.iter().all(|element| *element == [7; 3]));
        }
    }
}
