//! The way of bases to where they are summed: two buffers on the device, of which one is filled while the other one is
//! used. Knows where they come from by what they are asked for only.

use std::ops::Range;

use super::curves::{DeviceCurve, G1Words, G2Words, G1, G2};
use super::feeder::Feeder;
use super::gpu::{Event, Gpu, Span, Stream};
use super::memory_plan::CHUNKS;
use super::ntt::Layout;
use crate::error::Result;
use crate::groth16::G1Section;

/// Gives bases of a parameter set, by ranges of its sections in the order of the file. What is asked for is queued.
pub(super) trait Feed {
    /// The device that they come to.
    fn gpu(&self) -> &Gpu;

    /// Queues the way of a range of a section to `out`, which has as many places.
    fn g1(&mut self, section: G1Section, range: Range<usize>, out: Span<G1Words>) -> Result<()>;

    /// As [`Feed::g1`], of b in G2.
    fn g2(&mut self, range: Range<usize>, out: Span<G2Words>) -> Result<()>;

    /// Brings all of h to the positions of their coefficients in `out`, and waits until they are there.
    fn h(&mut self, layout: &Layout, out: Span<G1Words>) -> Result<()>;

    /// What is asked for from now on is written after the event.
    fn after(&self, event: &Event) -> Result<()>;

    /// What is queued on the stream from now on begins when all that was asked for is there.
    fn ready(&self, stream: &Stream) -> Result<()>;

    /// Waits for all bases, and fails unless they are good.
    fn finish(&mut self) -> Result<()>;
}

/// Groups of which there are bases.
pub(super) trait Fed: DeviceCurve {
    /// Queues the way of a range of a section, that of b in G2.
    fn feed(feed: &mut dyn Feed, section: G1Section, range: Range<usize>, out: Span<Self::Affine>) -> Result<()>;
}

impl Fed for G1 {
    fn feed(feed: &mut dyn Feed, section: G1Section, range: Range<usize>, out: Span<G1Words>) -> Result<()> {
        feed.g1(section, range, out)
    }
}

impl Fed for G2 {
    fn feed(feed: &mut dyn Feed, _: G1Section, range: Range<usize>, out: Span<G2Words>) -> Result<()> {
        feed.g2(range, out)
    }
}

impl Feed for Feeder<'_> {
    fn gpu(&self) -> &Gpu {
        self.gpu()
    }

    fn g1(&mut self, section: G1Section, range: Range<usize>, out: Span<G1Words>) -> Result<()> {
        self.g1(section, range, out)
    }

    fn g2(&mut self, range: Range<usize>, out: Span<G2Words>) -> Result<()> {
        self.g2(range, out)
    }

    fn h(&mut self, layout: &Layout, out: Span<G1Words>) -> Result<()> {
        self.h(layout, out)
    }

    fn after(&self, event: &Event) -> Result<()> {
        self.after(event)
    }

    fn ready(&self, stream: &Stream) -> Result<()> {
        self.ready(stream)
    }

    fn finish(&mut self) -> Result<()> {
        self.finish()
    }
}

/// When the buffers through which chunks go were last used. To be kept.
pub(super) struct Turns {
    used: [Event; CHUNKS],
    room: Event,
    next: usize,
}

impl Turns {
    pub fn new(gpu: &Gpu) -> Result<Self> {
        Ok(Turns { used: [gpu.event()?, gpu.event()?], room: gpu.event()?, next: 0 })
    }
}

/// Chunks of bases on their way to where they are summed.
pub(super) struct Chunks<'a> {
    pub feed: &'a mut dyn Feed,
    /// Where they are summed.
    pub compute: &'a Stream,
    pub buffers: [Span<u8>; CHUNKS],
    pub turns: &'a mut Turns,
}

impl Chunks<'_> {
    /// From now on, behind what was queued for the device so far, the buffers may be written to.
    pub fn open(&mut self) -> Result<()> {
        self.compute.record(&self.turns.room)?;
        self.feed.after(&self.turns.room)
    }

    /// Brings a range of a section to the device and queues its use behind that. Returns while the one before is used.
    pub fn bring<C: Fed>(
        &mut self,
        section: G1Section,
        range: Range<usize>,
        queue_use: impl FnOnce(Span<C::Affine>) -> Result<()>,
    ) -> Result<()> {
        let turn = self.turns.next;
        self.turns.next = (turn + 1) % CHUNKS;
        let bases = self.buffers[turn].slice(..range.len() * size_of::<C::Affine>()).cast();
        self.feed.after(&self.turns.used[turn])?;
        C::feed(self.feed, section, range, bases)?;
        self.feed.ready(self.compute)?;
        queue_use(bases)?;
        self.compute.record(&self.turns.used[turn])
    }

    /// As [`Chunks::bring`], of bases that are on the device: for a use that wants them where chunks are.
    pub fn copy<C: DeviceCurve>(
        &mut self,
        from: Span<C::Affine>,
        queue_use: impl FnOnce(Span<C::Affine>) -> Result<()>,
    ) -> Result<()> {
        // Not where the next range will come, which may be on its way meanwhile.
        let turn = (self.turns.next + 1) % CHUNKS;
        let bases = self.buffers[turn].slice(..from.bytes()).cast();
        self.compute.copy(bases, from)?;
        queue_use(bases)?;
        self.compute.record(&self.turns.used[turn])
    }
}

impl Drop for Chunks<'_> {
    fn drop(&mut self) {
        // After an error or a cancel nothing may still come when the memory is used for something else.
        let there = self.feed.ready(self.compute).and_then(|()| self.compute.abandon());
        if let Err(error) = there {
            log::debug!("{error}");
        }
    }
}
