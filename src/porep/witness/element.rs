//! A node of a C1 output as the circuit has it: a field element, its bits, its bytes as words for SHA-256.

use blstrs::Scalar;
use ff::PrimeField;

use super::sha256::Word;
use super::wires::Wires;
use crate::error::{Error, Result};
use crate::porep::c1::Node;

/// The bit of a node's last big-endian word that is the top bit of its last byte: a constant, as elements have 255 bits.
const TOP_BIT: u32 = 0x80;

/// A field element with its canonical bytes.
#[derive(Clone, Copy)]
pub(super) struct Element {
    pub scalar: Scalar,
    node: Node,
}

impl Element {
    /// # Errors
    /// [`Error::Internal`] if the node is not below the field's modulus, which is checked before.
    pub fn new(node: &Node) -> Result<Self> {
        Ok(Element { scalar: scalar(node)?, node: *node })
    }

    /// The element in the first 254 bits of a SHA-256 digest, read little-endian.
    pub fn from_digest(digest: [u32; 8]) -> Result<Self> {
        let mut bytes = [0; 32];
        for (to, word) in bytes.chunks_exact_mut(4).zip(digest) {
            to.copy_from_slice(&word.to_be_bytes());
        }
        bytes[31] &= 0x3f;
        Element::new(&Node(bytes))
    }

    /// Allocates the element's 255 bits, lowest first, and gives them as SHA-256 reads them.
    pub fn unpack(&self, wires: &mut impl Wires) -> [Word; 8] {
        unpack(&self.node, wires)
    }
}

/// The node as a field element.
///
/// # Errors
/// [`Error::Internal`] if the node is not below the field's modulus, which is checked before.
pub(super) fn scalar(node: &Node) -> Result<Scalar> {
    Scalar::from_repr_vartime(node.0)
        .ok_or_else(|| Error::internal(format!("{node} of a checked C1 output is not below the field's modulus")))
}

/// Allocates a node's 255 bits, lowest first, and gives them as SHA-256 reads them: in bytes, the highest bit of each
/// first.
pub(super) fn unpack(node: &Node, wires: &mut impl Wires) -> [Word; 8] {
    for (index, chunk) in node.0.chunks_exact(8).enumerate() {
        let word = u64::from_le_bytes(chunk.try_into().expect("eight bytes"));
        match index {
            3 => wires.bits(word & (u64::MAX >> 1), 63),
            _ => wires.bits(word, 64),
        }
    }
    std::array::from_fn(|index| {
        let bytes = node.0[4 * index..4 * index + 4].try_into().expect("four bytes");
        let value = u32::from_be_bytes(bytes);
        match index {
            7 => Word::mixed(value & !TOP_BIT, TOP_BIT),
            _ => Word::variables(value),
        }
    })
}
