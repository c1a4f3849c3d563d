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
#[derive(Debug, Clone, PartialEq, Eq)]
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
pub(super) struct Evaluator<'a> {
    dictionary: &'a Dictionary,
    lookup: &'a Lookup,
    bits: &'a [u64],
    full: &'a [Scalar],
    inputs: &'a [Scalar],
}

impl<'a> Evaluator<'a> {
    /// `counts` are the system's inputs, auxiliary variables and full-width positions.
    pub(super) fn new(
        counts: (usize, usize, usize),
        dictionary: &'a Dictionary,
        lookup: &'a Lookup,
        witness: &'a PartitionWitness,
    ) -> Result<Self> {
        let given = (witness.inputs.len(), witness.bits.len(), witness.full.len());
        if given != counts {
            return Err(Error::internal(format!(
                "a witness of {} inputs, {} bits and {} full-width values; the circuit has {}, {} and {}",
                given.0, given.1, given.2, counts.0, counts.1, counts.2
            )));
        }
        if witness.inputs[0] != Scalar::ONE {
            return Err(Error::Unsatisfied { detail: "input 0 must be the constant 1".into() });
        }
        let (bits, full, inputs) = (witness.bits.words(), &witness.full, &witness.inputs);
        Ok(Evaluator { dictionary, lookup, bits, full, inputs })
    }

