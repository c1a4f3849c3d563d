//! a = A w and b = B w on a device, from templates and a packed witness.

use super::gpu::{args, Span, Stream, Words};
use super::shape::{MatrixTables, ShapeTables};
use super::witness::DeviceWitness;
use crate::error::{Error, Result};
use crate::r1cs::Matrix;

pub(super) mod bench;

/// Threads of a block of all kernels of `kernels/r1cs.cu`.
pub(super) const THREADS: u32 = 256;
const WARP: u32 = 32;

/// Blocks of threads for so many threads.
pub(super) fn blocks(threads: usize) -> u32 {
    threads.div_ceil(THREADS as usize) as u32
}

impl ShapeTables {
    /// Queues `out = M w` for A or B, in Montgomery form. `out` has exactly 2^log_domain elements; those past the last row
    /// become zero. What the witness's bits are at full-width positions does not matter.
    ///
    /// # Errors
    /// [`Error::Internal`] for matrix C, which provers do not need, or if `out` has another length; whatever a device may
    /// fail with.
    pub fn evaluate(&self, stream: &Stream, matrix: Matrix, witness: &DeviceWitness, out: Span<Words>) -> Result<()> {
        let rows = match matrix {
            Matrix::A => &self.matrices[0],
            Matrix::B => &self.matrices[1],
            Matrix::C => return Err(Error::internal("matrix C is not on the device")),
        };
        let domain = 1usize << self.sizes.log_domain;
        if out.len() != domain {
            return Err(Error::internal(format!("{} places for an evaluation on {domain} points", out.len())));
        }
        self.evaluate_bits(stream, rows, witness, out)?;
        // These overwrite rows of the former.
        self.evaluate_mixed(stream, rows, witness, out)?;
        self.evaluate_long(stream, rows, witness, out)?;
        stream.zero(out.slice(self.sizes.rows..))
    }

    /// All short rows as though they were over bits.
    fn evaluate_bits(
        &self,
        stream: &Stream,
        rows: &MatrixTables,
        witness: &DeviceWitness,
        out: Span<Words>,
    ) -> Result<()> {
        let tiles = self.tiles.len() - 1;
        let args = args![self.argument(), rows.records.span(), self.sums.span(), witness.bits(), out];
        stream.launch("r1cs_rows", tiles as u32, THREADS, 0, &args)
    }

    /// The short rows that are not.
    fn evaluate_mixed(
        &self,
        stream: &Stream,
        rows: &MatrixTables,
        witness: &DeviceWitness,
        out: Span<Words>,
    ) -> Result<()> {
        let count = rows.mixed.len();
        let args = args![
            self.argument(),
            witness.argument(),
            rows.records.span(),
            self.sums.span(),
            rows.mixed.span(),
            count as u32,
            out,
        ];
        stream.launch("r1cs_mixed_rows", blocks(count), THREADS, 0, &args)
    }

    /// The long rows, a warp each.
    fn evaluate_long(
        &self,
        stream: &Stream,
        rows: &MatrixTables,
        witness: &DeviceWitness,
        out: Span<Words>,
    ) -> Result<()> {
        let count = rows.long.len();
        let args = args![
            self.argument(),
            witness.argument(),
            rows.records.span(),
            rows.long_rows.span(),
            rows.variables.span(),
            self.ids.span(),
            self.coefficients.span(),
            rows.long.span(),
            count as u32,
            out,
        ];
        stream.launch("r1cs_long_rows", blocks(count * WARP as usize), THREADS, 0, &args)
    }

    /// As the kernels take it.
    fn argument(&self) -> [u64; 4] {
        [
            self.tiles.span().address(),
            self.slots.span().address(),
            self.full.words.span().address(),
            self.full.ranks.span().address(),
        ]
    }
}

#[cfg(all(test, feature = "emulator", feature = "tool"))]
mod measure;
#[cfg(all(test, feature = "emulator"))]
mod tests;
