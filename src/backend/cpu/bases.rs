//! The bases of all sums, read from a parameter file and kept decoded.

use blstrs::{G1Affine, G2Affine};

use crate::error::Result;
use crate::groth16::params::Identity;
use crate::groth16::{Counts, G1Section, Parameters};
use crate::pipeline::Control;

/// All five queries of one parameter file.
pub(super) struct Bases {
    identity: Identity,
    pub h: Vec<G1Affine>,
    pub l: Vec<G1Affine>,
    pub a: Vec<G1Affine>,
    pub b_g1: Vec<G1Affine>,
    pub b_g2: Vec<G2Affine>,
}

impl Bases {
    /// Reads all of them; fails if the file changes meanwhile.
    pub fn read(parameters: &Parameters, control: &Control) -> Result<Self> {
        let counts = parameters.counts();
        let g1 = |section: G1Section| {
            let mut points = Vec::new();
            parameters.read_g1(section, 0..counts.len(section), &mut points, control).map(|()| points)
        };
        let mut b_g2 = Vec::new();
        parameters.read_g2(0..counts.len(G1Section::B), &mut b_g2, control)?;
        let bases = Bases {
            identity: parameters.identity(),
            h: g1(G1Section::H)?,
            l: g1(G1Section::L)?,
            a: g1(G1Section::A)?,
            b_g1: g1(G1Section::B)?,
            b_g2,
        };
        parameters.ensure_unchanged()?;
        Ok(bases)
    }

    /// Whether these were read from this very state of that file.
    pub fn belong_to(&self, parameters: &Parameters) -> bool {
        self.identity == parameters.identity()
    }

    /// Bytes in memory.
    pub fn bytes(&self) -> u64 {
        let g1 = [&self.h, &self.l, &self.a, &self.b_g1].map(|points| points.len()).iter().sum::<usize>();
        bytes(g1, self.b_g2.len())
    }

    /// Bytes that the bases for such a circuit take.
    pub fn bytes_of(counts: &Counts) -> u64 {
        bytes(G1Section::ALL.iter().map(|&section| counts.len(section)).sum(), counts.len(G1Section::B))
    }
}

fn bytes(g1: usize, g2: usize) -> u64 {
    (g1 * size_of::<G1Affine>() + g2 * size_of::<G2Affine>()) as u64
}
