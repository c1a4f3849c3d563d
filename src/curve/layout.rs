//! blstrs's types seen as blst's: each is a `repr(transparent)` wrapper around the other.

use blst::{blst_fr, blst_p1_affine, blst_p2_affine};
use blstrs::{G1Affine, G2Affine, Scalar};

const fn same_layout<A, B>() -> bool {
    size_of::<A>() == size_of::<B>() && align_of::<A>() == align_of::<B>()
}

const _: () = assert!(same_layout::<Scalar, blst_fr>());
const _: () = assert!(same_layout::<G1Affine, blst_p1_affine>());
const _: () = assert!(same_layout::<G2Affine, blst_p2_affine>());

/// The scalars' four 64-bit words in Montgomery form, low word first.
pub(crate) fn scalars(values: &[Scalar]) -> &[blst_fr] {
    // SAFETY: Scalar is repr(transparent) over blst_fr (sizes and alignments asserted above).
    unsafe { &*(values as *const [Scalar] as *const [blst_fr]) }
}

/// The same, to be written to. Every value stored must be below the modulus.
pub(crate) fn scalars_mut(values: &mut [Scalar]) -> &mut [blst_fr] {
    // SAFETY: as in `scalars`; the exclusive borrow is handed on.
    unsafe { &mut *(values as *mut [Scalar] as *mut [blst_fr]) }
}
