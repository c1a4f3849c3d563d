//! Sums against one scalar multiplication a point.

use super::*;
use crate::backend::cpu::testing::{measure, sample_points};
use ff::Field;
use group::Curve as _;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// Points with known discrete logarithms, so that large sums can be checked by one multiplication.
struct Sample<P: AffinePoint> {
    points: Vec<P>,
    logarithms: Vec<Scalar>,
}

impl<P: AffinePoint> Sample<P> {
    /// `logarithm(i)` times the generator, by a table of the few distinct values.
    fn new(logarithms: Vec<Scalar>) -> Self {
        let mut distinct: Vec<(Scalar, P)> = Vec::new();
        let points = logarithms
            .iter()
            .map(|logarithm| match distinct.iter().find(|(known, _)| known == logarithm) {
                Some((_, point)) => *point,
                None => {
                    let point = (P::Projective::generator() * logarithm).to_affine();
                    if distinct.len() < 20 {
                        distinct.push((*logarithm, point));
                    }
                    point
                }
            })
            .collect();
        Sample { points, logarithms }
    }

    fn expected(&self, scalars: &[Scalar]) -> P::Projective {
        let dot: Scalar = self.logarithms.iter().zip(scalars).map(|(a, b)| a * b).sum();
        P::Projective::generator() * dot
    }
}

fn random(count: usize, rng: &mut StdRng) -> Vec<Scalar> {
    (0..count).map(|_| Scalar::random(&mut *rng)).collect()
}

/// Scalars of every kind that digits, signs and buckets treat apart.
fn scalar_kinds(count: usize, rng: &mut StdRng) -> Vec<Vec<Scalar>> {
    let one = Scalar::ONE;
    let two = Scalar::from(2);
    let value = Scalar::random(&mut *rng);
    let edges = [Scalar::ZERO, one, -one, two.invert().unwrap(), -two.invert().unwrap(), two.pow_vartime([253])];
    let powers: Vec<_> = (0..255).map(|bit| two.pow_vartime([bit])).collect();
    vec![
        random(count, rng),
        vec![Scalar::ZERO; count],
        vec![one; count],
        vec![-one; count],
        vec![value; count],
        (0..count).map(|i| if i % 2 == 0 { value } else { -value }).collect(),
        (0..count).map(|_| edges[rng.gen_range(0..edges.len())]).collect(),
        (0..count).map(|i| powers[i % 255]).collect(),
        (0..count).map(|i| if i % 10 == 0 { Scalar::random(&mut *rng) } else { value }).collect(),
    ]
}

/// Points of every kind that additions treat apart.
fn point_kinds(count: usize, rng: &mut StdRng) -> Vec<Vec<Scalar>> {
    let few = random(4, rng);
    let base = Scalar::random(&mut *rng);
    let pool = [Scalar::ZERO, few[0], -few[0], few[1], -few[1], few[2]];
    vec![
        vec![base; count],
        (0..count).map(|i| if i % 2 == 0 { base } else { -base }).collect(),
        (0..count).map(|_| pool[rng.gen_range(0..pool.len())]).collect(),
        vec![Scalar::ZERO; count],
    ]
}

fn check<L: PointLane>(sample: &Sample<L::Point>, scalars: &[Scalar], windows: Option<Windows>, chunk: usize) {
    let control = Control::new();
    let result = match windows {
        Some(windows) => sum_in_windows::<L>(&sample.points, scalars, windows, chunk, &control),
        None => sum::<L>(&sample.points, scalars, &control),
    };
    assert!(result.unwrap() == sample.expected(scalars), "{} points, {windows:?}, {chunk}", scalars.len());
}

fn sums_equal_naive_ones<L: PointLane>(sizes: &[usize]) {
    let mut rng = StdRng::seed_from_u64(1);
    for &size in sizes {
        let mut kinds = point_kinds(size, &mut rng);
        kinds.push(random(size, &mut rng));
        for logarithms in kinds {
            let sample = Sample::<L::Point>::new(logarithms);
            for scalars in scalar_kinds(size, &mut rng) {
                check::<L>(&sample, &scalars, None, CHUNK);
            }
        }
    }
}

fn sums_do_not_depend_on_windows_and_chunks<L: PointLane>() {
    let mut rng = StdRng::seed_from_u64(2);
    let size = 700;
    let sample = Sample::<L::Point>::new(random(size, &mut rng));
    let repeated = Sample::<L::Point>::new(point_kinds(size, &mut rng).swap_remove(2));
    for bits in [2, 3, 8, 11] {
        for chunk in [100, 699, 1000] {
            for scalars in scalar_kinds(size, &mut rng).into_iter().step_by(2) {
                check::<L>(&sample, &scalars, Some(Windows::new(bits)), chunk);
                check::<L>(&repeated, &scalars, Some(Windows::new(bits)), chunk);
            }
        }
    }
}

