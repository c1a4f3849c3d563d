//! Which wires are field elements by the gadgets' own account. Knows no values.

use blstrs::Scalar;

use super::challenge::{challenge, Shared};
use super::wires::Layout;
use crate::error::{Error, Result};
use crate::porep::c1::{C1Output, ColumnProof, LabelingProof, MerkleProof, Node, PathElement, VanillaProof};
use crate::porep::sector::{ProofKind, RegisteredProof, SectorSize, DRG_PARENTS, EXP_PARENTS, LABEL_PARENTS};

const ZERO: Node = Node([0; 32]);

/// The positions among the auxiliary variables, ascending, where the circuit of this sector size has a field element
/// rather than a bit.
///
/// They are those that `R1cs::full_positions` finds in the recorded rows, known without recording.
///
/// # Errors
/// [`Error::Internal`] only.
pub fn full_positions(size: SectorSize) -> Result<Vec<u32>> {
    let c1 = zero_c1(size);
    let proof = &c1.vanilla_proofs[0][0];
    let mut head = Layout::default();
    let (shared, _) = Shared::allocate(&c1, proof, &mut head)?;
    let mut block = Layout::default();
    let _: Vec<Scalar> = challenge(&shared, proof, &mut block)?;

    let challenges = size.challenges_per_partition();
    let count = head.count + challenges * block.count;
    let expected = size.parameters().counts.aux;
    if count != expected {
        return Err(Error::internal(format!("{count} wires for {size}, whose circuit has {expected}")));
    }
    let blocks = (0..challenges).flat_map(|index| {
        let start = head.count + index * block.count;
        block.full.iter().map(move |position| start + position)
    });
    Ok(head.full.iter().copied().chain(blocks).map(|position| position as u32).collect())
}

/// A C1 output of one partition with one challenge, of the right form and with zeros everywhere.
fn zero_c1(size: SectorSize) -> C1Output {
    let registered_proof = RegisteredProof::new(size, ProofKind::V1_1);
    let level = |arity: usize| PathElement { hashes: vec![ZERO; arity - 1], index: 0 };
    let path = |len: usize, [base, sub, top]: [usize; 3]| MerkleProof {
        leaf: ZERO,
        root: ZERO,
        base: (0..len).map(|_| level(base)).collect(),
        sub: (sub > 0).then(|| vec![level(sub)]),
        top: (top > 0).then(|| vec![level(top)]),
    };
    let tree_path = || path(size.base_path_len(), size.tree_arities());
    let column = || ColumnProof { index: 0, rows: vec![ZERO; size.layers()], inclusion_proof: tree_path() };
    let labeling =
        |layer: usize| LabelingProof { parents: vec![ZERO; LABEL_PARENTS], layer_index: layer as u32, node: 0 };
    let proof = VanillaProof {
        comm_d_proof: path(size.data_path_len(), [2, 0, 0]),
        comm_r_last_proof: tree_path(),
        c_x: column(),
        drg_parents: (0..DRG_PARENTS).map(|_| column()).collect(),
        exp_parents: (0..EXP_PARENTS).map(|_| column()).collect(),
        labeling_proofs: (1..=size.layers()).map(labeling).collect(),
        encoding_proof: labeling(size.layers()),
    };
    C1Output {
        registered_proof,
        inner_tag: registered_proof.inner_tag().to_owned(),
        vanilla_proofs: vec![vec![proof]],
        comm_r: ZERO,
        comm_d: ZERO,
        replica_id: ZERO,
        seed: ZERO,
        ticket: ZERO,
        envelope: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_size_has_the_wires_of_its_circuit() {
        for size in SectorSize::ALL {
            let positions = full_positions(size).unwrap();
            assert!(positions.windows(2).all(|pair| pair[0] < pair[1]));
            assert!((*positions.last().unwrap() as usize) < size.parameters().counts.aux);
        }
        assert_eq!(full_positions(SectorSize::KiB2).unwrap().len(), 43_806);
    }
}
