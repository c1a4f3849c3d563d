//! The verifying key: its bytes, its checks. Knows no file and no circuit.

use blstrs::{Bls12, G1Affine, G2Affine};
use group::prime::PrimeCurveAffine;
use pairing::{MillerLoopResult, MultiMillerLoop};

use super::points::{FilePoint, PointFault, G1_BYTES, G2_BYTES};

/// Bytes of the six fixed points and the count that follows them.
const HEAD_BYTES: usize = 3 * G1_BYTES + 3 * G2_BYTES + 4;

/// A Groth16 verifying key, with delta and beta in both groups as proving needs them. No point is infinity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifyingKey {
    /// alpha in G1.
    pub alpha_g1: G1Affine,
    /// beta in G1.
    pub beta_g1: G1Affine,
    /// beta in G2.
    pub beta_g2: G2Affine,
    /// gamma in G2.
    pub gamma_g2: G2Affine,
    /// delta in G1.
    pub delta_g1: G1Affine,
    /// delta in G2.
    pub delta_g2: G2Affine,
    /// (beta A_i + alpha B_i + C_i)/gamma for each public input, ONE first.
    pub ic: Vec<G1Affine>,
}

impl VerifyingKey {
    /// Bytes of a key for `inputs` public inputs, ONE included.
    pub const fn byte_len(inputs: usize) -> usize {
        HEAD_BYTES + inputs * G1_BYTES
    }

    /// Decodes exactly the bytes of a key for `inputs` public inputs (ONE included) with all checks: canonical,
    /// on the curve, in the subgroup, not infinity, and beta and delta the same in both groups. The error
    /// says what is wrong and where.
    pub fn from_bytes(bytes: &[u8], inputs: usize) -> Result<Self, String> {
        if bytes.len() != Self::byte_len(inputs) {
            return Err(format!("a verifying key of {} bytes, expected {}", bytes.len(), Self::byte_len(inputs)));
        }
        let mut reader = Reader { bytes, offset: 0 };
        let alpha_g1 = reader.point("alpha_g1")?;
        let beta_g1 = reader.point("beta_g1")?;
        let beta_g2 = reader.point("beta_g2")?;
        let gamma_g2 = reader.point("gamma_g2")?;
        let delta_g1 = reader.point("delta_g1")?;
        let delta_g2 = reader.point("delta_g2")?;
        let count = reader.count();
        if count != inputs {
            return Err(format!("the verifying key is for {count} public inputs, expected {inputs}"));
        }
        let ic = (0..inputs).map(|i| reader.point(&format!("ic[{i}]"))).collect::<Result<_, _>>()?;
        let key = VerifyingKey { alpha_g1, beta_g1, beta_g2, gamma_g2, delta_g1, delta_g2, ic };
        if !key.groups_agree() {
            return Err("beta and delta of the verifying key differ between G1 and G2".into());
        }
        Ok(key)
    }

    /// The bytes, as bellperson writes them.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(Self::byte_len(self.ic.len()));
        self.alpha_g1.encode_to(&mut out);
        self.beta_g1.encode_to(&mut out);
        self.beta_g2.encode_to(&mut out);
        self.gamma_g2.encode_to(&mut out);
        self.delta_g1.encode_to(&mut out);
        self.delta_g2.encode_to(&mut out);
        out.extend_from_slice(&(self.ic.len() as u32).to_be_bytes());
        self.ic.iter().for_each(|point| point.encode_to(&mut out));
        out
    }

    /// Whether e(beta_g1, delta_g2) = e(delta_g1, beta_g2), whatever the generators are.
    fn groups_agree(&self) -> bool {
        let (delta_g2, beta_g2) = (self.delta_g2.into(), self.beta_g2.into());
        let pairs = [(&self.beta_g1, &delta_g2), (&-self.delta_g1, &beta_g2)];
        let product = Bls12::multi_miller_loop(&pairs).final_exponentiation();
        product == <Bls12 as pairing::Engine>::pairing(&G1Affine::identity(), &G2Affine::generator())
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    offset: usize,
}

impl Reader<'_> {
    fn point<P: FilePoint>(&mut self, name: &str) -> Result<P, String> {
        let at = self.offset;
        self.offset += P::BYTES;
        P::decode(&self.bytes[at..self.offset])
            .map_err(|fault: PointFault| format!("{name} of the verifying key, at byte {at}, is {fault}"))
    }

    fn count(&mut self) -> usize {
        let at = self.offset;
        self.offset += 4;
        u32::from_be_bytes(std::array::from_fn(|i| self.bytes[at + i])) as usize
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use blstrs::{G1Projective, G2Projective, Scalar};
    use group::{Curve, Group};

    use super::*;

    /// A key with known secrets.
    pub(crate) fn small_key(inputs: usize) -> VerifyingKey {
        let g1 = |s: u64| (G1Projective::generator() * Scalar::from(s)).to_affine();
        let g2 = |s: u64| (G2Projective::generator() * Scalar::from(s)).to_affine();
        VerifyingKey {
            alpha_g1: g1(2),
            beta_g1: g1(3),
            beta_g2: g2(3),
            gamma_g2: g2(5),
            delta_g1: g1(7),
            delta_g2: g2(7),
            ic: (0..inputs as u64).map(|i| g1(11 + i)).collect(),
        }
    }

    #[test]
    fn bytes_are_those_of_bellperson_and_decode_to_the_same_key() {
        let key = small_key(3);
        let theirs = bellperson::groth16::VerifyingKey::<Bls12> {
            alpha_g1: key.alpha_g1,
            beta_g1: key.beta_g1,
            beta_g2: key.beta_g2,
            gamma_g2: key.gamma_g2,
            delta_g1: key.delta_g1,
            delta_g2: key.delta_g2,
            ic: key.ic.clone(),
        };
        let mut bytes = Vec::new();
        theirs.write(&mut bytes).unwrap();
        assert_eq!(key.to_bytes(), bytes);
        assert_eq!(VerifyingKey::from_bytes(&bytes, 3), Ok(key));
    }

    #[test]
    fn every_changed_or_missing_byte_is_refused() {
        let bytes = small_key(2).to_bytes();
        for position in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[position] ^= 1;
            assert!(VerifyingKey::from_bytes(&changed, 2).is_err(), "byte {position}");
        }
        for length in [0, 1, 863, 864, bytes.len() - 1] {
            assert!(VerifyingKey::from_bytes(&bytes[..length], 2).is_err());
        }
    }

    #[test]
    fn a_key_whose_groups_disagree_is_refused() {
        let mut key = small_key(1);
        key.beta_g1 = key.alpha_g1;
        let error = VerifyingKey::from_bytes(&key.to_bytes(), 1).unwrap_err();
        assert!(error.contains("differ between G1 and G2"), "{error}");
    }
}
