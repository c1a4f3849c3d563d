//! The bytes of stored templates. Knows no directories.
//!
//! ```text
//! magic (8)   version u32   length of the key u32   key
//! counts u32: coefficients, patterns, pattern entries, blocks
//! coefficients (32 bytes each, canonical)   pattern starts u32   pattern entries u32
//! for each block: counts u32: slots, auxiliary variables, own rows, entries of A, B and C, calls, arguments, full-width positions
//!     for A, B and C: pattern of each row u32, variables u32
//!     calls (block, own rows before, base: u32 each)   arguments u32   full-width positions u32
//! SHA-256 of everything before it (32)
//! ```

use std::io::{self, Read, Write};

use blstrs::Scalar;

use super::block::{Block, Call};
use super::Templates;
use crate::error::Result;
use crate::r1cs::checked_file::{Sink, Source, Stored, Unusable};
use crate::r1cs::rows::{Dictionary, Rows};

/// What a file has.
pub(in crate::r1cs) struct Parts {
    coefficients: Vec<Option<Scalar>>,
    starts: Vec<u32>,
    ids: Vec<u32>,
    blocks: Vec<RawBlock>,
}

/// A block as read.
struct RawBlock {
    inputs: usize,
    aux: usize,
    /// Patterns and variables.
    rows: [(Vec<u32>, Vec<u32>); 3],
    calls: Vec<u32>,
    arguments: Vec<u32>,
    full: Vec<u32>,
}

impl Stored for Templates {
    type Parts = Parts;

    const MAGIC: [u8; 8] = *b"CUPOTMPL";
    /// Recording and full-width positions are part of what the bytes mean.
    const VERSION: u32 = 1;
    const EXTENSION: &'static str = "templates";

    fn write_to<W: Write>(&self, key: &str, sink: &mut Sink<'_, W>) -> io::Result<()> {
        let dictionary = &self.dictionary;
        let counts =
            [dictionary.coefficients().len(), dictionary.patterns(), dictionary.ids().len(), self.blocks.len()];
        sink.bytes(key.as_bytes())?;
        sink.numbers(&counts.map(|count| count as u32))?;
        sink.scalars(dictionary.coefficients())?;
        sink.numbers(dictionary.starts())?;
        sink.numbers(dictionary.ids())?;
        for block in &self.blocks {
            let [a, b, c] = block.rows.each_ref().map(Rows::entries);
            let (calls, arguments, full) = (block.calls.len(), block.arguments.len(), block.full.len());
            let counts = [block.inputs, block.aux, block.own_rows(), a, b, c, calls, arguments, full];
            sink.numbers(&counts.map(|count| count as u32))?;
            for rows in &block.rows {
                sink.numbers(rows.patterns())?;
                sink.numbers(rows.variables())?;
            }
            for call in &block.calls {
                sink.numbers(&[call.block, call.after, call.base])?;
            }
            sink.numbers(&block.arguments)?;
            sink.numbers(&block.full)?;
        }
        Ok(())
    }

    fn read_from<R: Read>(key: &str, source: &mut Source<'_, R>) -> Result<Parts, Unusable> {
        source.key(key)?;
        let counts = source.numbers(4)?;
        let coefficients = source.scalars(counts[0] as usize)?;
        let starts = source.numbers(counts[1] as usize + 1)?;
        let ids = source.numbers(counts[2] as usize)?;
        // Each block has counts of its own, so that a file of so many bytes cannot have more.
        let blocks = (0..counts[3]).map(|_| RawBlock::read_from(source)).collect::<Result<Vec<_>, _>>()?;
        Ok(Parts { coefficients, starts, ids, blocks })
    }

    fn assemble(parts: Parts) -> Option<Self> {
        let Parts { coefficients, starts, ids, blocks } = parts;
        let coefficients = coefficients.into_iter().collect::<Option<Vec<_>>>()?;
        let dictionary = Dictionary::from_parts(coefficients, starts, ids)?;
        let blocks = blocks.into_iter().map(|block| block.assemble(&dictionary)).collect::<Option<Vec<_>>>()?;
        Templates::from_parts(dictionary, blocks)
    }
}

impl RawBlock {
    fn read_from<R: Read>(source: &mut Source<'_, R>) -> Result<Self, Unusable> {
        let counts: Vec<usize> = source.numbers(9)?.into_iter().map(|count| count as usize).collect();
        let mut rows = |entries: usize| Ok((source.numbers(counts[2])?, source.numbers(entries)?));
        Ok(RawBlock {
            inputs: counts[0],
            aux: counts[1],
            rows: [rows(counts[3])?, rows(counts[4])?, rows(counts[5])?],
            calls: source.numbers(3 * counts[6])?,
            arguments: source.numbers(counts[7])?,
            full: source.numbers(counts[8])?,
        })
    }

    /// Checks every number of the rows; those of calls are checked when all blocks are there.
    fn assemble(self, dictionary: &Dictionary) -> Option<Block> {
        let RawBlock { inputs, aux, rows, calls, arguments, full } = self;
        let [a, b, c] =
            rows.map(|(patterns, variables)| Rows::from_parts(variables, patterns, dictionary, inputs, aux));
        let calls = calls.chunks_exact(3).map(|call| Call { block: call[0], after: call[1], base: call[2] }).collect();
        Some(Block { inputs, aux, rows: [a?, b?, c?], calls, arguments, full })
    }
}
