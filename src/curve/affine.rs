//! Adding many pairs of affine points with one shared inversion (Montgomery's trick). Knows no scalars.
//!
//! An addition costs five products and a square, plus its share of the inversion. It is complete: equal and
//! opposite points and the point at infinity are ordinary operands.

use blst::{blst_fp, blst_fp2, blst_p1_affine, blst_p2_affine};
use blstrs::{G1Affine, G1Projective, G2Affine, G2Projective};
use group::prime::PrimeCurveAffine;

use super::coordinate::Coordinate;

/// An affine point of G1 or G2 with its coordinates in reach. Infinity has both coordinates zero, as in blst;
/// no point of either curve has y = 0 (both group orders are odd).
pub trait AffinePoint:
    PrimeCurveAffine<Curve = Self::Projective> + Copy + Default + PartialEq + Send + Sync + 'static
{
    /// The field of the coordinates.
    type Field: Coordinate;

    /// The same group in Jacobian coordinates.
    type Projective: group::prime::PrimeCurve<Affine = Self, Scalar = blstrs::Scalar>
        + for<'a> std::ops::AddAssign<&'a Self>
        + From<Self>;

    /// The point at infinity.
    const INFINITY: Self;

    /// The x coordinate; zero at infinity.
    fn x(&self) -> &Self::Field;

    /// The y coordinate; zero at infinity.
    fn y(&self) -> &Self::Field;

    /// Both coordinates, to be written to. The caller leaves a point of the curve behind.
    fn coordinates_mut(&mut self) -> (&mut Self::Field, &mut Self::Field);

    /// Whether this is the point at infinity.
    #[inline(always)]
    fn is_infinity(&self) -> bool {
        self.x().is_zero() && self.y().is_zero()
    }
}

macro_rules! affine_point {
    ($point:ty, $projective:ty, $field:ty, $raw:ty, $zero:expr) => {
        impl AffinePoint for $point {
            type Field = $field;
            type Projective = $projective;

            // SAFETY: the blstrs type is repr(transparent) over the blst one (layout.rs asserts size and
            // alignment), and (0, 0) is blst's point at infinity.
            const INFINITY: Self = unsafe { std::mem::transmute::<$raw, $point>($zero) };

            #[inline(always)]
            fn x(&self) -> &$field {
                &self.as_ref().x
            }

            #[inline(always)]
            fn y(&self) -> &$field {
                &self.as_ref().y
            }

            #[inline(always)]
            fn coordinates_mut(&mut self) -> (&mut $field, &mut $field) {
                let raw = self.as_mut();
                (&mut raw.x, &mut raw.y)
            }
        }
    };
}

const FP_ZERO: blst_fp = blst_fp { l: [0; 6] };
const FP2_ZERO: blst_fp2 = blst_fp2 { fp: [FP_ZERO, FP_ZERO] };

affine_point!(G1Affine, G1Projective, blst_fp, blst_p1_affine, blst_p1_affine { x: FP_ZERO, y: FP_ZERO });
affine_point!(G2Affine, G2Projective, blst_fp2, blst_p2_affine, blst_p2_affine { x: FP2_ZERO, y: FP2_ZERO });

/// Additions that share an inversion: enough to make its cost small, few enough to stay in a core's cache.
const BATCH: usize = 768;

/// Independent products in flight, so that a core's multiplier need not wait for the last result.
const CHAINS: usize = 4;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    /// Different x: the chord.
    Add,
    /// Equal points: the tangent.
    Double,
    /// The result is known already.
    Done,
}

/// Adds points in batches. Holds scratch of about 150 kB (G1) or 300 kB (G2); keep one per thread and reuse it.
pub struct BatchAdder<P: AffinePoint> {
    addends: Vec<P>,
    /// What a slope's numerator is divided by.
    denominators: Vec<P::Field>,
    /// Products of the denominators at i, i - CHAINS, i - 2 CHAINS, ...
    products: Vec<P::Field>,
    steps: Vec<Step>,
}

impl<P: AffinePoint> Default for BatchAdder<P> {
    fn default() -> Self {
        Self::new()
    }
}

impl<P: AffinePoint> BatchAdder<P> {
    /// An adder with its scratch.
    pub fn new() -> Self {
        BatchAdder {
            addends: vec![P::INFINITY; BATCH],
            denominators: vec![P::Field::default(); BATCH],
            products: vec![P::Field::default(); BATCH],
            steps: vec![Step::Done; BATCH],
        }
    }

    /// `accumulators[i] += addends[i]` for every i; both have the same length.
    pub fn add(&mut self, accumulators: &mut [P], addends: &[P]) {
        assert_eq!(accumulators.len(), addends.len());
        self.add_with(accumulators, |index| addends[index]);
    }

