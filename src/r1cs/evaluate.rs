//! a = A w and its like from a packed witness, in parallel, with as few multiplications as the values allow.

use blstrs::Scalar;
use ff::Field;
use rayon::prelude::*;

use super::rows::{Dictionary, RawRow, INPUT, MINUS_ONE, ONE, PLUS_ONE};
use super::{Bitmap, Matrix, PartitionWitness, R1cs};
use crate::error::{Error, Result};
use crate::pipeline::{Control, Stage};

/// Rows per piece of parallel work: well below a millisecond, except where rows are long.
const CHUNK: usize = 1 << 12;

/// Patterns up to this length have a table of all sums over bits. They make up 99 % of the rows of A and B
/// in circuits that are mostly bits.
const MAX_TABLE_LEN: usize = 3;

/// Marks a pattern without a table.
const NO_TABLE: u32 = u32::MAX;

/// What evaluation looks up, made once for each system.
#[derive(Debug, Clone)]
pub(super) struct Lookup {
    /// The full-width positions as a bitmap.
    full: Bitmap,
    /// How many full-width positions lie before each word of `full`.
    ranks: Vec<u32>,
    /// For each pattern where its sums begin in `sums`, or `NO_TABLE`.
    tables: Vec<u32>,
    /// For each short pattern all sums: bit `i` of the place in the table is the value at entry `i`.
    sums: Vec<Scalar>,
}

impl Lookup {
    pub(super) fn new(aux: usize, dictionary: &Dictionary, full_positions: &[u32]) -> Self {
        let mut full = Bitmap::zeros(aux);
        for &position in full_positions {
            full.set(position as usize);
        }
        let mut before = 0;
        let ranks = full
            .words()
            .iter()
            .map(|word| {
                let rank = before;
                before += word.count_ones();
                rank
            })
            .collect();
        let mut sums = Vec::new();
        let tables = (0..dictionary.patterns() as u32)
            .map(|pattern| {
                let ids = dictionary.pattern(pattern);
                // The second condition keeps the mark apart from a place, for circuits without repetition.
                if ids.len() > MAX_TABLE_LEN || sums.len() >= NO_TABLE as usize - (1 << MAX_TABLE_LEN) {
                    return NO_TABLE;
                }
                let table = sums.len() as u32;
                sums.extend((0..1usize << ids.len()).map(|values| {
                    let chosen = ids.iter().enumerate().filter(|(entry, _)| values >> entry & 1 == 1);
                    chosen.map(|(_, &id)| dictionary.coefficients()[id as usize]).sum::<Scalar>()
                }));
                table
            })
            .collect();
        Lookup { full, ranks, tables, sums }
    }
}

/// The value of one variable.
enum Value<'a> {
    Bit(bool),
    Full(&'a Scalar),
}

/// A system and a witness that fits it.
struct Evaluator<'a> {
    dictionary: &'a Dictionary,
    lookup: &'a Lookup,
    bits: &'a [u64],
    full: &'a [Scalar],
    inputs: &'a [Scalar],
}

impl<'a> Evaluator<'a> {
    fn new(r1cs: &'a R1cs, witness: &'a PartitionWitness) -> Result<Self> {
        let given = (witness.inputs.len(), witness.bits.len(), witness.full.len());
        let expected = (r1cs.num_inputs(), r1cs.num_aux(), r1cs.full_positions().len());
        if given != expected {
            return Err(Error::internal(format!(
                "a witness of {} inputs, {} bits and {} full-width values; the circuit has {}, {} and {}",
                given.0, given.1, given.2, expected.0, expected.1, expected.2
            )));
        }
        if witness.inputs[0] != Scalar::ONE {
            return Err(Error::Unsatisfied { detail: "input 0 must be the constant 1".into() });
        }
        Ok(Evaluator {
            dictionary: &r1cs.dictionary,
            lookup: &r1cs.lookup,
            bits: witness.bits.words(),
            full: &witness.full,
            inputs: &witness.inputs,
        })
    }

