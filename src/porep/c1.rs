//! The output of seal commit phase 1 as data: own types that trust nothing. Knows the form of the JSON, not whether
//! anything in it is true; that is for [`check`](super::check()).

mod decode;
mod encode;
mod form;
mod wire;

use std::fmt;

use super::sector::RegisteredProof;

/// The longest input that is looked at, in bytes.
///
/// The largest C1 output is that of a non-interactive 64 GiB proof, about 500 MB of JSON, and a third more in the
/// envelope's base64.
pub const MAX_C1_BYTES: usize = 768 << 20;

/// Thirty-two bytes: a field element in little-endian order, or a SHA-256 value with its top bits cleared.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Node(pub [u8; 32]);

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Node({self})")
    }
}

/// What a node's tool may wrap around a C1 output: the numbers that the caller passes as arguments too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Envelope {
    /// `SectorNum`.
    pub sector_number: u64,
    /// `SectorSize`, in bytes.
    pub sector_size: u64,
}

/// A decoded C1 output: right in form, with nothing checked.
#[derive(Debug, Clone)]
pub struct C1Output {
    pub(crate) registered_proof: RegisteredProof,
    /// The tag around the vanilla proofs, which names the sector size once more.
    pub(crate) inner_tag: String,
    /// By partition and challenge.
    pub(crate) vanilla_proofs: Vec<Vec<VanillaProof>>,
    pub(crate) comm_r: Node,
    pub(crate) comm_d: Node,
    pub(crate) replica_id: Node,
    pub(crate) seed: Node,
    pub(crate) ticket: Node,
    pub(crate) envelope: Option<Envelope>,
}

impl C1Output {
    /// Bytes of memory that it takes.
    pub(crate) fn bytes(&self) -> u64 {
        let proofs: usize = self.vanilla_proofs.iter().flatten().map(VanillaProof::bytes).sum();
        (size_of::<Self>() + proofs + self.vanilla_proofs.len() * size_of::<Vec<VanillaProof>>()) as u64
    }

    /// The registered proof that the output claims.
    pub fn registered_proof(&self) -> RegisteredProof {
        self.registered_proof
    }

    /// Partitions that are present.
    pub fn partitions(&self) -> usize {
        self.vanilla_proofs.len()
    }

    /// The commitment to the replica.
    pub fn comm_r(&self) -> Node {
        self.comm_r
    }

    /// The commitment to the data.
    pub fn comm_d(&self) -> Node {
        self.comm_d
    }

    /// The replica id that the output claims.
    pub fn replica_id(&self) -> Node {
        self.replica_id
    }

    /// The randomness of the challenges.
    pub fn seed(&self) -> Node {
        self.seed
    }

    /// The randomness of the replica id.
    pub fn ticket(&self) -> Node {
        self.ticket
    }

    /// The envelope's numbers, where there was one.
    pub fn envelope(&self) -> Option<Envelope> {
        self.envelope
    }
}

/// All that is opened for one challenge.
#[derive(Debug, Clone)]
pub(crate) struct VanillaProof {
    /// Path of the data node in the binary SHA-256 tree under comm_d.
    pub comm_d_proof: MerkleProof,
    /// Path of the encoded node in the tree over the replica.
    pub comm_r_last_proof: MerkleProof,
    /// The challenged node's column.
    pub c_x: ColumnProof,
    /// Columns of the parents in the same layer.
    pub drg_parents: Vec<ColumnProof>,
    /// Columns of the parents in the previous layer.
    pub exp_parents: Vec<ColumnProof>,
    /// By layer, from 1.
    pub labeling_proofs: Vec<LabelingProof>,
    pub encoding_proof: LabelingProof,
}

impl VanillaProof {
    fn bytes(&self) -> usize {
        let columns = [&self.drg_parents, &self.exp_parents].into_iter().flatten();
        let columns = columns.map(|column| size_of::<ColumnProof>() + column.bytes()).sum::<usize>() + self.c_x.bytes();
        let labels = self.labeling_proofs.iter();
        let labels = labels.map(|proof| size_of::<LabelingProof>() + proof.parents.len() * size_of::<Node>());
        size_of::<Self>()
            + self.comm_d_proof.bytes()
            + self.comm_r_last_proof.bytes()
            + columns
            + labels.sum::<usize>()
            + self.encoding_proof.parents.len() * size_of::<Node>()
    }
}

impl ColumnProof {
    fn bytes(&self) -> usize {
        self.rows.len() * size_of::<Node>() + self.inclusion_proof.bytes()
    }
}

/// The labels of one node, by layer, and their path in the tree over columns.
#[derive(Debug, Clone)]
pub(crate) struct ColumnProof {
    pub index: u32,
    pub rows: Vec<Node>,
    pub inclusion_proof: MerkleProof,
}

/// The labels that are hashed into a label, or into the key that encodes a node.
#[derive(Debug, Clone)]
pub(crate) struct LabelingProof {
    pub parents: Vec<Node>,
    pub layer_index: u32,
    pub node: u64,
}

/// A path from a leaf to a root: the base tree's part, then those of the sub tree and the top tree where there are any.
#[derive(Debug, Clone)]
pub(crate) struct MerkleProof {
    pub leaf: Node,
    pub root: Node,
    pub base: Vec<PathElement>,
    pub sub: Option<Vec<PathElement>>,
    pub top: Option<Vec<PathElement>>,
}

impl MerkleProof {
    fn bytes(&self) -> usize {
        self.path().map(|element| size_of::<PathElement>() + element.hashes.len() * size_of::<Node>()).sum()
    }

    /// All levels, from the leaf.
    pub fn path(&self) -> impl Iterator<Item = &PathElement> {
        self.base.iter().chain(self.sub.iter().flatten()).chain(self.top.iter().flatten())
    }
}

/// One level of a path: the siblings in order, and the place of the path's own node among them.
#[derive(Debug, Clone)]
pub(crate) struct PathElement {
    pub hashes: Vec<Node>,
    pub index: u64,
}