fn long_buckets_are_cut_and_joined<L: PointLane>() {
    // Two levels of pieces: 30,000 / 64 pieces of one bucket are cut again.
    let mut rng = StdRng::seed_from_u64(3);
    let size = 30_000;
    let sample = Sample::<L::Point>::new(point_kinds(size, &mut rng).swap_remove(2));
    let mut scalars = vec![Scalar::ONE; size];
    scalars[..2000].copy_from_slice(&random(2000, &mut rng));
    check::<L>(&sample, &scalars, Some(Windows::new(13)), CHUNK);
    check::<L>(&sample, &scalars, Some(Windows::new(13)), 9000);
}

const SIZES: [usize; 12] = [0, 1, 2, 3, 63, 64, 65, 127, 128, 1000, 1025, 4096];

#[test]
fn portable_g1_sums_equal_naive_ones() {
    sums_equal_naive_ones::<Portable<G1Affine>>(&SIZES);
}

#[test]
fn portable_g2_sums_equal_naive_ones() {
    sums_equal_naive_ones::<Portable<G2Affine>>(&[0, 1, 3, 63, 64, 129, 1000]);
}

#[test]
fn portable_g1_sums_do_not_depend_on_windows_and_chunks() {
    sums_do_not_depend_on_windows_and_chunks::<Portable<G1Affine>>();
}

#[test]
fn portable_long_buckets_are_cut_and_joined() {
    long_buckets_are_cut_and_joined::<Portable<G1Affine>>();
    long_buckets_are_cut_and_joined::<Portable<G2Affine>>();
}

#[cfg(target_arch = "x86_64")]
#[test]
fn ifma_g1_sums_equal_naive_ones_in_all_windows_and_chunks() {
    if super::ifma::available() {
        sums_equal_naive_ones::<super::ifma::G1>(&SIZES);
        sums_do_not_depend_on_windows_and_chunks::<super::ifma::G1>();
        long_buckets_are_cut_and_joined::<super::ifma::G1>();
    }
}

#[cfg(target_arch = "x86_64")]
#[test]
fn ifma_g2_sums_equal_naive_ones_and_long_buckets_are_cut() {
    if super::ifma::available() {
        sums_equal_naive_ones::<super::ifma::G2>(&[0, 1, 3, 63, 64, 129, 1000]);
        long_buckets_are_cut_and_joined::<super::ifma::G2>();
    }
}

#[test]
fn a_cancelled_sum_stops_with_the_cancelled_error() {
    let token = crate::pipeline::CancelToken::new();
    token.cancel();
    let control = Control::new().with_cancel(token);
    for size in [2, 500] {
        let points = vec![<G1Affine as group::prime::PrimeCurveAffine>::generator(); size];
        let error = msm_g1(&points, &vec![Scalar::ONE; size], Lanes::Auto, &control).unwrap_err();
        assert_eq!(error.code(), 400);
    }
}

#[test]
fn lengths_that_differ_are_refused() {
    let error = msm_g1(&[G1Affine::default()], &[], Lanes::Auto, &Control::new()).unwrap_err();
    assert_eq!(error.code(), 500);
}

/// Prints the time of a 2^22 sum (or 2^LOG_SIZE) beside blst's own.
#[test]
#[ignore = "measurement"]
fn measure_sums() {
    let log_size: u32 = std::env::var("LOG_SIZE").map_or(22, |text| text.parse().unwrap());
    let size = 1usize << log_size;
    let mut rng = StdRng::seed_from_u64(4);
    let points = sample_points::<G1Affine>(size);
    let scalars = random(size, &mut rng);
    let same = vec![scalars[0]; size];
    let control = Control::new();
    let mut results = Vec::new();
    for lanes in [Lanes::Portable, Lanes::Auto] {
        measure(&format!("2^{log_size} {lanes:?}"), || {
            results.push(msm_g1(&points, &scalars, lanes, &control).unwrap());
        });
        measure(&format!("2^{log_size} {lanes:?}, all scalars equal"), || {
            msm_g1(&points, &same, lanes, &control).unwrap();
        });
    }
    let bytes: Vec<u8> = scalars.iter().flat_map(Scalar::to_bytes_le).collect();
    let raw: Vec<blst::blst_p1_affine> = points.iter().map(|point| *point.as_ref()).collect();
    let mut expected = Default::default();
    measure(&format!("2^{log_size} blst"), || expected = blst::MultiPoint::mult(raw.as_slice(), &bytes, 255));
    assert!(results.iter().all(|result| *result.as_ref() == expected));
    let points = sample_points::<G2Affine>(size / 64);
    for lanes in [Lanes::Portable, Lanes::Auto] {
        measure(&format!("2^{} {lanes:?} in G2", log_size - 6), || {
            msm_g2(&points, &scalars[..points.len()], lanes, &control).unwrap();
        });
    }
}
