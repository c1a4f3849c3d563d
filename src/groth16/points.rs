//! Curve points in the uncompressed form of parameter files. Knows no file.
//!
//! A point is its coordinates x, y, big-endian, 48 bytes for each element of the base field; an element
//! c0 + c1 u of the quadratic extension is c1, c0. The three top bits of the first byte are flags
//! (compressed, infinity, sign); parameter files use none of them, and never hold infinity.

use blst::{blst_fp, blst_fp2, blst_fp_from_uint64};
use blstrs::{Fp, Fp2, G1Affine, G2Affine};
use group::prime::PrimeCurveAffine;

/// Bytes of an uncompressed point of G1.
pub const G1_BYTES: usize = 96;
/// Bytes of an uncompressed point of G2.
pub const G2_BYTES: usize = 192;

const FP_BYTES: usize = 48;

/// The modulus of the base field, most significant word first.
const MODULUS: [u64; 6] = [
    0x1a01_11ea_397f_e69a,
    0x4b1b_a7b6_434b_acd7,
    0x6477_4b84_f385_12bf,
    0x6730_d2a0_f6b0_f624,
    0x1eab_fffe_b153_ffff,
    0xb9fe_ffff_ffff_aaab,
];

/// Why bytes are not a point that a parameter file may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PointFault {
    /// The infinity flag is set, or all coordinates are zero.
    Infinity,
    /// The flag of the compressed form, or the sign flag that only it has, is set.
    Flags,
    /// A coordinate is not below the modulus.
    Coordinate,
    /// The coordinates do not satisfy the curve's equation.
    OffCurve,
    /// On the curve and outside the subgroup of prime order.
    OutsideSubgroup,
}

impl std::fmt::Display for PointFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            PointFault::Infinity => "the point at infinity",
            PointFault::Flags => "a point with the flags of the compressed form",
            PointFault::Coordinate => "a coordinate not below the field's modulus",
            PointFault::OffCurve => "a point off the curve",
            PointFault::OutsideSubgroup => "a point outside the prime-order subgroup",
        })
    }
}

/// A group whose points parameter files hold.
pub trait FilePoint: PrimeCurveAffine + Send + Sync + 'static {
    /// Bytes of a point.
    const BYTES: usize;

    /// A point whose coordinates are canonical, not infinity, from exactly [`Self::BYTES`] bytes. Neither the curve's equation nor
    /// the subgroup is checked.
    fn decode_coordinates(bytes: &[u8]) -> Result<Self, PointFault>;

    /// The fault of decoded coordinates, if there is one.
    fn check(&self) -> Result<(), PointFault>;

    /// Appends the point's bytes; the point is not infinity.
    fn encode_to(&self, out: &mut Vec<u8>);

    /// A point with all checks, from exactly [`Self::BYTES`] bytes.
    fn decode(bytes: &[u8]) -> Result<Self, PointFault> {
        let point = Self::decode_coordinates(bytes)?;
        point.check()?;
        Ok(point)
    }
}

impl FilePoint for G1Affine {
    const BYTES: usize = G1_BYTES;

    #[inline]
    fn decode_coordinates(bytes: &[u8]) -> Result<Self, PointFault> {
        assert_eq!(bytes.len(), G1_BYTES);
        let (Some(x), Some(y)) = (fp(&bytes[..FP_BYTES]), fp(&bytes[FP_BYTES..])) else {
            return Err(fault_of(bytes));
        };
        let point = G1Affine::from_raw_unchecked(Fp::from(x), Fp::from(y), false);
        // In memory (0, 0) stands for infinity; the file could say it without the flag.
        if x.l == [0; 6] && y.l == [0; 6] {
            return Err(PointFault::Infinity);
        }
        Ok(point)
    }

    fn check(&self) -> Result<(), PointFault> {
        check(self.is_identity().into(), self.is_on_curve().into(), || self.is_torsion_free().into())
    }

    fn encode_to(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.to_uncompressed());
    }
}

impl FilePoint for G2Affine {
    const BYTES: usize = G2_BYTES;

    #[inline]
    fn decode_coordinates(bytes: &[u8]) -> Result<Self, PointFault> {
        assert_eq!(bytes.len(), G2_BYTES);
        let part = |i: usize| fp(&bytes[i * FP_BYTES..(i + 1) * FP_BYTES]);
        let (Some(x1), Some(x0), Some(y1), Some(y0)) = (part(0), part(1), part(2), part(3)) else {
            return Err(fault_of(bytes));
        };
        if [x0, x1, y0, y1].iter().all(|c| c.l == [0; 6]) {
            return Err(PointFault::Infinity);
        }
        let (x, y) = (blst_fp2 { fp: [x0, x1] }, blst_fp2 { fp: [y0, y1] });
        Ok(G2Affine::from_raw_unchecked(Fp2::from(x), Fp2::from(y), false))
    }

    fn check(&self) -> Result<(), PointFault> {
        check(self.is_identity().into(), self.is_on_curve().into(), || self.is_torsion_free().into())
    }

    fn encode_to(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.to_uncompressed());
    }
}

fn check(identity: bool, on_curve: bool, in_subgroup: impl FnOnce() -> bool) -> Result<(), PointFault> {
    match (identity, on_curve) {
        (true, _) => Err(PointFault::Infinity),
        (false, false) => Err(PointFault::OffCurve),
        // The subgroup test is only meaningful on the curve.
        (false, true) if !in_subgroup() => Err(PointFault::OutsideSubgroup),
        (false, true) => Ok(()),
    }
}

