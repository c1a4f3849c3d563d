//! Sums of selected points. Knows no scalars.
//!
//! Each task adds its points in rows to a set of accumulators, one batch of affine additions a row, and folds
//! the accumulators at the end. Equal and opposite points are ordinary here: bases of one query often repeat.

use blstrs::{G1Affine, G1Projective, G2Affine, G2Projective};
use group::Group;
use rayon::prelude::*;

#[cfg(target_arch = "x86_64")]
use super::lane::ifma;
use super::lane::{Best, Lanes, PointLane, Portable, Reference};
use crate::curve::AffinePoint;
use crate::error::{Error, Result};
use crate::pipeline::Control;
use crate::r1cs::Bitmap;

/// The sum of the bases in G1 whose bits are one.
pub fn bit_sum_g1(bases: &[G1Affine], selected: &Bitmap, lanes: Lanes, control: &Control) -> Result<G1Projective> {
    match lanes.best() {
        #[cfg(target_arch = "x86_64")]
        Best::Ifma => sum::<ifma::G1>(bases, selected, control),
        Best::Portable => sum::<Portable<G1Affine>>(bases, selected, control),
    }
}

/// The sum of the bases in G2 whose bits are one.
pub fn bit_sum_g2(bases: &[G2Affine], selected: &Bitmap, lanes: Lanes, control: &Control) -> Result<G2Projective> {
    match lanes.best() {
        #[cfg(target_arch = "x86_64")]
        Best::Ifma => sum::<ifma::G2>(bases, selected, control),
        Best::Portable => sum::<Portable<G2Affine>>(bases, selected, control),
    }
}

/// Words of the bitmap that a task has at least: some thousand additions.
const SHORTEST_RUN: usize = 256;

/// Accumulators that are left to one projective addition each.
const FEW: usize = 64;

type Curve<L> = <<L as PointLane>::Point as AffinePoint>::Projective;

fn sum<L: PointLane>(bases: &[L::Point], selected: &Bitmap, control: &Control) -> Result<Curve<L>> {
    if bases.len() != selected.len() {
        return Err(Error::internal(format!("{} selection bits for {} points", selected.len(), bases.len())));
    }
    let words = selected.words();
    let run = words.len().div_ceil(4 * rayon::current_num_threads()).max(SHORTEST_RUN);
    words
        .par_chunks(run)
        .zip(bases.par_chunks(run * 64))
        .map(|(words, bases)| Rows::<L>::new().sum(words, bases, control))
        .try_reduce(Curve::<L>::identity, |a, b| Ok(a + b))
}

/// One task's accumulators.
struct Rows<L: PointLane> {
    lane: L,
    groups: Vec<L::Group>,
    /// Indices of the points of a row.
    row: Vec<Reference>,
    /// The row's points and entries, where the lane needs its own form.
    points: Vec<L::Point>,
    entries: Vec<L::Entry>,
    /// References to all of `entries`.
    identity: Vec<Reference>,
}

impl<L: PointLane> Rows<L> {
    fn new() -> Self {
        let size = L::BATCH * L::WIDTH;
        Rows {
            lane: L::new(),
            groups: Vec::new(),
            row: Vec::with_capacity(size),
            points: Vec::new(),
            entries: Vec::new(),
            identity: (0..size as Reference).collect(),
        }
    }

    fn sum(mut self, words: &[u64], bases: &[L::Point], control: &Control) -> Result<Curve<L>> {
        for (index, &word) in words.iter().enumerate() {
            let mut rest = word;
            while rest != 0 {
                self.row.push(index as Reference * 64 + rest.trailing_zeros());
                rest &= rest - 1;
                if self.row.len() == L::BATCH * L::WIDTH {
                    control.check("a sum of points")?;
                    self.add_row(bases);
                }
            }
        }
        self.add_row(bases);
        Ok(self.fold())
    }

    /// Adds the points of `row` to as many accumulators, and empties it. The first row is the longest.
    fn add_row(&mut self, bases: &[L::Point]) {
        let groups = self.row.len().div_ceil(L::WIDTH);
        if let Some(entries) = L::as_entries(bases) {
            self.add_entries(groups, entries);
        } else {
            self.points.clear();
            self.points.extend(self.row.iter().map(|index| bases[*index as usize]));
            let mut entries = std::mem::take(&mut self.entries);
            entries.resize(self.points.len(), L::infinity());
            self.lane.encode(&self.points, &mut entries);
            self.row.clear();
            self.row.extend_from_slice(&self.identity[..self.points.len()]);
            self.add_entries(groups, &entries);
            self.entries = entries;
        }
        self.row.clear();
    }

    fn add_entries(&mut self, groups: usize, entries: &[L::Entry]) {
        self.row.resize(groups * L::WIDTH, super::lane::NONE);
        if self.groups.is_empty() {
            let group = self.lane.group(&L::infinity());
            self.groups.resize(groups, group);
            self.lane.load(&mut self.groups, entries, &self.row);
        } else {
            self.lane.add(&mut self.groups[..groups], entries, &self.row, |_| {});
        }
    }

