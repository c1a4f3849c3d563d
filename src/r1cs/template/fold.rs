//! Finds gadgets that occur several times in recorded rows and makes blocks of them. Knows no circuits.

use std::hash::Hasher;
use std::ops::Range;

use super::block::{Block, Call};
use super::spans::Span;
use crate::error::{Error, Result};
use crate::pipeline::Control;
use crate::r1cs::rows::{Dictionary, FastMap, Mix, Rows, INPUT, ONE};

const DURING: &str = "the search for repeated rows of a circuit";

/// A block has at least so many rows for each slot. What slots stand for is kept for each occurrence, and a variable
/// behind a slot costs a look-up more: parts of a hash that hang together by most of their variables are no blocks.
const ROWS_PER_SLOT: usize = 8;

/// Marks a gadget that has no block of its own.
const SINGLE: u32 = u32::MAX;

/// Recorded rows.
#[derive(Clone, Copy)]
pub(super) struct Recorded<'a> {
    pub inputs: usize,
    pub aux: usize,
    pub dictionary: &'a Dictionary,
    pub matrices: &'a [Rows; 3],
}

/// Blocks, the last of which is the folded stretch of rows.
pub(super) struct Folded {
    pub blocks: Vec<Block>,
    /// The recorded variables that the last block's slots after the first stand for.
    pub slots: Vec<u32>,
}

/// Folds the rows of `whole` with the gadgets inside of it.
pub(super) fn fold(
    recorded: Recorded<'_>,
    rows: Range<usize>,
    aux: Range<usize>,
    spans: &[Span],
    control: &Control,
) -> Result<Folded> {
    let mut renamer = Renamer { recorded, slot_of: vec![0; recorded.aux + recorded.inputs], slots: Vec::new() };
    let classes = classes(&mut renamer, spans, control)?;
    let ends = subtree_ends(spans);
    let mut folder =
        Folder { renamer, spans, ends, classes, blocks: Vec::new(), block_of: FastMap::default(), control };
    let slots = folder.block(&rows, &aux, 0..spans.len())?;
    Ok(Folded { blocks: folder.blocks, slots })
}

/// For each gadget the index of the first one behind it that is not inside of it.
fn subtree_ends(spans: &[Span]) -> Vec<usize> {
    let mut ends = vec![spans.len(); spans.len()];
    let mut open: Vec<usize> = Vec::new();
    for (index, span) in spans.iter().enumerate() {
        while let Some(&outer) = open.last().filter(|&&outer| spans[outer].rows.end <= span.rows.start) {
            ends[outer] = index;
            open.pop();
        }
        open.push(index);
    }
    ends
}

/// Numbers the gadgets so that those with the same rows up to the names of variables have the same number. The rows
/// are compared by a hash; whoever uses the result compares what it expands to with the rows.
fn classes(renamer: &mut Renamer<'_>, spans: &[Span], control: &Control) -> Result<Vec<u32>> {
    // Only gadgets of the same size need a hash.
    let size = |span: &Span| {
        let place = |row| renamer.recorded.matrices.each_ref().map(|rows| rows.place(row, renamer.recorded.dictionary));
        let (begin, end) = (place(span.rows.start), place(span.rows.end));
        (span.rows.len(), span.aux.len(), [0, 1, 2].map(|matrix| end[matrix] - begin[matrix]))
    };
    let sizes: Vec<_> = spans.iter().map(size).collect();
    let mut by_size: FastMap<_, u32> = FastMap::default();
    sizes.iter().for_each(|size| *by_size.entry(*size).or_default() += 1);
    let mut members: FastMap<_, Vec<usize>> = FastMap::default();
    for (index, span) in spans.iter().enumerate() {
        control.check(DURING)?;
        if by_size[&sizes[index]] > 1 {
            let (hash, slots) = renamer.hash(span);
            if slots * ROWS_PER_SLOT <= span.rows.len() {
                members.entry((sizes[index], hash)).or_default().push(index);
            }
        }
    }
    let mut classes = vec![SINGLE; spans.len()];
    for members in members.into_values().filter(|members| members.len() > 1) {
        members.iter().for_each(|&member| classes[member] = members[0] as u32);
    }
    Ok(classes)
}

/// Renames variables to what a block calls them.
struct Renamer<'a> {
    recorded: Recorded<'a>,
    /// The slot of each auxiliary variable, then of each input; 0 for none.
    slot_of: Vec<u32>,
    /// What the slots after the first stand for, in the order in which they occur.
    slots: Vec<u32>,
}

