//! The bases of all sums on a device, in the order in which kernels want them.

use blstrs::{G1Affine, G2Affine};

use super::curves::{DeviceCurve, G1, G2};
use super::gpu::{Buffer, Gpu, Plain, Stream};
use super::ntt::Layout;
use crate::error::Result;
use crate::groth16::params::Identity;
use crate::groth16::{G1Section, Parameters};
use crate::pipeline::Control;

/// Points that are read, decoded and copied at once: 24 MiB in G1.
const PIECE: usize = 1 << 18;

pub(super) type G1Words = <G1 as DeviceCurve>::Affine;
pub(super) type G2Words = <G2 as DeviceCurve>::Affine;

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
    /// Reads all of them; fails if the file changes meanwhile.
    pub fn read(gpu: &Gpu, parameters: &Parameters, control: &Control) -> Result<Self> {
        let stream = gpu.stream()?;
        let counts = parameters.counts();
        let layout = Layout::new(counts.log_domain)?;
        let reader = Reader { stream: &stream, parameters, control };
        let bases = Bases {
            identity: Some(parameters.identity()),
            h: reader.h(&layout)?,
            l: reader.g1(G1Section::L)?,
            a: reader.g1(G1Section::A)?,
            b_g1: reader.g1(G1Section::B)?,
            b_g2: reader.g2(counts.len(G1Section::B))?,
        };
        stream.synchronize()?;
        parameters.ensure_unchanged()?;
        Ok(bases)
    }

    /// Whether these were read from this very state of that file.
    pub fn belong_to(&self, parameters: &Parameters) -> bool {
        self.identity == Some(parameters.identity())
    }
}

struct Reader<'a> {
    stream: &'a Stream,
    parameters: &'a Parameters,
    control: &'a Control,
}

impl Reader<'_> {
    fn g1(&self, section: G1Section) -> Result<Buffer<G1Words>> {
        let len = self.parameters.counts().len(section);
        let buffer = self.stream.gpu().allocate(len, "bases in G1")?;
        let mut points = Vec::new();
        for first in (0..len).step_by(PIECE) {
            let end = (first + PIECE).min(len);
            self.parameters.read_g1(section, first..end, &mut points, self.control)?;
            self.stream.upload(buffer.span().slice(first..end), words::<G1Affine, G1Words>(&points))?;
        }
        Ok(buffer)
    }

    /// Each piece goes through a buffer of its own, from which its points are spread.
    fn h(&self, layout: &Layout) -> Result<Buffer<G1Words>> {
        let len = self.parameters.counts().len(G1Section::H);
        let gpu = self.stream.gpu();
        let buffer = gpu.allocate(len, "bases of the quotient")?;
        let piece = gpu.allocate(PIECE.min(len), "bases on their way")?;
        let mut points = Vec::new();
        for first in (0..len).step_by(PIECE) {
            let end = (first + PIECE).min(len);
            self.parameters.read_g1(G1Section::H, first..end, &mut points, self.control)?;
            let piece = piece.span().slice(..end - first);
            self.stream.upload(piece, words::<G1Affine, G1Words>(&points))?;
            layout.arrange(self.stream, buffer.span(), piece, first)?;
        }
        self.stream.synchronize()?;
        Ok(buffer)
    }

    fn g2(&self, len: usize) -> Result<Buffer<G2Words>> {
        let buffer = self.stream.gpu().allocate(len, "bases in G2")?;
        let mut points = Vec::new();
        for first in (0..len).step_by(PIECE) {
            let end = (first + PIECE).min(len);
            self.parameters.read_g2(first..end, &mut points, self.control)?;
            self.stream.upload(buffer.span().slice(first..end), words::<G2Affine, G2Words>(&points))?;
        }
        Ok(buffer)
    }
}

/// Points as kernels see them, without a copy.
pub(super) fn words<P, W: Plain>(points: &[P]) -> &[W] {
    const { assert!(size_of::<P>() == size_of::<W>() && align_of::<P>() >= align_of::<W>()) };
    // SAFETY: called for the affine points of blstrs, which are their coordinates in Montgomery form (asserted in
    // curve::layout): integers of the same size and alignment.
    unsafe { std::slice::from_raw_parts(points.as_ptr().cast(), points.len()) }
}
