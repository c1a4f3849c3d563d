//! The evaluation domain: powers of a primitive root of unity, and its coset.

use blstrs::Scalar;
use ff::{Field, PrimeField};

use crate::error::Result;
use crate::pipeline::Control;

/// Transforms of a fixed size 2^k between coefficients and evaluations, both in natural order.
///
/// A slice that is passed in always has exactly 2^k elements. The coset is `GENERATOR * domain`, with
/// `Scalar::MULTIPLICATIVE_GENERATOR` (7) as in bellperson. Implementations call `control.check` often
/// enough for a cancel to take effect within 500 ms.
pub trait Transform: Sync {
    /// k.
    fn log_size(&self) -> u32;

    /// Coefficients to evaluations on the domain.
    fn forward(&self, values: &mut [Scalar], control: &Control) -> Result<()>;

    /// Evaluations on the domain to coefficients.
    fn inverse(&self, values: &mut [Scalar], control: &Control) -> Result<()>;

    /// Coefficients to evaluations on the coset.
    fn coset_forward(&self, values: &mut [Scalar], control: &Control) -> Result<()>;

    /// Evaluations on the coset to coefficients.
    fn coset_inverse(&self, values: &mut [Scalar], control: &Control) -> Result<()>;
}

/// The primitive 2^`log_size`-th root of unity that bellperson uses.
pub fn root_of_unity(log_size: u32) -> Scalar {
    assert!(log_size <= Scalar::S);
    (log_size..Scalar::S).fold(Scalar::ROOT_OF_UNITY, |root, _| root.square())
}
