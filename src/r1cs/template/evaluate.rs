//! a = A w and its like from templates and a packed witness, in parallel.

use blstrs::Scalar;
use rayon::prelude::*;

use super::block::{self, Piece};
use super::Templates;
use crate::error::{Error, Result};
use crate::pipeline::{Control, Stage};
use crate::r1cs::evaluate::{fill_with_zeros, Evaluator};
use crate::r1cs::{Matrix, PartitionWitness};

impl Templates {
    /// `out = M w` for one of the matrices. `out` has exactly 2^[`log_domain`](Templates::log_domain) elements; those past
    /// the last row become zero.
    ///
    /// # Errors
    /// [`Error::Internal`] if `out` or the witness has the wrong size, [`Error::Unsatisfied`] if input 0 is not 1,
    /// [`Error::Cancelled`], [`Error::Deadline`].
    pub fn evaluate(
        &self,
        matrix: Matrix,
        witness: &PartitionWitness,
        out: &mut [Scalar],
        control: &Control,
    ) -> Result<()> {
        let domain = 1usize << self.log_domain();
        if out.len() != domain {
            return Err(Error::internal(format!("{} places for an evaluation on {domain} points", out.len())));
        }
        let (rows, past) = out.split_at_mut(self.num_rows());
        self.evaluate_rows(matrix, witness, rows, control)?;
        fill_with_zeros(past);
        Ok(())
    }

    /// The same for a place of exactly as many elements as there are rows.
    ///
    /// # Errors
    /// As [`Templates::evaluate`].
    pub fn evaluate_rows(
        &self,
        matrix: Matrix,
        witness: &PartitionWitness,
        out: &mut [Scalar],
        control: &Control,
    ) -> Result<()> {
        if out.len() != self.num_rows() {
            return Err(Error::internal(format!("{} places for {} rows", out.len(), self.num_rows())));
        }
        let evaluator = self.evaluator(witness)?;
        let mut inside = out;
        let mut tasks = Vec::with_capacity(self.expansion.pieces.len());
        for piece in &self.expansion.pieces {
            let (own, rest) = inside.split_at_mut(piece.len as usize);
            tasks.push((piece, own));
            inside = rest;
        }
        tasks.into_par_iter().try_for_each(|(piece, out)| {
            control.check(Stage::Evaluate)?;
            let instance = self.expansion.instances[piece.instance as usize];
            let places = self.expansion.places(&instance);
            let rows = &self.blocks[instance.block as usize].rows[matrix as usize];
            for (out, row) in out.iter_mut().zip(block::rows(piece, rows, &self.dictionary)) {
                *out = evaluator.row(row, places);
            }
            Ok(())
        })
    }

    /// The first row that the witness does not satisfy.
    ///
    /// # Errors
    /// As [`Templates::evaluate`].
    pub fn first_unsatisfied(&self, witness: &PartitionWitness, control: &Control) -> Result<Option<usize>> {
        let evaluator = self.evaluator(witness)?;
        let broken = |piece: &Piece| {
            control.check("the check of a witness")?;
            let instance = self.expansion.instances[piece.instance as usize];
            let places = self.expansion.places(&instance);
            let rows = &self.blocks[instance.block as usize].rows;
            let [a, b, c] = rows.each_ref().map(|rows| block::rows(piece, rows, &self.dictionary));
            let broken = a.zip(b).zip(c).position(|((a, b), c)| !evaluator.holds([a, b, c], places));
            Ok(broken.map(|row| piece.row as usize + row))
        };
        let found = self.expansion.pieces.par_iter().map(broken).find_first(|found| !matches!(found, Ok(None)));
        found.unwrap_or(Ok(None))
    }

    fn evaluator<'a>(&'a self, witness: &'a PartitionWitness) -> Result<Evaluator<'a>> {
        let counts = (self.num_inputs(), self.num_aux(), self.full_positions.len());
        Evaluator::new(counts, &self.dictionary, &self.lookup, witness)
    }
}
