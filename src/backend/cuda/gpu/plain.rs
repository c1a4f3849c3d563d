//! Types that may be copied to a device and back as bytes.

use blstrs::Scalar;

/// Types without padding of which every bit pattern is a value.
///
/// # Safety
/// Exactly that must hold.
pub unsafe trait Plain: Copy + Send + Sync + 'static {}

// SAFETY: integers have no padding and no invalid values.
unsafe impl Plain for u8 {}
// SAFETY: as above.
unsafe impl Plain for u16 {}
// SAFETY: as above.
unsafe impl Plain for u32 {}
// SAFETY: as above.
unsafe impl Plain for u64 {}
// SAFETY: as above.
unsafe impl Plain for i32 {}
// SAFETY: an array has the padding and the invalid values of its elements: none.
unsafe impl<T: Plain, const N: usize> Plain for [T; N] {}

/// An element of the scalar field as kernels see it: in Montgomery form, low word first.
pub type Words = [u32; 8];

const _: () = assert!(size_of::<Scalar>() == size_of::<Words>() && align_of::<Scalar>() >= align_of::<Words>());

/// Scalars as kernels see them, without a copy.
pub fn scalar_words(values: &[Scalar]) -> &[Words] {
    // SAFETY: Scalar is repr(transparent) over four u64 of the same 32 bytes, at least as aligned; integers may be read
    // as smaller ones.
    unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), values.len()) }
}

/// The same, to be written to. Every value stored must be below the modulus.
pub fn scalar_words_mut(values: &mut [Scalar]) -> &mut [Words] {
    // SAFETY: as in `scalar_words`; the exclusive borrow is handed on, and any bits are a blst_fr to the compiler.
    unsafe { std::slice::from_raw_parts_mut(values.as_mut_ptr().cast(), values.len()) }
}
