//! The wires of one challenge, and of what all challenges of a partition share, in the circuit's order. Knows C1
//! outputs, not how wires are kept.

use blstrs::Scalar;

use super::element::{scalar, unpack, Element};
use super::path::{poseidon_path, sha256_path};
use super::poseidon::Poseidon;
use super::sha256::{sha256, Word};
use super::wires::Wires;
use crate::error::{Error, Result};
use crate::porep::c1::{C1Output, ColumnProof, Node, VanillaProof};
use crate::porep::sector::LABEL_PARENTS;

/// Words of a node.
const NODE: usize = 8;

/// Words of what a label is the hash of: the replica id, layer and node in as much space, and the parents.
const LABEL: usize = (2 + LABEL_PARENTS) * NODE;

/// What all challenges of a partition use.
pub(super) struct Shared {
    /// The bits of the replica id.
    replica_id: [Word; NODE],
}

impl Shared {
    /// Allocates what precedes the challenges, and gives it with the inputs that it makes.
    ///
    /// `first` is the partition's first proof, from which the circuit takes the roots.
    pub fn allocate(c1: &C1Output, first: &VanillaProof, wires: &mut impl Wires) -> Result<(Self, Vec<Scalar>)> {
        let replica_id = Element::new(&c1.replica_id)?;
        wires.full(replica_id.scalar);
        let shared = Shared { replica_id: replica_id.unpack(wires) };
        let (comm_d, comm_r) = (scalar(&c1.comm_d)?, scalar(&c1.comm_r)?);
        let comm_r_last = scalar(&first.comm_r_last_proof.root)?;
        let comm_c = scalar(&first.c_x.inclusion_proof.root)?;
        for commitment in [comm_d, comm_r, comm_r_last, comm_c] {
            wires.full(commitment);
        }
        hash(&[comm_c, comm_r_last], wires)?;
        Ok((shared, vec![replica_id.scalar, comm_d, comm_r]))
    }
}

/// Allocates one challenge and gives the inputs that it makes: the indices of the opened nodes.
pub(super) fn challenge(shared: &Shared, proof: &VanillaProof, wires: &mut impl Wires) -> Result<Vec<Scalar>> {
    let mut inputs = Vec::with_capacity(4 + proof.drg_parents.len() + proof.exp_parents.len());
    let data = Element::new(&proof.comm_d_proof.leaf)?;
    wires.full(data.scalar);
    inputs.push(sha256_path(data, &proof.comm_d_proof, wires)?);

    for parent in proof.drg_parents.iter().chain(&proof.exp_parents) {
        let labels = parent.rows.iter().map(scalar).collect::<Result<Vec<_>>>()?;
        labels.iter().for_each(|&label| wires.full(label));
        let column = hash(&labels, wires)?;
        inputs.push(poseidon_path(column, &parent.inclusion_proof, wires)?);
    }

    let node = proof.labeling_proofs.first().ok_or_else(|| Error::internal("a proof without labels"))?.node;
    wires.bits(node, 64);
    inputs.push(Scalar::from(node));

    let labels = (1..=proof.labeling_proofs.len())
        .map(|layer| label(shared, proof, node, layer, wires))
        .collect::<Result<Vec<_>>>()?;
    let key = labels.last().copied().unwrap_or_default();
    let encoded = key + data.scalar;
    wires.full(encoded);
    inputs.push(poseidon_path(encoded, &proof.comm_r_last_proof, wires)?);
    let column = hash(&labels, wires)?;
    inputs.push(poseidon_path(column, &proof.c_x.inclusion_proof, wires)?);
    Ok(inputs)
}

/// Allocates the label of the challenged node in one layer, counted from 1: its parents' bits, then the hash.
fn label(shared: &Shared, proof: &VanillaProof, node: u64, layer: usize, wires: &mut impl Wires) -> Result<Scalar> {
    let mut message = [Word::constant(0); LABEL];
    let (head, parents) = message.split_at_mut(2 * NODE);
    head[..NODE].copy_from_slice(&shared.replica_id);
    head[NODE] = Word::constant(layer as u32);
    head[NODE + 1] = Word::variables((node >> 32) as u32);
    head[NODE + 2] = Word::variables(node as u32);

    // Parents in the same layer; behind the first layer those in the previous one too. They are repeated in order.
    let row = |column: &ColumnProof, layer: usize| -> Result<Node> {
        let row = column.rows.get(layer - 1).copied();
        row.ok_or_else(|| Error::internal(format!("a column without layer {layer}")))
    };
    let mut count = 0;
    let drg = proof.drg_parents.iter().map(|column| row(column, layer));
    let exp = proof.exp_parents.iter().filter(|_| layer > 1).map(|column| row(column, layer - 1));
    for (slot, parent) in parents.chunks_exact_mut(NODE).zip(drg.chain(exp)) {
        slot.copy_from_slice(&unpack(&parent?, wires));
        count += NODE;
    }
    for index in count..parents.len() {
        parents[index] = parents[index - count];
    }

    let label = Element::from_digest(sha256(&message, wires))?.scalar;
    wires.full(label);
    Ok(label)
}

fn hash(preimage: &[Scalar], wires: &mut impl Wires) -> Result<Scalar> {
    let poseidon = Poseidon::for_arity(preimage.len());
    let poseidon = poseidon.ok_or_else(|| Error::internal(format!("a hash of {} elements", preimage.len())))?;
    Ok(poseidon.hash(preimage, wires))
}
