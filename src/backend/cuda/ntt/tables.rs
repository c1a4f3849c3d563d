//! Tables of constants for the passes, made on the device.

use blstrs::Scalar;
use ff::Field;

use super::layout::{Layout, THREADS};
use crate::backend::cuda::gpu::{args, scalar_words, Buffer, Span, Stream};
use crate::error::Result;
use crate::groth16::domain::root_of_unity;

/// A constant as `FrShoup` of field.cuh: itself out of Montgomery form, and its quotient.
pub(super) type Factor = [u32; 16];

/// Powers of a root of unity that lead from evaluations to coefficients, or back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::backend::cuda) enum Direction {
    Forward,
    Inverse,
}

/// What belongs to a size: roots of unity.
pub(super) struct Roots {
    /// Powers of the primitive root of a part's size, for each length of a part.
    parts: Vec<(u32, Buffer<Factor>)>,
    /// The factors between the first pass and the second, for both directions; none with two passes.
    forward: Option<Buffer<Factor>>,
    inverse: Option<Buffer<Factor>>,
}

impl Roots {
    pub fn new(stream: &Stream, layout: Layout) -> Result<Self> {
        let mut parts: Vec<(u32, Buffer<Factor>)> = Vec::new();
        for bits in [layout.first, layout.second, layout.third] {
            if parts.iter().all(|(length, _)| *length != bits) {
                let table = Table { columns: bits, column: root_of_unity(bits), ..Table::default() };
                parts.push((bits, table.make(stream)?));
            }
        }
        let between = |direction| {
            let root = root(layout.first + layout.second, direction);
            Table { rows: layout.first, columns: layout.second, root, ..Table::default() }.make(stream)
        };
        let three = layout.has_three_passes();
        let forward = three.then(|| between(Direction::Forward)).transpose()?;
        let inverse = three.then(|| between(Direction::Inverse)).transpose()?;
        Ok(Roots { parts, forward, inverse })
    }

    /// What the tables take.
    pub fn bytes(layout: Layout) -> u64 {
        let Layout { first, second, third } = layout;
        let mut parts = vec![first, second, third];
        parts.sort_unstable();
        parts.dedup();
        let between = if layout.has_three_passes() { 2 * bytes(first + second) } else { 0 };
        parts.into_iter().map(bytes).sum::<u64>() + between
    }

    /// The powers for a part of so many bits.
    pub fn of_part(&self, bits: u32) -> Span<Factor> {
        let (_, table) = self.parts.iter().find(|(length, _)| *length == bits).expect("a table for every part");
        table.span()
    }

    /// The factors between the first pass and the second.
    pub fn between(&self, direction: Direction) -> Option<Span<Factor>> {
        let table = match direction {
            Direction::Forward => &self.forward,
            Direction::Inverse => &self.inverse,
        };
        table.as_ref().map(Buffer::span)
    }
}

/// The other factors of a direction. They scale coefficient k by `start * shift^k`: before a forward transform, after
/// an inverse one.
pub(in crate::backend::cuda) struct Scaling {
    /// For each column of the second of three passes, index k1 2^third + n3: out of Montgomery form, and in it.
    pub(super) pairs: Option<Buffer<Factor>>,
    /// Between the second pass and the third: index k2 2^third + n3.
    pub(super) factors: Buffer<Factor>,
    /// For each k3; none if they are all one.
    pub(super) powers: Option<Buffer<Factor>>,
}

impl Scaling {
    pub fn new(stream: &Stream, layout: Layout, direction: Direction, start: Scalar, shift: Scalar) -> Result<Self> {
        let Layout { first, second, third } = layout;
        let power = |bits: u32| shift.pow_vartime([1u64 << bits]);
        let pairs = Table {
            rows: first,
            columns: third,
            pairs: true,
            row: shift,
            root: root(layout.log_size(), direction),
            ..Table::default()
        };
        let factors = Table {
            rows: second,
            columns: third,
            start,
            row: power(first),
            root: root(second + third, direction),
            ..Table::default()
        };
        let powers = Table { columns: third, column: power(first + second), ..Table::default() };
        Ok(Scaling {
            pairs: layout.has_three_passes().then(|| pairs.make(stream)).transpose()?,
            factors: factors.make(stream)?,
            powers: (shift != Scalar::ONE).then(|| powers.make(stream)).transpose()?,
        })
    }

    /// What the tables take without the powers.
    pub fn table_bytes(layout: Layout) -> u64 {
        let pairs = if layout.has_three_passes() { bytes(layout.first + layout.third) } else { 0 };
        pairs + bytes(layout.second + layout.third)
    }

    /// What the powers take where they are not all one.
    pub fn power_bytes(layout: Layout) -> u64 {
        bytes(layout.third)
    }

    pub fn powers(&self) -> Option<Span<Factor>> {
        self.powers.as_ref().map(Buffer::span)
    }
}

/// Of a table of 2^`bits` factors.
fn bytes(bits: u32) -> u64 {
    (size_of::<Factor>() as u64) << bits
}

fn root(log_size: u32, direction: Direction) -> Scalar {
    let root = root_of_unity(log_size);
    match direction {
        Direction::Forward => root,
        // Of order 2^log_size.
        Direction::Inverse => root.pow_vartime([(1u64 << log_size) - 1]),
    }
}

/// 2^rows times 2^columns constants: at (i, j) `start row^i column^j root^(i j)`.
struct Table {
    rows: u32,
    columns: u32,
    /// Pairs of forms instead of constants with quotients.
    pairs: bool,
    start: Scalar,
    row: Scalar,
    column: Scalar,
    root: Scalar,
}

impl Default for Table {
    fn default() -> Self {
        let one = Scalar::ONE;
        Table { rows: 0, columns: 0, pairs: false, start: one, row: one, column: one, root: one }
    }
}

impl Table {
    fn make(&self, stream: &Stream) -> Result<Buffer<Factor>> {
        let count = 1u32 << (self.rows + self.columns);
        let table = stream.gpu().allocate(count as usize, "factors of transforms")?;
        let [start, row, column, root] = [self.start, self.row, self.column, self.root].map(words);
        let args = args![table.span(), self.columns, count, u32::from(self.pairs), start, row, column, root];
        stream.launch("ntt_table", count.div_ceil(THREADS), THREADS, 0, &args)?;
        Ok(table)
    }
}

fn words(value: Scalar) -> [u32; 8] {
    scalar_words(&[value])[0]
}
