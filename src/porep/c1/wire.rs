//! The JSON of a C1 output as serde sees it: every field named, every sequence bounded, no unknown field.
//!
//! Field names and nesting are those of filecoin-proofs-api. Bounds are the largest of any registered proof, so that
//! hostile input cannot make more memory than a small multiple of its own length.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::{ColumnProof, LabelingProof, MerkleProof, Node, PathElement, VanillaProof};
use crate::porep::sector::{DRG_PARENTS, EXP_PARENTS, LABEL_PARENTS};

/// Partitions of the largest non-interactive proof.
const MAX_PARTITIONS: usize = 126;
const MAX_CHALLENGES: usize = 18;
const MAX_LAYERS: usize = 11;
/// The binary tree over the data of 64 GiB.
const MAX_PATH: usize = 31;
/// Siblings in a tree of arity 8.
const MAX_SIBLINGS: usize = 7;

/// `{"SectorNum":..,"Phase1Out":"..","SectorSize":..}`.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EnvelopeWire<'a> {
    #[serde(rename = "SectorNum")]
    pub sector_number: u64,
    #[serde(rename = "Phase1Out", borrow)]
    pub phase1_output: Cow<'a, str>,
    #[serde(rename = "SectorSize")]
    pub sector_size: u64,
}

/// The C1 output itself, with vanilla proofs that are decoded or not yet.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields, bound(deserialize = "P: Deserialize<'de>"))]
pub(super) struct C1Wire<P> {
    pub registered_proof: String,
    pub vanilla_proofs: TaggedProofs<P>,
    pub comm_r: Node,
    pub comm_d: Node,
    pub replica_id: Node,
    pub seed: Node,
    pub ticket: Node,
}

/// `{tag: [[proof, ..], ..]}`.
pub(super) struct TaggedProofs<P> {
    pub tag: String,
    pub proofs: Vec<Vec<P>>,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields, rename = "vanilla proof")]