    /// `accumulators[i] += addend(i)` for every i; `addend` is called once for each i, in ascending order.
    #[inline]
    pub fn add_with(&mut self, accumulators: &mut [P], mut addend: impl FnMut(usize) -> P) {
        for (batch, part) in accumulators.chunks_mut(BATCH).enumerate() {
            let chains = self.multiply_up(part, |index| addend(batch * BATCH + index));
            self.finish(part, chains);
        }
    }

    /// Fills the scratch for one batch. Returns the product of the denominators of each chain.
    #[inline]
    fn multiply_up(&mut self, accumulators: &mut [P], mut addend: impl FnMut(usize) -> P) -> [P::Field; CHAINS] {
        let count = accumulators.len();
        for index in 0..count {
            let accumulator = &mut accumulators[index];
            let point = &mut self.addends[index];
            *point = addend(index);
            let denominator = &mut self.denominators[index];
            denominator.set_difference(point.x(), accumulator.x());
            let ordinary = !denominator.is_zero() && !point.is_infinity() && !accumulator.is_infinity();
            self.steps[index] = if ordinary { Step::Add } else { exception(accumulator, point, denominator) };
            if index < CHAINS {
                self.products[index] = self.denominators[index];
            } else {
                let (done, rest) = self.products.split_at_mut(index);
                rest[0].set_product(&done[index - CHAINS], &self.denominators[index]);
            }
        }
        let mut chains = [P::Field::ONE; CHAINS];
        for index in count.saturating_sub(CHAINS)..count {
            chains[index % CHAINS] = self.products[index];
        }
        chains
    }

    /// Inverts and adds. Only slots whose step is not `Done` change their accumulator.
    fn finish(&mut self, accumulators: &mut [P], chains: [P::Field; CHAINS]) {
        let mut inverses = invert_all(chains);
        let count = accumulators.len();
        let mut reciprocals = [P::Field::default(); CHAINS];
        let mut slopes = [P::Field::default(); CHAINS];
        for start in (0..count).step_by(CHAINS).rev() {
            let width = CHAINS.min(count - start);
            for k in 0..width {
                let index = start + k;
                if start > 0 {
                    reciprocals[k].set_product(&inverses[k], &self.products[index - CHAINS]);
                    inverses[k].multiply(&self.denominators[index]);
                } else {
                    reciprocals[k] = inverses[k];
                }
            }
            for k in 0..width {
                let (accumulator, point) = (&accumulators[start + k], &self.addends[start + k]);
                if self.steps[start + k] == Step::Double {
                    slopes[k] = tangent_numerator(accumulator);
                } else {
                    slopes[k].set_difference(point.y(), accumulator.y());
                }
            }
            for k in 0..width {
                slopes[k].multiply(&reciprocals[k]);
            }
            // x = slope^2 - x1 - x2, y = slope (x1 - x) - y1
            for k in 0..width {
                reciprocals[k].set_square(&slopes[k]);
            }
            for k in 0..width {
                let (accumulator, point) = (&mut accumulators[start + k], &self.addends[start + k]);
                if self.steps[start + k] == Step::Done {
                    continue;
                }
                let (x, _) = accumulator.coordinates_mut();
                reciprocals[k].subtract(x);
                reciprocals[k].subtract(point.x());
                let mut run = P::Field::default();
                run.set_difference(x, &reciprocals[k]);
                slopes[k].multiply(&run);
                *x = reciprocals[k];
            }
            for k in 0..width {
                if self.steps[start + k] == Step::Done {
                    continue;
                }
                let (_, y) = accumulators[start + k].coordinates_mut();
                let old = *y;
                y.set_difference(&slopes[k], &old);
            }
        }
    }
}

/// Settles a pair with equal x or with infinity in it, and leaves a denominator that can be inverted.
#[cold]
fn exception<P: AffinePoint>(accumulator: &mut P, point: &P, denominator: &mut P::Field) -> Step {
    if !point.is_infinity() && !accumulator.is_infinity() && point.y() == accumulator.y() {
        denominator.set_sum(point.y(), point.y());
        if !denominator.is_zero() {
            return Step::Double;
        }
    }
    if accumulator.is_infinity() {
        *accumulator = *point;
    } else if !point.is_infinity() {
        *accumulator = P::INFINITY;
    }
    *denominator = P::Field::ONE;
    Step::Done
}

/// 3 x^2, which over 2 y is the slope of the tangent (both curves have a = 0).
#[cold]
fn tangent_numerator<P: AffinePoint>(point: &P) -> P::Field {
    let mut square = P::Field::default();
    square.set_square(point.x());
    let mut double = P::Field::default();
    double.set_sum(&square, &square);
    let mut numerator = P::Field::default();
    numerator.set_sum(&double, &square);
    numerator
}

