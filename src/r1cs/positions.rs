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
        let during = "the search for a circuit's bits";
        let [a, b, c] = self.matrices.each_ref().map(|rows| rows.starting_at(0, self.dictionary));
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
        (zero && (one || q1.is_zero_vartime())) || (one && (q1 + q2.double()).is_zero_vartime())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::r1cs::testing::{Bare, BareRow, Mixed, Sha};
    use crate::r1cs::R1cs;

    const CONSTANT: Option<usize> = None;

    /// The full-width positions of a circuit of so many variables.
    fn full(count: usize, rows: Vec<BareRow>) -> Vec<u32> {
        let circuit = Bare { count, rows, values: Vec::new() };
        R1cs::record(circuit, &Control::new()).expect("recording").full_positions().to_vec()
    }

    /// (1 - x) x = 0.
    fn boolean(x: usize) -> BareRow {
        [vec![(CONSTANT, 1), (Some(x), -1)], vec![(Some(x), 1)], vec![]]
    }

    /// x y = z.
    fn and(x: usize, y: usize, z: usize) -> BareRow {
        [vec![(Some(x), 1)], vec![(Some(y), 1)], vec![(Some(z), 1)]]
    }

    /// (2 yz - y - z) x = yz - m.
    fn majority(x: usize, y: usize, z: usize, yz: usize, m: usize) -> BareRow {
        let first = vec![(Some(yz), 2), (Some(y), -1), (Some(z), -1)];
        [first, vec![(Some(x), 1)], vec![(Some(yz), 1), (Some(m), -1)]]
    }

    #[test]
    fn boolean_rows_in_every_arrangement_give_bits() {
        let x = Some(0);
        for row in [
            boolean(0),
            [vec![(x, 1)], vec![(CONSTANT, 1), (x, -1)], vec![]],
            [vec![(x, 1)], vec![(x, 1)], vec![(x, 1)]],
            [vec![(x, 7)], vec![(x, 3)], vec![(x, 21)]],
            [vec![], vec![], vec![(x, 5)]],
            [vec![(x, 1)], vec![(CONSTANT, 1)], vec![(CONSTANT, 1)]],
            [vec![(x, 1)], vec![(x, 1)], vec![]],
            [vec![(x, 1), (CONSTANT, -1)], vec![(x, 1), (CONSTANT, -1)], vec![]],
        ] {
            assert_eq!(full(1, vec![row.clone()]), [0; 0], "{row:?}");
        }
    }

    #[test]
    fn rows_that_allow_another_value_or_any_value_give_none() {
        let x = Some(0);
        for row in [
            [vec![(x, 1)], vec![(x, 1)], vec![(CONSTANT, 1)]],
            [vec![(x, 1)], vec![(x, 1), (CONSTANT, -2)], vec![]],
            [vec![(x, 1), (CONSTANT, -1)], vec![(x, 1), (CONSTANT, -2)], vec![]],
            [vec![(x, 1)], vec![(CONSTANT, 1)], vec![(CONSTANT, 2)]],
            [vec![(x, 1)], vec![], vec![]],
            [vec![(x, 1)], vec![(CONSTANT, 1)], vec![(x, 1)]],
            [vec![(x, 1)], vec![(x, 1)], vec![(CONSTANT, 5)]],
        ] {
            assert_eq!(full(1, vec![row.clone()]), [0], "{row:?}");
        }
        assert_eq!(full(1, vec![]), [0], "a variable in no row");
    }

    #[test]
    fn results_of_gates_are_bits_only_over_bits() {
        assert_eq!(full(3, vec![boolean(0), boolean(1), and(0, 1, 2)]), [0; 0]);
        assert_eq!(full(3, vec![boolean(0), and(0, 1, 2)]), [1, 2]);
        // A conditional boolean: (1 - c - x) x = 0.
        let conditional = [vec![(CONSTANT, 1), (Some(0), -1), (Some(1), -1)], vec![(Some(1), 1)], vec![]];
        assert_eq!(full(2, vec![boolean(0), conditional.clone()]), [0; 0]);
        assert_eq!(full(2, vec![conditional]), [0, 1]);
        // A sum of two bits is not a bit.
        let sum = [vec![(Some(0), 1), (Some(1), 1)], vec![(CONSTANT, 1)], vec![(Some(2), 1)]];
        assert_eq!(full(3, vec![boolean(0), boolean(1), sum]), [2]);
    }

    #[test]
    fn the_order_of_the_rows_does_not_matter() {
        assert_eq!(full(4, vec![and(2, 0, 3), and(0, 1, 2), boolean(0), boolean(1)]), [0; 0]);
    }

    #[test]
    fn a_majority_needs_the_and_of_its_operands() {
        let bits = || vec![boolean(0), boolean(1), boolean(2)];
        let with = [bits(), vec![and(1, 2, 3), majority(0, 1, 2, 3, 4)]].concat();
        assert_eq!(full(5, with), [0; 0]);
        let without = [bits(), vec![boolean(3), majority(0, 1, 2, 3, 4)]].concat();
        assert_eq!(full(5, without), [4]);
        let of_another = [bits(), vec![boolean(5), and(1, 5, 3), majority(0, 1, 2, 3, 4)]].concat();
        assert_eq!(full(6, of_another), [4]);
    }

    #[test]
    fn remembered_verdicts_are_those_of_the_enumeration() {
        let control = Control::new();
        let blank = [
            R1cs::record(Sha::default(), &control).expect("recording"),
            R1cs::record(Mixed::default(), &control).expect("recording"),
        ];
        for r1cs in blank {
            let search = Search::new(r1cs.num_aux(), &r1cs.dictionary, &r1cs.matrices, false);
            assert_eq!(search.run(&control).expect("search"), r1cs.full_positions());
        }
    }

    #[test]
    fn every_bit_of_sha256_is_found() {
        let r1cs = R1cs::record(Sha::default(), &Control::new()).expect("recording");
        assert!(r1cs.num_aux() > 25_000);
        assert_eq!(r1cs.full_positions(), [0; 0]);
    }

    #[test]
    fn only_roots_zero_and_one_are_let_through() {
        // Every quadratic with small coefficients against its roots among small numbers: a polynomial
        // that is let through has no root outside {0, 1}, and one with another small root is not.
        let number =
            |value: i64| if value < 0 { -Scalar::from(value.unsigned_abs()) } else { Scalar::from(value as u64) };
        for (q0, q1, q2) in (-6..=6).flat_map(|q0| (-6..=6).flat_map(move |q1| (-6..=6).map(move |q2| (q0, q1, q2)))) {
            let other_root = (-6..=6).filter(|x| !(0..=1).contains(x)).any(|x| q0 + q1 * x + q2 * x * x == 0);
            let (degree, zero, one) = ((q2 != 0, q1 != 0), q0 == 0, q0 + q1 + q2 == 0);
            let expected = match degree {
                (false, false) => !zero,
                (false, true) => zero || one,
                (true, _) => (zero && (one || q1 == 0)) || (one && q1 == -2 * q2),
            };
            let found = only_bit_roots(number(q0), number(q1), number(q2));
            assert_eq!(found, expected, "{q0} {q1} {q2}");
            assert!(!(found && other_root), "{q0} {q1} {q2}");
        }
    }
}
