//! Blocks: rows that occur several times, each time over other variables. Knows how blocks call each other, not where
//! they come from.
//!
//! A block is written like a constraint system of its own. Its auxiliary variables are those that lie inside each
//! occurrence, counted from where the occurrence begins; its inputs are slots for variables outside of it, slot 0
//! always for ONE. A call says where the auxiliary variables begin among the caller's, and which variables of the
//! caller are meant by the slots. The last block is the whole system, whose slots are the inputs.

use crate::r1cs::layout::Run;
use crate::r1cs::rows::{Dictionary, Rows, INPUT, ONE};

/// Rows per piece of parallel work: well below a millisecond, except where rows are long.
const PIECE: usize = 1 << 12;

/// Limits of what blocks may expand to. The largest circuits have a 50th of each.
const MAX_PIECES: u64 = 1 << 22;
const MAX_SLOTS: u64 = 1 << 27;
const MAX_DEPTH: u64 = 32;

/// One occurrence of a block inside another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Call {
    /// Which block; one before the caller.
    pub block: u32,
    /// How many of the caller's own rows come before.
    pub after: u32,
    /// The caller's auxiliary variable that is the block's first.
    pub base: u32,
}

/// Rows, some of them by calls of other blocks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Block {
    /// Slots, the one for ONE included.
    pub inputs: usize,
    /// Auxiliary variables, those of called blocks included.
    pub aux: usize,
    /// The block's own rows of A, B and C.
    pub rows: [Rows; 3],
    /// In the order of the rows.
    pub calls: Vec<Call>,
    /// For each call in turn what its slots after the first stand for, as numbers of the caller's variables.
    pub arguments: Vec<u32>,
    /// Full-width auxiliary variables, ascending; those of called blocks are either all listed there or all here.
    pub full: Vec<u32>,
}

impl Block {
    /// How many rows are the block's own.
    pub fn own_rows(&self) -> usize {
        self.rows[0].len()
    }

    /// Whether the block can stand behind `before`: everything that the expansion relies on.
    fn fits(&self, before: &[Block]) -> bool {
        let in_range = |&number: &u32| {
            let limit = if number & INPUT == 0 { self.aux } else { self.inputs };
            ((number & !INPUT) as usize) < limit
        };
        let callee = |call: &Call| before.get(call.block as usize);
        let slots: Option<usize> = self.calls.iter().map(|call| callee(call).map(|block| block.inputs - 1)).sum();
        self.inputs >= 1
            && self.aux < INPUT as usize
            && self.inputs < INPUT as usize
            && self.rows.iter().all(|rows| rows.len() == self.own_rows())
            && slots == Some(self.arguments.len())
            && self.arguments.iter().all(in_range)
            && self.calls.windows(2).all(|pair| pair[0].after <= pair[1].after)
            && self.calls.iter().all(|call| {
                let end = callee(call).map(|block| call.base as usize + block.aux);
                call.after as usize <= self.own_rows() && end.is_some_and(|end| end <= self.aux)
            })
            && self.full.windows(2).all(|pair| pair[0] < pair[1])
            && self.full.last().is_none_or(|&last| (last as usize) < self.aux)
    }
}

/// One occurrence of a block in the whole system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Instance {
    /// Which block.
    pub block: u32,
    /// The system's auxiliary variable that is the block's first.
    pub base: u32,
    /// Where its slots begin in [`Expansion::slots`].
    slots: u32,
}

/// Some rows of one instance that its block has itself, in the system's order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Piece {
    /// Which instance.
    pub instance: u32,
    /// The first row, among the block's own.
    pub first: u32,
    /// How many rows.
    pub len: u32,
    /// The first row's place in the system.
    pub row: u32,
}

/// Where the rows of all blocks go.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Expansion {
    pub instances: Vec<Instance>,
    /// The system's variables that slots stand for.
    slots: Vec<u32>,
    pub pieces: Vec<Piece>,
    pub rows: usize,
    /// Entries of A, B and C.
    pub entries: [u64; 3],
    /// Full-width positions, in no order.
    pub full: Vec<u32>,
}

/// What a block expands to.
#[derive(Clone, Copy, Default)]
struct Extent {
    rows: u64,
    entries: [u64; 3],
    pieces: u64,
    slots: u64,
    full: u64,
    /// How deep calls are nested.
    depth: u64,
}