/// The fault of bytes of which some coordinate is not below the modulus; every flag makes the first one so.
#[cold]
fn fault_of(bytes: &[u8]) -> PointFault {
    match bytes[0] >> 5 {
        0 => PointFault::Coordinate,
        0b010 => PointFault::Infinity,
        _ => PointFault::Flags,
    }
}

/// A canonical field element, in Montgomery form.
#[inline]
fn fp(bytes: &[u8]) -> Option<blst_fp> {
    let bytes: &[u8; FP_BYTES] = bytes.try_into().ok()?;
    let word = |i: usize| u64::from_be_bytes(std::array::from_fn(|j| bytes[8 * i + j]));
    let words: [u64; 6] = std::array::from_fn(word);
    if words >= MODULUS {
        return None;
    }
    let little_endian: [u64; 6] = std::array::from_fn(|i| words[5 - i]);
    let mut element = blst_fp::default();
    // SAFETY: both pointers are valid for the six words that the function writes and reads.
    unsafe { blst_fp_from_uint64(&mut element, little_endian.as_ptr()) };
    Some(element)
}

#[cfg(test)]
mod tests {
    use blstrs::{G1Projective, G2Projective};
    use ff::Field;
    use group::{Curve, Group};
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    use super::*;

    fn encoded<P: FilePoint>(point: P) -> Vec<u8> {
        let mut bytes = Vec::new();
        point.encode_to(&mut bytes);
        bytes
    }

    #[test]
    fn the_modulus_is_minus_one_plus_one() {
        let mut words = MODULUS;
        words[5] -= 1;
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
        assert_eq!(bytes, (-Fp::ONE).to_bytes_be());
    }

    #[test]
    fn fast_decoding_equals_the_checked_decoding_of_blstrs_on_random_points() {
        let mut rng = StdRng::seed_from_u64(1);
        for _ in 0..200 {
            let point = G1Projective::random(&mut rng).to_affine();
            let bytes = encoded(point);
            assert_eq!(G1Affine::decode_coordinates(&bytes), Ok(point));
            assert_eq!(G1Affine::from_uncompressed(&bytes.try_into().unwrap()).unwrap(), point);
            let point = G2Projective::random(&mut rng).to_affine();
            let bytes = encoded(point);
            assert_eq!(G2Affine::decode_coordinates(&bytes), Ok(point));
            assert_eq!(G2Affine::from_uncompressed(&bytes.try_into().unwrap()).unwrap(), point);
        }
    }

    /// Any change of one byte must be refused or accepted as blstrs does.
    fn agrees_on_changed_bytes<P: FilePoint>(bytes: &[u8], reference: impl Fn(&[u8]) -> Option<P>) {
        let mut rng = StdRng::seed_from_u64(2);
        for position in 0..bytes.len() {
            let mut changed = bytes.to_vec();
            changed[position] ^= rng.gen_range(1..=255u8);
            assert_eq!(P::decode(&changed).ok(), reference(&changed), "byte {position}");
        }
    }

    #[test]
    fn checked_decoding_refuses_what_blstrs_refuses() {
        let g1 = encoded(G1Affine::generator());
        agrees_on_changed_bytes::<G1Affine>(&g1, |bytes| G1Affine::from_uncompressed(bytes.try_into().unwrap()).into());
        let g2 = encoded(G2Affine::generator());
        agrees_on_changed_bytes::<G2Affine>(&g2, |bytes| G2Affine::from_uncompressed(bytes.try_into().unwrap()).into());
    }

    fn faults<P: FilePoint + std::fmt::Debug>() {
        let zeros = vec![0; P::BYTES];
        assert_eq!(P::decode_coordinates(&zeros), Err(PointFault::Infinity));
        let mut infinity = zeros.clone();
        infinity[0] = 0x40;
        assert_eq!(P::decode_coordinates(&infinity), Err(PointFault::Infinity));
        for flags in [0x80, 0x20, 0xc0, 0xe0] {
            let mut flagged = encoded(P::generator());
            flagged[0] |= flags;
            assert_eq!(P::decode_coordinates(&flagged), Err(PointFault::Flags));
        }
        let modulus: Vec<u8> = MODULUS.iter().flat_map(|word| word.to_be_bytes()).collect();
        for coordinate in 0..P::BYTES / FP_BYTES {
            let mut large = encoded(P::generator());
            large[coordinate * FP_BYTES..][..FP_BYTES].copy_from_slice(&modulus);
            assert_eq!(P::decode_coordinates(&large), Err(PointFault::Coordinate));
        }
        let mut off = encoded(P::generator());
        off[P::BYTES - 1] ^= 1;
        assert_eq!(P::decode(&off), Err(PointFault::OffCurve));
    }

    #[test]
    fn names_the_fault_of_bytes_that_are_not_a_point() {
        faults::<G1Affine>();
        faults::<G2Affine>();
    }

    #[test]
    fn a_point_of_the_curve_outside_the_subgroup_is_refused() {
        // (0, 2) is on y^2 = x^3 + 4 and has order 3.
        let mut bytes = vec![0; G1_BYTES];
        bytes[G1_BYTES - 1] = 2;
        assert_eq!(G1Affine::decode(&bytes), Err(PointFault::OutsideSubgroup));
    }
}
