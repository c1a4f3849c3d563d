//! For each variable the sum over all rows of its coefficient times the row's value, on all cores.
//!
//! Rows are divided among tasks. Each owns a range of auxiliary variables: those that its rows are the first to use, and
//! so nearly all of those that they use. What it has for others is put aside and added at the end.

use std::collections::HashMap;
use std::ops::Range;

use blstrs::Scalar;
use ff::Field;
use rayon::prelude::*;

use super::qap::Columns;
use crate::error::Result;
use crate::pipeline::Control;
use crate::r1cs::{Constraints, Layout, Matrix, Run};

/// Tasks for a large system. More are better balanced, and more of their variables belong to others.
pub(super) const TASKS: usize = 128;

/// Rows between two checks for a cancel.
const PIECE: u32 = 1 << 12;

/// In each block the place of every so many-th row is kept.
const STRIDE: usize = 1 << 8;

/// Pieces at the end of a task that are searched for its newest variable.
const SEARCHED: usize = 16;

/// The rows of a constraint system, divided.
pub(super) struct Rows<'a> {
    layout: Layout<'a>,
    inputs: usize,
    aux: usize,
    /// For each block and matrix, where the entries of rows 0, STRIDE, 2 STRIDE, .. begin.
    places: Vec<[Vec<usize>; 3]>,
    factors: Vec<Factor>,
    pieces: Vec<Run>,
    tasks: Vec<Task>,
}

struct Task {
    pieces: Range<usize>,
    /// The auxiliary variables that it owns.
    aux: Range<usize>,
}

/// A coefficient; nearly all are 1 or -1.
enum Factor {
    One,
    MinusOne,
    Other(Scalar),
}

impl From<&Scalar> for Factor {
    fn from(coefficient: &Scalar) -> Self {
        match *coefficient {
            one if one == Scalar::ONE => Factor::One,
            minus_one if minus_one == -Scalar::ONE => Factor::MinusOne,
            other => Factor::Other(other),
        }
    }
}

impl<'a> Rows<'a> {
    pub fn new(system: &'a dyn Constraints, tasks: usize) -> Self {
        let layout = system.layout();
        let places = layout.blocks.par_iter().map(|block| block.map(|rows| places(&layout, rows.patterns))).collect();
        let factors = layout.coefficients.iter().map(Factor::from).collect();
        let pieces = layout.runs.iter().flat_map(cut).collect();
        let (inputs, aux) = (system.num_inputs(), system.num_aux());
        let mut rows = Rows { layout, inputs, aux, places, factors, pieces, tasks: Vec::new() };
        rows.divide(system.num_rows().div_ceil(tasks));
        rows
    }

    /// Makes tasks of about so many rows.
    fn divide(&mut self, rows: usize) {
        let (mut first, mut held, mut owned) = (0, 0, 0);
        for (index, piece) in self.pieces.iter().enumerate() {
            held += piece.len as usize;
            let next = index + 1;
            let last = next == self.pieces.len();
            if held < rows && !last {
                continue;
            }
            let end = match last {
                true => self.aux,
                false => self.newest(&self.pieces[first.max(next.saturating_sub(SEARCHED))..next]).max(owned),
            };
            self.tasks.push(Task { pieces: first..next, aux: owned..end });
            (first, held, owned) = (next, 0, end);
        }
    }

    /// One more than the last auxiliary variable in some pieces.
    fn newest(&self, pieces: &[Run]) -> usize {
        let mut newest = 0;
        for (piece, matrix) in pieces.iter().flat_map(|piece| [Matrix::A, Matrix::B, Matrix::C].map(|m| (piece, m))) {
            self.each(piece, matrix, |_, variable, _| {
                if variable & Layout::INPUT == 0 {
                    newest = newest.max(variable as usize + 1);
                }
            });
        }
        newest
    }

    /// Calls `entry` with each row's place in the piece, a variable of the row and its coefficient.
    #[inline(always)]
    fn each(&self, piece: &Run, matrix: Matrix, mut entry: impl FnMut(usize, u32, &Factor)) {
        let layout = &self.layout;
        let rows = layout.blocks[piece.block as usize][matrix as usize];
        let first = piece.first as usize;
        let kept = first / STRIDE;
        let len = |&pattern: &u32| layout.pattern(pattern).len();
        let before: usize = rows.patterns[kept * STRIDE..first].iter().map(len).sum();
        let mut place = self.places[piece.block as usize][matrix as usize][kept] + before;
        for (row, &pattern) in rows.patterns[first..first + piece.len as usize].iter().enumerate() {
            let ids = &layout.pattern_ids[layout.pattern(pattern)];
            let numbers = &rows.variables[place..place + ids.len()];
            place += ids.len();
            for (&number, &id) in numbers.iter().zip(ids) {
                entry(row, layout.variable(piece, number), &self.factors[id as usize]);
            }
        }
    }

