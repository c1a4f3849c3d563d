//! Many multiples of one point: tables of its small multiples, and batched additions. Not constant-time.

use blstrs::Scalar;
use ff::PrimeField;
use group::{Curve, Group};
use rayon::prelude::*;

use crate::curve::{AffinePoint, BatchAdder};
use crate::error::Result;
use crate::pipeline::Control;

/// Wider windows would save one of 15 additions and double the tables (94 MB in G1).
const MAX_WINDOW: u32 = 17;

/// Below it the offset of a scalar of 254 bits could overflow the highest window.
const MIN_WINDOW: u32 = 4;

/// Scalars are brought below half the modulus by a sign, so that they have 254 bits; one more for the carry of
/// signed digits.
const SIGNED_BITS: u32 = 255;

/// Tables of one point.
pub(super) struct FixedBase<P> {
    window: u32,
    /// `tables[j][d]` is d 2^(window j) times the point, for d in 0..=2^(window - 1).
    tables: Vec<Vec<P>>,
    /// The sum over all windows of half their range: added to a scalar, it makes its signed digits unsigned.
    offset: Wide,
}

/// A little-endian integer with room for the offset.
type Wide = [u64; 5];

/// What [`FixedBase::multiply`] works with; keep one per thread and reuse it.
pub(super) struct Scratch<P: AffinePoint> {
    adder: BatchAdder<P>,
    digits: Vec<(bool, Wide)>,
    entries: Vec<P>,
}

impl<P: AffinePoint> Scratch<P> {
    pub(super) fn new() -> Self {
        Scratch { adder: BatchAdder::new(), digits: Vec::new(), entries: Vec::new() }
    }
}

impl<P: AffinePoint> FixedBase<P> {
    /// Tables that suit about `count` products.
    pub(super) fn new(point: P, count: usize, control: &Control) -> Result<Self> {
        let additions = |window: &u32| (count + (1 << (window - 1))) * SIGNED_BITS.div_ceil(*window) as usize;
        let window = (MIN_WINDOW..=MAX_WINDOW).min_by_key(additions).unwrap_or(MAX_WINDOW);
        Self::with_window(point, window, control)
    }

    fn with_window(point: P, window: u32, control: &Control) -> Result<Self> {
        let windows = SIGNED_BITS.div_ceil(window);
        let mut shifted = P::Projective::from(point);
        let mut bases = Vec::new();
        let mut offset = Wide::default();
        for j in 0..windows {
            bases.push(shifted.to_affine());
            (0..window).for_each(|_| shifted = shifted.double());
            let bit = j * window + window - 1;
            offset[bit as usize / 64] |= 1 << (bit % 64);
        }
        let size = 1usize << (window - 1);
        let table = |base: &P| -> Result<Vec<P>> {
            let mut adder = BatchAdder::new();
            let mut table = vec![*base; size + 1];
            table[0] = P::INFINITY;
            for done in (0..window - 1).map(|log| 1usize << log) {
                control.check("making parameters")?;
                // 1..=done are there: adding done to each gives done + 1..=2 done.
                let (low, high) = table[1..].split_at_mut(done);
                let high = &mut high[..done];
                high.copy_from_slice(low);
                adder.add_with(high, |_| low[done - 1]);
            }
            Ok(table)
        };
        let tables = bases.par_iter().map(table).collect::<Result<_>>()?;
        Ok(FixedBase { window, tables, offset })
    }

    /// Fills `out[i]` with `scalars[i]` times the point; both have the same length.
    pub(super) fn multiply(&self, scalars: &[Scalar], out: &mut [P], scratch: &mut Scratch<P>) {
        assert_eq!(scalars.len(), out.len());
        out.fill(P::INFINITY);
        scratch.digits.clear();
        scratch.digits.extend(scalars.iter().map(|scalar| self.recode(scalar)));
        for (j, table) in (0..).zip(&self.tables) {
            // The tables are far larger than a core's cache. Copying alone keeps many loads in flight; between
            // the steps of an addition each of them would be waited for.
            let digit = |recoded| self.digit(recoded, j);
            scratch.entries.clear();
            scratch.entries.extend(scratch.digits.iter().map(|recoded| table[digit(recoded).unsigned_abs() as usize]));
            for (entry, recoded) in scratch.entries.iter_mut().zip(&scratch.digits) {
                if digit(recoded) < 0 {
                    *entry = -*entry;
                }
            }
            if j == 0 {
                out.copy_from_slice(&scratch.entries);
            } else {
                scratch.adder.add(out, &scratch.entries);
            }
        }
    }

