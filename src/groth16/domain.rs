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

/// The shift of the coset: the multiplicative generator of the scalar field.
pub const COSET_SHIFT: Scalar = Scalar::MULTIPLICATIVE_GENERATOR;

/// Multiplies `values[i]` by `scale * base^i`.
pub fn scale_by_powers(values: &mut [Scalar], scale: Scalar, base: Scalar) {
    let mut power = scale;
    for value in values {
        *value *= power;
        power *= base;
    }
}

/// The textbook transform: recursive, one thread, a copy at each level. For small sizes, and to compare
/// faster ones with.
#[derive(Debug, Clone, Copy)]
pub struct TextbookTransform {
    log_size: u32,
}

impl TextbookTransform {
    /// The transform of 2^`log_size` elements; `log_size` is at most 32.
    pub fn new(log_size: u32) -> Self {
        assert!(log_size <= Scalar::S);
        TextbookTransform { log_size }
    }

    fn run(&self, values: &mut [Scalar], root: Scalar, control: &Control) -> Result<()> {
        assert_eq!(values.len(), 1 << self.log_size);
        evaluate(values, root, control)
    }
}

/// Replaces the coefficients in `values` by the values at 1, `root`, `root`^2, ...
fn evaluate(values: &mut [Scalar], root: Scalar, control: &Control) -> Result<()> {
    let half = values.len() / 2;
    if half == 0 {
        return Ok(());
    }
    if half >= 1 << 14 {
        control.check("a transform")?;
    }
    // f(x) = even(x^2) + x odd(x^2), and x^2 runs through the half-sized domain twice.
    let mut even: Vec<_> = values.iter().step_by(2).copied().collect();
    let mut odd: Vec<_> = values.iter().skip(1).step_by(2).copied().collect();
    evaluate(&mut even, root.square(), control)?;
    evaluate(&mut odd, root.square(), control)?;
    let mut x = Scalar::ONE;
    for i in 0..half {
        let right = x * odd[i];
        values[i] = even[i] + right;
        values[i + half] = even[i] - right;
        x *= root;
    }
    Ok(())
}

impl Transform for TextbookTransform {
    fn log_size(&self) -> u32 {
        self.log_size
    }

    fn forward(&self, values: &mut [Scalar], control: &Control) -> Result<()> {
        self.run(values, root_of_unity(self.log_size), control)
    }

    fn inverse(&self, values: &mut [Scalar], control: &Control) -> Result<()> {
        let root = root_of_unity(self.log_size);
        // The inverse of a root of unity is its power of order - 1.
        self.run(values, root.pow_vartime([(1u64 << self.log_size) - 1]), control)?;
        scale_by_powers(values, Scalar::TWO_INV.pow_vartime([u64::from(self.log_size)]), Scalar::ONE);
        Ok(())
    }

    fn coset_forward(&self, values: &mut [Scalar], control: &Control) -> Result<()> {
        scale_by_powers(values, Scalar::ONE, COSET_SHIFT);
        self.forward(values, control)
    }

    fn coset_inverse(&self, values: &mut [Scalar], control: &Control) -> Result<()> {
        self.inverse(values, control)?;
        let unshift: Option<Scalar> = COSET_SHIFT.invert().into();
        scale_by_powers(values, Scalar::ONE, unshift.expect("a generator is not zero"));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use rand::rngs::StdRng;
    use rand::SeedableRng;

    use super::*;

    fn random(n: usize) -> Vec<Scalar> {
        let mut rng = StdRng::seed_from_u64(n as u64);
        (0..n).map(|_| Scalar::random(&mut rng)).collect()
    }

    fn value_at(coefficients: &[Scalar], x: Scalar) -> Scalar {
        coefficients.iter().rev().fold(Scalar::ZERO, |sum, c| sum * x + c)
    }

    #[test]
    fn the_root_of_unity_is_primitive() {
        for log_size in 1..=Scalar::S {
            let root = root_of_unity(log_size);
            assert_eq!(root.pow_vartime([1u64 << (log_size - 1)]), -Scalar::ONE);
        }
        assert_eq!(root_of_unity(0), Scalar::ONE);
    }

    #[test]
    fn textbook_transform_evaluates_the_polynomial_on_domain_and_coset() {
        let control = Control::new();
        for log_size in 0..7 {
            let transform = TextbookTransform::new(log_size);
            let coefficients = random(1 << log_size);
            let root = root_of_unity(log_size);
            for shift in [Scalar::ONE, COSET_SHIFT] {
                let mut values = coefficients.clone();
                if shift == Scalar::ONE {
                    transform.forward(&mut values, &control).unwrap();
                } else {
                    transform.coset_forward(&mut values, &control).unwrap();
                }
                for (i, value) in values.iter().enumerate() {
                    assert_eq!(*value, value_at(&coefficients, shift * root.pow_vartime([i as u64])));
                }
                if shift == Scalar::ONE {
                    transform.inverse(&mut values, &control).unwrap();
                } else {
                    transform.coset_inverse(&mut values, &control).unwrap();
                }
                assert_eq!(values, coefficients);
            }
        }
    }
}
