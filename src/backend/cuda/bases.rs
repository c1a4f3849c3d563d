//! The bases of all sums on a device, in the order in which kernels want them.

use std::time::Instant;

use super::curves::{G1Words, G2Words};
use super::feeder::{Feeder, Ring};
use super::gpu::{Buffer, Gpu};
use super::ntt::Layout;
use crate::error::Result;
use crate::groth16::params::Identity;
use crate::groth16::{Counts, G1Section, Parameters};
use crate::pipeline::Control;

/// All five queries of one parameter file, or of parameters made from a seed.
pub(super) struct Bases {
    /// The file's; none if they were made.
    pub(super) identity: Option<Identity>,
    /// In the order of the quotient's coefficients on the device.
    pub h: Buffer<G1Words>,
    pub l: Buffer<G1Words>,
    pub a: Buffer<G1Words>,
    pub b_g1: Buffer<G1Words>,
    pub b_g2: Buffer<G2Words>,
}

impl Bases {
    /// Room for those of a circuit with such counts.
    pub fn allocate(gpu: &Gpu, counts: &Counts) -> Result<Self> {
        let g1 = |section, what| gpu.allocate(counts.len(section), what);
        Ok(Bases {
            identity: None,
            h: g1(G1Section::H, "bases of the quotient")?,
            l: g1(G1Section::L, "bases in G1")?,
            a: g1(G1Section::A, "bases in G1")?,
            b_g1: g1(G1Section::B, "bases in G1")?,
            b_g2: gpu.allocate(counts.len(G1Section::B), "bases in G2")?,
        })
    }

    /// Reads all of them; fails if the file changes meanwhile.
    pub fn read(gpu: &Gpu, parameters: &Parameters, control: &Control) -> Result<Self> {
        let begin = Instant::now();
        let counts = parameters.counts();
        let layout = Layout::new(counts.log_domain)?;
        let bases = Bases { identity: Some(parameters.identity()), ..Bases::allocate(gpu, counts)? };
        let mut ring = Ring::new(gpu, counts)?;
        let mut feeder = Feeder::new(&mut ring, parameters, control)?;
        feeder.h(&layout, bases.h.span())?;
        let queries = [(G1Section::L, &bases.l), (G1Section::A, &bases.a), (G1Section::B, &bases.b_g1)];
        for (section, buffer) in queries {
            feeder.g1(section, 0..buffer.len(), buffer.span())?;
        }
        feeder.g2(0..bases.b_g2.len(), bases.b_g2.span())?;
        feeder.finish()?;
        let (bytes, elapsed, (reading, waiting)) = (counts.file_size()?, begin.elapsed(), feeder.times());
        log::info!(
            "{bytes} bytes of bases to {} in {elapsed:.2?}, {:.1} GB/s: {reading:.2?} in the file, {waiting:.2?} on the device",
            gpu.label(),
            bytes as f64 / elapsed.as_secs_f64() * 1e-9,
        );
        Ok(bases)
    }

    /// Whether these were read from this very state of that file.
    pub fn belong_to(&self, parameters: &Parameters) -> bool {
        self.identity == Some(parameters.identity())
    }
}
