//! Storage of one sparse matrix: rows of variable numbers, each with a pattern of coefficients from a
//! dictionary that the three matrices share. Knows nothing of circuits, witnesses or files.
//!
//! A variable is a `u32`: auxiliary variable `i` is `i`, so that it is also its position in a witness
//! bitmap, and input `i` is `i | INPUT`. No renumbering is needed when inputs and auxiliary variables are
//! allocated in turns.
//!
//! Coefficients are not stored per entry. Nearly all rows have one of few coefficient sequences (most
//! are a single 1), so a row keeps the number of its sequence (its pattern, a `u32`), and a pattern lists
//! coefficient numbers (`u32`, since a general circuit may have more than 65,536 distinct coefficients, and
//! each pattern is stored only once). An entry so costs four bytes and a row four more.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use bellperson::{Index, Variable};
use blstrs::Scalar;
use ff::Field;

use crate::error::{Error, Result};

/// Marks the number of an input.
pub(super) const INPUT: u32 = 1 << 31;

/// The number of the constant ONE, input 0.
pub(super) const ONE: u32 = INPUT;

/// The coefficient number of 1.
pub(super) const PLUS_ONE: u32 = 0;

/// The coefficient number of -1.
pub(super) const MINUS_ONE: u32 = 1;

/// The place of a row's entries is kept for every 16th row; the others follow from pattern lengths.
const STRIDE: usize = 16;

/// Bellperson's form of a variable number.
pub(super) fn variable(number: u32) -> Variable {
    if number & INPUT == 0 {
        Variable::new_unchecked(Index::Aux(number as usize))
    } else {
        Variable::new_unchecked(Index::Input((number & !INPUT) as usize))
    }
}

/// Distinct coefficients, and distinct sequences of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Dictionary {
    coefficients: Vec<Scalar>,
    /// Where each pattern begins in `ids`; one more at the end.
    starts: Vec<u32>,
    ids: Vec<u32>,
}

impl Dictionary {
    /// Only the coefficients 1 and -1, and no pattern.
    fn new() -> Self {
        Dictionary { coefficients: vec![Scalar::ONE, -Scalar::ONE], starts: vec![0], ids: Vec::new() }
    }

    /// From its parts; `None` unless every number is in range and the first two coefficients are 1 and -1.
    pub(super) fn from_parts(coefficients: Vec<Scalar>, starts: Vec<u32>, ids: Vec<u32>) -> Option<Self> {
        let well_formed = coefficients.len() >= 2
            && coefficients[PLUS_ONE as usize] == Scalar::ONE
            && coefficients[MINUS_ONE as usize] == -Scalar::ONE
            && starts.first() == Some(&0)
            && starts.windows(2).all(|pair| pair[0] <= pair[1])
            && starts.last().map(|&end| end as usize) == Some(ids.len())
            && ids.iter().all(|&id| (id as usize) < coefficients.len());
        well_formed.then_some(Dictionary { coefficients, starts, ids })
    }

    pub(super) fn coefficients(&self) -> &[Scalar] {
        &self.coefficients
    }

    pub(super) fn starts(&self) -> &[u32] {
        &self.starts
    }

    pub(super) fn ids(&self) -> &[u32] {
        &self.ids
    }

    pub(super) fn patterns(&self) -> usize {
        self.starts.len() - 1
    }

    pub(super) fn pattern(&self, pattern: u32) -> &[u32] {
        let index = pattern as usize;
        &self.ids[self.starts[index] as usize..self.starts[index + 1] as usize]
    }

    fn pattern_len(&self, pattern: u32) -> usize {
        let index = pattern as usize;
        (self.starts[index + 1] - self.starts[index]) as usize
    }
}

/// One row: variable numbers and, in the same order, coefficient numbers.
#[derive(Debug, Clone, Copy)]
pub(super) struct RawRow<'a> {
    pub(super) pattern: u32,
    pub(super) variables: &'a [u32],
}

