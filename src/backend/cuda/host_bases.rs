//! Bases in the host's memory: those that were made on a device which cannot hold them beside a proof.

use std::ops::Range;

use super::bases::Bases;
use super::curves::{G1Words, G2Words};
use super::feed::Feed;
use super::gpu::{Buffer, Event, Gpu, Pinned, Plain, Span, Stream};
use super::ntt::Layout;
use crate::error::{Error, Result};
use crate::groth16::{Counts, G1Section};
use crate::pipeline::Control;

/// Points that are copied at once: 96 MiB in G1.
const PIECE: usize = 1 << 20;

/// All bases, in the order of a parameter file, pinned.
pub(super) struct HostBases {
    /// h, l, a, b.
    g1: [Pinned<G1Words>; 4],
    b_g2: Pinned<G2Words>,
}

impl HostBases {
    /// Copies bases from a device that has all of them.
    ///
    /// # Errors
    /// [`Error::Memory`] if the host has too little memory; whatever a device may fail with.
    pub fn of(bases: &Bases, counts: &Counts) -> Result<Self> {
        let gpu = bases.h.gpu();
        let stream = gpu.stream()?;
        let Bases { h, l, a, b_g1, b_g2, .. } = bases;
        let layout = Layout::new(counts.log_domain)?;
        let mut in_order = gpu.pinned(h.len(), WHAT)?;
        let piece = gpu.allocate(PIECE.min(h.len()), "bases on their way")?;
        for first in (0..h.len()).step_by(PIECE) {
            let end = (first + PIECE).min(h.len());
            let piece = piece.span().slice(..end - first);
            layout.collect(&stream, piece, h.span(), first)?;
            stream.download(piece, &mut in_order[first..end])?;
        }
        let g1 = [in_order, copy_of(&stream, l)?, copy_of(&stream, a)?, copy_of(&stream, b_g1)?];
        Ok(HostBases { g1, b_g2: copy_of(&stream, b_g2)? })
    }
}

const WHAT: &str = "bases in the host's memory";

fn copy_of<T: Plain>(stream: &Stream, bases: &Buffer<T>) -> Result<Pinned<T>> {
    let mut copy = stream.gpu().pinned(bases.len(), WHAT)?;
    stream.download(bases.span(), &mut copy)?;
    Ok(copy)
}

/// Brings them to the device again.
pub(super) struct HostFeed<'a> {
    stream: Stream,
    there: Event,
    bases: &'a HostBases,
    control: &'a Control,
}

impl<'a> HostFeed<'a> {
    pub fn new(gpu: &Gpu, bases: &'a HostBases, control: &'a Control) -> Result<Self> {
        Ok(HostFeed { stream: gpu.stream()?, there: gpu.event()?, bases, control })
    }

    fn queue<T: Plain>(&self, bases: &Pinned<T>, range: Range<usize>, out: Span<T>) -> Result<()> {
        check_places(&range, out.len())?;
        if range.end > bases.len() {
            return Err(Error::internal(format!("the bases {range:?} of {}", bases.len())));
        }
        for first in range.clone().step_by(PIECE) {
            self.control.check("bringing bases")?;
            let end = (first + PIECE).min(range.end);
            // SAFETY: nobody writes to the bases; the stream is waited for before they can be dropped.
            unsafe { self.stream.upload_later(out.slice(first - range.start..end - range.start), bases, first)? };
        }
        Ok(())
    }
}

impl Feed for HostFeed<'_> {
    fn gpu(&self) -> &Gpu {
        self.stream.gpu()
    }

    fn g1(&mut self, section: G1Section, range: Range<usize>, out: Span<G1Words>) -> Result<()> {
        self.queue(&self.bases.g1[section as usize], range, out)
    }

    fn g2(&mut self, range: Range<usize>, out: Span<G2Words>) -> Result<()> {
        self.queue(&self.bases.b_g2, range, out)
    }

    fn h(&mut self, layout: &Layout, out: Span<G1Words>) -> Result<()> {
        spread(&self.stream, layout, out, |range, piece| self.queue(&self.bases.g1[0], range, piece))
    }

    fn after(&self, event: &Event) -> Result<()> {
        self.stream.wait(event)
    }

    fn ready(&self, stream: &Stream) -> Result<()> {
        self.stream.record(&self.there)?;
        stream.wait(&self.there)
    }

    fn finish(&mut self) -> Result<()> {
        self.stream.synchronize()
    }
}

impl Drop for HostFeed<'_> {
    fn drop(&mut self) {
        if let Err(error) = self.stream.synchronize() {
            log::debug!("{error}");
        }
    }
}

/// Brings bases to the positions of their coefficients, through a buffer for each piece that `feed` is asked for; waits.
fn spread(
    stream: &Stream,
    layout: &Layout,
    out: Span<G1Words>,
    mut feed: impl FnMut(Range<usize>, Span<G1Words>) -> Result<()>,
) -> Result<()> {
    let piece = stream.gpu().allocate(PIECE.min(out.len()), "bases on their way")?;
    for first in (0..out.len()).step_by(PIECE) {
        let end = (first + PIECE).min(out.len());
        let piece = piece.span().slice(..end - first);
        feed(first..end, piece)?;
        layout.arrange(stream, out, piece, first)?;
    }
    // Before the piece is freed.
    stream.synchronize()
}

/// [`Error::Internal`] unless there are as many places as bases.
fn check_places(range: &Range<usize>, places: usize) -> Result<()> {
    match range.len() == places {
        true => Ok(()),
        false => Err(Error::internal(format!("{places} places for the bases {range:?}"))),
    }
}
