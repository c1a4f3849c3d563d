//! The two groups as kernels see them: names, sizes, and the way of points back to the host.

use blstrs::{Fp, Fp2, G1Affine, G1Projective, G2Affine, G2Projective};
use group::Group;

use super::gpu::Plain;

/// A group that kernels sum points of.
pub(super) trait DeviceCurve: 'static {
    /// An affine point, as host and device have it.
    type Affine: Plain;
    /// A point with X, Y, ZZ, ZZZ: x = X / ZZ, y = Y / ZZZ, ZZ = 0 at infinity.
    type Xyzz: Plain;
    /// On the host.
    type Projective: Group<Scalar = blstrs::Scalar> + Copy + std::fmt::Debug;

    /// Kernels of the group.
    const KERNELS: Kernels;
    /// Threads a block of the kernel that adds row by row, at most, and of the others.
    const ROW_THREADS: u32;
    const OTHER_THREADS: u32;
    /// Bytes of shared memory that a thread of the first takes: six coordinates, and one access more so that the
    /// threads spread over the banks.
    const ROW_SHARED: u32 = (size_of::<Self::Affine>() * 3 + 16) as u32;

    fn affine(point: &Self::Affine) -> Self::Projective;
    fn xyzz(point: &Self::Xyzz) -> Self::Projective;
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
        }
    };
}

/// G1 on the device.
pub(super) struct G1;

/// G2 on the device.
pub(super) struct G2;

type Limbs = [u64; 6];

fn fp(limbs: &Limbs) -> Fp {
    // SAFETY: Fp is repr(transparent) over blst_fp, which is six u64 in Montgomery form: what kernels write.
    unsafe { std::mem::transmute::<Limbs, Fp>(*limbs) }
}

fn fp2(limbs: &[Limbs; 2]) -> Fp2 {
    Fp2::new(fp(&limbs[0]), fp(&limbs[1]))
}

/// Jacobian coordinates with Z = ZZ: x = X ZZ / ZZ^2, y = Y ZZZ / ZZ^3, since ZZ^3 = ZZZ^2.
macro_rules! from_xyzz {
    ($projective:ty, $field:ident, $point:expr) => {{
        let [x, y, zz, zzz] = $point.each_ref().map($field);
        match bool::from(ff::Field::is_zero(&zz)) {
            true => <$projective>::identity(),
            false => <$projective>::from_raw_unchecked(x * zz, y * zzz, zz),
        }
    }};
}

macro_rules! from_affine {
    ($affine:ty, $projective:ty, $field:ident, $point:expr) => {{
        let [x, y] = $point.each_ref().map($field);
        match bool::from(ff::Field::is_zero(&x) & ff::Field::is_zero(&y)) {
            true => <$projective>::identity(),
            false => <$affine>::from_raw_unchecked(x, y, false).into(),
        }
    }};
}

impl DeviceCurve for G1 {
    type Affine = [Limbs; 2];
    type Xyzz = [Limbs; 4];
    type Projective = G1Projective;
    const KERNELS: Kernels = kernels!("g1");
    const ROW_THREADS: u32 = 384;
    const OTHER_THREADS: u32 = 256;

    fn affine(point: &Self::Affine) -> G1Projective {
        from_affine!(G1Affine, G1Projective, fp, point)
    }

    fn xyzz(point: &Self::Xyzz) -> G1Projective {
        from_xyzz!(G1Projective, fp, point)
    }
}

impl DeviceCurve for G2 {
    type Affine = [[Limbs; 2]; 2];
    type Xyzz = [[Limbs; 2]; 4];
    type Projective = G2Projective;
    const KERNELS: Kernels = kernels!("g2");
    const ROW_THREADS: u32 = 384;
    const OTHER_THREADS: u32 = 128;

    fn affine(point: &Self::Affine) -> G2Projective {
        from_affine!(G2Affine, G2Projective, fp2, point)
    }

    fn xyzz(point: &Self::Xyzz) -> G2Projective {
        from_xyzz!(G2Projective, fp2, point)
    }
}