/// The inverses of all `values`, none of which is zero, by one inversion.
fn invert_all<F: Coordinate>(values: [F; CHAINS]) -> [F; CHAINS] {
    let mut products = values;
    for k in 1..CHAINS {
        let last = products[k - 1];
        products[k].multiply(&last);
    }
    let mut inverse = products[CHAINS - 1];
    inverse.invert();
    let mut inverses = values;
    for k in (1..CHAINS).rev() {
        inverses[k].set_product(&inverse, &products[k - 1]);
        inverse.multiply(&values[k]);
    }
    inverses[0] = inverse;
    inverses
}

#[cfg(test)]
mod tests {
    use super::*;
    use ff::Field;
    use group::{Curve, Group};
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    /// Points with every relation between two of them: equal, opposite, unrelated, infinity.
    fn pool<P: AffinePoint>(rng: &mut StdRng) -> Vec<P> {
        let mut points = vec![P::INFINITY];
        for _ in 0..3 {
            let point = (P::Projective::generator() * blstrs::Scalar::random(&mut *rng)).to_affine();
            points.extend([
                point,
                -point,
                (P::Projective::generator() * blstrs::Scalar::random(&mut *rng)).to_affine(),
            ]);
        }
        points
    }

    fn sums_equal_projective_additions<P: AffinePoint>() {
        let mut rng = StdRng::seed_from_u64(1);
        let pool = pool::<P>(&mut rng);
        let mut adder = BatchAdder::<P>::new();
        for count in (0..=9).chain([CHAINS * 5 + 3, BATCH - 1, BATCH, BATCH + 1, 2 * BATCH + 5]) {
            let pick = |rng: &mut StdRng| pool[rng.gen_range(0..pool.len())];
            let left: Vec<P> = (0..count).map(|_| pick(&mut rng)).collect();
            let right: Vec<P> = (0..count).map(|_| pick(&mut rng)).collect();
            let mut sums = left.clone();
            adder.add(&mut sums, &right);
            for index in 0..count {
                let mut expected = P::Projective::from(left[index]);
                expected += &right[index];
                assert!(sums[index] == expected.to_affine(), "{count} points, index {index}");
                assert!(sums[index].is_infinity() == bool::from(expected.is_identity()));
            }
        }
    }

    #[test]
    fn batch_sums_equal_projective_additions_in_g1() {
        sums_equal_projective_additions::<G1Affine>();
    }

    #[test]
    fn batch_sums_equal_projective_additions_in_g2() {
        sums_equal_projective_additions::<G2Affine>();
    }

    #[test]
    fn every_pair_of_the_pool_in_one_batch_is_added_right() {
        let pool = pool::<G1Affine>(&mut StdRng::seed_from_u64(2));
        let pairs: Vec<_> = pool.iter().flat_map(|a| pool.iter().map(move |b| (*a, *b))).collect();
        let mut sums: Vec<_> = pairs.iter().map(|pair| pair.0).collect();
        BatchAdder::new().add_with(&mut sums, |index| pairs[index].1);
        for (sum, (a, b)) in sums.iter().zip(&pairs) {
            assert_eq!(*sum, (G1Projective::from(a) + b).to_affine());
        }
    }

    #[test]
    fn an_off_curve_point_does_not_spoil_the_others_of_its_batch() {
        let generator = G1Affine::generator();
        let mut broken = G1Affine::INFINITY;
        *broken.coordinates_mut().0 = blst_fp::ONE;
        let mut sums = [broken, generator];
        BatchAdder::new().add(&mut sums, &[broken, generator]);
        assert_eq!(sums[1], (G1Projective::from(generator) + generator).to_affine());
    }

    /// Prints nanoseconds an addition, in sequence and for one core.
    #[test]
    #[ignore = "measurement"]
    fn measure_batch_addition() {
        let mut rng = StdRng::seed_from_u64(3);
        let count = 1 << 14;
        let mut points = vec![G1Affine::INFINITY; count];
        let mut step = (G1Projective::generator() * blstrs::Scalar::random(&mut rng)).to_affine();
        let mut adder = BatchAdder::new();
        points[0] = step;
        for log in 0..14 {
            let (low, high) = points.split_at_mut(1 << log);
            step = (G1Projective::from(step) * blstrs::Scalar::from(7)).to_affine();
            high[..1 << log].copy_from_slice(low);
            adder.add_with(&mut high[..1 << log], |_| step);
        }
        let mut sums = points.clone();
        sums.rotate_left(1);
        let rounds = 40;
        let begin = std::time::Instant::now();
        for _ in 0..rounds {
            adder.add(&mut sums, &points);
        }
        println!("{:.1} ns an addition", begin.elapsed().as_secs_f64() * 1e9 / (rounds * count) as f64);
    }
}