impl Extent {
    /// `None` if it is out of all proportion.
    fn plus(self, other: Extent) -> Option<Extent> {
        let sum = Extent {
            rows: self.rows + other.rows,
            entries: [0, 1, 2].map(|matrix| self.entries[matrix] + other.entries[matrix]),
            pieces: self.pieces + other.pieces,
            slots: self.slots + other.slots,
            full: self.full + other.full,
            depth: self.depth.max(other.depth + 1),
        };
        let fits = sum.rows <= u64::from(u32::MAX)
            && sum.entries.iter().all(|&entries| entries < 1 << 40)
            && sum.pieces <= MAX_PIECES
            && sum.slots <= MAX_SLOTS
            && sum.full <= u64::from(INPUT)
            && sum.depth <= MAX_DEPTH;
        fits.then_some(sum)
    }
}

impl Expansion {
    /// Expands the last block; `None` if the blocks do not hang together or expand to too much.
    pub fn of(blocks: &[Block]) -> Option<Self> {
        let mut extents: Vec<Extent> = Vec::with_capacity(blocks.len());
        let mut called = vec![false; blocks.len()];
        for (index, block) in blocks.iter().enumerate() {
            if !block.fits(&blocks[..index]) {
                return None;
            }
            let own = Extent {
                rows: block.own_rows() as u64,
                entries: block.rows.each_ref().map(|rows| rows.entries() as u64),
                pieces: 1 + (block.own_rows() / PIECE + block.calls.len()) as u64,
                slots: block.inputs as u64,
                full: block.full.len() as u64,
                depth: 0,
            };
            let mut extent = Extent::default().plus(own)?;
            for call in &block.calls {
                called[call.block as usize] = true;
                extent = extent.plus(extents[call.block as usize])?;
            }
            extents.push(extent);
        }
        let (root, extent) = (blocks.last()?, extents.last()?);
        // Every block has its place in the system, and every input its row.
        if called.iter().filter(|&&called| !called).count() != 1 || extent.rows < root.inputs as u64 {
            return None;
        }
        let mut expansion = Expansion { entries: extent.entries, ..Expansion::default() };
        expansion.slots.extend((0..root.inputs as u32).map(|input| INPUT | input));
        expansion.add(blocks, Instance { block: blocks.len() as u32 - 1, base: 0, slots: 0 });
        (expansion.rows as u64 == extent.rows).then_some(expansion)
    }

    fn add(&mut self, blocks: &[Block], instance: Instance) {
        let (block, number) = (&blocks[instance.block as usize], self.instances.len() as u32);
        self.instances.push(instance);
        self.full.extend(block.full.iter().map(|position| instance.base + position));
        let (mut done, mut arguments) = (0, block.arguments.as_slice());
        for call in &block.calls {
            self.add_rows(number, &mut done, call.after);
            let slots = self.slots.len();
            let (own, rest) = arguments.split_at(blocks[call.block as usize].inputs - 1);
            arguments = rest;
            self.slots.push(ONE);
            for &argument in own {
                self.slots.push(self.places(&instance)(argument));
            }
            self.add(blocks, Instance { block: call.block, base: instance.base + call.base, slots: slots as u32 });
        }
        self.add_rows(number, &mut done, block.own_rows() as u32);
    }

    fn add_rows(&mut self, instance: u32, done: &mut u32, end: u32) {
        while *done < end {
            let len = (end - *done).min(PIECE as u32);
            self.pieces.push(Piece { instance, first: *done, len, row: self.rows as u32 });
            self.rows += len as usize;
            *done += len;
        }
    }

    /// The system's variables that slots stand for.
    pub fn slots(&self) -> &[u32] {
        &self.slots
    }

    /// All pieces with the variables of their instances, in the system's order.
    pub fn runs(&self) -> Vec<Run> {
        let run = |piece: &Piece| {
            let Instance { block, base, slots } = self.instances[piece.instance as usize];
            Run { block, first: piece.first, len: piece.len, row: piece.row, base, slots }
        };
        self.pieces.iter().map(run).collect()
    }

    /// Gives the system's variable that a number in the instance's block stands for.
    #[inline(always)]
    pub fn places<'a>(&'a self, instance: &Instance) -> impl Fn(u32) -> u32 + Copy + 'a {
        let (base, slots) = (instance.base, &self.slots[instance.slots as usize..]);
        move |number| if number & INPUT == 0 { base + number } else { slots[(number & !INPUT) as usize] }
    }
}

/// The rows of a piece in one of the matrices.
pub(super) fn rows<'a>(
    piece: &Piece,
    rows: &'a Rows,
    dictionary: &'a Dictionary,
) -> impl Iterator<Item = crate::r1cs::rows::RawRow<'a>> {
    rows.starting_at(piece.first as usize, dictionary).take(piece.len as usize)
}
