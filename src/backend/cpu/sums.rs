//! The sums of a witness over the queries l, a and b: bits apart from full-width values.

use blstrs::{G1Affine, G2Affine, Scalar};

use super::bits::{bit_sum_g1, bit_sum_g2};
use super::lane::Lanes;
use super::msm::{msm_g1, msm_g2};
use crate::curve::AffinePoint;
use crate::error::{Error, Result};
use crate::pipeline::Control;
use crate::r1cs::{Bitmap, Constraints, PartitionWitness};

/// The two kinds of sums in one group.
pub(super) trait Summable: AffinePoint {
    /// The sum of `scalars[i] * bases[i]`.
    fn msm(bases: &[Self], scalars: &[Scalar], lanes: Lanes, control: &Control) -> Result<Self::Projective>;

    /// The sum of the bases whose bits are one.
    fn bit_sum(bases: &[Self], bits: &Bitmap, lanes: Lanes, control: &Control) -> Result<Self::Projective>;
}

impl Summable for G1Affine {
    fn msm(bases: &[Self], scalars: &[Scalar], lanes: Lanes, control: &Control) -> Result<Self::Projective> {
        msm_g1(bases, scalars, lanes, control)
    }

    fn bit_sum(bases: &[Self], bits: &Bitmap, lanes: Lanes, control: &Control) -> Result<Self::Projective> {
        bit_sum_g1(bases, bits, lanes, control)
    }
}

impl Summable for G2Affine {
    fn msm(bases: &[Self], scalars: &[Scalar], lanes: Lanes, control: &Control) -> Result<Self::Projective> {
        msm_g2(bases, scalars, lanes, control)
    }

    fn bit_sum(bases: &[Self], bits: &Bitmap, lanes: Lanes, control: &Control) -> Result<Self::Projective> {
        bit_sum_g2(bases, bits, lanes, control)
    }
}

/// The scalars of a query whose bases are those of some inputs, then of some auxiliary variables.
pub(super) struct Query {
    /// The scalars of the inputs, first in the query.
    inputs: Vec<Scalar>,
    /// One bit for each auxiliary variable of the query.
    bits: Bitmap,
    /// Full-width values with their places among the auxiliary variables of the query.
    full: Vec<(usize, Scalar)>,
}

impl Query {
    /// All auxiliary variables and no inputs.
    pub fn of_l(r1cs: &dyn Constraints, witness: &PartitionWitness) -> Self {
        let positions = r1cs.full_positions().iter().map(|&position| position as usize);
        Query {
            inputs: Vec::new(),
            bits: witness.bits.clone(),
            full: positions.zip(witness.full.iter().copied()).collect(),
        }
    }

    /// All inputs and the auxiliary variables that occur in A.
    pub fn of_a(r1cs: &dyn Constraints, witness: &PartitionWitness) -> Self {
        Self::selected(r1cs, witness, witness.inputs.clone(), r1cs.a_aux_density())
    }

    /// The inputs and the auxiliary variables that occur in B.
    pub fn of_b(r1cs: &dyn Constraints, witness: &PartitionWitness) -> Self {
        let inputs = r1cs.b_input_density().ones().map(|input| witness.inputs[input]).collect();
        Self::selected(r1cs, witness, inputs, r1cs.b_aux_density())
    }

    fn selected(r1cs: &dyn Constraints, witness: &PartitionWitness, inputs: Vec<Scalar>, density: &Bitmap) -> Self {
        // The place of a variable in the query is the number of variables before it that occur.
        let mut before = 0;
        let mut word = 0;
        let mut full = Vec::new();
        for (&position, &value) in r1cs.full_positions().iter().zip(&witness.full) {
            let position = position as usize;
            while word < position / 64 {
                before += density.words()[word].count_ones() as usize;
                word += 1;
            }
            if density.get(position) {
                let below = density.words()[word] & ((1 << (position % 64)) - 1);
                full.push((before + below.count_ones() as usize, value));
            }
        }
        Query { inputs, bits: witness.bits.compact(density), full }
    }

    /// The sum of the scalars times the query's bases.
    pub fn sum<P: Summable>(&self, bases: &[P], lanes: Lanes, control: &Control) -> Result<P::Projective> {
        let expected = self.inputs.len() + self.bits.len();
        if bases.len() != expected {
            return Err(Error::internal(format!("{} bases for {expected} scalars", bases.len())));
        }
        let (of_inputs, of_aux) = bases.split_at(self.inputs.len());
        let mut full_bases = of_inputs.to_vec();
        full_bases.extend(self.full.iter().map(|&(place, _)| of_aux[place]));
        let mut scalars = self.inputs.clone();
        scalars.extend(self.full.iter().map(|&(_, value)| value));
        let bits = P::bit_sum(of_aux, &self.bits, lanes, control)?;
        let mut sum = P::msm(&full_bases, &scalars, lanes, control)?;
        sum += bits;
        Ok(sum)
    }
}
