//! A constraint system as recorded: its counts, rows, densities and full-width positions.

use std::ops::Range;

use bellperson::Variable;
use blstrs::Scalar;

use super::evaluate::Lookup;
use super::positions;
use super::rows::{variable, Dictionary, Rows, INPUT};
use super::{Bitmap, Matrix};
use crate::error::{Error, Result};
use crate::pipeline::Control;

/// A rank-1 constraint system over the BLS12-381 scalar field: A w * B w = C w, row by row, where w is the
/// inputs (the constant ONE first) and the auxiliary variables.
///
/// Made by [`R1cs::record`], or read back by [`ShapeStore`](super::ShapeStore).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct R1cs {
    pub(super) inputs: usize,
    pub(super) aux: usize,
    pub(super) dictionary: Dictionary,
    pub(super) matrices: [Rows; 3],
    pub(super) densities: Densities,
    pub(super) full_positions: Vec<u32>,
    pub(super) lookup: Lookup,
}

/// Which variables occur in a matrix, as bellperson's prover counts them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Densities {
    pub(super) a_aux: Bitmap,
    pub(super) b_input: Bitmap,
    pub(super) b_aux: Bitmap,
}

impl Densities {
    fn of(inputs: usize, aux: usize, [a, b, _]: &[Rows; 3]) -> Self {
        let mut densities =
            Densities { a_aux: Bitmap::zeros(aux), b_input: Bitmap::zeros(inputs), b_aux: Bitmap::zeros(aux) };
        for &number in a.variables() {
            if number & INPUT == 0 {
                densities.a_aux.set(number as usize);
            }
        }
        for &number in b.variables() {
            if number & INPUT == 0 {
                densities.b_aux.set(number as usize);
            } else {
                densities.b_input.set((number & !INPUT) as usize);
            }
        }
        densities
    }
}

/// One row of one matrix.
#[derive(Debug, Clone, Copy)]
pub struct Row<'a> {
    variables: &'a [u32],
    ids: &'a [u32],
    coefficients: &'a [Scalar],
}

impl<'a> Row<'a> {
    /// The entries: inputs, then auxiliary variables, each ascending, without repetition; no coefficient is zero.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (Variable, &'a Scalar)> + use<'a> {
        let coefficients = self.coefficients;
        self.variables.iter().zip(self.ids).map(move |(&number, &id)| (variable(number), &coefficients[id as usize]))
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.variables.len()
    }

    /// Whether the row is zero.
    pub fn is_empty(&self) -> bool {
        self.variables.is_empty()
    }
}

impl R1cs {
    /// Completes recorded rows.
    pub(super) fn from_rows(
        inputs: usize,
        aux: usize,
        dictionary: Dictionary,
        matrices: [Rows; 3],
        control: &Control,
    ) -> Result<Self> {
        let full_positions = positions::full_positions(aux, &dictionary, &matrices, control)?;
        let densities = Densities::of(inputs, aux, &matrices);
        Self::from_parts(inputs, aux, dictionary, matrices, densities, full_positions)
            .ok_or_else(|| Error::internal("a recorded constraint system does not fit together"))
    }

    /// Puts a system together; `None` if a count or a length does not fit. Rows and dictionary are checked already.
    pub(super) fn from_parts(
        inputs: usize,
        aux: usize,
        dictionary: Dictionary,
        matrices: [Rows; 3],
        densities: Densities,
        full_positions: Vec<u32>,
    ) -> Option<Self> {
        let rows = matrices[0].len();
        let fits = inputs >= 1
            && rows >= inputs
            && matrices.iter().all(|matrix| matrix.len() == rows)
            && densities.a_aux.len() == aux
            && densities.b_input.len() == inputs
            && densities.b_aux.len() == aux
            && full_positions.windows(2).all(|pair| pair[0] < pair[1])
            && full_positions.last().is_none_or(|&last| (last as usize) < aux);
        fits.then(|| {
            let lookup = Lookup::new(aux, &dictionary, &full_positions);
            R1cs { inputs, aux, dictionary, matrices, densities, full_positions, lookup }
        })
    }

    /// How many inputs there are, the constant ONE included.
    pub fn num_inputs(&self) -> usize {
        self.inputs
    }

