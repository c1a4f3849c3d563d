//! Small circuits with everything that the real ones have.

use bellperson::gadgets::boolean::{AllocatedBit, Boolean};
use bellperson::gadgets::multieq::MultiEq;
use bellperson::gadgets::multipack;
use bellperson::gadgets::num::AllocatedNum;
use bellperson::gadgets::sha256::sha256;
use bellperson::gadgets::uint32::UInt32;
use bellperson::{Circuit, ConstraintSystem, SynthesisError};
use blstrs::Scalar;
use ff::Field;

/// SHA-256 of 512 bits, the digest as public inputs.
#[derive(Clone, Default)]
pub struct Sha {
    pub preimage: Option<[u8; 64]>,
}

impl Circuit<Scalar> for Sha {
    fn synthesize<CS: ConstraintSystem<Scalar>>(self, cs: &mut CS) -> Result<(), SynthesisError> {
        let bits = (0..512)
            .map(|index| {
                let value = self.preimage.map(|bytes| bytes[index / 8] >> (7 - index % 8) & 1 == 1);
                AllocatedBit::alloc(cs.namespace(|| "bit"), value).map(Boolean::from)
            })
            .collect::<Result<Vec<_>, _>>()?;
        let digest = sha256(cs.namespace(|| "sha256"), &bits)?;
        multipack::pack_into_inputs(cs.namespace(|| "pack"), &digest)
    }
}

/// Gadgets over bits in all views, numbers, selections, repeated variables, and inputs between auxiliary variables.
#[derive(Clone, Default)]
pub struct Mixed {
    pub bits: Option<[bool; 3]>,
    pub numbers: Option<[Scalar; 2]>,
    pub words: Option<[u32; 2]>,
}

impl Mixed {
    /// One of the assignments.
    pub fn assigned(bits: [bool; 3], numbers: [Scalar; 2], words: [u32; 2]) -> Self {
        Mixed { bits: Some(bits), numbers: Some(numbers), words: Some(words) }
    }
}

impl Circuit<Scalar> for Mixed {
    fn synthesize<CS: ConstraintSystem<Scalar>>(self, cs: &mut CS) -> Result<(), SynthesisError> {
        let missing = SynthesisError::AssignmentMissing;
        let bits =
            [0, 1, 2].map(|index| AllocatedBit::alloc(cs.namespace(|| "bit"), self.bits.map(|bits| bits[index])));
        let [a, b, c] = bits;
        let (a, b, c) = (a?, b?, c?);
        let views = |bit: &AllocatedBit| {
            [Boolean::Is(bit.clone()), Boolean::Not(bit.clone()), Boolean::constant(false), Boolean::constant(true)]
        };
        for a in &views(&a) {
            for b in &views(&b) {
                Boolean::xor(cs.namespace(|| "xor"), a, b)?;
                Boolean::and(cs.namespace(|| "and"), a, b)?;
                for c in &views(&c) {
                    Boolean::sha256_ch(cs.namespace(|| "ch"), a, b, c)?;
                    Boolean::sha256_maj(cs.namespace(|| "maj"), a, b, c)?;
                }
            }
        }

        let number = |index: usize| self.numbers.map(|numbers| numbers[index]).ok_or(SynthesisError::AssignmentMissing);
        let x = AllocatedNum::alloc(cs.namespace(|| "x"), || number(0))?;
        let y = AllocatedNum::alloc(cs.namespace(|| "y"), || number(1))?;
        let product = x.mul(cs.namespace(|| "product"), &y)?;
        product.inputize(cs.namespace(|| "public product"))?;
        AllocatedNum::conditionally_reverse(cs.namespace(|| "reverse"), &x, &y, &Boolean::Is(a.clone()))?;
        x.to_bits_le_strict(cs.namespace(|| "bits of x"))?;

        // A bit chosen by a bit: a (b - c) = chosen - c.
        let chosen = cs.alloc(
            || "chosen",
            || self.bits.map(|[a, b, c]| Scalar::from(u64::from(if a { b } else { c }))).ok_or(missing),
        )?;
        cs.enforce(
            || "choose",
            |lc| lc + b.get_variable() - c.get_variable(),
            |lc| lc + a.get_variable(),
            |lc| lc + chosen - c.get_variable(),
        );

        // Repeated variables merge, to zero coefficients too; the input is used on both sides.
        let sum = cs.alloc_input(|| "sum", || Ok(number(0)?.double() + number(1)?))?;
        let (x, y, three) = (x.get_variable(), y.get_variable(), Scalar::from(3));
        cs.enforce(
            || "repeated",
            |lc| lc + x + y + (three, x) - (three, x) + x,
            |lc| lc + CS::one() + sum - sum,
            |lc| lc + sum + (three, y) - (three, y),
        );
        let square = cs.alloc(|| "square", || Ok((number(0)?.double() + number(1)?).square()))?;
        cs.enforce(|| "square", |lc| lc + sum, |lc| lc + sum, |lc| lc + square);
        cs.alloc(|| "unused", || number(1))?;

        let word = |index: usize| self.words.map(|words| words[index]);
        let mut cs = MultiEq::new(cs);
        let v = UInt32::alloc(cs.namespace(|| "v"), word(0))?;
        let w = UInt32::alloc(cs.namespace(|| "w"), word(1))?;
        let total = UInt32::addmany(cs.namespace(|| "total"), &[v.clone(), w, UInt32::constant(0x8000_0001)])?;
        let rotated = v.rotr(7).xor(cs.namespace(|| "xor words"), &v.shr(3))?;
        UInt32::addmany(cs.namespace(|| "again"), &[total, rotated])?;
        Ok(())
    }
}

/// Entries (variable, coefficient) of one row of A, B and C; no variable means ONE.
pub type BareRow = [Vec<(Option<usize>, i64)>; 3];

/// A circuit of `count` auxiliary variables given by its rows.
#[derive(Clone)]
pub struct Bare {
    pub count: usize,
    pub rows: Vec<BareRow>,
    pub values: Vec<Scalar>,
}

impl Circuit<Scalar> for Bare {
    fn synthesize<CS: ConstraintSystem<Scalar>>(self, cs: &mut CS) -> Result<(), SynthesisError> {
        let value = |index: usize| self.values.get(index).copied().ok_or(SynthesisError::AssignmentMissing);
        let variables =
            (0..self.count).map(|index| cs.alloc(|| "variable", || value(index))).collect::<Result<Vec<_>, _>>()?;
        for row in self.rows {
            let [a, b, c] = row.map(|entries| {
                entries.into_iter().fold(bellperson::LinearCombination::zero(), |lc, (variable, coefficient)| {
                    let size = Scalar::from(coefficient.unsigned_abs());
                    let coefficient = if coefficient < 0 { -size } else { size };
                    lc + (coefficient, variable.map_or(CS::one(), |index| variables[index]))
                })
            });
            cs.enforce(|| "row", |_| a, |_| b, |_| c);
        }
        Ok(())
    }
}
