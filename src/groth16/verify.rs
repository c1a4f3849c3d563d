//! Verification of serialised proofs with the pairing.

use blstrs::{Bls12, G1Affine, G1Projective, G2Prepared, Gt, Scalar};
use ff::PrimeField;
use group::{Curve, Group};
use pairing::{Engine, MillerLoopResult, MultiMillerLoop};
use rayon::prelude::*;

use super::prove::{Proof, PROOF_BYTES};
use super::VerifyingKey;
use crate::error::{Error, Result};

/// A verifying key with everything computed that does not depend on a proof.
pub struct PreparedVerifyingKey {
    alpha_beta: Gt,
    minus_gamma: G2Prepared,
    minus_delta: G2Prepared,
    ic: Vec<G1Affine>,
}

impl PreparedVerifyingKey {
    /// Prepares a key that [`VerifyingKey::from_bytes`] has checked.
    pub fn new(vk: &VerifyingKey) -> Self {
        PreparedVerifyingKey {
            alpha_beta: Bls12::pairing(&vk.alpha_g1, &vk.beta_g2),
            minus_gamma: G2Prepared::from(-vk.gamma_g2),
            minus_delta: G2Prepared::from(-vk.delta_g2),
            ic: vk.ic.clone(),
        }
    }

    /// How many public inputs a proof has, without ONE.
    pub fn inputs(&self) -> usize {
        self.ic.len() - 1
    }

    /// Whether the 192 bytes prove the public `inputs` (without ONE): e(A, B) = e(alpha, beta) e(inputs, gamma) e(C, delta).
    ///
    /// Fails with [`Error::ProofForm`] for bytes that are no proof at all, with [`Error::Argument`] for a wrong
    /// number of inputs.
    pub fn verify(&self, proof: &[u8], inputs: &[Scalar]) -> Result<bool> {
        if inputs.len() != self.inputs() {
            let detail = format!("{} public inputs, the circuit has {}", inputs.len(), self.inputs());
            return Err(Error::Argument { name: "inputs", detail });
        }
        let proof = Proof::from_bytes(proof)?;
        let sum = (weighted_sum(&self.ic[1..], inputs) + self.ic[0]).to_affine();
        let b = G2Prepared::from(proof.b);
        let product =
            Bls12::multi_miller_loop(&[(&proof.a, &b), (&sum, &self.minus_gamma), (&proof.c, &self.minus_delta)]);
        Ok(product.final_exponentiation() == self.alpha_beta)
    }

    /// Verifies one proof for each element of `inputs`, their bytes one after another.
    ///
    /// Fails with [`Error::ProofForm`] or [`Error::ProofInvalid`], which name the partition, at the first that
    /// does not verify.
    pub fn verify_all(&self, proofs: &[u8], inputs: &[Vec<Scalar>]) -> Result<()> {
        let expected = inputs.len() * PROOF_BYTES;
        if proofs.len() != expected {
            let detail = format!("{} bytes, expected {expected} for {} partitions", proofs.len(), inputs.len());
            return Err(Error::ProofForm { detail });
        }
        let verdicts: Vec<_> =
            proofs.par_chunks(PROOF_BYTES).zip(inputs).map(|(proof, inputs)| self.verify(proof, inputs)).collect();
        for (partition, verdict) in verdicts.into_iter().enumerate() {
            match verdict {
                Ok(true) => {}
                Ok(false) => return Err(Error::ProofInvalid { detail: format!("partition {partition}") }),
                Err(Error::ProofForm { detail }) => {
                    return Err(Error::ProofForm { detail: format!("partition {partition}: {detail}") })
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Bits of a window of [`weighted_sum`]: best for some hundred points.
const WINDOW_BITS: usize = 5;

/// The sum of `scalars[i] * points[i]`, by buckets. Public inputs only: the time depends on the scalars.
fn weighted_sum(points: &[G1Affine], scalars: &[Scalar]) -> G1Projective {
    let scalars: Vec<[u8; 32]> = scalars.iter().map(Scalar::to_repr).collect();
    let digit = |scalar: &[u8; 32], window: usize| {
        let bit = |i: usize| usize::from(i < 256 && scalar[i / 8] >> (i % 8) & 1 == 1);
        (0..WINDOW_BITS).map(|i| bit(window * WINDOW_BITS + i) << i).sum::<usize>()
    };
    let window_sum = |window: usize| {
        let mut buckets = [G1Projective::identity(); 1 << WINDOW_BITS];
        for (point, scalar) in points.iter().zip(&scalars) {
            buckets[digit(scalar, window)] += point;
        }
        // Bucket d counts d times: the sum over d of all buckets from d up.
        let (mut suffix, mut sum) = (G1Projective::identity(), G1Projective::identity());
        for bucket in buckets[1..].iter().rev() {
            suffix += bucket;
            sum += suffix;
        }
        sum
    };
    let windows: Vec<_> = (0..256usize.div_ceil(WINDOW_BITS)).into_par_iter().map(window_sum).collect();
    windows
        .into_iter()
        .rev()
        .fold(G1Projective::identity(), |sum, window| (0..WINDOW_BITS).fold(sum, |sum, _| sum.double()) + window)
}

#[cfg(test)]
mod tests {
    use ff::Field;
    use rand::rngs::StdRng;
    use rand::SeedableRng;

    use super::*;

    #[test]
    fn weighted_sum_equals_the_sum_of_single_products() {
        let mut rng = StdRng::seed_from_u64(9);
        for count in [0, 1, 40] {
            let mut scalars: Vec<_> = (0..count).map(|_| Scalar::random(&mut rng)).collect();
            for (slot, edge) in scalars.iter_mut().zip([Scalar::ZERO, -Scalar::ONE, Scalar::ONE, Scalar::from(31)]) {
                *slot = edge;
            }
            let points: Vec<_> = (0..count).map(|_| G1Projective::random(&mut rng).to_affine()).collect();
            let expected: G1Projective = points.iter().zip(&scalars).map(|(p, s)| p * s).sum();
            assert_eq!(weighted_sum(&points, &scalars), expected);
        }
    }
}
