//! The quotient polynomial h = (A B - C)/Z of a satisfied system, in six transforms and without C's rows.
//! Knows no circuit: a and b come as evaluations on the domain.

use blstrs::Scalar;
use ff::Field;
use rayon::prelude::*;

use super::domain::{Transform, COSET_SHIFT};
use crate::error::{Error, Result};
use crate::memory::zero_scalars;
use crate::pipeline::Control;

/// Elements that one task of a pointwise operation works on: under a millisecond between two checks.
const PIECE: usize = 1 << 14;

/// The N - 1 coefficients of h, from the evaluations `a` = A w and `b` = B w (missing rows are zero).
///
/// A satisfied witness has C w = a * b row by row, so c needs no matrix. With P the polynomial of degree
/// below N that equals A B on the coset g * domain, and Z = X^N - 1 equal to g^N - 1 there,
/// P - c = (g^N - 1) h. As h has degree N - 2 at most, coefficient N - 1 of P - c must vanish; it does for
/// every `a` and `b`, so [`Error::Transform`] means that a transform computed wrongly. The check is free and
/// finds a wrong value inside a transform, which spreads over all coefficients; it does not replace the
/// verification of the proof.
///
/// Three vectors of N elements live at the peak. Fails also when `a` and `b` differ in length or exceed N.
pub fn quotient(
    transform: &impl Transform,
    mut a: Vec<Scalar>,
    mut b: Vec<Scalar>,
    control: &Control,
) -> Result<Vec<Scalar>> {
    let size = 1usize << transform.log_size();
    if a.len() != b.len() || a.len() > size {
        return Err(Error::internal(format!("{} and {} rows for a domain of {size}", a.len(), b.len())));
    }
    let z = COSET_SHIFT.pow_vartime([size as u64]) - Scalar::ONE;
    let z_inverse: Option<Scalar> = z.invert().into();
    let z_inverse = z_inverse.ok_or_else(|| Error::internal("the coset meets the domain"))?;
    a.resize(size, Scalar::ZERO);
    b.resize(size, Scalar::ZERO);

    let mut c = zero_scalars(size, "a vector of the quotient")?;
    c.par_chunks_mut(PIECE).zip(a.par_chunks(PIECE)).zip(b.par_chunks(PIECE)).try_for_each(|((c, a), b)| {
        control.check("the quotient")?;
        c.iter_mut().zip(a.iter().zip(b)).for_each(|(c, (a, b))| *c = *a * b);
        Result::Ok(())
    })?;
    transform.inverse(&mut c, control)?;
    for values in [&mut a, &mut b] {
        transform.inverse(values, control)?;
        transform.coset_forward(values, control)?;
    }
    combine(&mut a, &b, control, |a, b| *a *= b)?;
    drop(b);
    let mut p = a;
    transform.coset_inverse(&mut p, control)?;
    combine(&mut p, &c, control, |p, c| *p = (*p - c) * z_inverse)?;
    if p.pop() != Some(Scalar::ZERO) {
        let detail = format!("the quotient over 2^{} rows has degree N - 1", transform.log_size());
        return Err(Error::Transform { detail });
    }
    Ok(p)
}

