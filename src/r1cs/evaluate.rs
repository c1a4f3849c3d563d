//! a = A w and its like from a packed witness, in parallel.

use blstrs::Scalar;

use super::rows::Dictionary;
use super::Bitmap;

/// What evaluation looks up.
#[derive(Debug, Clone)]
pub(super) struct Lookup {
    /// The full-width positions as a bitmap.
    full: Bitmap,
    /// How many full-width positions lie before each word of `full`.
    ranks: Vec<u32>,
}

impl Lookup {
    pub(super) fn new(aux: usize, _dictionary: &Dictionary, full_positions: &[u32]) -> Self {
        let mut full = Bitmap::zeros(aux);
        for &position in full_positions {
            full.set(position as usize);
        }
        let mut before = 0;
        let ranks = full
            .words()
            .iter()
            .map(|word| {
                let rank = before;
                before += word.count_ones();
                rank
            })
            .collect();
        Lookup { full, ranks }
    }
}