    /// The sum of all accumulators.
    fn fold(mut self) -> Curve<L> {
        let mut groups = self.groups.as_mut_slice();
        while groups.len() * L::WIDTH > FEW && groups.len() > 1 {
            let (low, high) = groups.split_at_mut(groups.len().div_ceil(2));
            self.lane.add_groups(&mut low[..high.len()], high);
            groups = low;
        }
        let mut entries = vec![L::infinity(); groups.len() * L::WIDTH];
        self.lane.store(groups, &mut entries);
        entries.iter().fold(Curve::<L>::identity(), |mut sum, entry| {
            sum += &L::decode(entry);
            sum
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::cpu::testing::{measure, sample_points};
    use blstrs::Scalar;
    use ff::Field;
    use group::Curve as _;
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    /// Points that are equal, opposite, infinite and distinct, in the ways in which queries repeat them.
    fn point_kinds<P: AffinePoint>(count: usize, rng: &mut StdRng) -> Vec<Vec<P>> {
        let mut step = P::Projective::generator() * Scalar::random(&mut *rng);
        let mut distinct = vec![step.to_affine(); count.min(1)];
        while distinct.len() < count {
            step = step.double() + P::Projective::generator();
            distinct.push(step.to_affine());
        }
        let base = (P::Projective::generator() * Scalar::random(&mut *rng)).to_affine();
        let pool = [P::INFINITY, base, -base];
        let apart = (0..count).map(|i| if i % 64 >= 32 { distinct[i - 32] } else { distinct[i] }).collect();
        vec![
            apart,
            vec![base; count],
            vec![P::INFINITY; count],
            (0..count).map(|i| if i % 2 == 0 { base } else { -base }).collect(),
            (0..count).map(|_| pool[rng.gen_range(0..3)]).collect(),
            (0..count).map(|i| if rng.gen_bool(0.1) { pool[rng.gen_range(0..3)] } else { distinct[i] }).collect(),
            distinct,
        ]
    }

    fn sums_equal_projective_additions<L: PointLane>(sizes: &[usize]) {
        let mut rng = StdRng::seed_from_u64(1);
        for &size in sizes {
            for points in point_kinds::<L::Point>(size, &mut rng) {
                for density in [0.0, 0.01, 0.5, 1.0] {
                    let mut selected = Bitmap::zeros(size);
                    let mut expected = Curve::<L>::identity();
                    for (index, point) in points.iter().enumerate() {
                        if rng.gen_bool(density) {
                            selected.set(index);
                            expected += point;
                        }
                    }
                    let result = sum::<L>(&points, &selected, &Control::new()).unwrap();
                    assert!(result == expected, "{size} points, density {density}");
                }
            }
        }
    }

    const SIZES: [usize; 12] = [0, 1, 2, 3, 63, 64, 65, 767, 769, 1000, 4096, 40_000];

    #[test]
    fn portable_sums_equal_projective_additions() {
        sums_equal_projective_additions::<Portable<G1Affine>>(&SIZES);
        sums_equal_projective_additions::<Portable<G2Affine>>(&SIZES[..11]);
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn ifma_sums_equal_projective_additions() {
        if super::ifma::available() {
            sums_equal_projective_additions::<super::ifma::G1>(&SIZES);
            sums_equal_projective_additions::<super::ifma::G2>(&SIZES[..11]);
        }
    }

    #[test]
    fn a_cancelled_sum_stops_with_the_cancelled_error() {
        let token = crate::pipeline::CancelToken::new();
        token.cancel();
        let control = Control::new().with_cancel(token);
        let points = vec![G1Affine::default(); 2000];
        let selected = Bitmap::from_words(vec![u64::MAX; 30], 1920).unwrap();
        let error = bit_sum_g1(&points[..1920], &selected, Lanes::Auto, &control).unwrap_err();
        assert_eq!(error.code(), 400);
    }

    #[test]
    fn lengths_that_differ_are_refused() {
        let error = bit_sum_g2(&[G2Affine::default()], &Bitmap::zeros(2), Lanes::Auto, &Control::new()).unwrap_err();
        assert_eq!(error.code(), 500);
    }

    /// Prints the time of a sum of half of 2.68 million points.
    #[test]
    #[ignore = "measurement"]
    fn measure_bit_sums() {
        let size = 4 * 64 * 10_469;
        let mut rng = StdRng::seed_from_u64(2);
        let points = sample_points::<G1Affine>(size);
        let mut selected = Bitmap::zeros(size);
        (0..size).filter(|_| rng.gen_bool(0.474)).collect::<Vec<_>>().iter().for_each(|&index| selected.set(index));
        for lanes in [Lanes::Portable, Lanes::Auto, Lanes::Portable, Lanes::Auto] {
            measure(&format!("{lanes:?} sum of {}", selected.count_ones()), || {
                bit_sum_g1(&points, &selected, lanes, &Control::new()).unwrap();
            });
        }
        let points_g2 = sample_points::<G2Affine>(size / 4);
        let selected_g2 =
            Bitmap::from_words(selected.words()[..points_g2.len().div_ceil(64)].to_vec(), points_g2.len());
        let selected_g2 = selected_g2.unwrap();
        for lanes in [Lanes::Portable, Lanes::Auto] {
            measure(&format!("{lanes:?} sum of {} in G2", selected_g2.count_ones()), || {
                bit_sum_g2(&points_g2, &selected_g2, lanes, &Control::new()).unwrap();
            });
        }
        let chosen: Vec<&blst::blst_p1_affine> = selected.ones().map(|index| points[index].as_ref()).collect();
        let pointers: Vec<*const blst::blst_p1_affine> = chosen.iter().map(|point| *point as *const _).collect();
        measure("blst's addition, one thread", || {
            let mut result = blst::blst_p1::default();
            // SAFETY: as many valid pointers as announced.
            unsafe { blst::blst_p1s_add(&mut result, pointers.as_ptr(), pointers.len()) };
        });
    }
}