    fn of(r1cs: &'a R1cs, witness: &'a PartitionWitness) -> Result<Self> {
        let counts = (r1cs.num_inputs(), r1cs.num_aux(), r1cs.full_positions().len());
        Self::new(counts, &r1cs.dictionary, &r1cs.lookup, witness)
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

    /// One row times the witness. `place` gives the variable that a number in the row stands for.
    #[inline(always)]
    pub(super) fn row(&self, row: RawRow, place: impl Fn(u32) -> u32) -> Scalar {
        let table = self.lookup.tables[row.pattern as usize];
        if table == NO_TABLE {
            return self.sum(row, place);
        }
        let mut values = 0;
        for (entry, &number) in row.variables.iter().enumerate() {
            match self.value(place(number)) {
                Value::Bit(bit) => values |= usize::from(bit) << entry,
                Value::Full(_) => return self.sum(row, place),
            }
        }
        self.lookup.sums[table as usize + values]
    }

    /// Whether the rows of A, B and C with one index are satisfied.
    #[inline(always)]
    pub(super) fn holds(&self, [a, b, c]: [RawRow; 3], place: impl Fn(u32) -> u32 + Copy) -> bool {
        // Most rows are over bits, and most products of those are by zero.
        let b = self.row(b, place);
        let product = if b.is_zero_vartime() { b } else { self.row(a, place) * b };
        product == self.row(c, place)
    }

    /// The same term by term.
    #[inline(never)]
    fn sum(&self, row: RawRow, place: impl Fn(u32) -> u32) -> Scalar {
        let mut sum = Scalar::ZERO;
        for (&number, &id) in row.variables.iter().zip(self.dictionary.pattern(row.pattern)) {
            match (self.value(place(number)), id) {
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

/// Writes zeros, in parallel.
pub(super) fn fill_with_zeros(out: &mut [Scalar]) {
    out.par_chunks_mut(1 << 16).for_each(|part| part.fill(Scalar::ZERO));
}

/// A recorded system's rows name the variables themselves.
#[inline(always)]
fn own(number: u32) -> u32 {
    number
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
        let (rows, past) = out.split_at_mut(self.num_rows());
        self.evaluate_rows(matrix, witness, rows, control)?;
        fill_with_zeros(past);
        Ok(())
    }

    /// The same for a place of exactly as many elements as there are rows.
    ///
    /// # Errors
    /// As [`R1cs::evaluate`].
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
        let evaluator = Evaluator::of(self, witness)?;
        let rows = self.matrix(matrix);
        out.par_chunks_mut(CHUNK).enumerate().try_for_each(|(chunk, out)| {
            control.check(Stage::Evaluate)?;
            for (out, row) in out.iter_mut().zip(rows.starting_at(chunk * CHUNK, &self.dictionary)) {
                *out = evaluator.row(row, own);
            }
            Ok(())
        })
    }

    /// The first row that the witness does not satisfy.
    ///
    /// # Errors
    /// As [`R1cs::evaluate`].
    pub fn first_unsatisfied(&self, witness: &PartitionWitness, control: &Control) -> Result<Option<usize>> {
        let evaluator = Evaluator::of(self, witness)?;
        let chunks = self.num_rows().div_ceil(CHUNK);
        let found = (0..chunks)
            .into_par_iter()
            .map(|chunk| {
                control.check("the check of a witness")?;
                let first = chunk * CHUNK;
                let [a, b, c] = self.matrices.each_ref().map(|rows| rows.starting_at(first, &self.dictionary));
                let mut rows = a.zip(b).zip(c).take(CHUNK);
                let broken = rows.position(|((a, b), c)| !evaluator.holds([a, b, c], own));
                Ok(broken.map(|row| first + row))
            })
            .find_first(|found| !matches!(found, Ok(None)));
        found.unwrap_or(Ok(None))
    }
}

#[cfg(test)]
mod tests {
    use bellperson::Index;

    use super::*;
    use crate::error::Class;
    use crate::pipeline::CancelToken;
    use crate::r1cs::testing::{Mixed, Reference, Sha};

    const MATRICES: [Matrix; 3] = [Matrix::A, Matrix::B, Matrix::C];

    fn mixed() -> Mixed {
        let numbers = [Scalar::from(5).invert().expect("not zero"), -Scalar::from(77)];
        Mixed::assigned([true, false, true], numbers, [0xdead_beef, 0xffff_fff0])
    }

    /// Row by row, entry by entry, from unpacked values.
    fn slowly(r1cs: &R1cs, matrix: Matrix, inputs: &[Scalar], aux: &[Scalar]) -> Vec<Scalar> {
        let row = |index| {
            let terms = r1cs.row(matrix, index).iter().map(|(variable, coefficient)| match variable.get_unchecked() {
                Index::Input(index) => inputs[index] * coefficient,
                Index::Aux(index) => aux[index] * coefficient,
            });
            terms.sum()
        };
        (0..r1cs.num_rows()).map(row).collect()
    }

    fn unpacked(r1cs: &R1cs, witness: &PartitionWitness) -> Vec<Scalar> {
        let mut aux: Vec<_> =
            (0..r1cs.num_aux()).map(|index| Scalar::from(u64::from(witness.bits.get(index)))).collect();
        for (&position, &value) in r1cs.full_positions().iter().zip(&witness.full) {
            aux[position as usize] = value;
        }
        aux
    }

    fn compare(r1cs: &R1cs, witness: &PartitionWitness) {
        let aux = unpacked(r1cs, witness);
        for matrix in MATRICES {
            let mut out = vec![Scalar::from(9); 1 << r1cs.log_domain()];
            r1cs.evaluate(matrix, witness, &mut out, &Control::new()).expect("evaluation");
            let (inside, past) = out.split_at(r1cs.num_rows());
            assert_eq!(inside, slowly(r1cs, matrix, &witness.inputs, &aux), "{matrix:?}");
            assert!(past.iter().all(|value| *value == Scalar::ZERO));
        }
    }

    #[test]
    fn evaluation_is_that_of_the_rows_and_of_bellperson() {
        let control = Control::new();
        let r1cs = R1cs::record(Mixed::default(), &control).expect("recording");
        for bits in 0..8 {
            let mut circuit = mixed();
            circuit.bits = Some([0, 1, 2].map(|index| bits >> index & 1 == 1));
            let reference = Reference::of(circuit.clone());
            let witness = r1cs.assign(circuit, &control).expect("assignment");
            compare(&r1cs, &witness);
            assert_eq!(witness.inputs, reference.inputs);
            assert_eq!(unpacked(&r1cs, &witness), reference.aux);
            for (matrix, expected) in MATRICES.into_iter().zip(reference.evaluations) {
                let mut out = vec![Scalar::ZERO; 1 << r1cs.log_domain()];
                r1cs.evaluate(matrix, &witness, &mut out, &control).expect("evaluation");
                assert_eq!(out[..r1cs.num_rows()], expected, "{matrix:?}");
            }
            assert_eq!(r1cs.first_unsatisfied(&witness, &control).expect("check"), None);
        }
    }

    #[test]
    fn evaluation_of_many_chunks_is_that_of_the_rows_for_any_witness() {
        let control = Control::new();
        let r1cs = R1cs::record(Sha::default(), &control).expect("recording");
        assert!(r1cs.num_rows() > 3 * CHUNK && !r1cs.num_rows().is_multiple_of(CHUNK));
        let mut witness = r1cs.assign(Sha { preimage: Some([0x5a; 64]) }, &control).expect("assignment");
        compare(&r1cs, &witness);
        // Evaluation does not need a satisfied witness.
        for index in 0..r1cs.num_aux() {
            if (index * index) % 7 < 3 {
                witness.bits.set(index);
            } else {
                witness.bits.clear(index);
            }
        }
        compare(&r1cs, &witness);
    }

    #[test]
    fn the_first_unsatisfied_row_is_the_first_in_order() {
        let control = Control::new();
        let r1cs = R1cs::record(Sha::default(), &control).expect("recording");
        let witness = r1cs.assign(Sha { preimage: Some([1; 64]) }, &control).expect("assignment");
        for index in [0, 511, 600, 9_000, 20_000, r1cs.num_aux() - 1] {
            let mut wrong = witness.clone();
            if wrong.bits.get(index) {
                wrong.bits.clear(index);
            } else {
                wrong.bits.set(index);
            }
            let aux = unpacked(&r1cs, &wrong);
            let [a, b, c] = MATRICES.map(|matrix| slowly(&r1cs, matrix, &wrong.inputs, &aux));
            let expected = (0..r1cs.num_rows()).find(|&row| a[row] * b[row] != c[row]);
            assert!(expected.is_some());
            assert_eq!(r1cs.first_unsatisfied(&wrong, &control).expect("check"), expected);
        }
    }

    #[test]
    fn wrong_sizes_are_refused_and_a_cancel_stops() {
        let control = Control::new();
        let r1cs = R1cs::record(Mixed::default(), &control).expect("recording");
        let witness = r1cs.assign(mixed(), &control).expect("assignment");
        let mut out = vec![Scalar::ZERO; 1 << r1cs.log_domain()];
        let mut class = |witness: &PartitionWitness, places: usize, control: &Control| {
            r1cs.evaluate(Matrix::A, witness, &mut out[..places], control).expect_err("must fail").class()
        };
        let domain = 1 << r1cs.log_domain();
        assert_eq!(class(&witness, domain - 1, &control), Class::Internal);
        let mut short = witness.clone();
        short.full.pop();
        assert_eq!(class(&short, domain, &control), Class::Internal);
        let mut without_one = witness.clone();
        without_one.inputs[0] = Scalar::ZERO;
        assert_eq!(class(&without_one, domain, &control), Class::Input);
        let token = CancelToken::new();
        token.cancel();
        let cancelled = Control::new().with_cancel(token);
        assert_eq!(class(&witness, domain, &cancelled), Class::Cancelled);
        assert_eq!(r1cs.first_unsatisfied(&witness, &cancelled).expect_err("must fail").class(), Class::Cancelled);
    }
}
