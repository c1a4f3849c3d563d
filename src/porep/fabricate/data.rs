//! The data of a fabricated sector and the binary tree over it, of any size without keeping it.

use super::made_up::MadeUp;
use crate::porep::c1::{MerkleProof, Node, PathElement};
use crate::porep::hashes::hash_data;

/// After how many leaves the data repeats. Being odd, it is also after how many nodes each higher level repeats, so that
/// all levels have as many distinct nodes and none is paired with itself.
const PERIOD: usize = 1021;

/// The distinct nodes of every level, leaves first: a node's index is taken modulo their number.
pub(super) struct Data {
    levels: Vec<Vec<Node>>,
}

impl Data {
    /// Made-up data of `2^depth` nodes.
    pub fn new(depth: usize, made_up: MadeUp) -> Self {
        let distinct = |height: usize| PERIOD.min(1 << (depth - height));
        let leaves = (0..distinct(0)).map(|index| made_up.short("data", [index as u64, 0])).collect();
        let mut levels: Vec<Vec<Node>> = vec![leaves];
        for height in 0..depth {
            let below = &levels[height];
            let child = |index: usize| below[index % below.len()];
            let nodes = (0..distinct(height + 1)).map(|index| hash_data(child(2 * index), child(2 * index + 1)));
            levels.push(nodes.collect());
        }
        Data { levels }
    }

    fn node(&self, height: usize, index: u64) -> Node {
        let nodes = &self.levels[height];
        nodes[(index % nodes.len() as u64) as usize]
    }

    /// The data's node at this index.
    pub fn leaf(&self, index: u64) -> Node {
        self.node(0, index)
    }

    /// comm_d.
    pub fn root(&self) -> Node {
        self.node(self.levels.len() - 1, 0)
    }

    /// The path of a leaf.
    pub fn path(&self, index: u64) -> MerkleProof {
        let level = |height: usize| {
            let index = index >> height;
            PathElement { hashes: vec![self.node(height, index ^ 1)], index: index & 1 }
        };
        let base = (0..self.levels.len() - 1).map(level).collect();
        MerkleProof { leaf: self.leaf(index), root: self.root(), base, sub: None, top: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_node_is_that_of_the_whole_tree() {
        for depth in [0, 1, 6, 9, 10, 11, 13] {
            let data = Data::new(depth, MadeUp::new(7));
            let mut level: Vec<Node> = (0..1 << depth).map(|index| data.leaf(index)).collect();
            for height in 0..=depth {
                let kept: Vec<Node> = (0..level.len()).map(|index| data.node(height, index as u64)).collect();
                assert!(level == kept, "height {height} of {depth}");
                level = level.chunks_exact(2).map(|pair| hash_data(pair[0], pair[1])).collect();
            }
        }
    }
}
