//! Templates as plain data for a device.

use super::Templates;
use crate::r1cs::layout::Layout;

impl Templates {
    /// The rows as they are stored: each block once, and where its occurrences lie.
    pub fn layout(&self) -> Layout<'_> {
        let blocks = self.blocks.iter().map(|block| &block.rows);
        Layout::new(&self.dictionary, blocks, self.expansion.slots().into(), self.expansion.runs())
    }
}