    /// Sign, and magnitude plus offset.
    fn recode(&self, scalar: &Scalar) -> (bool, Wide) {
        let words = |scalar: &Scalar| -> [u64; 4] {
            let bytes = scalar.to_repr();
            std::array::from_fn(|i| u64::from_le_bytes(std::array::from_fn(|j| bytes[8 * i + j])))
        };
        let (plus, minus) = (words(scalar), words(&-scalar));
        let negative = minus.iter().rev().lt(plus.iter().rev());
        let magnitude = if negative { minus } else { plus };
        let mut sum = Wide::default();
        let mut carry = 0;
        for (i, sum) in sum.iter_mut().enumerate() {
            let wide = u128::from(magnitude.get(i).copied().unwrap_or(0)) + u128::from(self.offset[i]) + carry;
            *sum = wide as u64;
            carry = wide >> 64;
        }
        (negative, sum)
    }

    /// Signed digit `j` of a recoded scalar.
    #[inline]
    fn digit(&self, (negative, wide): &(bool, Wide), j: u32) -> i32 {
        let bit = j * self.window;
        let (word, shift) = (bit as usize / 64, bit % 64);
        let low = wide[word] >> shift;
        let high = if shift == 0 || word == 4 { 0 } else { wide[word + 1] << (64 - shift) };
        let unsigned = (low | high) & ((1 << self.window) - 1);
        let digit = unsigned as i32 - (1 << (self.window - 1));
        if *negative {
            -digit
        } else {
            digit
        }
    }
}

#[cfg(test)]
mod tests {
    use blstrs::{G1Affine, G2Affine};
    use ff::Field;
    use group::prime::PrimeCurveAffine;
    use rand::rngs::StdRng;
    use rand::SeedableRng;

    use super::*;

    fn scalars() -> Vec<Scalar> {
        let mut rng = StdRng::seed_from_u64(4);
        let half = Scalar::TWO_INV;
        let mut scalars = vec![Scalar::ZERO, Scalar::ONE, -Scalar::ONE, half, half - Scalar::ONE, -half];
        for bit in [1u64, 2, 16, 17, 63, 64, 65, 127, 253, 254] {
            let power = Scalar::from(2).pow_vartime([bit]);
            scalars.extend([power, power - Scalar::ONE, -power, Scalar::ONE - power]);
        }
        scalars.extend((0..40).map(|_| Scalar::random(&mut rng)));
        scalars
    }

    fn equals_single_products<P: AffinePoint>(windows: impl Iterator<Item = u32>) {
        let scalars = scalars();
        let expected: Vec<P> = scalars.iter().map(|s| (P::Projective::generator() * s).to_affine()).collect();
        for window in windows {
            let base = FixedBase::with_window(P::generator(), window, &Control::new()).unwrap();
            let mut products = vec![P::INFINITY; scalars.len()];
            base.multiply(&scalars, &mut products, &mut Scratch::new());
            assert!(products == expected, "window {window}");
        }
    }

    #[test]
    fn products_equal_single_products_for_every_window() {
        equals_single_products::<G1Affine>(MIN_WINDOW..=MAX_WINDOW);
        equals_single_products::<G2Affine>([4, 5, 8, 12, 15].into_iter());
    }

    #[test]
    fn few_products_take_small_tables() {
        let window = |count| FixedBase::new(G1Affine::generator(), count, &Control::new()).unwrap().window;
        assert!(window(10) < 6);
        assert!(window(1 << 24) == MAX_WINDOW);
    }

    /// Prints nanoseconds an addition, in sequence and for one core, beside those of plain batched additions.
    #[test]
    #[ignore = "measurement"]
    fn measure_products() {
        let mut rng = StdRng::seed_from_u64(5);
        let base = FixedBase::with_window(G1Affine::generator(), MAX_WINDOW, &Control::new()).unwrap();
        let scalars: Vec<_> = (0..3072).map(|_| Scalar::random(&mut rng)).collect();
        let (mut products, mut scratch) = (vec![G1Affine::INFINITY; scalars.len()], Scratch::new());
        base.multiply(&scalars, &mut products, &mut scratch);
        let addends = products.clone();
        products.rotate_left(1);
        let additions = scalars.len() * 14 * 20;
        let nanoseconds = |begin: std::time::Instant| begin.elapsed().as_secs_f64() * 1e9 / additions as f64;
        for _ in 0..3 {
            let begin = std::time::Instant::now();
            (0..14 * 20).for_each(|_| scratch.adder.add(&mut products, &addends));
            let plain = nanoseconds(begin);
            let begin = std::time::Instant::now();
            (0..20).for_each(|_| base.multiply(&scalars, &mut products, &mut scratch));
            println!("{:.0} ns, plain {plain:.0} ns", nanoseconds(begin));
        }
    }
}