impl Renamer<'_> {
    #[inline]
    fn rename(&mut self, number: u32, aux: &Range<usize>) -> u32 {
        if number == ONE || number & INPUT == 0 && aux.contains(&(number as usize)) {
            return if number == ONE { ONE } else { number - aux.start as u32 };
        }
        let index = self.index(number);
        if self.slot_of[index] == 0 {
            self.slots.push(number);
            self.slot_of[index] = self.slots.len() as u32;
        }
        INPUT | self.slot_of[index]
    }

    fn index(&self, number: u32) -> usize {
        if number & INPUT == 0 {
            number as usize
        } else {
            self.recorded.aux + (number & !INPUT) as usize
        }
    }

    /// Renames all variables of a stretch of rows and tells of each row's pattern and new numbers.
    fn rows(&mut self, rows: &Range<usize>, aux: &Range<usize>, mut each: impl FnMut(u32)) {
        let Recorded { dictionary, matrices, .. } = self.recorded;
        let [a, b, c] = matrices.each_ref().map(|matrix| matrix.starting_at(rows.start, dictionary).take(rows.len()));
        for ((a, b), c) in a.zip(b).zip(c) {
            for part in [a, b, c] {
                each(part.pattern);
                part.variables.iter().for_each(|&number| each(self.rename(number, aux)));
            }
        }
    }

    /// Ends the renaming and gives what the slots after the first stand for.
    fn finish(&mut self) -> Vec<u32> {
        let slots = std::mem::take(&mut self.slots);
        for &number in &slots {
            let index = self.index(number);
            self.slot_of[index] = 0;
        }
        slots
    }

    /// A hash of a gadget's renamed rows, and how many slots they need.
    fn hash(&mut self, span: &Span) -> (u64, usize) {
        let mut hash = Mix::default();
        self.rows(&span.rows, &span.aux, |word| hash.write_u32(word));
        (hash.finish(), self.finish().len())
    }
}

struct Folder<'a> {
    renamer: Renamer<'a>,
    spans: &'a [Span],
    ends: Vec<usize>,
    classes: Vec<u32>,
    blocks: Vec<Block>,
    /// The block of each class.
    block_of: FastMap<u32, u32>,
    control: &'a Control,
}

impl Folder<'_> {
    /// Makes a block of some rows, whose gadgets are those of `inside`, and gives what its slots after the first stand for.
    fn block(&mut self, rows: &Range<usize>, aux: &Range<usize>, inside: Range<usize>) -> Result<Vec<u32>> {
        self.control.check(DURING)?;
        let spans = self.spans;
        let mut called = Vec::new();
        let mut next = inside.start;
        while next < inside.end {
            let class = self.classes[next];
            if class == SINGLE {
                next += 1;
                continue;
            }
            if !self.block_of.contains_key(&class) {
                let first = &spans[class as usize];
                self.block(&first.rows, &first.aux, class as usize + 1..self.ends[class as usize])?;
                self.block_of.insert(class, self.blocks.len() as u32 - 1);
            }
            let span = &spans[next];
            self.renamer.rows(&span.rows, &span.aux, |_| ());
            called.push((self.block_of[&class], span, self.renamer.finish()));
            next = self.ends[next];
        }

        self.renamer.rows(rows, aux, |_| ());
        let own: Vec<Range<usize>> = {
            let starts = std::iter::once(rows.start).chain(called.iter().map(|(_, span, _)| span.rows.end));
            let ends = called.iter().map(|(_, span, _)| span.rows.start).chain(std::iter::once(rows.end));
            starts.zip(ends).map(|(start, end)| start..end).collect()
        };
        let mut done = 0;
        let (mut calls, mut arguments) = (Vec::with_capacity(called.len()), Vec::new());
        for ((block, span, slots), before) in called.into_iter().zip(&own) {
            done += before.len();
            calls.push(Call { block, after: done as u32, base: (span.aux.start - aux.start) as u32 });
            arguments.extend(slots.into_iter().map(|number| self.renamer.rename(number, aux)));
        }
        let own = [0, 1, 2].map(|matrix| self.own_rows(matrix, &own, aux));
        let slots = self.renamer.finish();
        let [Some(a), Some(b), Some(c)] = own.map(|(variables, patterns)| {
            Rows::from_parts(variables, patterns, self.renamer.recorded.dictionary, slots.len() + 1, aux.len())
        }) else {
            return Err(Error::internal("the rows of a repeated gadget do not fit together"));
        };
        let block =
            Block { inputs: slots.len() + 1, aux: aux.len(), rows: [a, b, c], calls, arguments, full: Vec::new() };
        self.blocks.push(block);
        Ok(slots)
    }

    /// Variables and patterns of some stretches of rows, renamed.
    fn own_rows(&mut self, matrix: usize, stretches: &[Range<usize>], aux: &Range<usize>) -> (Vec<u32>, Vec<u32>) {
        let Recorded { dictionary, matrices, .. } = self.renamer.recorded;
        let (mut variables, mut patterns) = (Vec::new(), Vec::new());
        for stretch in stretches {
            for row in matrices[matrix].starting_at(stretch.start, dictionary).take(stretch.len()) {
                patterns.push(row.pattern);
                variables.extend(row.variables.iter().map(|&number| self.renamer.rename(number, aux)));
            }
        }
        (variables, patterns)
    }
}
