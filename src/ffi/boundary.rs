//! The one way in and out of every function: panics become errors, errors become numbers and messages. Knows
//! pointers and lengths, nothing of proofs.

use std::ffi::{c_char, CStr, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::slice;

use crate::error::{Error, Result};
use crate::panics;

/// Runs `work`, writes its message, returns its number.
///
/// # Safety
/// `err` is NULL or has `err_cap` writable bytes.
pub(super) unsafe fn boundary(err: *mut c_char, err_cap: usize, work: impl FnOnce() -> Result<()>) -> i32 {
    if err.is_null() && err_cap != 0 {
        return super::status::cuporep_status::Argument as i32;
    }
    let outcome = panics::guard(|| Ok(work().err().map(|error| (error.code(), error.to_string()))));
    let (code, message) = match outcome {
        Ok(None) => (0, String::new()),
        Ok(Some(failed)) => failed,
        Err(panic) => (panic.code(), panic.to_string()),
    };
    if !err.is_null() {
        // SAFETY: the caller's promise; c_char and u8 have the same layout.
        write_text(unsafe { slice::from_raw_parts_mut(err.cast(), err_cap) }, &message);
    }
    code
}

/// Writes as many whole characters as fit before a final NUL. A NUL in the text becomes a space.
pub(super) fn write_text(buffer: &mut [u8], text: &str) {
    let Some(room) = buffer.len().checked_sub(1) else { return };
    let length = (0..=room.min(text.len())).rev().find(|&end| text.is_char_boundary(end)).unwrap_or(0);
    for (to, from) in buffer.iter_mut().zip(&text.as_bytes()[..length]) {
        *to = if *from == 0 { b' ' } else { *from };
    }
    buffer[length] = 0;
}

/// A text as a fixed array of a struct.
pub(super) fn text<const N: usize>(text: &str) -> [c_char; N] {
    let mut bytes = [0u8; N];
    write_text(&mut bytes, text);
    bytes.map(|byte| byte as c_char)
}

/// The slice of a pointer and its length.
///
/// # Safety
/// `pointer` is NULL or has `length` readable values that do not change while the slice lives.
pub(super) unsafe fn slice<'a, T>(name: &'static str, pointer: *const T, length: usize) -> Result<&'a [T]> {
    let refuse = |detail: String| Err(Error::Argument { name, detail });
    if pointer.is_null() {
        return if length == 0 { Ok(&[]) } else { refuse(format!("is NULL with length {length}")) };
    }
    if !pointer.is_aligned() {
        return refuse("is not aligned".into());
    }
    if length.checked_mul(size_of::<T>()).is_none_or(|bytes| bytes > isize::MAX as usize) {
        return refuse(format!("length {length} is larger than any memory"));
    }
    // SAFETY: the caller's promise, and the conditions above.
    Ok(unsafe { slice::from_raw_parts(pointer, length) })
}

/// A text; `None` where it is NULL or empty. What is not UTF-8 in it is replaced.
///
/// # Safety
/// `pointer` is NULL or points to a NUL-ended text.
pub(super) unsafe fn string(pointer: *const c_char) -> Option<String> {
    // SAFETY: the caller's promise.
    let text = (!pointer.is_null()).then(|| unsafe { CStr::from_ptr(pointer) })?;
    (!text.is_empty()).then(|| text.to_string_lossy().into_owned())
}

/// A path, of any bytes; `None` where it is NULL or empty.
///
/// # Safety
/// As [`string`].
pub(super) unsafe fn path(pointer: *const c_char) -> Option<PathBuf> {
    // SAFETY: the caller's promise.
    let text = (!pointer.is_null()).then(|| unsafe { CStr::from_ptr(pointer) })?;
    (!text.is_empty()).then(|| PathBuf::from(OsStr::from_bytes(text.to_bytes())))
}

/// The value behind a handle.
///
/// # Safety
/// `pointer` is NULL or a handle of this library that lives as long as the reference.
pub(super) unsafe fn handle<'a, T>(name: &'static str, pointer: *const T) -> Result<&'a T> {
    // SAFETY: the caller's promise.
    unsafe { pointer.as_ref() }.ok_or_else(|| null(name))
}

/// The place for a result that the caller must have.
///
/// # Safety
/// `pointer` is NULL or writable, and nobody else uses it while the reference lives.
pub(super) unsafe fn output<'a, T>(name: &'static str, pointer: *mut T) -> Result<&'a mut T> {
    // SAFETY: the caller's promise.
    unsafe { pointer.as_mut() }.ok_or_else(|| null(name))
}

fn null(name: &'static str) -> Error {
    Error::Argument { name, detail: "is NULL".into() }
}

#[cfg(test)]
mod tests {
    use std::ptr;

    use super::*;

    #[test]
    fn texts_are_cut_at_characters_and_end_with_nul() {
        let whole = "aé\u{10ffff}z";
        for capacity in 0..12 {
            let mut buffer = vec![0xee; capacity + 1];
            write_text(&mut buffer[..capacity], whole);
            assert_eq!(buffer[capacity], 0xee, "nothing beyond the capacity");
            if capacity == 0 {
                continue;
            }
            let written = CStr::from_bytes_until_nul(&buffer).unwrap().to_str().unwrap();
            assert!(whole.starts_with(written) && written.len() < capacity, "{capacity}: {written:?}");
            let next = whole[written.len()..].chars().next();
            assert!(
                next.is_none_or(|next| written.len() + next.len_utf8() + 1 > capacity),
                "{capacity}: cut too early"
            );
        }
        let mut buffer = [1; 8];
        write_text(&mut buffer, "a\0b");
        assert_eq!(&buffer[..4], b"a b\0");
    }

    #[test]
    fn slices_are_checked() {
        // SAFETY: NULL, or more than the slice that is made.
        unsafe {
            assert!(slice::<u32>("x", ptr::null(), 0).unwrap().is_empty());
            assert_eq!(slice::<u32>("x", ptr::null(), 1).unwrap_err().code(), 100);
            let values = [1u32, 2, 3];
            assert_eq!(slice("x", values.as_ptr(), 3).unwrap(), values);
            assert_eq!(slice("x", values.as_ptr().cast::<u8>().add(1).cast::<u32>(), 1).unwrap_err().code(), 100);
            assert_eq!(slice("x", values.as_ptr(), usize::MAX / 4).unwrap_err().code(), 100);
        }
    }

    #[test]
    fn a_panic_arrives_with_its_text_and_place_and_the_next_call_works() {
        let mut buffer = [0u8; 256];
        let mut call = |work: &dyn Fn() -> Result<()>| {
            // SAFETY: the buffer is there.
            let code = unsafe { boundary(buffer.as_mut_ptr().cast(), buffer.len(), work) };
            (code, CStr::from_bytes_until_nul(&buffer).unwrap().to_str().unwrap().to_string())
        };
        let (code, message) = call(&|| panic!("injected {}", 7));
        assert_eq!(code, 501);
        assert!(message.contains("injected 7") && message.contains("boundary.rs"), "{message}");
        assert_eq!(call(&|| Ok(())), (0, String::new()));
        assert_eq!(call(&|| Err(Error::internal("as it is"))).0, 500);
    }

    #[test]
    fn an_error_buffer_that_is_null_needs_length_0() {
        // SAFETY: NULL is allowed.
        unsafe {
            assert_eq!(boundary(ptr::null_mut(), 1, || Ok(())), 100);
            assert_eq!(boundary(ptr::null_mut(), 0, || Ok(())), 0);
            assert_eq!(boundary(ptr::null_mut(), 0, || Err(Error::internal("x"))), 500);
        }
    }
}
