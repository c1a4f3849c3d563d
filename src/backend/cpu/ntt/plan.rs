//! The two passes over memory of one transform. Knows no field representation.

use blstrs::Scalar;
use ff::{Field, PrimeField};
use rayon::prelude::*;

use super::kernel::Tree;
use super::vector::Eight;
use super::{inverse_of, reverse_bits, Direction};
use crate::backend::cpu::lane::prefetch;
use crate::backend::cpu::shared::SharedSlice;
use crate::error::Result;
use crate::groth16::domain::root_of_unity;
use crate::pipeline::Control;

/// How many rows ahead memory is asked for: rows lie so far apart that the core does not guess them.
const AHEAD: usize = 16;

/// Factors of one direction for N = 2^`log_rows` * 2^`log_columns`.
pub(super) struct Plan<V: Eight> {
    log_rows: u32,
    log_columns: u32,
    /// Over the row index: transforms of columns.
    column_tree: Tree<V>,
    /// Over the column index: transforms of rows.
    row_tree: Tree<V>,
    /// The factor of output k1 of column c is `first[c] * ratio[c]^k1`; eight columns a vector.
    first: Vec<V>,
    ratio: Vec<V>,
    /// Factors of the outputs k2 of every row, if they are not all one.
    output: Option<Vec<V::Factor>>,
}

impl<V: Eight> Plan<V> {
    /// `log_size` is at least 6.
    pub(super) fn new(log_size: u32, direction: Direction) -> Self {
        let log_rows = log_size / 2;
        let log_columns = log_size - log_rows;
        let (rows, columns) = (1u64 << log_rows, 1u64 << log_columns);
        let inverted = matches!(direction, Direction::Inverse | Direction::CosetInverse);
        let root = |log| if inverted { inverse_of(root_of_unity(log)) } else { root_of_unity(log) };
        let generator = Scalar::MULTIPLICATIVE_GENERATOR;
        let one = Scalar::ONE;
        // Input index r C + c, output index k1 + R k2: powers of the generator split accordingly.
        let size_inverse = || inverse_of(Scalar::from(1u64 << log_size));
        let (column_shift, first, first_ratio, ratio) = match direction {
            Direction::Forward => (one, one, one, one),
            Direction::Inverse => (one, size_inverse(), one, one),
            Direction::CosetForward => (generator.pow_vartime([columns]), one, generator, one),
            Direction::CosetInverse => (one, size_inverse(), one, inverse_of(generator)),
        };
        let output = (direction == Direction::CosetInverse).then(|| {
            let step = inverse_of(generator).pow_vartime([rows]);
            powers(one, step, columns as usize).iter().map(V::factor).collect()
        });
        Plan {
            log_rows,
            log_columns,
            column_tree: Tree::new(log_rows, root(log_rows), column_shift),
            row_tree: Tree::new(log_columns, root(log_columns), one),
            first: eights(&powers(first, first_ratio, columns as usize)),
            ratio: eights(&powers(ratio, root(log_size), columns as usize)),
            output,
        }
    }

    /// First pass: transforms the columns of `values` into `scratch`, eight columns a vector, row-major.
    pub(super) fn columns(&self, values: &[Scalar], scratch: &mut [V], control: &Control) -> Result<()> {
        let (rows, blocks) = (1usize << self.log_rows, 1usize << (self.log_columns - 3));
        let target = SharedSlice::new(scratch);
        tasks(blocks).into_par_iter().try_for_each(|task| {
            let mut buffer = vec![V::ZERO; rows];
            for block in task {
                control.check("a transform")?;
                V::enter(
                    #[inline(always)]
                    || {
                        for (row, vector) in buffer.iter_mut().enumerate() {
                            prefetch(
                                values
                                    .as_ptr()
                                    .wrapping_add(((row + AHEAD) * blocks + block) * 8)
                                    .cast::<[Scalar; 8]>(),
                            );
                            *vector = V::load(eight(values, (row * blocks + block) * 8));
                        }
                        self.column_tree.transform(&mut buffer);
                        let mut factors = self.first[block];
                        for row in 0..rows {
                            let vector = &mut buffer[reverse_bits(row, self.log_rows)];
                            vector.multiply(&factors);
                            factors.multiply(&self.ratio[block]);
                            target.bring((row + AHEAD) * blocks + block);
                            // SAFETY: no other task writes vectors of this column block.
                            unsafe { target.write(row * blocks + block, *vector) };
                        }
                    },
                );
            }
            Ok(())
        })
    }

    /// Second pass: transforms the rows in `scratch` into the columns of `values`.
    pub(super) fn rows(&self, scratch: &[V], values: &mut [Scalar], control: &Control) -> Result<()> {
        let (columns, blocks) = (1usize << self.log_columns, 1usize << (self.log_rows - 3));
        let width = columns / 8;
        let target = SharedSlice::new(values);
        tasks(blocks).into_par_iter().try_for_each(|task| {
            let mut buffer = vec![V::ZERO; columns];
            for block in task {
                control.check("a transform")?;
                V::enter(
                    #[inline(always)]
                    || {
                        for (part, square) in buffer.chunks_exact_mut(8).enumerate() {
                            let square: &mut [V; 8] = square.try_into().unwrap();
                            for (row, vector) in square.iter_mut().enumerate() {
                                *vector = scratch[(block * 8 + row) * width + part];
                            }
                            V::transpose(square);
                        }
                        self.row_tree.transform(&mut buffer);
                        for column in 0..columns {
                            let vector = &mut buffer[reverse_bits(column, self.log_columns)];
                            if let Some(output) = &self.output {
                                vector.scale(&output[column]);
                            }
                            target.bring_array::<8>(((column + AHEAD) * blocks + block) * 8);
                            // SAFETY: no other task touches these eight elements of any row of the result.
                            let part = unsafe { target.slice_mut((column * blocks + block) * 8, 8) };
                            vector.store(part.try_into().unwrap());
                        }
                    },
                );
            }
            Ok(())
        })
    }
}

/// `blocks` indices in runs, a few for each thread.
fn tasks(blocks: usize) -> Vec<std::ops::Range<usize>> {
    let run = blocks.div_ceil(4 * rayon::current_num_threads()).max(1);
    (0..blocks).step_by(run).map(|start| start..(start + run).min(blocks)).collect()
}

fn eight(values: &[Scalar], start: usize) -> &[Scalar; 8] {
    values[start..start + 8].try_into().unwrap()
}

fn powers(first: Scalar, ratio: Scalar, count: usize) -> Vec<Scalar> {
    std::iter::successors(Some(first), |last| Some(*last * ratio)).take(count).collect()
}

fn eights<V: Eight>(values: &[Scalar]) -> Vec<V> {
    values.chunks_exact(8).map(|part| V::factors(part.try_into().unwrap())).collect()
}
