//! Which auxiliary variables are bits, found from the rows alone.
//!
//! A variable is a bit if some row with no other unknown variable leaves it only the values 0 and 1, whatever
//! the row's other variables, which are bits already, may be. Assignments of those that break the
//! very rows by which they were found to be bits cannot occur and are left out: a majority, for
//! instance, is a bit only because one of its operands is the AND of two others.
//!
//! Whatever is not proven is full-width. An assignment that satisfies all rows therefore never has
//! another value than 0 or 1 at a proven position.

use blstrs::Scalar;
use ff::Field;

use super::rows::{Dictionary, FastMap, RawRow, Rows, INPUT, ONE};
use super::Bitmap;
use crate::error::Result;
use crate::pipeline::Control;

/// Rows of more variables are not looked at: 2^5 assignments of the known ones are tried.
const MAX_VARIABLES: usize = 6;

/// Rows of more entries in all three matrices are not looked at.
const MAX_ENTRIES: usize = 4 * MAX_VARIABLES;

/// How many rows are looked at between two looks at the control: some milliseconds of work.
const CHECK_EVERY: usize = 1 << 14;

/// Marks a variable that no row has defined yet.
const UNDEFINED: u32 = u32::MAX;

/// The auxiliary variables that are not proven to be bits, ascending.
pub(super) fn full_positions(
    aux: usize,
    dictionary: &Dictionary,
    matrices: &[Rows; 3],
    control: &Control,
) -> Result<Vec<u32>> {
    Search::new(aux, dictionary, matrices, true).run(control)
}

/// The rows of A, B and C with one index.
type Triple<'a> = [RawRow<'a>; 3];

/// What a row does with its unknown variable.
enum Outcome {
    /// The row has nothing to say, now or later.
    Settled,
    /// The row has more than one unknown variable.
    Later,
    /// The row's only unknown variable is a bit.
    Bit(u32),
}

struct Search<'a> {
    dictionary: &'a Dictionary,
    matrices: &'a [Rows; 3],
    bits: Bitmap,
    /// The row by which each bit was found.
    defined_by: Vec<u32>,
    /// Verdicts by form. A form names all coefficients and which variables are the same, so that it
    /// decides the verdict. Circuits have few forms and many rows.
    verdicts: Option<FastMap<Box<[u32]>, bool>>,
}

impl<'a> Search<'a> {
    fn new(aux: usize, dictionary: &'a Dictionary, matrices: &'a [Rows; 3], remember: bool) -> Self {
        Search {
            dictionary,
            matrices,
            bits: Bitmap::zeros(aux),
            defined_by: vec![UNDEFINED; aux],
            verdicts: remember.then(FastMap::default),
        }
    }

    fn run(mut self, control: &Control) -> Result<Vec<u32>> {
        let during = "while the bits of a circuit are looked for";
        let [a, b, c] = self.matrices.each_ref().map(|rows| rows.from(0, self.dictionary));
        let mut waiting = Vec::new();
        for (index, ((a, b), c)) in a.zip(b).zip(c).enumerate() {
            if index % CHECK_EVERY == 0 {
                control.check(during)?;
            }
            match self.consider(&[a, b, c]) {
                Outcome::Settled => {}
                Outcome::Later => waiting.push(index as u32),
                Outcome::Bit(variable) => self.learn(variable, index as u32),
            }
        }
        // A bit may be proven after the row that needs it.
        loop {
            let mut learned = false;
            let mut still_waiting = Vec::with_capacity(waiting.len());
            for (count, &index) in waiting.iter().enumerate() {
                if count % CHECK_EVERY == 0 {
                    control.check(during)?;
                }
                match self.consider(&self.triple(index)) {
                    Outcome::Settled => {}
                    Outcome::Later => still_waiting.push(index),
                    Outcome::Bit(variable) => {
                        self.learn(variable, index);
                        learned = true;
                    }
                }
            }
            waiting = still_waiting;
            if !learned {
                break;
            }
        }
        Ok((0..self.bits.len()).filter(|&variable| !self.bits.get(variable)).map(|variable| variable as u32).collect())
    }

    fn learn(&mut self, variable: u32, row: u32) {
        self.bits.set(variable as usize);
        self.defined_by[variable as usize] = row;
    }

    fn triple(&self, index: u32) -> Triple<'a> {
        let (matrices, dictionary) = (self.matrices, self.dictionary);
        matrices.each_ref().map(|rows| rows.row(index as usize, dictionary))
    }

    fn consider(&mut self, row: &Triple<'a>) -> Outcome {
        let Some(names) = Names::of(row) else { return Outcome::Settled };
        let mut unknown = names.list().iter().enumerate().filter(|(_, &variable)| !self.bits.get(variable as usize));
        let Some((target, &variable)) = unknown.next() else { return Outcome::Settled };
        if unknown.next().is_some() {
            return Outcome::Later;
        }
        let mut form = Form::new(target as u32, names);
        form.add(row);
        if self.verdict(&form) {
            return Outcome::Bit(variable);
        }
        // Alone the row does not suffice: take the rows that tie its known variables to each other.
        for &known in names.list() {
            let definition = self.defined_by[known as usize];
            if definition == UNDEFINED {
                continue;
            }
            let definition = self.triple(definition);
            if Names::of(&definition).is_some_and(|other| other.len > 1 && other.within(&names)) {
                form.add(&definition);
            }
        }
        if form.rows > 1 && self.verdict(&form) {
            return Outcome::Bit(variable);
        }
        Outcome::Settled
    }

    fn verdict(&mut self, form: &Form) -> bool {
        let dictionary = self.dictionary;
        let Some(verdicts) = &mut self.verdicts else { return form.leaves_only_bits(dictionary) };
        if let Some(&verdict) = verdicts.get(form.words.as_slice()) {
            return verdict;
        }
        let verdict = form.leaves_only_bits(dictionary);
        verdicts.insert(form.words.as_slice().into(), verdict);
        verdict
    }
}