    /// The sums of one matrix; `values` has one for each row.
    pub fn sums(&self, matrix: Matrix, values: &[Scalar], control: &Control) -> Result<Columns> {
        let mut columns = Columns { inputs: vec![Scalar::ZERO; self.inputs], aux: zeros(self.aux) };
        let (mut rest, mut work) = (columns.aux.as_mut_slice(), Vec::with_capacity(self.tasks.len()));
        for task in &self.tasks {
            let own;
            (own, rest) = rest.split_at_mut(task.aux.len());
            work.push((task, own));
        }
        let others = work.into_par_iter().map(|(task, own)| self.task_sums(task, matrix, values, own, control));
        for (variable, value) in others.collect::<Result<Vec<_>>>()?.into_iter().flatten() {
            match variable & Layout::INPUT {
                0 => columns.aux[variable as usize] += value,
                _ => columns.inputs[(variable & !Layout::INPUT) as usize] += value,
            }
        }
        Ok(columns)
    }

    /// Adds to the variables that the task owns, and returns the sums of the others.
    fn task_sums(
        &self,
        task: &Task,
        matrix: Matrix,
        values: &[Scalar],
        own: &mut [Scalar],
        control: &Control,
    ) -> Result<HashMap<u32, Scalar>> {
        let mut others = HashMap::new();
        for piece in &self.pieces[task.pieces.clone()] {
            control.check("making parameters")?;
            let values = &values[piece.row as usize..][..piece.len as usize];
            self.each(piece, matrix, |row, variable, factor| {
                // Numbers of inputs are larger than any place.
                let sum = match own.get_mut((variable as usize).wrapping_sub(task.aux.start)) {
                    Some(sum) => sum,
                    None => others.entry(variable).or_insert(Scalar::ZERO),
                };
                match factor {
                    Factor::One => *sum += values[row],
                    Factor::MinusOne => *sum -= values[row],
                    Factor::Other(factor) => *sum += values[row] * factor,
                }
            });
        }
        Ok(others)
    }
}

/// Zeros, written by all cores: the first touch of so many pages takes a second on one.
pub(super) fn zeros(len: usize) -> Vec<Scalar> {
    (0..len).into_par_iter().map(|_| Scalar::ZERO).collect()
}

fn places(layout: &Layout<'_>, patterns: &[u32]) -> Vec<usize> {
    let mut place = 0;
    let mut places = Vec::with_capacity(patterns.len().div_ceil(STRIDE));
    for rows in patterns.chunks(STRIDE) {
        places.push(place);
        place += rows.iter().map(|&pattern| layout.pattern(pattern).len()).sum::<usize>();
    }
    places
}

/// A run in pieces.
fn cut(run: &Run) -> impl Iterator<Item = Run> {
    let run = *run;
    (0..run.len).step_by(PIECE as usize).map(move |done| Run {
        first: run.first + done,
        len: PIECE.min(run.len - done),
        row: run.row + done,
        ..run
    })
}

#[cfg(test)]
mod tests {
    use bellperson::{Index, Variable};

    use super::*;
    use crate::groth16::testing::{Chain, Hash, Several};
    use crate::r1cs::{R1cs, Templates};

    fn one_by_one(r1cs: &R1cs, matrix: Matrix, values: &[Scalar]) -> Columns {
        let mut columns =
            Columns { inputs: vec![Scalar::ZERO; r1cs.num_inputs()], aux: vec![Scalar::ZERO; r1cs.num_aux()] };
        for (index, value) in values.iter().enumerate() {
            for (Variable(variable), coefficient) in r1cs.row(matrix, index).iter() {
                match variable {
                    Index::Input(i) => columns.inputs[i] += value * coefficient,
                    Index::Aux(i) => columns.aux[i] += value * coefficient,
                }
            }
        }
        columns
    }

    #[test]
    fn sums_are_those_of_one_row_after_the_other_for_any_number_of_tasks() {
        let control = Control::new();
        let chain = R1cs::record(Chain { links: 9000, start: 3 }, &control).unwrap();
        for r1cs in [chain, R1cs::record(Hash, &control).unwrap()] {
            let values: Vec<_> = (0..r1cs.num_rows() as u64).map(|i| Scalar::from(3).pow_vartime([i])).collect();
            for matrix in [Matrix::A, Matrix::B, Matrix::C] {
                let expected = one_by_one(&r1cs, matrix, &values);
                for tasks in [1, 3, 1000] {
                    let rows = Rows::new(&r1cs, tasks);
                    assert!(rows.tasks.len() <= tasks && (tasks == 1 || rows.tasks.len() > 1), "{}", rows.tasks.len());
                    assert!(rows.sums(matrix, &values, &control).unwrap() == expected, "{matrix:?}, {tasks} tasks");
                }
            }
        }
    }

    #[test]
    fn sums_of_templates_are_those_of_their_rows() {
        let control = Control::new();
        let several = |times| Several { times, circuit: Hash };
        let r1cs = R1cs::record(several(3), &control).unwrap();
        let templates = Templates::record(3, |times, pass| pass.run(several(times)), &control).unwrap();
        assert!(templates.num_stored_rows() < r1cs.num_rows() / 2);
        let values: Vec<_> = (0..r1cs.num_rows() as u64).map(|i| Scalar::from(5).pow_vartime([i])).collect();
        for matrix in [Matrix::A, Matrix::B, Matrix::C] {
            let expected = one_by_one(&r1cs, matrix, &values);
            for tasks in [1, 7, TASKS] {
                let found = Rows::new(&templates, tasks).sums(matrix, &values, &control).unwrap();
                assert!(found == expected, "{matrix:?}, {tasks} tasks");
            }
        }
    }
}
