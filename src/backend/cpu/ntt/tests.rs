//! Transforms against their definition, against the textbook algorithm, and against bellperson.

use super::*;
use crate::backend::cpu::testing::measure;
use bellperson::domain::EvaluationDomain;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

const DIRECTIONS: [Direction; 4] =
    [Direction::Forward, Direction::Inverse, Direction::CosetForward, Direction::CosetInverse];

/// Vectors of zeros, ones, r - 1, unit vectors, random values and mixtures.
fn inputs(size: usize, rng: &mut StdRng) -> Vec<Vec<Scalar>> {
    let edges = [Scalar::ZERO, Scalar::ONE, -Scalar::ONE, Scalar::from(u64::MAX), -Scalar::from(2)];
    let mut unit = vec![Scalar::ZERO; size];
    unit[size / 2] = -Scalar::ONE;
    vec![
        vec![Scalar::ZERO; size],
        vec![Scalar::ONE; size],
        vec![-Scalar::ONE; size],
        unit,
        (0..size).map(|_| Scalar::random(&mut *rng)).collect(),
        (0..size).map(|_| edges[rng.gen_range(0..edges.len())]).collect(),
    ]
}

fn naive(direction: Direction, values: &[Scalar]) -> Vec<Scalar> {
    let size = values.len();
    let root = root_of_unity(size.trailing_zeros());
    let generator = Scalar::MULTIPLICATIVE_GENERATOR;
    let evaluate = |point: Scalar| values.iter().rev().fold(Scalar::ZERO, |sum, value| sum * point + value);
    let power = |base: Scalar, exponent: usize| base.pow_vartime([exponent as u64]);
    let size_inverse = inverse_of(Scalar::from(size as u64));
    (0..size)
        .map(|k| match direction {
            Direction::Forward => evaluate(power(root, k)),
            Direction::CosetForward => evaluate(generator * power(root, k)),
            Direction::Inverse => evaluate(power(inverse_of(root), k)) * size_inverse,
            Direction::CosetInverse => {
                evaluate(power(inverse_of(root), k)) * size_inverse * power(inverse_of(generator), k)
            }
        })
        .collect()
}

fn lanes() -> [Lanes; 2] {
    [Lanes::Portable, Lanes::Auto]
}

#[test]
fn every_direction_equals_its_definition_for_sizes_up_to_2_to_the_9() {
    let mut rng = StdRng::seed_from_u64(1);
    for log_size in 0..=9 {
        let transforms = lanes().map(|lanes| Ntt::new(log_size, lanes).unwrap());
        for input in inputs(1 << log_size, &mut rng) {
            for direction in DIRECTIONS {
                let expected = naive(direction, &input);
                for ntt in &transforms {
                    let mut values = input.clone();
                    ntt.run(direction, &mut values, &Control::new()).unwrap();
                    assert!(values == expected, "size 2^{log_size}");
                }
            }
        }
    }
}

#[test]
fn every_direction_equals_the_textbook_algorithm_for_larger_sizes() {
    let mut rng = StdRng::seed_from_u64(2);
    for log_size in 10..=17 {
        let transforms = lanes().map(|lanes| Ntt::new(log_size, lanes).unwrap());
        for input in inputs(1 << log_size, &mut rng).into_iter().skip(3) {
            for direction in DIRECTIONS {
                let mut expected = input.clone();
                small(direction, &mut expected);
                for ntt in &transforms {
                    let mut values = input.clone();
                    ntt.run(direction, &mut values, &Control::new()).unwrap();
                    assert!(values == expected, "size 2^{log_size}");
                }
            }
        }
    }
}

fn bellperson(direction: Direction, values: &[Scalar]) -> Vec<Scalar> {
    // bellperson's worker is a unit type of a crate that it does not re-export.
    let worker = &Default::default();
    let mut domain = EvaluationDomain::from_coeffs(values.to_vec()).unwrap();
    let kernel = &mut None;
    match direction {
        Direction::Forward => domain.fft(worker, kernel).unwrap(),
        Direction::Inverse => domain.ifft(worker, kernel).unwrap(),
        Direction::CosetForward => domain.coset_fft(worker, kernel).unwrap(),
        Direction::CosetInverse => domain.icoset_fft(worker, kernel).unwrap(),
    }
    domain.into_coeffs()
}

#[test]
fn every_direction_equals_bellpersons() {
    let mut rng = StdRng::seed_from_u64(3);
    for log_size in [3, 6, 12, 15, 16] {
        let input: Vec<_> = (0..1 << log_size).map(|_| Scalar::random(&mut rng)).collect();
        for direction in DIRECTIONS {
            let mut values = input.clone();
            Ntt::new(log_size, Lanes::Auto).unwrap().run(direction, &mut values, &Control::new()).unwrap();
            assert!(values == bellperson(direction, &input), "size 2^{log_size}");
        }
    }
}

#[test]
fn a_cancelled_transform_stops_with_the_cancelled_error() {
    let token = crate::pipeline::CancelToken::new();
    token.cancel();
    let control = Control::new().with_cancel(token);
    let mut values = vec![Scalar::ONE; 64];
    let error = Ntt::new(6, Lanes::Auto).unwrap().forward(&mut values, &control).unwrap_err();
    assert_eq!(error.code(), 400);
}

#[test]
fn sizes_that_do_not_fit_are_refused() {
    assert_eq!(Ntt::new(MAX_LOG_SIZE + 1, Lanes::Auto).err().unwrap().code(), 100);
    let ntt = Ntt::new(4, Lanes::Auto).unwrap();
    assert_eq!(ntt.forward(&mut [Scalar::ONE; 15], &Control::new()).unwrap_err().code(), 500);
}

/// Prints the time of a 2^22 transform beside bellperson's.
#[test]
#[ignore = "measurement"]
fn measure_transforms() {
    let mut rng = StdRng::seed_from_u64(4);
    let log_size = 22;
    let input: Vec<_> = (0..1 << log_size).map(|_| Scalar::random(&mut rng)).collect();
    for lanes in lanes() {
        let ntt = Ntt::new(log_size, lanes).unwrap();
        for _ in 0..3 {
            let mut values = input.clone();
            for direction in DIRECTIONS {
                measure(&format!("2^{log_size} {lanes:?} {direction:?}"), || {
                    ntt.run(direction, &mut values, &Control::new()).unwrap();
                });
            }
        }
    }
    let worker = Default::default();
    let mut domain = EvaluationDomain::from_coeffs(input).unwrap();
    measure(&format!("2^{log_size} bellperson Forward"), || domain.fft(&worker, &mut None).unwrap());
}
