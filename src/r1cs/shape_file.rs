//! The bytes of a stored constraint system. Knows no directories.
//!
//! All numbers are little-endian:
//!
//! ```text
//! magic (8)   version u32   length of the key u32   ten counts u64   key
//! coefficients (32 bytes each, canonical)   pattern starts u32   pattern entries u32
//! for A, B and C: pattern of each row u32, variables u32
//! full-width positions u32   densities: a_aux, b_input, b_aux, words of 64 bits
//! SHA-256 of everything before it (32)
//! ```
//!
//! A file that was cut, altered or made for something else is never taken for a good one: the length must be
//! exactly what the counts say before anything is allocated, the digest must fit, and after that
//! every number must still be in range, so that no file whatever can make later code read out of bounds.

use std::io::{self, Read, Write};

use blstrs::Scalar;

use super::checked_file::{damaged, Sink, Source, Stored, Unusable, DIGEST};
use super::rows::{Dictionary, Rows};
use super::system::Densities;
use super::{Bitmap, R1cs};
use crate::error::Result;

const COUNTS: usize = 10;
const HEADER: usize = 8 + 4 + 4 + 8 * COUNTS;

/// The lengths of all parts.
struct Counts {
    inputs: usize,
    aux: usize,
    rows: usize,
    coefficients: usize,
    patterns: usize,
    pattern_entries: usize,
    entries: [usize; 3],
    full_positions: usize,
}

impl Counts {
    fn of(r1cs: &R1cs) -> Self {
        Counts {
            inputs: r1cs.inputs,
            aux: r1cs.aux,
            rows: r1cs.num_rows(),
            coefficients: r1cs.dictionary.coefficients().len(),
            patterns: r1cs.dictionary.patterns(),
            pattern_entries: r1cs.dictionary.ids().len(),
            entries: r1cs.matrices.each_ref().map(Rows::entries),
            full_positions: r1cs.full_positions.len(),
        }
    }

    fn to_array(&self) -> [u64; COUNTS] {
        [
            self.inputs,
            self.aux,
            self.rows,
            self.coefficients,
            self.patterns,
            self.pattern_entries,
            self.entries[0],
            self.entries[1],
            self.entries[2],
            self.full_positions,
        ]
        .map(|count| count as u64)
    }

    fn from_array(counts: [u64; COUNTS]) -> Option<Self> {
        let mut sizes = [0; COUNTS];
        for (size, count) in sizes.iter_mut().zip(counts) {
            *size = usize::try_from(count).ok()?;
        }
        let [inputs, aux, rows, coefficients, patterns, pattern_entries, a, b, c, full_positions] = sizes;
        Some(Counts { inputs, aux, rows, coefficients, patterns, pattern_entries, entries: [a, b, c], full_positions })
    }

    /// The length of the whole file.
    fn file_len(&self, key: &str) -> u128 {
        // Each count is below 2^64, so the sum is far below 2^128.
        let words = |bits: usize| bits.div_ceil(64) as u128 * 8;
        let numbers = self.patterns as u128
            + 1
            + self.pattern_entries as u128
            + 3 * self.rows as u128
            + self.entries.iter().map(|&entries| entries as u128).sum::<u128>()
            + self.full_positions as u128;
        (HEADER + key.len() + DIGEST) as u128
            + 32 * self.coefficients as u128
            + 4 * numbers
            + 2 * words(self.aux)
            + words(self.inputs)
    }
}

/// What a file has.
pub(super) struct Parts {
    counts: Counts,
    coefficients: Vec<Option<Scalar>>,
    starts: Vec<u32>,
    ids: Vec<u32>,
    /// Patterns and variables.
    matrices: Vec<(Vec<u32>, Vec<u32>)>,
    full_positions: Vec<u32>,
    densities: (Option<Bitmap>, Option<Bitmap>, Option<Bitmap>),
}

impl Stored for R1cs {
    type Parts = Parts;

    const MAGIC: [u8; 8] = *b"CUPOR1CS";
    /// Recording and full-width positions are part of what the bytes mean.
    const VERSION: u32 = 1;
    const EXTENSION: &'static str = "shape";

    fn write_to<W: Write>(&self, key: &str, sink: &mut Sink<'_, W>) -> io::Result<()> {
        for count in Counts::of(self).to_array() {
            sink.bytes(&count.to_le_bytes())?;
        }
        sink.bytes(key.as_bytes())?;
        sink.scalars(self.dictionary.coefficients())?;
        sink.numbers(self.dictionary.starts())?;
        sink.numbers(self.dictionary.ids())?;
        for rows in &self.matrices {
            sink.numbers(rows.patterns())?;
            sink.numbers(rows.variables())?;
        }
        sink.numbers(&self.full_positions)?;
        [&self.densities.a_aux, &self.densities.b_input, &self.densities.b_aux]
            .into_iter()
            .try_for_each(|bitmap| sink.bitmap(bitmap))
    }

    fn read_from<R: Read>(key: &str, source: &mut Source<'_, R>) -> Result<Parts, Unusable> {
        // The whole file as the counts have it, before anything is allocated.
        let len = source.rest() as u128 + (16 + DIGEST) as u128;
        let mut counts = [0; COUNTS];
        for count in &mut counts {
            *count = u64::from_le_bytes(source.array()?);
        }
        let Some(counts) = Counts::from_array(counts).filter(|counts| counts.file_len(key) == len) else {
            return damaged(format!("its {len} bytes are not what its header says"));
        };
        source.key(key)?;
        let coefficients = source.scalars(counts.coefficients)?;
        let starts = source.numbers(counts.patterns + 1)?;
        let ids = source.numbers(counts.pattern_entries)?;
        let mut matrices = Vec::with_capacity(3);
        for entries in counts.entries {
            let patterns = source.numbers(counts.rows)?;
            matrices.push((patterns, source.numbers(entries)?));
        }
        let full_positions = source.numbers(counts.full_positions)?;
        let densities = (source.bitmap(counts.aux)?, source.bitmap(counts.inputs)?, source.bitmap(counts.aux)?);
        Ok(Parts { counts, coefficients, starts, ids, matrices, full_positions, densities })
    }

    fn assemble(parts: Parts) -> Option<Self> {
        let Parts { counts, coefficients, starts, ids, matrices, full_positions, densities } = parts;
        let coefficients = coefficients.into_iter().collect::<Option<Vec<_>>>()?;
        let dictionary = Dictionary::from_parts(coefficients, starts, ids)?;
        let matrices = matrices
            .into_iter()
            .map(|(patterns, variables)| Rows::from_parts(variables, patterns, &dictionary, counts.inputs, counts.aux))
            .collect::<Option<Vec<_>>>()?;
        let densities = Densities { a_aux: densities.0?, b_input: densities.1?, b_aux: densities.2? };
        R1cs::from_parts(counts.inputs, counts.aux, dictionary, matrices.try_into().ok()?, densities, full_positions)
    }
}
