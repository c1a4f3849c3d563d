//! What the passes need of a vector of eight field elements. Knows no transform.

use blstrs::Scalar;

/// Eight elements of Fr, in whatever form an instruction set multiplies fastest.
///
/// Intermediate values may be kept unreduced: an implementation allows fourteen levels of sums and differences
/// (two of them by [`Eight::cross_first`]) between products, and [`Eight::store`] gives canonical values.
pub(super) trait Eight: Copy + Send + Sync + 'static {
    /// A constant factor for all eight.
    type Factor: Copy + Send + Sync;

    /// Eight zeros.
    const ZERO: Self;

    /// Whether every operation leaves canonical values, so that [`Eight::cross_first`] takes any operands.
    const REDUCED: bool;

    /// A constant's form as a factor.
    fn factor(value: &Scalar) -> Self::Factor;

    /// Eight constants' form as factors, for [`Eight::multiply`].
    fn factors(values: &[Scalar; 8]) -> Self;

    /// Runs `work` with the instruction set that this vector type needs.
    fn enter<R>(work: impl FnOnce() -> R) -> R;

    /// Data from memory.
    fn load(values: &[Scalar; 8]) -> Self;

    /// Data to memory, canonical.
    fn store(&self, values: &mut [Scalar; 8]);

    /// `self *= factor`
    fn scale(&mut self, factor: &Self::Factor);

    /// `self *= factors`, where `factors` came from [`Eight::factors`] (and possibly products of such).
    fn multiply(&mut self, factors: &Self);

    /// `(a, b) = (a + b, a - b)` where b has just been multiplied.
    fn cross(a: &mut Self, b: &mut Self);

    /// `(a, b) = (a + b, a - b)` where b was loaded or multiplied, or is the sum of two such; any b if
    /// [`Eight::REDUCED`].
    fn cross_first(a: &mut Self, b: &mut Self);

    /// Element j of vector i becomes element i of vector j.
    fn transpose(block: &mut [Self; 8]);
}
