//! A proof from the sums that a backend returns, and its bytes.

use std::fmt;
use std::sync::atomic::{compiler_fence, Ordering};

use blstrs::{G1Affine, G1Projective, G2Affine, Scalar};
use ff::{Field, PrimeField};
use group::prime::PrimeCurveAffine;
use group::Curve;
use rand::rngs::OsRng;
use rand::RngCore;

use super::{ProofParts, VerifyingKey};
use crate::error::{Error, Result};

/// Bytes of a proof.
pub const PROOF_BYTES: usize = 192;

const G1_COMPRESSED: usize = 48;
const G2_COMPRESSED: usize = 96;

/// One Groth16 proof. No point is infinity, all are in the prime-order subgroup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Proof {
    /// A.
    pub a: G1Affine,
    /// B.
    pub b: G2Affine,
    /// C.
    pub c: G1Affine,
}

impl Proof {
    /// A, B, C, compressed.
    pub fn to_bytes(&self) -> [u8; PROOF_BYTES] {
        let mut bytes = [0; PROOF_BYTES];
        let (a, rest) = bytes.split_at_mut(G1_COMPRESSED);
        let (b, c) = rest.split_at_mut(G2_COMPRESSED);
        a.copy_from_slice(&self.a.to_compressed());
        b.copy_from_slice(&self.b.to_compressed());
        c.copy_from_slice(&self.c.to_compressed());
        bytes
    }

    /// Decodes with all checks. Fails with [`Error::ProofForm`] unless there are 192 bytes and each point is
    /// canonical, on the curve, in the prime-order subgroup and not infinity.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let form = |detail: String| Error::ProofForm { detail };
        let bytes: &[u8; PROOF_BYTES] =
            bytes.try_into().map_err(|_| form(format!("{} bytes, expected {PROOF_BYTES}", bytes.len())))?;
        let bad = |name| form(format!("{name} is not a compressed point of its group, or is infinity"));
        let g1 = |at: usize, name| -> Result<G1Affine> {
            let point: Option<G1Affine> = G1Affine::from_compressed(&std::array::from_fn(|i| bytes[at + i])).into();
            point.filter(|point| !bool::from(point.is_identity())).ok_or_else(|| bad(name))
        };
        let b: Option<G2Affine> = G2Affine::from_compressed(&std::array::from_fn(|i| bytes[G1_COMPRESSED + i])).into();
        let b = b.filter(|point| !bool::from(point.is_identity())).ok_or_else(|| bad("B"))?;
        Ok(Proof { a: g1(0, "A")?, b, c: g1(G1_COMPRESSED + G2_COMPRESSED, "C")? })
    }
}

/// The two numbers that make a proof zero-knowledge. They are written over when dropped, are not printed
/// and not copied. Whoever knows them can compute the witness's sums.
pub struct Randomness {
    r: Scalar,
    s: Scalar,
}

impl Randomness {
    /// Fresh from the operating system's generator. Each partition and each attempt takes its own.
    pub fn fresh() -> Result<Self> {
        Ok(Randomness { r: random_scalar()?, s: random_scalar()? })
    }

    /// r + `partition`, s + `partition`: for tests with known parameters only, as proofs made with them hide
    /// nothing.
    pub fn fixed(r: Scalar, s: Scalar, partition: usize) -> Self {
        let k = Scalar::from(partition as u64);
        Randomness { r: r + k, s: s + k }
    }
}

impl Drop for Randomness {
    fn drop(&mut self) {
        wipe(&mut self.r);
        wipe(&mut self.s);
    }
}

impl fmt::Debug for Randomness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Randomness(..)")
    }
}

/// Uniform, by rejection.
fn random_scalar() -> Result<Scalar> {
    let mut bytes = zeroize::Zeroizing::new([0u8; 32]);
    loop {
        OsRng
            .try_fill_bytes(bytes.as_mut())
            .map_err(|error| Error::io("reading random numbers from", "the operating system", error.into()))?;
        // The modulus has 255 bits.
        bytes[31] &= 0x7f;
        if let Some(scalar) = Scalar::from_repr(*bytes).into() {
            return Ok(scalar);
        }
    }
}

