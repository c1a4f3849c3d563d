//! Poseidon trees of any size of which only what lies above given leaves is computed; every other node is made up.

use rayon::prelude::*;

use super::made_up::MadeUp;
use crate::error::Result;
use crate::pipeline::Control;
use crate::porep::c1::{MerkleProof, Node, PathElement};
use crate::porep::hashes::hash_siblings;
use crate::porep::sector::SectorSize;

/// Indices in ascending order, to be found again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Indices(Vec<u32>);

impl Indices {
    /// All below `count`.
    pub fn all(count: u32) -> Self {
        Indices((0..count).collect())
    }

    /// The distinct ones of these.
    pub fn of(indices: impl IntoIterator<Item = u32>) -> Self {
        let mut indices: Vec<u32> = indices.into_iter().collect();
        indices.sort_unstable();
        indices.dedup();
        Indices(indices)
    }

    pub fn as_slice(&self) -> &[u32] {
        &self.0
    }

    /// Where the index stands among these.
    pub fn position(&self, index: u32) -> Option<usize> {
        // Where nothing is left out, each stands at its own place.
        if self.0.get(index as usize) == Some(&index) {
            return Some(index as usize);
        }
        self.0.binary_search(&index).ok()
    }

    /// The distinct parents of these nodes.
    fn parents(&self, arity: u32) -> Self {
        let mut parents: Vec<u32> = self.0.iter().map(|index| index / arity).collect();
        parents.dedup();
        Indices(parents)
    }
}

/// The computed nodes of one level.
struct Level {
    indices: Indices,
    nodes: Vec<Node>,
}

/// A tree of a sector size's shape.
pub(super) struct Tree {
    size: SectorSize,
    /// What its made-up nodes are for.
    name: &'static str,
    made_up: MadeUp,
    arities: Vec<usize>,
    /// From the leaves to the root.
    levels: Vec<Level>,
}

impl Tree {
    /// Computes what lies above these leaves, of which there must be one.
    pub fn new(
        size: SectorSize,
        name: &'static str,
        made_up: MadeUp,
        (indices, nodes): (Indices, Vec<Node>),
        control: &Control,
    ) -> Result<Self> {
        let arities = size.path_arities();
        let mut tree = Tree { size, name, made_up, arities, levels: vec![Level { indices, nodes }] };
        for (height, arity) in size.path_arities().into_iter().enumerate() {
            let indices = tree.levels[height].indices.parents(arity as u32);
            let hash = |&index: &u32| {
                control.check("the hashing of a tree")?;
                Ok(hash_siblings(tree.children(height, index).map(|node| node.0).collect::<Vec<_>>().as_flattened()))
            };
            let nodes = indices.as_slice().par_iter().map(hash).collect::<Result<_>>()?;
            tree.levels.push(Level { indices, nodes });
        }
        Ok(tree)
    }

    fn node(&self, height: usize, index: u32) -> Node {
        let level = &self.levels[height];
        match level.indices.position(index) {
            Some(position) => level.nodes[position],
            None => self.made_up.element(self.name, [height as u64, index.into()]),
        }
    }

    /// The nodes at `height` below node `parent` of the next level.
    fn children(&self, height: usize, parent: u32) -> impl Iterator<Item = Node> + '_ {
        let arity = self.arities[height] as u32;
        (0..arity).map(move |child| self.node(height, parent * arity + child))
    }

    pub fn root(&self) -> Node {
        self.node(self.arities.len(), 0)
    }

    /// The path of a leaf.
    pub fn path(&self, leaf: u32) -> MerkleProof {
        let mut index = leaf;
        let mut level = |height: usize| {
            let arity = self.arities[height] as u32;
            let (parent, place) = (index / arity, (index % arity) as usize);
            let siblings = self.children(height, parent).enumerate().filter(|&(child, _)| child != place);
            index = parent;
            PathElement { hashes: siblings.map(|(_, node)| node).collect(), index: place as u64 }
        };
        let base_len = self.size.base_path_len();
        let base = (0..base_len).map(&mut level).collect();
        let mut upper = (base_len..self.arities.len()).map(|height| vec![level(height)]);
        let (sub, top) = (upper.next(), upper.next());
        MerkleProof { leaf: self.node(0, leaf), root: self.root(), base, sub, top }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaf(index: u32) -> Node {
        MadeUp::new(1).element("leaf", [index.into(), 0])
    }

    /// Where a path of checked shape leads.
    fn climb(proof: &MerkleProof) -> Node {
        proof.path().fold(proof.leaf, |node, level| {
            let mut nodes = level.hashes.clone();
            nodes.insert(level.index as usize, node);
            hash_siblings(nodes.iter().map(|node| node.0).collect::<Vec<_>>().as_flattened())
        })
    }

    #[test]
    fn indices_are_found_where_they_stand() {
        for indices in [Indices::all(9), Indices::of([0, 1, 4, 5, 8, 1, 0]), Indices::of([3]), Indices::of([7, 2, 5])] {
            for (position, &index) in indices.as_slice().iter().enumerate() {
                assert_eq!(indices.position(index), Some(position));
            }
            for index in (0..20).filter(|index| !indices.as_slice().contains(index)) {
                assert_eq!(indices.position(index), None);
            }
        }
        assert_eq!(Indices::of([0, 7, 8, 63, 64]).parents(8), Indices::of([0, 1, 7, 8]));
    }

    #[test]
    fn a_tree_of_all_leaves_is_the_whole_tree() {
        let size = SectorSize::KiB2;
        let count = size.nodes() as u32;
        let mut level: Vec<Node> = (0..count).map(leaf).collect();
        let leaves = (Indices::all(count), level.clone());
        let tree = Tree::new(size, "tree", MadeUp::new(1), leaves, &Control::new()).unwrap();
        while level.len() > 1 {
            let hash =
                |nodes: &[Node]| hash_siblings(nodes.iter().flat_map(|node| node.0).collect::<Vec<_>>().as_ref());
            level = level.chunks(8).map(hash).collect();
        }
        assert_eq!(tree.root(), level[0]);
        assert!((0..count).all(|index| tree.path(index).leaf == leaf(index) && climb(&tree.path(index)) == level[0]));
    }

    #[test]
    fn the_paths_of_a_few_leaves_lead_to_the_root_in_every_size() {
        for size in SectorSize::ALL {
            let last = size.nodes() as u32 - 1;
            let indices = Indices::of([0, 1, 9, last / 3, last / 2, last / 2 + 1, last]);
            let nodes = indices.as_slice().iter().map(|&index| leaf(index)).collect();
            let tree = Tree::new(size, "tree", MadeUp::new(1), (indices.clone(), nodes), &Control::new()).unwrap();
            for &index in indices.as_slice() {
                let path = tree.path(index);
                assert_eq!((path.leaf, path.root, climb(&path)), (leaf(index), tree.root(), tree.root()), "{size}");
            }
        }
    }
}
