//! Labels: true ones for nodes that may be challenged, made-up ones for the parents that these are hashed from.

use rayon::prelude::*;

use super::made_up::MadeUp;
use super::tree::Indices;
use crate::error::{Error, Result};
use crate::pipeline::Control;
use crate::porep::c1::Node;
use crate::porep::check::{parents, Parents, StackedGraph};
use crate::porep::hashes::{hash_column, label};
use crate::porep::sector::DRG_PARENTS;

/// The labels of some nodes in all layers.
pub(super) struct Columns {
    nodes: Indices,
    /// By layer, and in the order of the nodes.
    layers: Vec<Vec<Node>>,
}

impl Columns {
    /// Labels `nodes` in `layers` layers: those in `labelled` from their parents, which must be among `nodes`, the others
    /// by themselves.
    pub fn new(
        graph: &StackedGraph,
        replica_id: Node,
        layers: usize,
        (nodes, labelled): (Indices, &Indices),
        made_up: MadeUp,
        control: &Control,
    ) -> Result<Self> {
        /// So many nodes' parents are looked for at once.
        const CHUNK: usize = 1 << 14;
        let mut columns = Columns { nodes: nodes.clone(), layers: Vec::with_capacity(layers) };
        for layer in 0..layers {
            columns.layers.push(Vec::with_capacity(nodes.as_slice().len()));
            for chunk in nodes.as_slice().chunks(CHUNK) {
                control.check("the labelling")?;
                let found = |&node: &u32| labelled.position(node).map(|_| parents(graph, node.into())).transpose();
                let found: Vec<Option<Parents>> = chunk.par_iter().map(found).collect::<Result<_>>()?;
                // A parent in the same layer comes before its child.
                for (&node, parents) in chunk.iter().zip(&found) {
                    let label = match parents {
                        Some(parents) => {
                            label(replica_id, layer + 1, node.into(), &columns.parent_labels(layer, parents)?)
                        }
                        None => made_up.short("label", [layer as u64, node.into()]),
                    };
                    columns.layers[layer].push(label);
                }
            }
        }
        Ok(columns)
    }

    /// The label of a node in layer `layer` (from 0).
    fn label(&self, layer: usize, node: u32) -> Result<Node> {
        let label = self.nodes.position(node).and_then(|position| self.layers.get(layer)?.get(position));
        label.copied().ok_or_else(|| Error::internal(format!("node {node} has no label in layer {}", layer + 1)))
    }

    /// The distinct labels that are hashed into the label of a node in layer `layer` (from 0).
    pub fn parent_labels(&self, layer: usize, parents: &Parents) -> Result<Vec<Node>> {
        let (same, before) = parents.split_at(DRG_PARENTS);
        let same = same.iter().map(|&node| self.label(layer, node));
        let before = before.iter().filter(|_| layer > 0).map(|&node| self.label(layer - 1, node));
        same.chain(before).collect()
    }

    /// How many layers there are.
    pub fn layers(&self) -> usize {
        self.layers.len()
    }

    /// A node's labels in all layers.
    pub fn rows(&self, node: u32) -> Result<Vec<Node>> {
        (0..self.layers.len()).map(|layer| self.label(layer, node)).collect()
    }

    /// The key that encodes a node: its last label.
    pub fn key(&self, node: u32) -> Result<Node> {
        self.label(self.layers.len() - 1, node)
    }

    /// The leaves that the columns give in their tree.
    pub fn leaves(&self, control: &Control) -> Result<(Indices, Vec<Node>)> {
        let hash = |&node: &u32| {
            control.check("the hashing of columns")?;
            hash_column(&self.rows(node)?)
        };
        Ok((self.nodes.clone(), self.nodes.as_slice().par_iter().map(hash).collect::<Result<_>>()?))
    }
}
