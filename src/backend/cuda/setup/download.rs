//! Points on their way from a device to a parameter file: encoded there, copied to pinned memory, and written by several
//! threads while the next ones are made.

use rayon::prelude::*;

use super::super::curves::DeviceCurve;
use super::super::feeder::THREADS;
use super::super::gpu::{args, Buffer, Event, Pinned, Span, Stream};
use super::{Destination, Points};
use crate::error::Result;
use crate::groth16::params::Section;
use crate::groth16::setup::SectionFile;
use crate::groth16::FilePoint;

/// Points that one thread writes at once: some hundred kilobytes.
const SHARE: usize = 1 << 12;

/// Pieces at once: one is written while the next one is made.
const SLOTS: usize = 2;

/// The way to one file.
pub(super) struct Downloads<'a> {
    stream: &'a Stream,
    slots: Vec<Slot>,
    /// The slot whose turn is next.
    next: usize,
    file: &'a SectionFile<'a>,
    advance: &'a mut dyn FnMut(usize),
}

/// Room for one piece.
struct Slot {
    points: Buffer<u8>,
    bytes: Pinned<u8>,
    copied: Event,
    /// What is in it, or will be behind the event.
    content: Option<Points>,
}

impl<'a> Downloads<'a> {
    /// For pieces of at most so many points of either group.
    pub fn new(
        stream: &'a Stream,
        piece: usize,
        file: &'a SectionFile<'a>,
        advance: &'a mut dyn FnMut(usize),
    ) -> Result<Self> {
        let (gpu, bytes) = (stream.gpu(), piece * Section::B2.point_bytes());
        let slot = |_| {
            let (points, pinned) =
                (gpu.allocate(bytes, "points")?, gpu.pinned(bytes, "points on their way to a file")?);
            Ok(Slot { points, bytes: pinned, copied: gpu.event()?, content: None })
        };
        let slots = (0..SLOTS).map(slot).collect::<Result<_>>()?;
        Ok(Downloads { stream, slots, next: 0, file, advance })
    }

    /// Writes what is left.
    pub fn finish(mut self) -> Result<()> {
        (0..SLOTS).try_for_each(|slot| self.settle(slot))
    }

    /// Writes what is in a slot.
    fn settle(&mut self, slot: usize) -> Result<()> {
        let slot = &mut self.slots[slot];
        let Some(Points { section, first, count }) = slot.content.take() else { return Ok(()) };
        slot.copied.synchronize()?;
        let share = SHARE * section.point_bytes();
        let shares = slot.bytes[..count * section.point_bytes()].par_chunks(share).enumerate();
        shares.try_for_each(|(index, bytes)| self.file.write(section, first + index * SHARE, bytes))?;
        (self.advance)(count);
        Ok(())
    }
}

impl Destination for Downloads<'_> {
    /// Writes the points before these while they are made.
    fn take<C: DeviceCurve>(&mut self, points: Points, make: impl FnOnce(Span<C::Affine>) -> Result<()>) -> Result<()> {
        let (stream, count) = (self.stream, points.count as u32);
        let slot = &mut self.slots[self.next];
        let bytes = slot.points.span().slice(..points.count * C::Host::BYTES);
        make(bytes.cast())?;
        stream.launch(C::KERNELS.encode, count.div_ceil(THREADS), THREADS, 0, &args![bytes, count])?;
        // SAFETY: the bytes are next read, written to or freed behind the event or the stream's end; if there is no
        // event, the stream is waited for.
        let queued = unsafe { stream.download_later(bytes, &mut slot.bytes, 0) };
        queued.and_then(|()| stream.record(&slot.copied)).inspect_err(|_| drop(stream.synchronize()))?;
        slot.content = Some(points);
        self.next = (self.next + 1) % SLOTS;
        self.settle(self.next)
    }
}

impl Drop for Downloads<'_> {
    fn drop(&mut self) {
        // Whatever the error, nothing is copied any more.
        if let Err(error) = self.stream.synchronize() {
            log::warn!("{error}");
        }
    }
}
