//! Makes templates from circuits of one block and of two. Knows no particular circuit.

use std::ops::Range;

use bellperson::Circuit;
use blstrs::Scalar;

use super::block::{Block, Call};
use super::compare::Compare;
use super::fold::{fold, Folded, Recorded};
use super::{Spans, Templates};
use crate::error::{Error, Result};
use crate::pipeline::Control;
use crate::r1cs::positions;
use crate::r1cs::recorder::{Recording, Size, Synthesis, Watcher};
use crate::r1cs::rows::{Dictionary, Rows, INPUT};

/// What has to be run once with a circuit of as many blocks as were asked for.
pub struct Pass<'a> {
    work: Work<'a>,
    control: &'a Control,
}

enum Work<'a> {
    Count(Option<Size>),
    Record(Option<Recording>),
    Watch(&'a mut dyn Watcher, Option<(usize, usize)>),
}

impl Pass<'_> {
    /// Synthesizes the circuit, whose values are not asked for.
    ///
    /// # Errors
    /// As [`R1cs::record`](crate::r1cs::R1cs::record).
    pub fn run<C: Circuit<Scalar>>(&mut self, circuit: C) -> Result<()> {
        match &mut self.work {
            Work::Count(size) => *size = Some(Synthesis::count(circuit, self.control)?),
            Work::Record(recording) => {
                *recording = Some(Synthesis::record(circuit, Some(Spans::default()), self.control)?);
            }
            Work::Watch(watcher, counts) => *counts = Some(Synthesis::watch(circuit, &mut **watcher, self.control)?),
        }
        Ok(())
    }
}

/// What differs between systems of other numbers of blocks: what comes before the blocks, and how large they are.
struct Head {
    one: Size,
    block: Size,
    /// Rows before the blocks, each with the numbers of the system itself.
    rows: [(Vec<u32>, Vec<u32>); 3],
    /// The patterns of the row of an input.
    input_row: [u32; 3],
    full: Vec<u32>,
    /// Which block is repeated.
    callee: u32,
    /// What a block's slots after the first stand for in the system of one block.
    slots: Vec<u32>,
}

