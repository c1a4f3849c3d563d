//! Proof arithmetic on the CPU: transforms, multi-scalar multiplications and sums of selected points.
//! Knows no Filecoin. All loops run on the rayon pool that the caller is in.

pub mod lane;
pub mod msm;
pub mod ntt;
mod shared;

/// Distinct points for tests and measurements: B + i S for i below `count`.
#[cfg(test)]
fn sample_points(count: usize) -> Vec<blstrs::G1Affine> {
    use crate::curve::BatchAdder;
    use blstrs::{G1Affine, G1Projective, Scalar};
    use group::{Curve, Group};
    let mut adder = BatchAdder::new();
    let mut points = vec![(G1Projective::generator() * Scalar::from(0x5a5a_1234)).to_affine(); 1];
    let mut step = G1Projective::generator() * Scalar::from(0x1234_5678_9abc);
    while points.len() < count {
        let len = points.len();
        points.extend_from_within(..len.min(count - len));
        let step_affine: G1Affine = step.to_affine();
        adder.add_with(&mut points[len..], |_| step_affine);
        step = step.double();
    }
    points
}