fn combine(
    left: &mut [Scalar],
    right: &[Scalar],
    control: &Control,
    apply: impl Fn(&mut Scalar, &Scalar) + Sync,
) -> Result<()> {
    left.par_chunks_mut(PIECE).zip(right.par_chunks(PIECE)).try_for_each(|(left, right)| {
        control.check("the quotient")?;
        left.iter_mut().zip(right).for_each(|(l, r)| apply(l, r));
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use bellperson::domain::EvaluationDomain;
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    use super::*;
    use crate::groth16::domain::TextbookTransform;
    use crate::pipeline::CancelToken;

    /// a and b over `rows` rows with the values that real systems have: zeros, ones and others.
    fn rows(rows: usize, seed: u64) -> (Vec<Scalar>, Vec<Scalar>) {
        let mut rng = StdRng::seed_from_u64(seed);
        let mut vector = || -> Vec<Scalar> {
            (0..rows)
                .map(|_| match rng.gen_range(0..4) {
                    0 => Scalar::ZERO,
                    1 => Scalar::ONE,
                    2 => -Scalar::ONE,
                    _ => Scalar::random(&mut rng),
                })
                .collect()
        };
        (vector(), vector())
    }

    /// Seven transforms: everything on the coset, divided by Z there.
    fn seven_transforms(log_size: u32, a: &[Scalar], b: &[Scalar], c: &[Scalar]) -> Vec<Scalar> {
        let transform = TextbookTransform::new(log_size);
        let control = Control::new();
        let on_coset = |values: &[Scalar]| {
            let mut values = values.to_vec();
            values.resize(1 << log_size, Scalar::ZERO);
            transform.inverse(&mut values, &control).unwrap();
            transform.coset_forward(&mut values, &control).unwrap();
            values
        };
        let (a, b, c) = (on_coset(a), on_coset(b), on_coset(c));
        let z = COSET_SHIFT.pow_vartime([1u64 << log_size]) - Scalar::ONE;
        let mut h: Vec<_> = a.iter().zip(&b).zip(&c).map(|((a, b), c)| (a * b - c) * z.invert().unwrap()).collect();
        transform.coset_inverse(&mut h, &control).unwrap();
        assert_eq!(h.pop(), Some(Scalar::ZERO));
        h
    }

    fn product(a: &[Scalar], b: &[Scalar]) -> Vec<Scalar> {
        a.iter().zip(b).map(|(a, b)| a * b).collect()
    }

    #[test]
    fn six_transforms_give_the_quotient_of_seven_with_the_real_c() {
        for (log_size, count) in [(1, 1), (1, 2), (3, 5), (6, 64), (10, 700)] {
            let (a, b) = rows(count, u64::from(log_size));
            let expected = seven_transforms(log_size, &a, &b, &product(&a, &b));
            let h = quotient(&TextbookTransform::new(log_size), a, b, &Control::new()).unwrap();
            assert_eq!(h, expected);
            assert_eq!(h.len(), (1 << log_size) - 1);
        }
    }

    #[test]
    fn equals_the_pipeline_of_bellperson() {
        let (a, b) = rows(1000, 7);
        // The type of a worker is not exported by bellperson; inference names it.
        let worker = Default::default();
        let domain = |values: Vec<Scalar>| EvaluationDomain::from_coeffs(values).unwrap();
        let (mut da, mut db, mut dc) = (domain(a.clone()), domain(b.clone()), domain(product(&a, &b)));
        for d in [&mut da, &mut db, &mut dc] {
            d.ifft(&worker, &mut None).unwrap();
            d.coset_fft(&worker, &mut None).unwrap();
        }
        da.mul_assign(&worker, &db);
        da.sub_assign(&worker, &dc);
        da.divide_by_z_on_coset(&worker);
        da.icoset_fft(&worker, &mut None).unwrap();
        let mut expected = da.into_coeffs();
        expected.pop();
        assert_eq!(quotient(&TextbookTransform::new(10), a, b, &Control::new()).unwrap(), expected);
    }

    /// Computes rightly but for one element of one call.
    struct Faulty {
        inner: TextbookTransform,
        calls: std::sync::atomic::AtomicUsize,
        fault_at: usize,
    }

    impl Faulty {
        fn disturb(&self, values: &mut [Scalar]) {
            if self.calls.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == self.fault_at {
                // A change of all coefficients, as one wrong value inside a transform makes it.
                let mut change = Scalar::ONE;
                for value in values {
                    *value += change;
                    change *= Scalar::from(3);
                }
            }
        }
    }

    impl Transform for Faulty {
        fn log_size(&self) -> u32 {
            self.inner.log_size()
        }
        fn forward(&self, values: &mut [Scalar], control: &Control) -> Result<()> {
            self.inner.forward(values, control)?;
            self.disturb(values);
            Ok(())
        }
        fn inverse(&self, values: &mut [Scalar], control: &Control) -> Result<()> {
            self.inner.inverse(values, control)?;
            self.disturb(values);
            Ok(())
        }
        fn coset_forward(&self, values: &mut [Scalar], control: &Control) -> Result<()> {
            self.disturb(values);
            self.inner.coset_forward(values, control)
        }
        fn coset_inverse(&self, values: &mut [Scalar], control: &Control) -> Result<()> {
            self.inner.coset_inverse(values, control)?;
            self.disturb(values);
            Ok(())
        }
    }

    #[test]
    fn a_fault_in_any_of_the_six_transforms_is_found() {
        for fault_at in 0..7 {
            let (a, b) = rows(200, 3);
            let faulty = Faulty { inner: TextbookTransform::new(8), calls: 0.into(), fault_at };
            let result = quotient(&faulty, a, b, &Control::new());
            assert_eq!(faulty.calls.into_inner(), 6);
            match fault_at {
                6 => assert!(result.is_ok()),
                _ => assert!(matches!(result, Err(Error::Transform { .. })), "fault in transform {fault_at}"),
            }
        }
    }

    #[test]
    fn refuses_vectors_that_do_not_fit() {
        let transform = TextbookTransform::new(2);
        let ones = |n| vec![Scalar::ONE; n];
        assert!(matches!(quotient(&transform, ones(3), ones(2), &Control::new()), Err(Error::Internal { .. })));
        assert!(matches!(quotient(&transform, ones(5), ones(5), &Control::new()), Err(Error::Internal { .. })));
    }

    #[test]
    fn stops_when_cancelled() {
        let token = CancelToken::new();
        token.cancel();
        let control = Control::new().with_cancel(token);
        let (a, b) = rows(4, 1);
        assert!(matches!(quotient(&TextbookTransform::new(2), a, b, &control), Err(Error::Cancelled { .. })));
    }
}