/// The auxiliary variables of a row, each once, in the order in which they first occur.
#[derive(Clone, Copy)]
struct Names {
    variables: [u32; MAX_VARIABLES],
    len: usize,
}

impl Names {
    /// `None` if there are too many, or an input other than ONE.
    fn of(row: &Triple) -> Option<Self> {
        if row.iter().map(|part| part.variables.len()).sum::<usize>() > MAX_ENTRIES {
            return None;
        }
        let mut names = Names { variables: [0; MAX_VARIABLES], len: 0 };
        for &number in row.iter().flat_map(|part| part.variables) {
            if number == ONE || names.list().contains(&number) {
                continue;
            }
            if number & INPUT != 0 || names.len == MAX_VARIABLES {
                return None;
            }
            names.variables[names.len] = number;
            names.len += 1;
        }
        Some(names)
    }

    fn list(&self) -> &[u32] {
        &self.variables[..self.len]
    }

    fn within(&self, others: &Names) -> bool {
        self.list().iter().all(|variable| others.list().contains(variable))
    }
}

/// What [`Form`] writes for ONE; a variable is its index in the names.
const FORM_ONE: u32 = u32::MAX;

/// Rows with their variables renamed: first the row to be solved for `target`, then rows that must hold.
///
/// In words: the target, then for each row three patterns and the names of all entries.
struct Form {
    names: Names,
    rows: usize,
    words: Vec<u32>,
}

impl Form {
    fn new(target: u32, names: Names) -> Self {
        let mut words = Vec::with_capacity(32);
        words.push(target);
        Form { names, rows: 0, words }
    }

    /// Adds a row all of whose variables have a name.
    fn add(&mut self, row: &Triple) {
        self.rows += 1;
        self.words.extend(row.iter().map(|part| part.pattern));
        for &number in row.iter().flat_map(|part| part.variables) {
            let name = self.names.list().iter().position(|&variable| variable == number);
            self.words.push(name.map_or(FORM_ONE, |name| name as u32));
        }
    }

    /// Whether the first row, for every assignment of zeros and ones to the other variables that
    /// keeps the rows after it, has no solution for the target outside {0, 1}.
    fn leaves_only_bits(&self, dictionary: &Dictionary) -> bool {
        let target = self.words[0];
        (0..1u32 << self.names.len).filter(|assignment| assignment >> target & 1 == 0).all(|assignment| {
            let mut rest = &self.words[1..];
            let [a, b, c] = restrict(&mut rest, dictionary, assignment, target);
            while !rest.is_empty() {
                let [a, b, c] = restrict(&mut rest, dictionary, assignment, target).map(|side| side.constant);
                if a * b != c {
                    return true;
                }
            }
            only_bit_roots(
                a.constant * b.constant - c.constant,
                a.constant * b.linear + a.linear * b.constant - c.linear,
                a.linear * b.linear,
            )
        })
    }
}

/// `constant + linear * target`.
#[derive(Clone, Copy)]
struct Side {
    constant: Scalar,
    linear: Scalar,
}

/// Takes the next row of a form and puts in the assignment.
fn restrict(words: &mut &[u32], dictionary: &Dictionary, assignment: u32, target: u32) -> [Side; 3] {
    let (patterns, mut rest) = words.split_at(3);
    let sides = [0, 1, 2].map(|part| {
        let ids = dictionary.pattern(patterns[part]);
        let (names, after) = rest.split_at(ids.len());
        rest = after;
        let mut side = Side { constant: Scalar::ZERO, linear: Scalar::ZERO };
        for (&name, &id) in names.iter().zip(ids) {
            let coefficient = dictionary.coefficients()[id as usize];
            if name == target {
                side.linear += coefficient;
            } else if name == FORM_ONE || assignment >> name & 1 == 1 {
                side.constant += coefficient;
            }
        }
        side
    });
    *words = rest;
    sides
}

/// Whether `q0 + q1 x + q2 x^2 = 0` has no solution other than 0 and 1. May say no where the field has no square root.
fn only_bit_roots(q0: Scalar, q1: Scalar, q2: Scalar) -> bool {
    let zero = q0.is_zero_vartime();
    let one = (q0 + q1 + q2).is_zero_vartime();
    if q2.is_zero_vartime() {
        // Linear: its only solution, if any.
        if q1.is_zero_vartime() {
            !zero
        } else {
            zero || one
        }
    } else {
        // Both solutions: 0 and 1, 0 twice, or 1 twice (the derivative is zero there too).
        (zero && one) || (zero && q1.is_zero_vartime()) || (one && (q1 + q2.double()).is_zero_vartime())
    }
}
