//! Compares templates row by row with a circuit while it is synthesized, so that its rows are never held.

use bellperson::{Circuit, Index, LinearCombination, Variable};
use blstrs::Scalar;
use ff::Field;

use super::block::{self, Piece};
use super::Templates;
use crate::error::{Error, Result};
use crate::pipeline::Control;
use crate::r1cs::recorder::{entries, Name, Synthesis, Watcher};
use crate::r1cs::rows::RawRow;

type RawRows<'a> = Box<dyn Iterator<Item = RawRow<'a>> + Send + 'a>;

/// The rows of templates in order, and what was found.
pub(super) struct Compare<'a> {
    templates: &'a Templates,
    /// Pieces that were not begun.
    pieces: std::slice::Iter<'a, Piece>,
    /// The piece in work and its remaining rows.
    current: Option<(&'a Piece, [RawRows<'a>; 3])>,
    row: usize,
    difference: Option<String>,
}

impl<'a> Compare<'a> {
    pub fn new(templates: &'a Templates) -> Self {
        let pieces = templates.expansion.pieces.iter();
        Compare { templates, pieces, current: None, row: 0, difference: None }
    }

    /// The first difference. `outcome` is that of the synthesis: how many inputs and auxiliary variables the circuit has.
    pub fn finish(mut self, outcome: Result<(usize, usize)>) -> Result<Option<String>> {
        if self.difference.is_some() {
            return Ok(self.difference);
        }
        let (inputs, aux) = outcome?;
        let expected = (self.templates.num_inputs(), self.templates.num_aux());
        if (inputs, aux) != expected {
            return Ok(Some(format!("{inputs} inputs and {aux} auxiliary variables instead of {expected:?}")));
        }
        let zero = LinearCombination::zero;
        for input in 0..inputs {
            let a = zero() + Variable::new_unchecked(Index::Input(input));
            // An error only says that there is a difference.
            if self.row(&[a, zero(), zero()], &mut String::new).is_err() {
                return Ok(self.difference);
            }
        }
        let rows = self.templates.num_rows();
        Ok((self.row != rows).then(|| format!("{} rows instead of {rows}", self.row)))
    }

    /// The next row of A, B and C, and the piece that it is of.
    fn next(&mut self) -> Option<(&'a Piece, [RawRow<'a>; 3])> {
        loop {
            if let Some((piece, [a, b, c])) = &mut self.current {
                if let (Some(a), Some(b), Some(c)) = (a.next(), b.next(), c.next()) {
                    return Some((piece, [a, b, c]));
                }
            }
            let (piece, templates) = (self.pieces.next()?, self.templates);
            let instance = templates.expansion.instances[piece.instance as usize];
            let rows = templates.blocks[instance.block as usize].rows.each_ref();
            self.current = Some((
                piece,
                rows.map(|rows| Box::new(block::rows(piece, rows, &templates.dictionary)) as RawRows<'_>),
            ));
        }
    }

    fn same(&self, piece: &Piece, expected: RawRow<'_>, found: &LinearCombination<Scalar>) -> bool {
        let Templates { expansion, dictionary, .. } = self.templates;
        let places = expansion.places(&expansion.instances[piece.instance as usize]);
        let coefficients =
            dictionary.pattern(expected.pattern).iter().map(|&id| &dictionary.coefficients()[id as usize]);
        let expected = expected.variables.iter().map(|&number| places(number)).zip(coefficients);
        expected.eq(entries(found).filter(|(_, coefficient)| !coefficient.is_zero_vartime()))
    }
}

impl Watcher for Compare<'_> {
    fn row(&mut self, row: &[LinearCombination<Scalar>; 3], name: Name<'_>) -> Result<()> {
        let same = match self.next() {
            Some((piece, expected)) => {
                expected.into_iter().zip(row).all(|(expected, found)| self.same(piece, expected, found))
            }
            None => false,
        };
        if !same {
            let what = format!("row {} ({}) is another one", self.row, name());
            self.difference = Some(what.clone());
            return Err(Error::internal(what));
        }
        self.row += 1;
        Ok(())
    }
}

impl Templates {
    /// Compares the rows with those of a circuit, entry by entry in order, and says where they first differ.
    ///
    /// The circuit's rows are not kept.
    ///
    /// # Errors
    /// As [`R1cs::record`](crate::r1cs::R1cs::record).
    pub fn first_difference<C: Circuit<Scalar>>(&self, circuit: C, control: &Control) -> Result<Option<String>> {
        let mut compare = Compare::new(self);
        let outcome = Synthesis::watch(circuit, &mut compare, control);
        compare.finish(outcome)
    }
}
