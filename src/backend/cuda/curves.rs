//! The two groups as kernels see them: names, sizes, and the way of points there and back.

use blstrs::{Fp, Fp2, G1Affine, G1Projective, G2Affine, G2Projective};
use group::prime::PrimeCurve;
use group::{Curve, Group};

use super::gpu::Plain;
use crate::curve::AffinePoint;
use crate::groth16::FilePoint;

/// A group that kernels sum points of.
pub(super) trait DeviceCurve: 'static {
    /// An affine point, as host and device have it.
    type Affine: Plain + PartialEq + std::fmt::Debug;
    /// A point with X, Y, ZZ, ZZZ: x = X / ZZ, y = Y / ZZZ, ZZ = 0 at infinity.
    type Xyzz: Plain;
    /// An affine point on the host.
    type Host: AffinePoint<Projective = Self::Projective> + FilePoint;
    /// On the host.
    type Projective: PrimeCurve<Affine = Self::Host, Scalar = blstrs::Scalar> + std::fmt::Debug;

    /// Kernels of the group.
    const KERNELS: Kernels;
    /// Threads a block of the kernel that adds row by row, at most, and of the others.
    const ROW_THREADS: u32 = 384;
    const OTHER_THREADS: u32;
    /// What an inversion costs, in products of coordinates.
    const INVERSION: usize;
    /// Bytes of shared memory that a thread of the first takes: six coordinates, and one access more so that the
    /// threads spread over the banks.
    const ROW_SHARED: u32 = (size_of::<Self::Affine>() * 3 + 16) as u32;

    /// Points as kernels see them, without a copy.
    fn words(points: &[Self::Host]) -> &[Self::Affine];
    fn affine(point: &Self::Affine) -> Self::Projective;
    fn xyzz(point: &Self::Xyzz) -> Self::Projective;

    /// A point as kernels see it.
    fn words_of(point: Self::Projective) -> Self::Affine {
        Self::words(&[point.to_affine()])[0]
    }
}

/// Names of kernels; pairs are for affine and XYZZ sums.
pub(super) struct Kernels {
    pub sum_rows: &'static str,
    pub sum_chains: &'static str,
    pub join_longs: [&'static str; 2],
    pub split_giants: [&'static str; 2],
    pub join_giants: [&'static str; 2],
    pub reduce_buckets: [&'static str; 2],
    pub reduce_chunks: &'static str,
    pub reduce_bits: &'static str,
    pub decode: &'static str,
    pub encode: &'static str,
    pub setup_tables: &'static str,
    pub setup_multiply: &'static str,
    pub bench_fill: &'static str,
    pub selftest: &'static str,
}

macro_rules! kernels {
    ($group:literal) => {
        Kernels {
            sum_rows: concat!($group, "_sum_rows"),
            sum_chains: concat!($group, "_sum_chains"),
            join_longs: [concat!($group, "_join_longs_affine"), concat!($group, "_join_longs_xyzz")],
            split_giants: [concat!($group, "_split_giants_affine"), concat!($group, "_split_giants_xyzz")],
            join_giants: [concat!($group, "_join_giants_affine"), concat!($group, "_join_giants_xyzz")],
            reduce_buckets: [concat!($group, "_reduce_buckets_affine"), concat!($group, "_reduce_buckets_xyzz")],
            reduce_chunks: concat!($group, "_reduce_chunks"),
            reduce_bits: concat!($group, "_reduce_bits"),
            decode: concat!("points_decode_", $group),
            encode: concat!("points_encode_", $group),
            setup_tables: concat!("setup_tables_", $group),
            setup_multiply: concat!("setup_multiply_", $group),
            bench_fill: concat!("bench_fill_", $group),
            selftest: concat!("selftest_", $group),
        }
    };
}

/// G1 on the device.
pub(super) struct G1;

/// G2 on the device.
pub(super) struct G2;

/// Points of G1 and of G2 as kernels see them.
pub(super) type G1Words = <G1 as DeviceCurve>::Affine;
pub(super) type G2Words = <G2 as DeviceCurve>::Affine;

type Limbs = [u64; 6];

fn fp(limbs: &Limbs) -> Fp {
    // SAFETY: Fp is repr(transparent) over blst_fp, which is six u64 in Montgomery form: what kernels write.
    unsafe { std::mem::transmute::<Limbs, Fp>(*limbs) }
}

fn fp2(limbs: &[Limbs; 2]) -> Fp2 {
    Fp2::new(fp(&limbs[0]), fp(&limbs[1]))
}

macro_rules! device_curve {
    ($curve:ty, $group:literal, $coordinate:ty, $field:ident, $host:ty, $projective:ty, $other_threads:literal, $inversion:literal) => {
        impl DeviceCurve for $curve {
            type Affine = [$coordinate; 2];
            type Xyzz = [$coordinate; 4];
            type Host = $host;
            type Projective = $projective;
            const KERNELS: Kernels = kernels!($group);
            const OTHER_THREADS: u32 = $other_threads;
            const INVERSION: usize = $inversion;

            fn words(points: &[$host]) -> &[Self::Affine] {
                const { assert!(size_of::<$host>() == size_of::<[$coordinate; 2]>()) };
                const { assert!(align_of::<$host>() >= align_of::<[$coordinate; 2]>()) };
                // SAFETY: an affine point of blstrs is its coordinates in Montgomery form (asserted in curve::layout),
                // zeros at infinity: integers of the same size and alignment.
                unsafe { std::slice::from_raw_parts(points.as_ptr().cast(), points.len()) }
            }

            fn affine(point: &Self::Affine) -> $projective {
                let [x, y] = point.each_ref().map($field);
                match bool::from(ff::Field::is_zero(&x) & ff::Field::is_zero(&y)) {
                    true => <$projective>::identity(),
                    false => <$host>::from_raw_unchecked(x, y, false).into(),
                }
            }

            /// Jacobian coordinates with Z = ZZ: x = X ZZ / ZZ^2, y = Y ZZZ / ZZ^3, since ZZ^3 = ZZZ^2.
            fn xyzz(point: &Self::Xyzz) -> $projective {
                let [x, y, zz, zzz] = point.each_ref().map($field);
                match bool::from(ff::Field::is_zero(&zz)) {
                    true => <$projective>::identity(),
                    false => <$projective>::from_raw_unchecked(x * zz, y * zzz, zz),
                }
            }
        }
    };
}
device_curve!(G1, "g1", Limbs, fp, G1Affine, G1Projective, 256, 50);
device_curve!(G2, "g2", [Limbs; 2], fp2, G2Affine, G2Projective, 128, 45);