impl Templates {
    /// Records the constraints of a circuit that consists of some head and then `times` blocks, all of which are alike.
    ///
    /// Everything is found from circuits of one and of two blocks; rows are never held for more than one. `synthesize` is
    /// given a number of blocks, and runs the pass with the circuit that has so many; it is called several times. That the
    /// templates expand to exactly the rows of the circuit of two blocks is checked on the way.
    ///
    /// # Errors
    /// [`Error::Argument`] if the second block is not like the first, or the circuit is too large; otherwise as
    /// [`R1cs::record`](crate::r1cs::R1cs::record), and whatever `synthesize` itself fails with.
    pub fn record(
        times: usize,
        mut synthesize: impl FnMut(usize, &mut Pass<'_>) -> Result<()>,
        control: &Control,
    ) -> Result<Templates> {
        if times == 0 {
            return Err(Error::Argument { name: "times", detail: "templates are of one block at least".into() });
        }
        let mut pass = Pass { work: Work::Count(None), control };
        synthesize(2, &mut pass)?;
        let Work::Count(Some(two)) = pass.work else { return Err(not_run()) };
        let mut pass = Pass { work: Work::Record(None), control };
        synthesize(1, &mut pass)?;
        let Work::Record(Some(recording)) = pass.work else { return Err(not_run()) };

        let (dictionary, mut blocks, head) = blocks(recording, two, control)?;
        blocks.push(head.root(2, &dictionary)?);
        let templates = Templates::from_parts(dictionary, blocks).ok_or_else(does_not_fit)?;
        let mut compare = Compare::new(&templates);
        let mut pass = Pass { work: Work::Watch(&mut compare, None), control };
        let outcome = synthesize(2, &mut pass);
        let Work::Watch(_, counts) = pass.work else { return Err(not_run()) };
        if let Some(difference) = compare.finish(outcome.and_then(|()| counts.ok_or_else(not_run)))? {
            return Err(not_alike(difference));
        }

        let Templates { dictionary, mut blocks, .. } = templates;
        blocks.pop();
        blocks.push(head.root(times, &dictionary)?);
        Templates::from_parts(dictionary, blocks).ok_or_else(does_not_fit)
    }
}

/// Everything but the system itself, from the recorded circuit of one block and the size of that of two.
fn blocks(recording: Recording, two: Size, control: &Control) -> Result<(Dictionary, Vec<Block>, Head)> {
    let Recording { inputs, aux, builder, spans } = recording;
    let one = Size { inputs, aux, rows: builder.rows() - inputs };
    let (dictionary, matrices) = builder.finish(inputs, aux)?;
    let between = |one: usize, two: usize| two.checked_sub(one).filter(|&block| block <= one);
    let block = (between(one.inputs, two.inputs), between(one.aux, two.aux), between(one.rows, two.rows));
    let (Some(inputs), Some(aux), Some(rows)) = block else {
        return Err(not_alike(format!("circuits of one and two blocks have {one:?} and {two:?}")));
    };
    let block = Size { inputs, aux, rows };

    let full = positions::full_positions(one.aux, &dictionary, &matrices, control)?;
    let (own_rows, own_aux) = (one.rows - block.rows..one.rows, one.aux - block.aux..one.aux);
    let spans = spans.inside(&own_rows, &own_aux);
    let recorded = Recorded { inputs: one.inputs, aux: one.aux, dictionary: &dictionary, matrices: &matrices };
    let Folded { mut blocks, slots } = fold(recorded, own_rows.clone(), own_aux.clone(), &spans, control)?;
    let in_head = full.partition_point(|&position| (position as usize) < own_aux.start);
    if let Some(repeated) = blocks.last_mut() {
        repeated.full = full[in_head..].iter().map(|position| position - own_aux.start as u32).collect();
    }
    let head = Head {
        one,
        block,
        rows: matrices.each_ref().map(|rows| copy(rows, 0..own_rows.start, &dictionary)),
        input_row: matrices.each_ref().map(|rows| rows.row(one.rows, &dictionary).pattern),
        full: full[..in_head].to_vec(),
        callee: blocks.len() as u32 - 1,
        slots,
    };
    Ok((dictionary, blocks, head))
}

/// Variables and patterns of some rows.
fn copy(rows: &Rows, range: Range<usize>, dictionary: &Dictionary) -> (Vec<u32>, Vec<u32>) {
    let (mut variables, mut patterns) = (Vec::new(), Vec::with_capacity(range.len()));
    for row in rows.starting_at(range.start, dictionary).take(range.len()) {
        variables.extend_from_slice(row.variables);
        patterns.push(row.pattern);
    }
    (variables, patterns)
}

impl Head {
    /// The system of so many blocks, as a caller of the last of the blocks so far.
    fn root(&self, times: usize, dictionary: &Dictionary) -> Result<Block> {
        let size = |one: usize, block: usize| {
            let size = block.checked_mul(times).and_then(|blocks| blocks.checked_add(one - block));
            size.filter(|&size| size < INPUT as usize).ok_or_else(|| Error::Argument {
                name: "circuit",
                detail: format!("{times} blocks of {block} variables; the limit is {INPUT}"),
            })
        };
        let (inputs, aux) = (size(self.one.inputs, self.block.inputs)?, size(self.one.aux, self.block.aux)?);
        let (head_inputs, head_aux) = (self.one.inputs - self.block.inputs, self.one.aux - self.block.aux);
        let own_rows = self.rows[0].1.len() as u32;
        let mut arguments = Vec::with_capacity(times * self.slots.len());
        let mut calls = Vec::with_capacity(times);
        for index in 0..times {
            calls.push(Call { block: self.callee, after: own_rows, base: (head_aux + index * self.block.aux) as u32 });
            arguments.extend(self.slots.iter().map(|&number| {
                let own_input = number & INPUT != 0 && (number & !INPUT) as usize >= head_inputs;
                if own_input {
                    number + (index * self.block.inputs) as u32
                } else {
                    number
                }
            }));
        }
        let mut matrices = Vec::with_capacity(3);
        for (matrix, (variables, patterns)) in self.rows.iter().enumerate() {
            let (mut variables, mut patterns) = (variables.clone(), patterns.clone());
            patterns.extend(std::iter::repeat_n(self.input_row[matrix], inputs));
            if matrix == 0 {
                variables.extend((0..inputs as u32).map(|input| INPUT | input));
            }
            matrices.extend(Rows::from_parts(variables, patterns, dictionary, inputs, aux));
        }
        let rows = matrices.try_into().map_err(|_| does_not_fit())?;
        Ok(Block { inputs, aux, rows, calls, arguments, full: self.full.clone() })
    }
}

fn not_run() -> Error {
    Error::internal("a pass over a circuit was not run")
}

fn does_not_fit() -> Error {
    Error::internal("recorded templates do not fit together")
}

fn not_alike(difference: String) -> Error {
    Error::Argument { name: "circuit", detail: format!("its blocks are not alike: {difference}") }
}