    #[inline(always)]
    fn value(&self, number: u32) -> Value<'a> {
        if number & INPUT == 0 {
            let (word, shift) = ((number / 64) as usize, number % 64);
            let full = self.lookup.full.words()[word];
            if full >> shift & 1 == 0 {
                return Value::Bit(self.bits[word] >> shift & 1 == 1);
            }
            let before = (full & ((1 << shift) - 1)).count_ones();
            Value::Full(&self.full[(self.lookup.ranks[word] + before) as usize])
        } else if number == ONE {
            Value::Bit(true)
        } else {
            Value::Full(&self.inputs[(number & !INPUT) as usize])
        }
    }

    /// One row times the witness.
    #[inline]
    fn row(&self, row: RawRow) -> Scalar {
        let table = self.lookup.tables[row.pattern as usize];
        if table == NO_TABLE {
            return self.sum(row);
        }
        let mut place = 0;
        for (entry, &number) in row.variables.iter().enumerate() {
            match self.value(number) {
                Value::Bit(bit) => place |= usize::from(bit) << entry,
                Value::Full(_) => return self.sum(row),
            }
        }
        self.lookup.sums[table as usize + place]
    }

    /// The same term by term.
    fn sum(&self, row: RawRow) -> Scalar {
        let mut sum = Scalar::ZERO;
        for (&number, &id) in row.variables.iter().zip(self.dictionary.pattern(row.pattern)) {
            match (self.value(number), id) {
                (Value::Bit(false), _) => {}
                (Value::Bit(true), _) => sum += self.dictionary.coefficients()[id as usize],
                (Value::Full(value), PLUS_ONE) => sum += value,
                (Value::Full(value), MINUS_ONE) => sum -= value,
                (Value::Full(value), _) => sum += value * self.dictionary.coefficients()[id as usize],
            }
        }
        sum
    }
}

impl R1cs {
    /// `out = M w` for one of the matrices. `out` has exactly 2^[`log_domain`](R1cs::log_domain) elements; those past the last row become zero.
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
        let evaluator = Evaluator::new(self, witness)?;
        let rows = self.matrix(matrix);
        out.par_chunks_mut(CHUNK).enumerate().try_for_each(|(chunk, out)| {
            control.check(Stage::Evaluate)?;
            let first = (chunk * CHUNK).min(rows.len());
            let (inside, past) = out.split_at_mut((rows.len() - first).min(out.len()));
            for (out, row) in inside.iter_mut().zip(rows.from(first, &self.dictionary)) {
                *out = evaluator.row(row);
            }
            past.fill(Scalar::ZERO);
            Ok(())
        })
    }

    /// The first row that the witness does not satisfy.
    ///
    /// # Errors
    /// As [`R1cs::evaluate`].
    pub fn first_unsatisfied(&self, witness: &PartitionWitness, control: &Control) -> Result<Option<usize>> {
        let evaluator = Evaluator::new(self, witness)?;
        let chunks = self.num_rows().div_ceil(CHUNK);
        let found = (0..chunks)
            .into_par_iter()
            .map(|chunk| {
                control.check("while a witness is checked")?;
                let first = chunk * CHUNK;
                let [a, b, c] = self.matrices.each_ref().map(|rows| rows.from(first, &self.dictionary));
                let mut rows = a.zip(b).zip(c).take(CHUNK);
                let broken = rows.position(|((a, b), c)| {
                    // Most rows are over bits, and most products of those are by zero.
                    let b = evaluator.row(b);
                    let product = if b.is_zero_vartime() { b } else { evaluator.row(a) * b };
                    product != evaluator.row(c)
                });
                Ok(broken.map(|row| first + row))
            })
            .find_first(|found| !matches!(found, Ok(None)));
        found.unwrap_or(Ok(None))
    }
}
