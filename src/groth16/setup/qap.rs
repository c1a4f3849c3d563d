//! The constraint polynomials of all variables, evaluated at tau.

use bellperson::{Index, Variable};
use blstrs::Scalar;
use ff::{Field, PrimeField};
use rayon::prelude::*;

use super::secrets::Secrets;
use crate::error::{Error, Result};
use crate::groth16::domain::root_of_unity;
use crate::pipeline::Control;
use crate::r1cs::{Matrix, R1cs};

/// Elements that share an inversion, and that lie between two checks for a cancel.
const PIECE: usize = 1 << 13;

/// The values of one kind for all variables.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Columns {
    pub(super) inputs: Vec<Scalar>,
    pub(super) aux: Vec<Scalar>,
}

impl Columns {
    fn zero(r1cs: &R1cs) -> Self {
        Columns { inputs: vec![Scalar::ZERO; r1cs.num_inputs()], aux: vec![Scalar::ZERO; r1cs.num_aux()] }
    }

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
    pub(super) fn evaluate(r1cs: &R1cs, secrets: &Secrets, control: &Control) -> Result<Self> {
        let Secrets { alpha, beta, gamma, delta, tau } = secrets;
        let size = 1u64 << r1cs.log_domain();
        let z = tau.pow_vartime([size]) - Scalar::ONE;
        let unusable = || Error::Argument { name: "seed", detail: "its secrets cannot be used, take another".into() };
        let inverse = |x: &Scalar| Option::<Scalar>::from(x.invert()).ok_or_else(unusable);
        let (gamma_inverse, delta_inverse) = (inverse(gamma)?, inverse(delta)?);
        // Zero means that tau is in the domain.
        inverse(&z)?;

        let lagrange = lagrange_at(*tau, r1cs.log_domain(), r1cs.num_rows(), control)?;
        let column = |matrix| column_sums(r1cs, matrix, &lagrange, control);
        let (a, (b, c)) = rayon::join(|| column(Matrix::A), || rayon::join(|| column(Matrix::B), || column(Matrix::C)));
        let (a, b, mut ext) = (a?, b?, c?);
        drop(lagrange);
        let fold = |ext: &mut [Scalar], a: &[Scalar], b: &[Scalar], factor: Scalar| {
            let (beta, alpha) = (beta * factor, alpha * factor);
            ext.par_iter_mut().zip(a).zip(b).for_each(|((ext, a), b)| *ext = a * beta + b * alpha + *ext * factor);
        };
        fold(&mut ext.inputs, &a.inputs, &b.inputs, gamma_inverse);
        fold(&mut ext.aux, &a.aux, &b.aux, delta_inverse);
        for (kind, values) in [("input", &ext.inputs), ("auxiliary variable", &ext.aux)] {
            if let Some(index) = values.iter().position(|value| value.is_zero().into()) {
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
    let mut values = vec![Scalar::ZERO; rows];
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

/// For each variable the sum over all rows of its coefficient times the row's Lagrange value.
fn column_sums(r1cs: &R1cs, matrix: Matrix, lagrange: &[Scalar], control: &Control) -> Result<Columns> {
    let mut columns = Columns::zero(r1cs);
    let minus_one = -Scalar::ONE;
    for (index, (row, value)) in r1cs.rows(matrix, 0..r1cs.num_rows()).zip(lagrange).enumerate() {
        if index % PIECE == 0 {
            control.check("making parameters")?;
        }
        for (Variable(variable), coefficient) in row.iter() {
            let sum = match variable {
                Index::Input(i) => &mut columns.inputs[i],
                Index::Aux(i) => &mut columns.aux[i],
            };
            // Nearly all coefficients are 1 or -1.
            if *coefficient == Scalar::ONE {
                *sum += value;
            } else if *coefficient == minus_one {
                *sum -= value;
            } else {
                *sum += value * coefficient;
            }
        }
    }
    Ok(columns)
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