/// The rows of one matrix.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Rows {
    variables: Vec<u32>,
    patterns: Vec<u32>,
    /// Where the entries of row `STRIDE * i` begin.
    places: Vec<u32>,
}

impl Rows {
    /// From variable numbers and patterns; `None` unless they belong together and every number is in range.
    pub(super) fn from_parts(
        variables: Vec<u32>,
        patterns: Vec<u32>,
        dictionary: &Dictionary,
        inputs: usize,
        aux: usize,
    ) -> Option<Self> {
        let in_range = |&number: &u32| {
            let limit = if number & INPUT == 0 { aux } else { inputs };
            ((number & !INPUT) as usize) < limit
        };
        // Without an early exit, so that the loop is vectorised.
        if !variables.chunks(1 << 12).all(|chunk| chunk.iter().fold(true, |all, number| all & in_range(number))) {
            return None;
        }
        let mut places = Vec::with_capacity(patterns.len().div_ceil(STRIDE));
        let mut place = 0u64;
        for group in patterns.chunks(STRIDE) {
            places.push(u32::try_from(place).ok()?);
            for &pattern in group {
                if pattern as usize >= dictionary.patterns() {
                    return None;
                }
                place += dictionary.pattern_len(pattern) as u64;
            }
        }
        (place == variables.len() as u64).then_some(Rows { variables, patterns, places })
    }

    pub(super) fn len(&self) -> usize {
        self.patterns.len()
    }

    pub(super) fn entries(&self) -> usize {
        self.variables.len()
    }

    pub(super) fn variables(&self) -> &[u32] {
        &self.variables
    }

    pub(super) fn patterns(&self) -> &[u32] {
        &self.patterns
    }

    /// Where the entries of row `first` begin, or of the row that would follow the last; panics past that.
    pub(super) fn place(&self, first: usize, dictionary: &Dictionary) -> usize {
        let known = first / STRIDE * STRIDE;
        let skipped: usize = self.patterns[known..first].iter().map(|&pattern| dictionary.pattern_len(pattern)).sum();
        self.places.get(first / STRIDE).map_or(self.variables.len(), |&place| place as usize + skipped)
    }

    /// The rows from `first` on, in order; panics past the end.
    pub(super) fn starting_at<'a>(
        &'a self,
        first: usize,
        dictionary: &'a Dictionary,
    ) -> impl Iterator<Item = RawRow<'a>> {
        let mut rest = &self.variables[self.place(first, dictionary)..];
        self.patterns[first..].iter().map(move |&pattern| {
            let (variables, after) = rest.split_at(dictionary.pattern_len(pattern));
            rest = after;
            RawRow { pattern, variables }
        })
    }

    /// One row; panics past the end.
    pub(super) fn row<'a>(&'a self, index: usize, dictionary: &'a Dictionary) -> RawRow<'a> {
        assert!(index < self.len(), "row {index} of {}", self.len());
        self.starting_at(index, dictionary).next().expect("the index is in range")
    }
}

/// Multiplies and rotates; enough for keys that no adversary chooses, and much faster than the default.
#[derive(Default)]
pub(super) struct Mix(u64);

impl Hasher for Mix {
    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 29)
    }

    fn write(&mut self, bytes: &[u8]) {
        for part in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..part.len()].copy_from_slice(part);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u32(&mut self, word: u32) {
        self.write_u64(u64::from(word));
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }
}

/// A map with the fast hash.
pub(super) type FastMap<K, V> = HashMap<K, V, BuildHasherDefault<Mix>>;

/// Collects three matrices row by row.
pub(super) struct Builder {
    dictionary: Dictionary,
    coefficient_numbers: FastMap<[u64; 4], u32>,
    pattern_numbers: FastMap<Box<[u32]>, u32>,
    matrices: [Rows; 3],
    scratch: Vec<u32>,
    minus_one: Scalar,
}

