//! Number-theoretic transforms over Fr on the GPU (kernels/ntt.cu). Knows no circuit.
//!
//! Evaluations are in natural order, coefficients in the order of [`Layout`]. All work is queued, in place, with no
//! memory but the tables.

pub(super) mod bench;
mod layout;
mod tables;
#[cfg(all(test, feature = "emulator"))]
mod tests;

use blstrs::Scalar;
use ff::{Field, PrimeField};

use super::gpu::{args, Arg, Gpu, Span, Stream, Words};
use crate::error::{Error, Result};
use crate::groth16::domain::COSET_SHIFT;

pub use layout::Layout;
#[cfg(all(test, feature = "emulator"))]
pub use layout::MAX_LOG_SIZE;
use layout::THREADS;
pub(super) use tables::{Direction, Scaling};
use tables::{Factor, Roots};

/// log2 of the elements of a tile: what a block works on.
const TILE_BITS: u32 = 11;

/// The passes of one size, with the roots of unity that every transform of that size needs.
pub(super) struct Passes {
    layout: Layout,
    roots: Roots,
}

/// A part of an index that a pass transforms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    First,
    Second,
    Third,
}

/// `Pass` of ntt_tile.cuh.
pub(super) type Shape = [u32; 7];

impl Passes {
    pub fn new(stream: &Stream, layout: Layout) -> Result<Self> {
        Ok(Passes { layout, roots: Roots::new(stream, layout)? })
    }

    /// The device memory of the roots of unity, in bytes.
    pub fn table_bytes(layout: Layout) -> u64 {
        Roots::bytes(layout)
    }

    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// The part that an inverse transform begins with.
    pub fn begin(&self) -> Part {
        match self.layout.has_three_passes() {
            true => Part::First,
            false => Part::Second,
        }
    }

    fn bits(&self, part: Part) -> u32 {
        match part {
            Part::First => self.layout.first,
            Part::Second => self.layout.second,
            Part::Third => self.layout.third,
        }
    }

    /// Where the pass's elements are, and which factor each result takes in that direction.
    pub fn shape(&self, part: Part, direction: Direction) -> Shape {
        let Layout { first, second, third } = self.layout;
        let all = |bits: u32| (1u32 << bits) - 1;
        let stride = match part {
            Part::First => second + third,
            Part::Second => third,
            Part::Third => 0,
        };
        // Factor k << row_shift | (column >> drop & mask) << column_shift of the tables' indices.
        let [row_shift, drop, mask, column_shift] = match (part, direction) {
            (Part::First, Direction::Inverse) => [second, third, all(second), 0],
            (Part::First, Direction::Forward) => [0; 4],
            (Part::Second, Direction::Inverse) => [third, 0, all(third), 0],
            (Part::Second, Direction::Forward) => [0, third, all(first), second],
            (Part::Third, Direction::Inverse) => [0; 4],
            (Part::Third, Direction::Forward) => [0, 0, all(second), third],
        };
        let bits = self.bits(part);
        let columns = 1 << (self.layout.log_size() - bits);
        [bits, stride, columns, row_shift, drop, mask, column_shift]
    }

    /// The roots of unity for a part.
    pub fn roots(&self, part: Part) -> Span<Factor> {
        self.roots.of_part(self.bits(part))
    }

    /// The factors after a pass: between it and the next one.
    pub fn factors(&self, part: Part, direction: Direction, scaling: &Scaling) -> Option<Span<Factor>> {
        match (part, direction) {
            (Part::First, Direction::Inverse) | (Part::Second, Direction::Forward) => self.roots.between(direction),
            (Part::Second, Direction::Inverse) | (Part::Third, Direction::Forward) => Some(scaling.factors.span()),
            (Part::Third, Direction::Inverse) => scaling.powers(),
            (Part::First, Direction::Forward) => None,
        }
    }

    /// Blocks of a kernel that works on tiles.
    pub fn grid(&self) -> u32 {
        1 << self.layout.log_size().saturating_sub(TILE_BITS)
    }

    /// Queues such a kernel.
    pub fn launch(&self, stream: &Stream, kernel: &'static str, args: &[Arg]) -> Result<()> {
        stream.launch(kernel, self.grid(), THREADS, 0, args)
    }

    /// Queues one pass over `data`.
    pub fn pass(
        &self,
        stream: &Stream,
        data: Span<Words>,
        part: Part,
        direction: Direction,
        scaling: &Scaling,
    ) -> Result<()> {
        let roots = self.roots(part);
        let factors = address(self.factors(part, direction, scaling));
        let inverse = u32::from(direction == Direction::Inverse);
        let shape = self.shape(part, direction);
        match &scaling.pairs {
            Some(pairs) if part == Part::Second => {
                let args = args![data, roots, pairs.span(), factors, inverse, shape];
                self.launch(stream, "ntt_second", &args)
            }
            _ => self.launch(stream, "ntt_pass", &args![data, roots, factors, inverse, shape]),
        }
    }

