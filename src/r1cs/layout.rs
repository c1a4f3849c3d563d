//! The rows of a constraint system as they are stored, as plain data: for a device that evaluates them itself. Knows no
//! device.

use std::borrow::Cow;

use blstrs::Scalar;

use super::rows::{Dictionary, Rows, INPUT};
#[cfg(test)]
use super::Matrix;
use super::R1cs;

/// The rows of one block in one matrix.
#[derive(Debug, Clone, Copy)]
pub struct StoredRows<'a> {
    /// The variables of one row after the other, as [`Layout`] numbers them.
    pub variables: &'a [u32],
    /// For each row the number of its pattern of coefficients, which has the row's length.
    pub patterns: &'a [u32],
}

/// Consecutive rows of the system that are consecutive rows of a block, over the variables of one of its occurrences.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// Which block.
    pub block: u32,
    /// The first row, in the block.
    pub first: u32,
    /// How many rows.
    pub len: u32,
    /// The first row's place in the system.
    pub row: u32,
    /// The auxiliary variable of the system that is the block's variable 0.
    pub base: u32,
    /// Where in [`Layout::slots`] the block's slots begin.
    pub slots: u32,
}

/// A constraint system's rows as they are stored.
///
/// A variable is a number. In the system auxiliary variable `i` is `i` and input `i` is `i | INPUT`. A block counts auxiliary
/// variables from the base of its occurrence, and in place of inputs it has slots: slot `i` is `i | INPUT` and stands for
/// some variable of the system; slot 0 for input 0, the constant ONE.
#[derive(Debug, Clone)]
pub struct Layout<'a> {
    /// Every block with its rows of A, B and C, the same number of each.
    pub blocks: Vec<[StoredRows<'a>; 3]>,
    /// All rows of the system, in its order.
    pub runs: Vec<Run>,
    /// The variables of the system that slots stand for.
    pub slots: Cow<'a, [u32]>,
    /// Distinct coefficients.
    pub coefficients: &'a [Scalar],
    /// Where each pattern begins in `pattern_ids`; one more at the end.
    pub pattern_starts: &'a [u32],
    /// The patterns' coefficients, as places in `coefficients`.
    pub pattern_ids: &'a [u32],
}

impl<'a> Layout<'a> {
    /// Marks the number of an input or slot.
    pub const INPUT: u32 = INPUT;

    /// Where a pattern lies in [`Layout::pattern_ids`]; panics if there is no such pattern.
    pub fn pattern(&self, pattern: u32) -> std::ops::Range<usize> {
        let pattern = pattern as usize;
        self.pattern_starts[pattern] as usize..self.pattern_starts[pattern + 1] as usize
    }

    /// The system's variable that a number in the rows of a run stands for.
    #[inline(always)]
    pub fn variable(&self, run: &Run, number: u32) -> u32 {
        if number & INPUT == 0 {
            run.base + number
        } else {
            self.slots[run.slots as usize + (number & !INPUT) as usize]
        }
    }

    pub(super) fn new(
        dictionary: &'a Dictionary,
        blocks: impl Iterator<Item = &'a [Rows; 3]>,
        slots: Cow<'a, [u32]>,
        runs: Vec<Run>,
    ) -> Self {
        let stored = |rows: &'a Rows| StoredRows { variables: rows.variables(), patterns: rows.patterns() };
        Layout {
            blocks: blocks.map(|rows| rows.each_ref().map(stored)).collect(),
            runs,
            slots,
            coefficients: dictionary.coefficients(),
            pattern_starts: dictionary.starts(),
            pattern_ids: dictionary.ids(),
        }
    }
}

impl R1cs {
    /// The rows as they are stored: a single block, whose slots are the inputs.
    pub fn layout(&self) -> Layout<'_> {
        let run = Run { block: 0, first: 0, len: self.num_rows() as u32, row: 0, base: 0, slots: 0 };
        let slots = (0..self.num_inputs() as u32).map(|input| INPUT | input).collect();
        Layout::new(&self.dictionary, std::iter::once(&self.matrices), Cow::Owned(slots), vec![run])
    }
}

/// The rows of a run in one matrix, as variables of the system with their coefficients. Slow: for tests.
#[cfg(test)]
pub(crate) fn expand(layout: &Layout<'_>, matrix: Matrix, run: &Run) -> Vec<Vec<(u32, Scalar)>> {
    let rows = layout.blocks[run.block as usize][matrix as usize];
    let len = |row: usize| layout.pattern(rows.patterns[row]).len();
    let mut start: usize = (0..run.first as usize).map(len).sum();
    (run.first as usize..(run.first + run.len) as usize)
        .map(|row| {
            let variables = &rows.variables[start..start + len(row)];
            start += variables.len();
            let ids = &layout.pattern_ids[layout.pattern(rows.patterns[row])];
            let entry = |(&number, &id)| (layout.variable(run, number), layout.coefficients[id as usize]);
            variables.iter().zip(ids).map(entry).collect()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use bellperson::Index;

    use super::*;
    use crate::pipeline::Control;
    use crate::r1cs::testing::Mixed;

    #[test]
    fn the_layout_of_recorded_rows_is_all_of_them() {
        let r1cs = R1cs::record(Mixed::default(), &Control::new()).expect("recording");
        let layout = r1cs.layout();
        for matrix in [Matrix::A, Matrix::B, Matrix::C] {
            let rows: Vec<_> = layout.runs.iter().flat_map(|run| expand(&layout, matrix, run)).collect();
            assert_eq!(rows.len(), r1cs.num_rows());
            for (index, found) in rows.into_iter().enumerate() {
                let entries = r1cs.row(matrix, index);
                let expected = entries.iter().map(|(variable, &coefficient)| match variable.get_unchecked() {
                    Index::Input(input) => (INPUT | input as u32, coefficient),
                    Index::Aux(aux) => (aux as u32, coefficient),
                });
                assert!(expected.eq(found), "{matrix:?} {index}");
            }
        }
    }
}