struct VanillaWire {
    comm_d_proofs: MerkleProof,
    comm_r_last_proof: MerkleProof,
    replica_column_proofs: ReplicaColumnWire,
    #[serde(deserialize_with = "bounded::<_, _, MAX_LAYERS>")]
    labeling_proofs: Vec<LabelingProof>,
    encoding_proof: LabelingProof,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct ReplicaColumnWire {
    c_x: ColumnProof,
    #[serde(deserialize_with = "bounded::<_, _, DRG_PARENTS>")]
    drg_parents: Vec<ColumnProof>,
    #[serde(deserialize_with = "bounded::<_, _, EXP_PARENTS>")]
    exp_parents: Vec<ColumnProof>,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct ColumnProofWire {
    column: ColumnWire,
    inclusion_proof: MerkleProof,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct ColumnWire {
    index: u32,
    #[serde(deserialize_with = "bounded::<_, _, MAX_LAYERS>")]
    rows: Vec<Node>,
    #[serde(default)]
    _h: Option<()>,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct LabelingWire {
    #[serde(deserialize_with = "bounded::<_, _, LABEL_PARENTS>")]
    parents: Vec<Node>,
    layer_index: u32,
    node: u64,
    #[serde(default)]
    _h: Option<()>,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct MerkleProofWire {
    data: ProofDataWire,
}

#[derive(serde::Deserialize)]
enum ProofDataWire {
    Single(SingleWire),
    Sub(SubWire),
    Top(TopWire),
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct SingleWire {
    root: Node,
    leaf: Node,
    path: PathWire,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct SubWire {
    base_proof: PathWire,
    sub_proof: PathWire,
    root: Node,
    leaf: Node,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct TopWire {
    base_proof: PathWire,
    sub_proof: PathWire,
    top_proof: PathWire,
    root: Node,
    leaf: Node,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct PathWire {
    #[serde(deserialize_with = "bounded::<_, _, MAX_PATH>")]
    path: Vec<PathElement>,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct PathElementWire {
    #[serde(deserialize_with = "bounded::<_, _, MAX_SIBLINGS>")]
    hashes: Vec<Node>,
    index: u64,
}

/// Deserialises a type through its wire form.
macro_rules! through_wire {
    ($domain:ty, $wire:ty, |$from:ident| $into:expr) => {
        impl<'de> Deserialize<'de> for $domain {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let $from = <$wire>::deserialize(deserializer)?;
                Ok($into)
            }
        }
    };
}

through_wire!(VanillaProof, VanillaWire, |wire| VanillaProof {
    comm_d_proof: wire.comm_d_proofs,
    comm_r_last_proof: wire.comm_r_last_proof,
    c_x: wire.replica_column_proofs.c_x,
    drg_parents: wire.replica_column_proofs.drg_parents,
    exp_parents: wire.replica_column_proofs.exp_parents,
    labeling_proofs: wire.labeling_proofs,
    encoding_proof: wire.encoding_proof,
});

through_wire!(ColumnProof, ColumnProofWire, |wire| ColumnProof {
    index: wire.column.index,
    rows: wire.column.rows,
    inclusion_proof: wire.inclusion_proof,
});

through_wire!(LabelingProof, LabelingWire, |wire| LabelingProof {
    parents: wire.parents,
    layer_index: wire.layer_index,
    node: wire.node,
});

through_wire!(PathElement, PathElementWire, |wire| PathElement { hashes: wire.hashes, index: wire.index });

through_wire!(MerkleProof, MerkleProofWire, |wire| match wire.data {
    ProofDataWire::Single(single) => {
        MerkleProof { leaf: single.leaf, root: single.root, base: single.path.path, sub: None, top: None }
    }
    ProofDataWire::Sub(sub) => MerkleProof {
        leaf: sub.leaf,
        root: sub.root,
        base: sub.base_proof.path,
        sub: Some(sub.sub_proof.path),
        top: None,
    },
    ProofDataWire::Top(top) => MerkleProof {
        leaf: top.leaf,
        root: top.root,
        base: top.base_proof.path,
        sub: Some(top.sub_proof.path),
        top: Some(top.top_proof.path),
    },
});

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Bytes;

        impl<'de> Visitor<'de> for Bytes {
            type Value = Node;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("32 bytes as numbers")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Node, A::Error> {
                let mut bytes = [0; 32];
                for (count, byte) in bytes.iter_mut().enumerate() {
                    *byte = seq.next_element()?.ok_or_else(|| A::Error::invalid_length(count, &self))?;
                }
                match seq.next_element::<IgnoredAny>()? {
                    None => Ok(Node(bytes)),
                    Some(_) => Err(A::Error::invalid_length(33, &self)),
                }
            }
        }

        deserializer.deserialize_seq(Bytes)
    }
}

impl<'de, P: Deserialize<'de>> Deserialize<'de> for TaggedProofs<P> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Tagged<P>(PhantomData<P>);

        impl<'de, P: Deserialize<'de>> Visitor<'de> for Tagged<P> {
            type Value = TaggedProofs<P>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of one proof type and its partitions")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<TaggedProofs<P>, A::Error> {
                let tag = map.next_key()?.ok_or_else(|| A::Error::invalid_length(0, &self))?;
                let Partitions::<P>(partitions) = map.next_value()?;
                let proofs = partitions.into_iter().map(|Challenges(proofs)| proofs).collect();
                match map.next_key::<IgnoredAny>()? {
                    None => Ok(TaggedProofs { tag, proofs }),
                    Some(_) => Err(A::Error::custom("vanilla_proofs has more than one proof type")),
                }
            }
        }

        deserializer.deserialize_map(Tagged(PhantomData))
    }
}

/// The partitions' proofs, by partition and challenge.
#[derive(serde::Deserialize)]
#[serde(transparent, bound(deserialize = "P: Deserialize<'de>"))]
struct Partitions<P>(#[serde(deserialize_with = "bounded::<_, _, MAX_PARTITIONS>")] Vec<Challenges<P>>);

#[derive(serde::Deserialize)]
#[serde(transparent, bound(deserialize = "P: Deserialize<'de>"))]
struct Challenges<P>(#[serde(deserialize_with = "bounded::<_, _, MAX_CHALLENGES>")] Vec<P>);

/// A sequence of at most `MAX` elements.
fn bounded<'de, D, T, const MAX: usize>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    struct AtMost<T, const MAX: usize>(PhantomData<T>);

    impl<'de, T: Deserialize<'de>, const MAX: usize> Visitor<'de> for AtMost<T, MAX> {
        type Value = Vec<T>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "at most {MAX} elements")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Vec<T>, A::Error> {
            let mut elements = Vec::new();
            while let Some(element) = seq.next_element()? {
                if elements.len() == MAX {
                    return Err(A::Error::invalid_length(MAX + 1, &self));
                }
                elements.push(element);
            }
            Ok(elements)
        }
    }

    deserializer.deserialize_seq(AtMost::<T, MAX>(PhantomData))
}
