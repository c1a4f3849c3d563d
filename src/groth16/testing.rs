//! Small circuits and slow, obvious computations for the tests of this module.

use bellperson::gadgets::{
    boolean::{AllocatedBit, Boolean},
    multipack,
    sha256::sha256,
};
use bellperson::{Circuit, ConstraintSystem, Index, LinearCombination, SynthesisError, Variable};
use blstrs::{G1Affine, G1Projective, G2Projective, Scalar};
use ff::Field;
use group::Group;

use super::domain::TextbookTransform;
use super::params::{Expected, G1Section, Parameters};
use super::setup::{generate, Target};
use super::{quotient, ProofParts};
use crate::pipeline::Control;
use crate::r1cs::{Bitmap, Matrix, R1cs};

/// A chain of products with a bit in each link. Some variables occur in A only, some in B, some in neither.
#[derive(Clone)]
pub(crate) struct Chain {
    pub(crate) links: usize,
    pub(crate) start: u64,
}

impl Circuit<Scalar> for Chain {
    fn synthesize<CS: ConstraintSystem<Scalar>>(self, cs: &mut CS) -> Result<(), SynthesisError> {
        let start = Scalar::from(self.start);
        let x = cs.alloc_input(|| "x", || Ok(start))?;
        let mut value = start;
        let mut link = x;
        for i in 0..self.links {
            let bit = self.start >> (i % 60) & 1 == 1;
            let bit_value = Scalar::from(u64::from(bit));
            let bit = cs.alloc(|| format!("bit {i}"), || Ok(bit_value))?;
            cs.enforce(|| format!("bit {i}"), |lc| lc + bit, |lc| lc + CS::one() - bit, |lc| lc);
            // next = (link + bit) * (3 x + link)
            let next_value = (value + bit_value) * (start * Scalar::from(3) + value);
            let next = cs.alloc(|| format!("link {i}"), || Ok(next_value))?;
            cs.enforce(
                || format!("link {i}"),
                |lc| lc + link + bit,
                |lc| lc + (Scalar::from(3), x) + link,
                |lc| lc + next,
            );
            (link, value) = (next, next_value);
        }
        let y = cs.alloc_input(|| "y", || Ok(value))?;
        cs.enforce(|| "end", |lc| lc + link, |lc| lc + CS::one(), |lc| lc + y);
        Ok(())
    }
}

impl Chain {
    pub(crate) fn small() -> Self {
        Chain { links: 20, start: 0x5a5a_1234 }
    }
}

/// SHA-256 of 512 bits; the hash is public.
#[derive(Clone)]
pub(crate) struct Hash;

impl Circuit<Scalar> for Hash {
    fn synthesize<CS: ConstraintSystem<Scalar>>(self, cs: &mut CS) -> Result<(), SynthesisError> {
        let bits = (0..512).map(|i| {
            let bit = AllocatedBit::alloc(cs.namespace(|| format!("bit {i}")), Some(i % 3 == 0))?;
            Ok(Boolean::from(bit))
        });
        let bits = bits.collect::<Result<Vec<_>, SynthesisError>>()?;
        let hash = sha256(cs.namespace(|| "hash"), &bits)?;
        multipack::pack_into_inputs(cs.namespace(|| "inputs"), &hash)
    }
}

/// A circuit several times.
#[derive(Clone)]
pub(crate) struct Several<C> {
    pub(crate) times: usize,
    pub(crate) circuit: C,
}

impl<C: Circuit<Scalar> + Clone> Circuit<Scalar> for Several<C> {
    fn synthesize<CS: ConstraintSystem<Scalar>>(self, cs: &mut CS) -> Result<(), SynthesisError> {
        (0..self.times).try_for_each(|i| self.circuit.clone().synthesize(&mut cs.namespace(|| format!("{i}"))))
    }
}

/// The values of all variables.
pub(crate) struct Assignment {
    pub(crate) inputs: Vec<Scalar>,
    pub(crate) aux: Vec<Scalar>,
}

impl Assignment {
    pub(crate) fn of(circuit: impl Circuit<Scalar>) -> Self {
        let mut assignment = Assignment { inputs: vec![Scalar::ONE], aux: Vec::new() };
        circuit.synthesize(&mut assignment).unwrap();
        assignment
    }

    fn value(&self, Variable(index): Variable) -> Scalar {
        match index {
            Index::Input(i) => self.inputs[i],
            Index::Aux(i) => self.aux[i],
        }
    }

    /// M w, row by row.
    pub(super) fn evaluate(&self, r1cs: &R1cs, matrix: Matrix) -> Vec<Scalar> {
        let row = |i| r1cs.row(matrix, i).iter().map(|(variable, c)| self.value(variable) * c).sum();
        (0..r1cs.num_rows()).map(row).collect()
    }
}