    /// How many auxiliary variables there are.
    pub fn num_aux(&self) -> usize {
        self.aux
    }

    /// How many rows there are, the appended one per input included.
    pub fn num_rows(&self) -> usize {
        self.matrices[0].len()
    }

    /// The smallest k with 2^k >= [`R1cs::num_rows`].
    pub fn log_domain(&self) -> u32 {
        self.num_rows().next_power_of_two().trailing_zeros()
    }

    /// How many non-zero entries a matrix has.
    pub fn num_entries(&self, matrix: Matrix) -> usize {
        self.matrix(matrix).entries()
    }

    /// How many distinct coefficients the three matrices have; 1 and -1 are always counted.
    pub fn num_coefficients(&self) -> usize {
        self.dictionary.coefficients().len()
    }

    /// One row of one matrix; panics past the end. To read many in order, [`R1cs::rows`] is faster.
    pub fn row(&self, matrix: Matrix, index: usize) -> Row<'_> {
        self.view(self.matrix(matrix).row(index, &self.dictionary))
    }

    /// Rows of one matrix in order; panics if the range does not lie within `0..num_rows()`.
    pub fn rows(&self, matrix: Matrix, range: Range<usize>) -> impl Iterator<Item = Row<'_>> {
        assert!(range.start <= range.end && range.end <= self.num_rows(), "rows {range:?} of {}", self.num_rows());
        let rows = self.matrix(matrix).starting_at(range.start, &self.dictionary);
        rows.take(range.len()).map(|raw| self.view(raw))
    }

    /// Which auxiliary variables occur in A. (All inputs do, by the appended rows.)
    pub fn a_aux_density(&self) -> &Bitmap {
        &self.densities.a_aux
    }

    /// Which inputs occur in B.
    pub fn b_input_density(&self) -> &Bitmap {
        &self.densities.b_input
    }

    /// Which auxiliary variables occur in B.
    pub fn b_aux_density(&self) -> &Bitmap {
        &self.densities.b_aux
    }

    /// The auxiliary variables that the rows do not prove to be bits, ascending.
    pub fn full_positions(&self) -> &[u32] {
        &self.full_positions
    }

    pub(super) fn matrix(&self, matrix: Matrix) -> &Rows {
        &self.matrices[matrix as usize]
    }

    fn view<'a>(&'a self, raw: super::rows::RawRow<'a>) -> Row<'a> {
        Row {
            variables: raw.variables,
            ids: self.dictionary.pattern(raw.pattern),
            coefficients: self.dictionary.coefficients(),
        }
    }
}

#[cfg(test)]
mod tests {
    use bellperson::{Circuit, ConstraintSystem, Index, LinearCombination, SynthesisError};
    use ff::Field;

    use super::*;
    use crate::r1cs::testing::{Bare, Mixed, Reference, Sha};

    /// Linear combinations as bellperson hands them out.
    #[derive(Default)]
    struct Plain {
        inputs: usize,
        aux: usize,
        rows: Vec<[Vec<(Variable, Scalar)>; 3]>,
    }

    impl ConstraintSystem<Scalar> for Plain {
        type Root = Self;

        fn alloc<F, A, AR>(&mut self, _: A, _: F) -> Result<Variable, SynthesisError>
        where
            F: FnOnce() -> Result<Scalar, SynthesisError>,
            A: FnOnce() -> AR,
            AR: Into<String>,
        {
            self.aux += 1;
            Ok(Variable(Index::Aux(self.aux - 1)))
        }

        fn alloc_input<F, A, AR>(&mut self, _: A, _: F) -> Result<Variable, SynthesisError>
        where
            F: FnOnce() -> Result<Scalar, SynthesisError>,
            A: FnOnce() -> AR,
            AR: Into<String>,
        {
            self.inputs += 1;
            Ok(Variable(Index::Input(self.inputs - 1)))
        }