impl Default for Builder {
    fn default() -> Self {
        let mut builder = Builder {
            dictionary: Dictionary::new(),
            coefficient_numbers: FastMap::default(),
            pattern_numbers: FastMap::default(),
            matrices: Default::default(),
            scratch: Vec::new(),
            minus_one: -Scalar::ONE,
        };
        for (number, coefficient) in builder.dictionary.coefficients.iter().enumerate() {
            builder.coefficient_numbers.insert(limbs(coefficient), number as u32);
        }
        builder
    }
}

impl Builder {
    /// How many rows were appended to the last matrix.
    pub(super) fn rows(&self) -> usize {
        self.matrices[2].len()
    }

    /// Appends one row to matrix 0, 1 or 2, without its zero coefficients.
    pub(super) fn push<'a>(&mut self, matrix: usize, entries: impl Iterator<Item = (u32, &'a Scalar)>) {
        let mut ids = std::mem::take(&mut self.scratch);
        ids.clear();
        for (number, coefficient) in entries {
            if coefficient.is_zero_vartime() {
                continue;
            }
            self.matrices[matrix].variables.push(number);
            ids.push(self.coefficient_number(coefficient));
        }
        let pattern = self.pattern_number(&ids);
        self.matrices[matrix].patterns.push(pattern);
        self.scratch = ids;
    }

    fn coefficient_number(&mut self, coefficient: &Scalar) -> u32 {
        if *coefficient == Scalar::ONE {
            return PLUS_ONE;
        }
        if *coefficient == self.minus_one {
            return MINUS_ONE;
        }
        let next = self.dictionary.coefficients.len() as u32;
        let number = *self.coefficient_numbers.entry(limbs(coefficient)).or_insert(next);
        if number == next {
            self.dictionary.coefficients.push(*coefficient);
        }
        number
    }

    fn pattern_number(&mut self, ids: &[u32]) -> u32 {
        if let Some(&number) = self.pattern_numbers.get(ids) {
            return number;
        }
        let number = self.dictionary.patterns() as u32;
        self.dictionary.ids.extend_from_slice(ids);
        self.dictionary.starts.push(self.dictionary.ids.len() as u32);
        self.pattern_numbers.insert(ids.into(), number);
        number
    }

    /// The dictionary and the matrices A, B and C of a system with so many variables.
    pub(super) fn finish(mut self, inputs: usize, aux: usize) -> Result<(Dictionary, [Rows; 3])> {
        let largest = self.matrices.iter().map(Rows::entries).max().unwrap_or(0);
        for (what, count, limit) in [
            ("auxiliary variables", aux, INPUT as usize),
            ("inputs", inputs, INPUT as usize),
            ("entries in one matrix", largest, u32::MAX as usize),
            ("coefficients in patterns", self.dictionary.ids.len(), u32::MAX as usize),
        ] {
            if count >= limit {
                return Err(Error::Argument {
                    name: "circuit",
                    detail: format!("it has {count} {what}; the limit is {limit}"),
                });
            }
        }
        self.dictionary.coefficients.shrink_to_fit();
        self.dictionary.starts.shrink_to_fit();
        self.dictionary.ids.shrink_to_fit();
        let dictionary = self.dictionary;
        let [a, b, c] = self.matrices.map(|mut rows| {
            rows.variables.shrink_to_fit();
            rows.patterns.shrink_to_fit();
            Rows::from_parts(rows.variables, rows.patterns, &dictionary, inputs, aux)
        });
        match (a, b, c) {
            (Some(a), Some(b), Some(c)) => Ok((dictionary, [a, b, c])),
            _ => Err(Error::Argument {
                name: "circuit",
                detail: "a constraint names a variable that was never allocated".into(),
            }),
        }
    }
}

/// The limbs of a scalar as blst keeps them (Montgomery form), unique for each value.
fn limbs(scalar: &Scalar) -> [u64; 4] {
    blst::blst_fr::from(*scalar).l
}