    /// Fails unless a span has as many elements as the transform.
    pub fn check(&self, data: Span<Words>) -> Result<()> {
        if data.len() == self.layout.size() {
            return Ok(());
        }
        let log_size = self.layout.log_size();
        Err(Error::internal(format!("a transform of size 2^{log_size} was given {} elements", data.len())))
    }
}

/// A pointer that may be null.
pub(super) fn address(span: Option<Span<Factor>>) -> u64 {
    span.map_or(0, |span| span.address())
}

/// Transforms of one size.
pub struct Ntt {
    passes: Passes,
    forward: Scaling,
    inverse: Scaling,
    coset_forward: Scaling,
    coset_inverse: Scaling,
}

impl Ntt {
    /// Makes the tables for transforms of 2^`log_size` elements.
    ///
    /// # Errors
    /// [`Error::Argument`] for a size that is not supported, [`Error::Memory`] if the tables do not fit.
    pub fn new(gpu: &Gpu, log_size: u32) -> Result<Self> {
        Self::with_layout(gpu, Layout::new(log_size)?)
    }

    fn with_layout(gpu: &Gpu, layout: Layout) -> Result<Self> {
        let stream = gpu.stream()?;
        let one = Scalar::ONE;
        let size_inverse = size_inverse(layout);
        let ntt = Ntt {
            passes: Passes::new(&stream, layout)?,
            forward: Scaling::new(&stream, layout, Direction::Forward, one, one)?,
            inverse: Scaling::new(&stream, layout, Direction::Inverse, size_inverse, one)?,
            coset_forward: Scaling::new(&stream, layout, Direction::Forward, one, COSET_SHIFT)?,
            coset_inverse: Scaling::new(&stream, layout, Direction::Inverse, size_inverse, inverse_of(COSET_SHIFT))?,
        };
        stream.synchronize()?;
        Ok(ntt)
    }

    /// Where coefficients are.
    pub fn layout(&self) -> Layout {
        self.passes.layout()
    }

    /// Queues: coefficients to evaluations on the domain.
    pub fn forward(&self, stream: &Stream, data: Span<Words>) -> Result<()> {
        self.evaluate(stream, data, &self.forward)
    }

    /// Queues: evaluations on the domain to coefficients.
    pub fn inverse(&self, stream: &Stream, data: Span<Words>) -> Result<()> {
        self.interpolate(stream, data, &self.inverse)
    }

    /// Queues: coefficients to evaluations on the coset.
    pub fn coset_forward(&self, stream: &Stream, data: Span<Words>) -> Result<()> {
        self.evaluate(stream, data, &self.coset_forward)
    }

    /// Queues: evaluations on the coset to coefficients.
    pub fn coset_inverse(&self, stream: &Stream, data: Span<Words>) -> Result<()> {
        self.interpolate(stream, data, &self.coset_inverse)
    }

    fn evaluate(&self, stream: &Stream, data: Span<Words>, scaling: &Scaling) -> Result<()> {
        self.passes.check(data)?;
        if let Some(powers) = scaling.powers() {
            let count = data.len() as u32;
            let args = args![data, powers, self.layout().third, count];
            stream.launch("ntt_scale", count.div_ceil(THREADS), THREADS, 0, &args)?;
        }
        for part in self.parts().into_iter().rev() {
            self.passes.pass(stream, data, part, Direction::Forward, scaling)?;
        }
        Ok(())
    }

    fn interpolate(&self, stream: &Stream, data: Span<Words>, scaling: &Scaling) -> Result<()> {
        self.passes.check(data)?;
        for part in self.parts() {
            self.passes.pass(stream, data, part, Direction::Inverse, scaling)?;
        }
        Ok(())
    }

    /// The passes of an inverse transform, in order.
    fn parts(&self) -> Vec<Part> {
        match self.passes.begin() {
            Part::First => vec![Part::First, Part::Second, Part::Third],
            _ => vec![Part::Second, Part::Third],
        }
    }
}

/// 1 / N
pub(super) fn size_inverse(layout: Layout) -> Scalar {
    Scalar::TWO_INV.pow_vartime([u64::from(layout.log_size())])
}

/// 1 / `value`, for a value that is not zero.
pub(super) fn inverse_of(value: Scalar) -> Scalar {
    value.invert().expect("the value is not zero")
}
