//! The constraint polynomials of all variables, evaluated at tau.

use blstrs::Scalar;
use ff::{Field, PrimeField};
use rayon::prelude::*;

use super::columns::{zeros, Rows, TASKS};
use super::secrets::Secrets;
use crate::error::{Error, Result};
use crate::groth16::domain::root_of_unity;
use crate::pipeline::Control;
use crate::r1cs::{Constraints, Matrix};

/// Elements that share an inversion, and that lie between two checks for a cancel.
const PIECE: usize = 1 << 13;

/// The values of one kind for all variables.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Columns {
    pub inputs: Vec<Scalar>,
    pub aux: Vec<Scalar>,
}

impl Columns {
    /// The values that are not zero, inputs first: those that the query has a base for.
    pub(super) fn into_query(self) -> Vec<Scalar> {
        let mut query = self.inputs;
        query.extend(self.aux);
        query.retain(|value| !bool::from(value.is_zero()));
        query
    }
}

/// What the queries of a parameter file are made of.
pub(super) struct Qap {
    /// A_i(tau).
    pub(super) a: Columns,
    /// B_i(tau).
    pub(super) b: Columns,
    /// (beta A_i + alpha B_i + C_i)(tau), over gamma for inputs, over delta for auxiliary variables. None is zero.
    pub(super) ext: Columns,
    /// Z(tau)/delta; times tau^k it is H_k.
    pub(super) h_factor: Scalar,
}

impl Qap {
    /// Fails with [`Error::Argument`] when a variable is in no constraint, or the seed gives unusable secrets.
    pub(super) fn evaluate(r1cs: &dyn Constraints, secrets: &Secrets, control: &Control) -> Result<Self> {
        let Secrets { alpha, beta, gamma, delta, tau } = secrets;
        let size = 1u64 << r1cs.log_domain();
        let z = tau.pow_vartime([size]) - Scalar::ONE;
        let unusable = || Error::Argument { name: "seed", detail: "its secrets cannot be used, take another".into() };
        let inverse = |x: &Scalar| Option::<Scalar>::from(x.invert()).ok_or_else(unusable);
        let (gamma_inverse, delta_inverse) = (inverse(gamma)?, inverse(delta)?);
        // Zero means that tau is in the domain.
        inverse(&z)?;

        let begin = std::time::Instant::now();
        let lagrange = lagrange_at(*tau, r1cs.log_domain(), r1cs.num_rows(), control)?;
        let rows = Rows::new(r1cs, TASKS);
        log::debug!("values of {} rows: {:.1?}", r1cs.num_rows(), begin.elapsed());
        let column = |matrix| rows.sums(matrix, &lagrange, control);
        let (a, b, mut ext) = (column(Matrix::A)?, column(Matrix::B)?, column(Matrix::C)?);
        drop((lagrange, rows));
        log::debug!("columns of {} variables: {:.1?}", r1cs.num_aux(), begin.elapsed());
        let fold = |ext: &mut [Scalar], a: &[Scalar], b: &[Scalar], factor: Scalar| {
            let (beta, alpha) = (beta * factor, alpha * factor);
            ext.par_iter_mut().zip(a).zip(b).for_each(|((ext, a), b)| *ext = a * beta + b * alpha + *ext * factor);
        };
        fold(&mut ext.inputs, &a.inputs, &b.inputs, gamma_inverse);
        fold(&mut ext.aux, &a.aux, &b.aux, delta_inverse);
        for (kind, values) in [("input", &ext.inputs), ("auxiliary variable", &ext.aux)] {
            if let Some(index) = values.par_iter().position_first(|value| value.is_zero().into()) {
                let detail = format!("{kind} {index} is in no constraint");
                return Err(Error::Argument { name: "circuit", detail });
            }
        }
        Ok(Qap { a, b, ext, h_factor: z * delta_inverse })
    }
}

/// The first `rows` Lagrange polynomials of the domain at `tau`: L_i = (tau^N - 1)/N * w^i/(tau - w^i). `tau` is not in
/// the domain.
fn lagrange_at(tau: Scalar, log_domain: u32, rows: usize, control: &Control) -> Result<Vec<Scalar>> {
    let root = root_of_unity(log_domain);
    let z = tau.pow_vartime([1u64 << log_domain]) - Scalar::ONE;
    let factor = z * Scalar::TWO_INV.pow_vartime([u64::from(log_domain)]);
    let mut values = zeros(rows);
    values.par_chunks_mut(PIECE).enumerate().try_for_each(|(piece, values)| {
        control.check("making parameters")?;
        let first = root.pow_vartime([(piece * PIECE) as u64]);
        // values[i] = product of the differences before i, then the shared inverse runs back.
        let (mut x, mut product) = (first, Scalar::ONE);
        let mut points = Vec::with_capacity(values.len());
        for value in values.iter_mut() {
            *value = product;
            product *= tau - x;
            points.push(x);
            x *= root;
        }
        let inverse: Option<Scalar> = product.invert().into();
        let mut inverse = inverse.ok_or_else(|| Error::internal("tau is in the domain"))?;
        for (value, x) in values.iter_mut().zip(&points).rev() {
            *value *= inverse * x * factor;
            inverse *= tau - x;
        }
        Ok(())
    })?;
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::groth16::domain::{TextbookTransform, Transform};

    #[test]
    fn lagrange_values_are_the_inverse_transform_of_the_powers_of_tau() {
        let tau = Secrets::from_seed(3).tau;
        let control = Control::new();
        for (log_domain, rows) in [(0, 1), (1, 2), (4, 11), (14, 3 << 12)] {
            let mut expected: Vec<_> = (0..1u64 << log_domain).map(|k| tau.pow_vartime([k])).collect();
            TextbookTransform::new(log_domain).inverse(&mut expected, &control).unwrap();
            expected.truncate(rows);
            assert_eq!(lagrange_at(tau, log_domain, rows, &control).unwrap(), expected);
        }
    }
}
