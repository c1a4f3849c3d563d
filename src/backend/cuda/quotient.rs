//! The quotient polynomial h = (A B - C)/Z on the GPU, in six transforms and without C's rows.
//!
//! As `groth16::quotient`, with what lies between two transforms joined to their passes (kernels/ntt.cu): c = a b, the
//! change from domain to coset, the product on the coset, and (p - c)/(g^N - 1) out of Montgomery form.

use blstrs::Scalar;
use ff::{Field, PrimeField};

use super::gpu::{args, Gpu, Span, Stream, Words};
use super::ntt::{address, inverse_of, size_inverse, Direction, Layout, Part, Passes, Scaling};
use crate::error::{Error, Result};
use crate::groth16::domain::COSET_SHIFT;

/// How many scalings a quotient has, and how many of them with powers of the coset's shift.
const SCALINGS: u64 = 4;
const POWERS: u64 = 2;

/// Quotients of one size.
pub struct Quotient {
    passes: Passes,
    /// From the domain to coefficients scaled for the coset: shift g.
    to_coset: Scaling,
    evaluate: Scaling,
    /// From the coset to coefficients over g^N - 1, as numbers.
    from_coset: Scaling,
    /// From the domain to coefficients over g^N - 1, as numbers.
    of_c: Scaling,
}

impl Quotient {
    /// Makes the tables for 2^`log_size` rows.
    ///
    /// # Errors
    /// [`Error::Argument`] for a size that is not supported, [`Error::Memory`] if the tables do not fit.
    pub fn new(gpu: &Gpu, log_size: u32) -> Result<Self> {
        Self::with_layout(gpu, Layout::new(log_size)?)
    }

    pub(super) fn with_layout(gpu: &Gpu, layout: Layout) -> Result<Self> {
        let stream = gpu.stream()?;
        let one = Scalar::ONE;
        let z = COSET_SHIFT.pow_vartime([layout.size() as u64]) - one;
        let z_inverse: Option<Scalar> = z.invert().into();
        let z_inverse = z_inverse.ok_or_else(|| Error::internal("the coset meets the domain"))?;
        // A stored element is its value times 2^256.
        let unstore = Scalar::TWO_INV.pow_vartime([256]);
        let last = size_inverse(layout) * z_inverse * unstore;
        let scaling = |direction, start, shift| Scaling::new(&stream, layout, direction, start, shift);
        let quotient = Quotient {
            passes: Passes::new(&stream, layout)?,
            to_coset: scaling(Direction::Inverse, size_inverse(layout), COSET_SHIFT)?,
            evaluate: scaling(Direction::Forward, one, one)?,
            from_coset: scaling(Direction::Inverse, last, inverse_of(COSET_SHIFT))?,
            of_c: scaling(Direction::Inverse, last, one)?,
        };
        stream.synchronize()?;
        Ok(quotient)
    }

    /// The device memory of the tables for 2^`log_size` rows, in bytes: 160 MiB for 2^27.
    ///
    /// # Errors
    /// [`Error::Argument`] for a size that is not supported.
    pub fn table_bytes(log_size: u32) -> Result<u64> {
        let layout = Layout::new(log_size)?;
        let scalings = SCALINGS * Scaling::table_bytes(layout) + POWERS * Scaling::power_bytes(layout);
        Ok(Passes::table_bytes(layout) + scalings)
    }

    /// Queues the quotient: `a` and `b` are the evaluations A w and B w, with zeros for missing rows. When done, `a` has
    /// the coefficients of h out of Montgomery form in the order of [`Layout`], and `top` the last of them, number
    /// N - 1. That one must be zero: if not, a transform was computed wrongly ([`Error::Transform`]), which the caller
    /// checks. `b` and `c` are overwritten.
    ///
    /// Before each of the kernels, or two of them, `rest` is called: it may wait for those before.
    ///
    /// # Errors
    /// If a span is not of the right length, or the driver refuses a launch; that of `rest`.
    pub fn run(
        &self,
        stream: &Stream,
        a: Span<Words>,
        b: Span<Words>,
        c: Span<Words>,
        top: Span<Words>,
        rest: &dyn Fn() -> Result<()>,
    ) -> Result<()> {
        for data in [a, b, c] {
            self.passes.check(data)?;
        }
        if top.len() != 1 {
            return Err(Error::internal(format!("one coefficient was given room for {}", top.len())));
        }
        rest()?;
        self.open(stream, a, b, c)?;
        for data in [a, b] {
            rest()?;
            self.second(stream, data, Direction::Inverse, &self.to_coset)?;
            self.middle(stream, data)?;
            rest()?;
            self.second(stream, data, Direction::Forward, &self.evaluate)?;
        }
        self.second(stream, c, Direction::Inverse, &self.of_c)?;
        self.passes.pass(stream, c, Part::Third, Direction::Inverse, &self.of_c)?;
        rest()?;
        self.meet(stream, a, b)?;
        rest()?;
        self.second(stream, a, Direction::Inverse, &self.from_coset)?;
        self.close(stream, a, c, top)
    }

    /// The second of three passes; with two, the kernels at both ends have done it.
    fn second(&self, stream: &Stream, data: Span<Words>, direction: Direction, scaling: &Scaling) -> Result<()> {
        match self.passes.begin() {
            Part::First => self.passes.pass(stream, data, Part::Second, direction, scaling),
            _ => Ok(()),
        }
    }

    /// c = a b, and the first inverse pass of all three.
    fn open(&self, stream: &Stream, a: Span<Words>, b: Span<Words>, c: Span<Words>) -> Result<()> {
        let part = self.passes.begin();
        let factors = |scaling| address(self.passes.factors(part, Direction::Inverse, scaling));
        let (ours, of_c) = (factors(&self.to_coset), factors(&self.of_c));
        let shape = self.passes.shape(part, Direction::Inverse);
        self.passes.launch(stream, "ntt_open", &args![a, b, c, self.passes.roots(part), ours, of_c, shape])
    }

    /// The last inverse pass and the first forward pass.
    fn middle(&self, stream: &Stream, data: Span<Words>) -> Result<()> {
        let factors = address(self.passes.factors(Part::Third, Direction::Forward, &self.evaluate));
        let shape = self.passes.shape(Part::Third, Direction::Forward);
        let args = args![data, self.passes.roots(Part::Third), address(self.to_coset.powers()), factors, shape];
        self.passes.launch(stream, "ntt_middle", &args)
    }

    /// The last forward pass of both, and the first inverse pass of their product.
    fn meet(&self, stream: &Stream, a: Span<Words>, b: Span<Words>) -> Result<()> {
        let part = self.passes.begin();
        let factors = address(self.passes.factors(part, Direction::Inverse, &self.from_coset));
        let shape = self.passes.shape(part, Direction::Inverse);
        self.passes.launch(stream, "ntt_meet", &args![a, b, self.passes.roots(part), factors, shape])
    }

    /// The last inverse pass, less c.
    fn close(&self, stream: &Stream, p: Span<Words>, c: Span<Words>, top: Span<Words>) -> Result<()> {
        let powers = address(self.from_coset.powers());
        let shape = self.passes.shape(Part::Third, Direction::Inverse);
        let args = args![p, c, top, self.passes.roots(Part::Third), powers, shape];
        self.passes.launch(stream, "ntt_close", &args)
    }
}