fn wipe(scalar: &mut Scalar) {
    // SAFETY: the reference is valid, aligned and exclusive, and a Scalar has no destructor. The write is
    // volatile so that it stays although nothing reads the value again.
    unsafe { std::ptr::write_volatile(scalar, Scalar::ZERO) };
    compiler_fence(Ordering::SeqCst);
}

/// A = alpha + a + r delta, B = beta + b + s delta, C = l + h + s A + r B - r s delta (B in G1 there).
///
/// Equals bellperson's proof for the same r and s. Fails when A, B or C is infinity, which no honest sums give.
pub fn assemble(vk: &VerifyingKey, parts: &ProofParts, randomness: &Randomness) -> Result<Proof> {
    let Randomness { r, s } = randomness;
    let r_delta = vk.delta_g1 * r;
    let a = parts.a + vk.alpha_g1 + r_delta;
    let b = parts.b_g2 + vk.beta_g2 + vk.delta_g2 * s;
    // B without its s delta cancels the last term of C.
    let b_g1: G1Projective = parts.b_g1 + vk.beta_g1;
    let c = parts.l + parts.h + a * s + b_g1 * r;
    let proof = Proof { a: a.to_affine(), b: b.to_affine(), c: c.to_affine() };
    let infinite = [proof.a.is_identity(), proof.b.is_identity(), proof.c.is_identity()];
    if infinite.into_iter().any(bool::from) {
        return Err(Error::internal("an element of the proof is the point at infinity"));
    }
    Ok(proof)
}

#[cfg(test)]
mod tests {
    use blstrs::G2Projective;
    use group::Group;

    use super::*;
    use crate::groth16::vk::tests::small_key;

    #[test]
    fn assembly_satisfies_the_defining_equations() {
        let key = small_key(2);
        let g1 = |s: u64| G1Projective::generator() * Scalar::from(s);
        let g2 = |s: u64| G2Projective::generator() * Scalar::from(s);
        let parts = ProofParts { h: g1(101), l: g1(103), a: g1(107), b_g1: g1(109), b_g2: g2(109) };
        let (r, s) = (13, 17);
        let randomness = Randomness::fixed(Scalar::from(r - 1), Scalar::from(s - 1), 1);
        let proof = assemble(&key, &parts, &randomness).unwrap();
        // The key has alpha 2, beta 3, delta 7.
        let (a, b) = (2 + 107 + r * 7, 3 + 109 + s * 7);
        assert_eq!(proof.a, g1(a).to_affine());
        assert_eq!(proof.b, g2(b).to_affine());
        assert_eq!(proof.c, g1(103 + 101 + s * a + r * b - r * s * 7).to_affine());
        assert_eq!(Proof::from_bytes(&proof.to_bytes()).unwrap(), proof);
    }

    #[test]
    fn infinity_in_a_proof_is_an_error() {
        let key = small_key(2);
        let zero = G1Projective::identity();
        let parts =
            ProofParts { h: zero, l: zero, a: -(zero + key.alpha_g1), b_g1: zero, b_g2: G2Projective::identity() };
        let randomness = Randomness::fixed(Scalar::ZERO, Scalar::ONE, 0);
        assert!(matches!(assemble(&key, &parts, &randomness), Err(Error::Internal { .. })));
    }

    #[test]
    fn fresh_randomness_differs_each_time_and_is_not_printed() {
        let (one, two) = (Randomness::fresh().unwrap(), Randomness::fresh().unwrap());
        assert!(one.r != two.r && one.s != two.s && one.r != one.s);
        assert_eq!(format!("{one:?}"), "Randomness(..)");
    }

    #[test]
    fn wiping_leaves_zero() {
        let mut scalar = Scalar::from(5);
        wipe(&mut scalar);
        assert_eq!(scalar, Scalar::ZERO);
    }
}
