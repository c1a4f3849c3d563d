//! Proof arithmetic on the CPU: transforms, multi-scalar multiplications and sums of selected points.
//! Knows no Filecoin. All loops run on the rayon pool that the caller is in.

mod backend;
mod bases;
pub mod bits;
pub mod lane;
pub mod msm;
pub mod ntt;
mod shared;
mod sums;

#[cfg(test)]
pub(super) mod testing;

pub use backend::CpuBackend;

#[cfg(test)]
mod tests {
    use blstrs::{G1Affine, Scalar};
    use ff::Field;
    use rand::rngs::StdRng;
    use rand::SeedableRng;

    use super::lane::Lanes;
    use super::testing::sample_points;
    use crate::groth16::domain::Transform;
    use crate::pipeline::Control;
    use crate::r1cs::Bitmap;

    #[test]
    fn results_do_not_depend_on_lanes_or_the_number_of_threads() {
        let mut rng = StdRng::seed_from_u64(1);
        let points = sample_points::<G1Affine>(20_000);
        let scalars: Vec<_> = (0..points.len()).map(|_| Scalar::random(&mut rng)).collect();
        let mut selected = Bitmap::zeros(points.len());
        (0..points.len()).step_by(3).for_each(|index| selected.set(index));
        let control = Control::new();
        let mut results = Vec::new();
        for lanes in [Lanes::Portable, Lanes::Auto] {
            for threads in [1, 2, 7] {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                results.push(pool.install(|| {
                    let mut values = scalars[..1 << 14].to_vec();
                    super::ntt::Ntt::new(14, lanes).unwrap().coset_inverse(&mut values, &control).unwrap();
                    let sum = super::msm::msm_g1(&points, &scalars, lanes, &control).unwrap();
                    let bits = super::bits::bit_sum_g1(&points, &selected, lanes, &control).unwrap();
                    (values, sum, bits)
                }));
            }
        }
        assert!(results.iter().all(|result| *result == results[0]));
    }
}
