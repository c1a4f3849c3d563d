//! Constraint systems that repeat themselves, kept as templates: each distinct block of rows once, with the places and
//! the outside variables of all its occurrences. Gigabytes of rows become megabytes.
//!
//! Templates expand to the recorded rows exactly: the same variables in the same order with the same coefficients.

mod block;
mod compare;
mod evaluate;
mod file;
mod fold;
mod layout;
mod record;
mod spans;
#[cfg(test)]
mod tests;

pub use record::Pass;
pub(super) use spans::Spans;

use self::block::{Block, Expansion};
use super::evaluate::Lookup;
use super::rows::{Dictionary, Rows, INPUT};
use super::system::Densities;
use super::{Bitmap, Matrix, R1cs};
use crate::error::{Error, Result};
use crate::pipeline::Control;

const DURING: &str = "the expansion of templates";

/// A rank-1 constraint system like [`R1cs`], stored as templates.
///
/// Made by [`Templates::record`], or read back by [`ShapeStore`](super::ShapeStore).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Templates {
    dictionary: Dictionary,
    /// The last one is the whole system.
    blocks: Vec<Block>,
    expansion: Expansion,
    densities: Densities,
    full_positions: Vec<u32>,
    lookup: Lookup,
}

impl Templates {
    /// Puts templates together; `None` if they do not hang together. Rows and dictionary are checked already.
    fn from_parts(dictionary: Dictionary, blocks: Vec<Block>) -> Option<Self> {
        let mut expansion = Expansion::of(&blocks)?;
        let mut full_positions = std::mem::take(&mut expansion.full);
        full_positions.sort_unstable();
        let root = blocks.last()?;
        let aux = root.aux;
        let fits = full_positions.windows(2).all(|pair| pair[0] < pair[1]);
        fits.then(|| {
            let densities = densities(&blocks, &expansion);
            let lookup = Lookup::new(aux, &dictionary, &full_positions);
            Templates { dictionary, blocks, expansion, densities, full_positions, lookup }
        })
    }

    fn root(&self) -> &Block {
        self.blocks.last().expect("there is always the whole system")
    }

    /// How many inputs there are, the constant ONE included.
    pub fn num_inputs(&self) -> usize {
        self.root().inputs
    }

    /// How many auxiliary variables there are.
    pub fn num_aux(&self) -> usize {
        self.root().aux
    }

    /// How many rows there are, the appended one per input included.
    pub fn num_rows(&self) -> usize {
        self.expansion.rows
    }

    /// The smallest k with 2^k >= [`Templates::num_rows`].
    pub fn log_domain(&self) -> u32 {
        self.num_rows().next_power_of_two().trailing_zeros()
    }

    /// How many non-zero entries a matrix has.
    pub fn num_entries(&self, matrix: Matrix) -> usize {
        self.expansion.entries[matrix as usize] as usize
    }

    /// How many distinct coefficients the three matrices have; 1 and -1 are always counted.
    pub fn num_coefficients(&self) -> usize {
        self.dictionary.coefficients().len()
    }

    /// How many distinct blocks of rows are stored, the one of the whole system included.
    pub fn num_blocks(&self) -> usize {
        self.blocks.len()
    }

    /// How many rows are stored.
    pub fn num_stored_rows(&self) -> usize {
        self.blocks.iter().map(Block::own_rows).sum()
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

    /// The same system with each row stored.
    ///
    /// # Errors
    /// [`Error::Argument`] if a matrix has 2^32 entries or more; [`Error::Cancelled`], [`Error::Deadline`].
    pub fn expand(&self, control: &Control) -> Result<R1cs> {
        let mut matrices = Vec::with_capacity(3);
        for matrix in [Matrix::A, Matrix::B, Matrix::C] {
            let mut variables = Vec::with_capacity(self.num_entries(matrix));
            let mut patterns = Vec::with_capacity(self.num_rows());
            for piece in &self.expansion.pieces {
                control.check(DURING)?;
                let instance = self.expansion.instances[piece.instance as usize];
                let places = self.expansion.places(&instance);
                let rows = &self.blocks[instance.block as usize].rows[matrix as usize];
                for row in block::rows(piece, rows, &self.dictionary) {
                    patterns.push(row.pattern);
                    variables.extend(row.variables.iter().map(|&number| places(number)));
                }
            }
            matrices.push(Rows::from_parts(variables, patterns, &self.dictionary, self.num_inputs(), self.num_aux()));
        }
        let matrices: Option<Vec<_>> = matrices.into_iter().collect();
        matrices
            .and_then(|matrices| {
                R1cs::from_parts(
                    self.num_inputs(),
                    self.num_aux(),
                    self.dictionary.clone(),
                    matrices.try_into().ok()?,
                    self.densities.clone(),
                    self.full_positions.clone(),
                )
            })
            .ok_or_else(|| Error::Argument {
                name: "circuit",
                detail: format!("its {} rows have too many entries to be stored one by one", self.num_rows()),
            })
    }
}

/// Which variables occur in A and B, found block by block.
fn densities(blocks: &[Block], expansion: &Expansion) -> Densities {
    let root = &blocks[blocks.len() - 1];
    let mut found = [0, 1].map(|_| (Bitmap::zeros(root.inputs), Bitmap::zeros(root.aux)));
    for (matrix, (inputs, aux)) in found.iter_mut().enumerate() {
        let own: Vec<_> = blocks.iter().map(|block| occurring(block, &block.rows[matrix])).collect();
        for instance in &expansion.instances {
            let (slots, inside) = &own[instance.block as usize];
            aux.or_at(instance.base as usize, inside);
            let places = expansion.places(instance);
            for &slot in slots {
                let number = places(slot);
                if number & INPUT == 0 {
                    aux.set(number as usize);
                } else {
                    inputs.set((number & !INPUT) as usize);
                }
            }
        }
    }
    let [(_, a_aux), (b_input, b_aux)] = found;
    Densities { a_aux, b_input, b_aux }
}

/// The slots and the auxiliary variables that occur in a block's own rows of one matrix. The bitmap ends with the last one.
fn occurring(block: &Block, rows: &Rows) -> (Vec<u32>, Bitmap) {
    let mut slots = Bitmap::zeros(block.inputs);
    let inside = rows.variables().iter().filter(|&number| number & INPUT == 0);
    let mut aux = Bitmap::zeros(inside.max().map_or(0, |&last| last as usize + 1));
    for &number in rows.variables() {
        if number & INPUT == 0 {
            aux.set(number as usize);
        } else {
            slots.set((number & !INPUT) as usize);
        }
    }
    (slots.ones().map(|slot| INPUT | slot as u32).collect(), aux)
}
