//! The bases that stay on a device, in the order in which kernels want them.

use super::curves::{G1Words, G2Words, G1, G2};
use super::feed::{Fed, Feed};
use super::gpu::{Buffer, Gpu};
use super::memory_plan::Residency;
use super::ntt::Layout;
use crate::error::Result;
use crate::groth16::params::Identity;
use crate::groth16::{Counts, G1Section, Parameters};

/// Of all five queries of one parameter file, or of parameters made from a seed: all bases, the first ones, or none.
pub(super) struct Bases {
    /// The file's; none if they were made.
    pub(super) identity: Option<Identity>,
    pub residency: Residency,
    /// All of them in the order of the quotient's coefficients on the device; fewer in the order of coefficients.
    pub h: Buffer<G1Words>,
    pub l: Buffer<G1Words>,
    pub a: Buffer<G1Words>,
    pub b_g1: Buffer<G1Words>,
    pub b_g2: Buffer<G2Words>,
}

impl Bases {
    /// Room for those of a circuit with such counts.
    pub fn allocate(gpu: &Gpu, counts: &Counts, residency: Residency) -> Result<Self> {
        let g1 = |section, what| gpu.allocate(residency.of_section(section, counts.len(section)), what);
        Ok(Bases {
            identity: None,
            residency,
            h: g1(G1Section::H, "bases of the quotient")?,
            l: g1(G1Section::L, "bases in G1")?,
            a: g1(G1Section::A, "bases in G1")?,
            b_g1: g1(G1Section::B, "bases in G1")?,
            b_g2: gpu.allocate(if residency.b_g2 { counts.len(G1Section::B) } else { 0 }, "bases in G2")?,
        })
    }

    /// Takes those that are to stay; fails unless they are good.
    pub fn load(
        feed: &mut dyn Feed,
        counts: &Counts,
        residency: Residency,
        identity: Option<Identity>,
    ) -> Result<Self> {
        let bases = Bases { identity, ..Bases::allocate(feed.gpu(), counts, residency)? };
        let Bases { h, l, a, b_g1, b_g2, .. } = &bases;
        match h.len() == counts.len(G1Section::H) {
            true => feed.h(&Layout::new(counts.log_domain)?, h.span())?,
            false => first::<G1>(feed, G1Section::H, h)?,
        }
        first::<G1>(feed, G1Section::L, l)?;
        first::<G1>(feed, G1Section::A, a)?;
        first::<G1>(feed, G1Section::B, b_g1)?;
        first::<G2>(feed, G1Section::B, b_g2)?;
        feed.finish()?;
        Ok(bases)
    }

    /// Whether these were read from this very state of that file.
    pub fn belong_to(&self, parameters: &Parameters) -> bool {
        self.identity == Some(parameters.identity())
    }

    /// Whether they were made, and belong to no file.
    pub fn were_made(&self) -> bool {
        self.identity.is_none()
    }
}

/// The first bases of a section.
fn first<C: Fed>(feed: &mut dyn Feed, section: G1Section, to: &Buffer<C::Affine>) -> Result<()> {
    C::feed(feed, section, 0..to.len(), to.span())
}

#[cfg(all(test, feature = "emulator"))]
impl Bases {
    /// All of a file.
    pub fn read(gpu: &Gpu, parameters: &Parameters, control: &crate::pipeline::Control) -> Result<Self> {
        use super::feeder::{Feeder, Ring};

        let counts = parameters.counts();
        let mut ring = Ring::new(gpu, counts)?;
        let mut feeder = Feeder::new(&mut ring, parameters, control)?;
        let all = Residency::all(counts.len(G1Section::H));
        Self::load(&mut feeder, counts, all, Some(parameters.identity()))
    }
}