impl ConstraintSystem<Scalar> for Assignment {
    type Root = Self;

    fn alloc<F, A, AR>(&mut self, _: A, value: F) -> Result<Variable, SynthesisError>
    where
        F: FnOnce() -> Result<Scalar, SynthesisError>,
        A: FnOnce() -> AR,
        AR: Into<String>,
    {
        self.aux.push(value()?);
        Ok(Variable(Index::Aux(self.aux.len() - 1)))
    }

    fn alloc_input<F, A, AR>(&mut self, _: A, value: F) -> Result<Variable, SynthesisError>
    where
        F: FnOnce() -> Result<Scalar, SynthesisError>,
        A: FnOnce() -> AR,
        AR: Into<String>,
    {
        self.inputs.push(value()?);
        Ok(Variable(Index::Input(self.inputs.len() - 1)))
    }

    fn enforce<A, AR, LA, LB, LC>(&mut self, _: A, _: LA, _: LB, _: LC)
    where
        A: FnOnce() -> AR,
        AR: Into<String>,
        LA: FnOnce(LinearCombination<Scalar>) -> LinearCombination<Scalar>,
        LB: FnOnce(LinearCombination<Scalar>) -> LinearCombination<Scalar>,
        LC: FnOnce(LinearCombination<Scalar>) -> LinearCombination<Scalar>,
    {
    }

    fn push_namespace<NR: Into<String>, N: FnOnce() -> NR>(&mut self, _: N) {}

    fn pop_namespace(&mut self) {}

    fn get_root(&mut self) -> &mut Self {
        self
    }
}

/// Parameters of a circuit in a directory that is removed when dropped.
pub(crate) struct Fixture {
    pub(crate) directory: tempfile::TempDir,
    pub(crate) r1cs: R1cs,
    pub(crate) expected: Expected,
}

pub(super) const STEM: &str = "v28-test-params.with.dots";

impl Fixture {
    pub(crate) fn new(circuit: impl Circuit<Scalar>, seed: u64) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let control = Control::new();
        let r1cs = R1cs::record(circuit, &control).unwrap();
        let target = Target { directory: directory.path(), stem: STEM, meta: "{\"sector_size\":0}" };
        generate(&r1cs, seed, &target, &control, &mut |_, _| {}).unwrap();
        let counts = super::params::Counts::of(&r1cs);
        let expected = Expected { stem: STEM.into(), counts, official: None, known: Vec::new() };
        Fixture { directory, r1cs, expected }
    }

    pub(super) fn path(&self, extension: &str) -> std::path::PathBuf {
        super::params::sibling(self.directory.path(), STEM, extension)
    }

    pub(crate) fn open(&self) -> crate::Result<Parameters> {
        Parameters::open(self.directory.path(), &self.expected, &Control::new())
    }
}

/// Where the points of a section begin in a parameter file.
#[cfg(feature = "emulator")]
pub(crate) fn offset_of(counts: &super::params::Counts, section: super::params::Section) -> u64 {
    super::params::Layout::new(counts).unwrap().extent(section).offset
}

/// The five sums, term by term.
pub(super) fn naive_parts(params: &Parameters, r1cs: &R1cs, assignment: &Assignment) -> ProofParts {
    let control = Control::new();
    let g1 = |section| {
        let mut points: Vec<G1Affine> = Vec::new();
        params.read_g1(section, 0..params.counts().len(section), &mut points, &control).unwrap();
        points
    };
    let sum = |points: &[G1Affine], scalars: &[Scalar]| -> G1Projective {
        assert_eq!(points.len(), scalars.len());
        points.iter().zip(scalars).map(|(p, s)| p * s).fold(G1Projective::identity(), |a, b| a + b)
    };
    let dense = |values: &[Scalar], density: &Bitmap| density.ones().map(|i| values[i]).collect::<Vec<_>>();
    let Assignment { inputs, aux } = assignment;
    let a = [inputs.clone(), dense(aux, r1cs.a_aux_density())].concat();
    let b = [dense(inputs, r1cs.b_input_density()), dense(aux, r1cs.b_aux_density())].concat();
    let mut b_g2 = Vec::new();
    params.read_g2(0..b.len(), &mut b_g2, &control).unwrap();
    let transform = TextbookTransform::new(r1cs.log_domain());
    let evaluations = |matrix| assignment.evaluate(r1cs, matrix);
    let h = quotient(&transform, evaluations(Matrix::A), evaluations(Matrix::B), &control).unwrap();
    ProofParts {
        h: sum(&g1(G1Section::H), &h),
        l: sum(&g1(G1Section::L), aux),
        a: sum(&g1(G1Section::A), &a),
        b_g1: sum(&g1(G1Section::B), &b),
        b_g2: b_g2.iter().zip(&b).map(|(p, s)| p * s).fold(G2Projective::identity(), |x, y| x + y),
    }
}
