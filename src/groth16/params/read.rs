//! Sections of points, read in pieces by all threads of the current pool and decoded.

use std::mem::MaybeUninit;
use std::ops::Range;

use rayon::prelude::*;

use super::file::InputFile;
use super::layout::Extent;
use crate::error::{Error, Result};
use crate::groth16::points::FilePoint;
use crate::pipeline::{available_memory, Control};

/// Bytes of a piece: large enough that a system call costs nothing, small enough for the cache that the
/// decoder reads it from, and a few milliseconds of work.
const PIECE_BYTES: usize = 1 << 20;

/// Replaces `out` by the points `range` of a section. On an error `out` is empty.
pub(super) fn read_points<P: FilePoint>(
    file: &InputFile,
    extent: &Extent,
    range: Range<usize>,
    out: &mut Vec<P>,
    control: &Control,
) -> Result<()> {
    extent.check(&range)?;
    out.clear();
    let count = range.len();
    out.try_reserve_exact(count).map_err(|_| Error::Memory {
        what: format!("section {} of the parameters", extent.name),
        needed: (count * size_of::<P>()) as u64,
        available: available_memory().unwrap_or(0),
        advice: "free some memory or lift the limit on this process's address space".into(),
    })?;
    let piece = PIECE_BYTES / P::BYTES;
    let slots = &mut out.spare_capacity_mut()[..count];
    slots.par_chunks_mut(piece).enumerate().try_for_each_init(
        || vec![0u8; piece * P::BYTES],
        |buffer, (index, slots)| {
            control.check("reading parameters")?;
            read_piece(file, extent, range.start + index * piece, slots, buffer)
        },
    )?;
    // SAFETY: the capacity is reserved, and every piece returned without error, so that `read_piece` has
    // written each of the `count` slots.
    unsafe { out.set_len(count) };
    Ok(())
}

/// Writes every slot, or fails.
fn read_piece<P: FilePoint>(
    file: &InputFile,
    extent: &Extent,
    first: usize,
    slots: &mut [MaybeUninit<P>],
    buffer: &mut [u8],
) -> Result<()> {
    let bytes = &mut buffer[..slots.len() * P::BYTES];
    file.read(bytes, extent.offset + first as u64 * P::BYTES as u64)?;
    for (i, (slot, bytes)) in slots.iter_mut().zip(bytes.chunks_exact(P::BYTES)).enumerate() {
        let point = P::decode_coordinates(bytes).map_err(|fault| bad_point::<P>(file, extent, first + i, fault))?;
        slot.write(point);
    }
    Ok(())
}

/// Fills `out` with the bytes of a section's points from `first` on, whole points of so many bytes.
#[cfg(feature = "cuda")]
pub(super) fn read_bytes(
    file: &InputFile,
    extent: &Extent,
    point_bytes: usize,
    first: usize,
    out: &mut [u8],
    control: &Control,
) -> Result<()> {
    extent.check(&(first..first + out.len() / point_bytes))?;
    let begin = extent.offset + (first * point_bytes) as u64;
    out.par_chunks_mut(PIECE_BYTES).enumerate().try_for_each(|(index, piece)| {
        control.check("reading parameters")?;
        file.read(piece, begin + (index * PIECE_BYTES) as u64)
    })
}

/// Reads one point, with all checks.
pub(super) fn check_point<P: FilePoint>(file: &InputFile, extent: &Extent, index: usize) -> Result<()> {
    extent.check(&(index..index + 1))?;
    let mut bytes = vec![0; P::BYTES];
    file.read(&mut bytes, extent.offset + index as u64 * P::BYTES as u64)?;
    P::decode(&bytes).map(drop).map_err(|fault| bad_point::<P>(file, extent, index, fault))
}

/// The error for a point that does not decode or does not check.
pub(super) fn bad_point<P: FilePoint>(
    file: &InputFile,
    extent: &Extent,
    index: usize,
    fault: impl std::fmt::Display,
) -> Error {
    let at = extent.offset + index as u64 * P::BYTES as u64;
    file.content(format!("point {index} of section {}, at byte {at}, is {fault}", extent.name))
}
