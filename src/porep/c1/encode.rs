//! From [`C1Output`] to bytes: the JSON as nodes write it, with the same fields in the same order and no white space.

use serde::ser::{Serialize, SerializeMap, Serializer};

use super::{C1Output, ColumnProof, LabelingProof, MerkleProof, Node, PathElement, VanillaProof};
use crate::error::{Error, Result};

impl C1Output {
    /// The JSON of filecoin-proofs-api's `SealCommitPhase1Output`, byte for byte; without the envelope, where there was
    /// one.
    ///
    /// # Errors
    /// [`Error::Internal`] only.
    pub fn encode(&self) -> Result<Vec<u8>> {
        serde_json::to_vec(&self.wire()).map_err(|error| Error::internal(format!("JSON of a C1 output: {error}")))
    }

    fn wire(&self) -> C1Wire<'_> {
        C1Wire {
            registered_proof: self.registered_proof.name(),
            vanilla_proofs: Tagged { tag: &self.inner_tag, proofs: &self.vanilla_proofs },
            comm_r: self.comm_r,
            comm_d: self.comm_d,
            replica_id: self.replica_id,
            seed: self.seed,
            ticket: self.ticket,
        }
    }
}

#[derive(serde::Serialize)]
struct C1Wire<'a> {
    registered_proof: &'a str,
    vanilla_proofs: Tagged<'a>,
    comm_r: Node,
    comm_d: Node,
    replica_id: Node,
    seed: Node,
    ticket: Node,
}

/// `{tag: [[proof, ..], ..]}`.
struct Tagged<'a> {
    tag: &'a str,
    proofs: &'a [Vec<VanillaProof>],
}

impl Serialize for Tagged<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(1))?;
        map.serialize_entry(self.tag, self.proofs)?;
        map.end()
    }
}

#[derive(serde::Serialize)]
struct VanillaWire<'a> {
    comm_d_proofs: &'a MerkleProof,
    comm_r_last_proof: &'a MerkleProof,
    replica_column_proofs: ReplicaColumnWire<'a>,
    labeling_proofs: &'a [LabelingProof],
    encoding_proof: &'a LabelingProof,
}

#[derive(serde::Serialize)]
struct ReplicaColumnWire<'a> {
    c_x: &'a ColumnProof,
    drg_parents: &'a [ColumnProof],
    exp_parents: &'a [ColumnProof],
}

#[derive(serde::Serialize)]
struct ColumnProofWire<'a> {
    column: ColumnWire<'a>,
    inclusion_proof: &'a MerkleProof,
}

#[derive(serde::Serialize)]
struct ColumnWire<'a> {
    index: u32,
    rows: &'a [Node],
    /// Written as `null`: the marker of a type.
    _h: (),
}

#[derive(serde::Serialize)]
struct LabelingWire<'a> {
    parents: &'a [Node],
    layer_index: u32,
    node: u64,
}

#[derive(serde::Serialize)]
struct MerkleProofWire<'a> {
    data: ProofDataWire<'a>,
}

#[derive(serde::Serialize)]
enum ProofDataWire<'a> {
    Single { root: Node, leaf: Node, path: PathWire<'a> },
    Sub { base_proof: PathWire<'a>, sub_proof: PathWire<'a>, root: Node, leaf: Node },
    Top { base_proof: PathWire<'a>, sub_proof: PathWire<'a>, top_proof: PathWire<'a>, root: Node, leaf: Node },
}

#[derive(serde::Serialize)]
struct PathWire<'a> {
    path: &'a [PathElement],
}

#[derive(serde::Serialize)]
struct PathElementWire<'a> {
    hashes: &'a [Node],
    index: u64,
}

/// Serialises a type through its wire form.
macro_rules! through_wire {
    ($domain:ty, |$from:ident| $into:expr) => {
        impl Serialize for $domain {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let $from = self;
                $into.serialize(serializer)
            }
        }
    };
}

through_wire!(VanillaProof, |proof| VanillaWire {
    comm_d_proofs: &proof.comm_d_proof,
    comm_r_last_proof: &proof.comm_r_last_proof,
    replica_column_proofs: ReplicaColumnWire {
        c_x: &proof.c_x,
        drg_parents: &proof.drg_parents,
        exp_parents: &proof.exp_parents,
    },
    labeling_proofs: &proof.labeling_proofs,
    encoding_proof: &proof.encoding_proof,
});

through_wire!(ColumnProof, |proof| ColumnProofWire {
    column: ColumnWire { index: proof.index, rows: &proof.rows, _h: () },
    inclusion_proof: &proof.inclusion_proof,
});

through_wire!(LabelingProof, |proof| LabelingWire {
    parents: &proof.parents,
    layer_index: proof.layer_index,
    node: proof.node,
});

through_wire!(MerkleProof, |proof| {
    let (root, leaf, base) = (proof.root, proof.leaf, path(&proof.base));
    let data = match (&proof.sub, &proof.top) {
        (None, _) => ProofDataWire::Single { root, leaf, path: base },
        (Some(sub), None) => ProofDataWire::Sub { base_proof: base, sub_proof: path(sub), root, leaf },
        (Some(sub), Some(top)) => {
            ProofDataWire::Top { base_proof: base, sub_proof: path(sub), top_proof: path(top), root, leaf }
        }
    };
    MerkleProofWire { data }
});

through_wire!(PathElement, |element| PathElementWire { hashes: &element.hashes, index: element.index });

through_wire!(Node, |node| node.0);

fn path(path: &[PathElement]) -> PathWire<'_> {
    PathWire { path }
}