        fn enforce<A, AR, LA, LB, LC>(&mut self, _: A, a: LA, b: LB, c: LC)
        where
            A: FnOnce() -> AR,
            AR: Into<String>,
            LA: FnOnce(LinearCombination<Scalar>) -> LinearCombination<Scalar>,
            LB: FnOnce(LinearCombination<Scalar>) -> LinearCombination<Scalar>,
            LC: FnOnce(LinearCombination<Scalar>) -> LinearCombination<Scalar>,
        {
            let plain = |side: LinearCombination<Scalar>| {
                let entries = side.iter().filter(|(_, coefficient)| **coefficient != Scalar::ZERO);
                entries.map(|(variable, coefficient)| (variable, *coefficient)).collect()
            };
            let zero = LinearCombination::zero;
            self.rows.push([plain(a(zero())), plain(b(zero())), plain(c(zero()))]);
        }

        fn push_namespace<NR, N>(&mut self, _: N)
        where
            NR: Into<String>,
            N: FnOnce() -> NR,
        {
        }

        fn pop_namespace(&mut self) {}

        fn get_root(&mut self) -> &mut Self::Root {
            self
        }
    }

    fn compare(circuit: impl Circuit<Scalar> + Clone) {
        let r1cs = R1cs::record(circuit.clone(), &Control::new()).expect("recording");
        let mut plain = Plain { inputs: 1, ..Plain::default() };
        circuit.synthesize(&mut plain).expect("synthesis");
        assert_eq!((r1cs.num_inputs(), r1cs.num_aux()), (plain.inputs, plain.aux));
        assert_eq!(r1cs.num_rows(), plain.rows.len() + plain.inputs);
        let input_rows =
            (0..plain.inputs).map(|input| [vec![(Variable(Index::Input(input)), Scalar::ONE)], vec![], vec![]]);
        let expected: Vec<_> = plain.rows.into_iter().chain(input_rows).collect();
        let owned = |row: Row| row.iter().map(|(variable, coefficient)| (variable, *coefficient)).collect::<Vec<_>>();
        for (part, matrix) in [Matrix::A, Matrix::B, Matrix::C].into_iter().enumerate() {
            for (index, row) in expected.iter().enumerate() {
                let found = r1cs.row(matrix, index);
                assert_eq!(owned(found), row[part], "{matrix:?} {index}");
                assert_eq!((found.len(), found.is_empty()), (row[part].len(), row[part].is_empty()));
            }
            assert_eq!(r1cs.num_entries(matrix), expected.iter().map(|row| row[part].len()).sum::<usize>());
            // From every kind of place: at, beside and between the rows whose place is stored.
            for first in [0, 1, 15, 16, 17, 100, expected.len() - 1, expected.len()] {
                let rows: Vec<_> = r1cs.rows(matrix, first..expected.len()).map(owned).collect();
                assert!(rows.iter().eq(expected[first..].iter().map(|row| &row[part])), "{matrix:?} from {first}");
            }
        }
    }

    #[test]
    fn rows_are_bellpersons_without_zero_coefficients_and_with_one_for_each_input() {
        compare(Mixed::default());
        compare(Sha::default());
    }

    #[test]
    fn densities_are_bellpersons() {
        let circuit = Mixed::assigned([true; 3], [Scalar::from(3), Scalar::from(4)], [1, 2]);
        let reference = Reference::of(circuit);
        let r1cs = R1cs::record(Mixed::default(), &Control::new()).expect("recording");
        let list = |bits: &Bitmap| (0..bits.len()).map(|index| bits.get(index)).collect::<Vec<_>>();
        assert_eq!(list(r1cs.a_aux_density()), reference.a_aux);
        assert_eq!(list(r1cs.b_input_density()), reference.b_input);
        assert_eq!(list(r1cs.b_aux_density()), reference.b_aux);
        assert!(reference.b_input.contains(&false) && reference.b_input.iter().filter(|&&occurs| occurs).count() > 1);
    }

    #[test]
    fn the_domain_is_the_smallest_that_holds_all_rows() {
        for (rows, log) in [(0, 0), (1, 1), (2, 2), (3, 2), (4, 3), (7, 3), (8, 4)] {
            let circuit = Bare { count: 0, rows: vec![Default::default(); rows], values: Vec::new() };
            let r1cs = R1cs::record(circuit, &Control::new()).expect("recording");
            assert_eq!((r1cs.num_rows(), r1cs.log_domain()), (rows + 1, log));
        }
    }
}
