//! The circuits of the storage-proofs crates for our shapes and checked data, and the verifier's public inputs.
//!
//! The tree type is erased by a visitor, so that callers compile no generic code of Filecoin's. All kinds of registered
//! proofs of one size share the circuit.

use bellperson::Circuit;
use blstrs::Scalar;
use filecoin_hashers::poseidon::{PoseidonDomain, PoseidonHasher};
use filecoin_hashers::sha256::Sha256Hasher;
use generic_array::typenum::{U0, U2, U8};
use storage_proofs_core::compound_proof::CompoundProof;
use storage_proofs_core::merkle::{DiskTree, MerkleProof as TreeProof, MerkleTreeTrait};
use storage_proofs_porep::stacked::{
    self, Challenges, EncodingProof, LabelingProof as StackedLabelingProof, PublicParams, ReplicaColumnProof,
    StackedCompound, StackedDrg,
};

use super::c1::{ColumnProof, LabelingProof, MerkleProof, Node, VanillaProof};
use super::check::{graph, is_canonical, verifier_inputs, CheckedC1};
use super::sector::{ProofKind, RegisteredProof, SectorSize};
use crate::error::{Error, Result};

/// What to do with a circuit whose type only the visitor's caller can name.
pub trait CircuitVisitor {
    /// The visitor's result.
    type Output;

    /// Called once, with the circuit.
    fn visit<C: Circuit<Scalar>>(self, circuit: C) -> Self::Output;
}

/// Visits the circuit of one partition without values, for recording its constraints.
///
/// # Errors
/// [`Error::Internal`] only.
pub fn visit_blank_circuit<V: CircuitVisitor>(size: SectorSize, visitor: V) -> Result<V::Output> {
    visit_blank_circuit_with_challenges(size, size.challenges_per_partition(), visitor)
}

/// Visits the circuit of a partition of as many challenges as are asked for, without values. All challenges make the same
/// constraints, so that the circuits of one and of two tell those of any number.
///
/// # Errors
/// [`Error::Internal`] only.
pub fn visit_blank_circuit_with_challenges<V: CircuitVisitor>(
    size: SectorSize,
    challenges: usize,
    visitor: V,
) -> Result<V::Output> {
    with_tree(size, Blank { size, challenges, visitor })
}

/// Visits the circuit of one partition with the values of a checked C1 output, `partition` counting from 0.
///
/// # Errors
/// [`Error::Argument`] for a partition out of range; [`Error::Internal`].
pub fn visit_partition_circuit<V: CircuitVisitor>(
    checked: &CheckedC1,
    partition: usize,
    visitor: V,
) -> Result<V::Output> {
    check_partition(checked.registered_proof(), partition)?;
    with_tree(checked.registered_proof().size, Filled { checked, partition, visitor })
}

/// The public inputs of one partition as the verifier derives them, without ONE.
///
/// # Errors
/// [`Error::Argument`] for a partition out of range; [`Error::Internal`].
pub fn public_inputs(checked: &CheckedC1, partition: usize) -> Result<Vec<Scalar>> {
    let c1 = checked.c1();
    public_inputs_for(c1.registered_proof, c1.comm_r.0, c1.comm_d.0, c1.replica_id.0, c1.seed.0, partition)
}

/// The public inputs of one partition from what the chain knows, without ONE: replica id, comm_d, comm_r, and for each
/// challenge the indices of all opened nodes.
///
/// # Errors
/// [`Error::Argument`] if a commitment or the replica id is no field element, or the partition is out of range.
pub fn public_inputs_for(
    proof: RegisteredProof,
    comm_r: [u8; 32],
    comm_d: [u8; 32],
    replica_id: [u8; 32],
    seed: [u8; 32],
    partition: usize,
) -> Result<Vec<Scalar>> {
    check_partition(proof, partition)?;
    for (name, bytes) in [("comm_r", comm_r), ("comm_d", comm_d), ("replica_id", replica_id)] {
        if !is_canonical(&Node(bytes)) {
            return Err(Error::Argument { name, detail: format!("{} is not below the field's modulus", Node(bytes)) });
        }
    }
    let inputs = verifier_inputs(Node(comm_r), Node(comm_d), Node(replica_id), Node(seed), partition);
    with_tree(proof.size, Inputs { proof, inputs, partition })
}

fn check_partition(proof: RegisteredProof, partition: usize) -> Result<()> {
    if partition < proof.partitions() {
        return Ok(());
    }
    Err(Error::Argument { name: "partition", detail: format!("{partition}, {proof} has {}", proof.partitions()) })
}

/// The proving scheme over a tree type.
type Compound<Tree> = StackedCompound<Tree, Sha256Hasher>;
type Drg<'a, Tree> = StackedDrg<'a, Tree, Sha256Hasher>;

/// Work that needs the tree type.
trait TreeVisitor {
    type Output;
    fn visit<Tree: 'static + MerkleTreeTrait<Hasher = PoseidonHasher>>(self) -> Result<Self::Output>;
}

/// Calls the visitor with the tree type of this size. Circuits do not depend on how a tree is stored.
fn with_tree<V: TreeVisitor>(size: SectorSize, visitor: V) -> Result<V::Output> {
    match size {
        SectorSize::KiB2 | SectorSize::MiB8 | SectorSize::MiB512 => {
            visitor.visit::<DiskTree<PoseidonHasher, U8, U0, U0>>()
        }
        SectorSize::GiB32 => visitor.visit::<DiskTree<PoseidonHasher, U8, U8, U0>>(),
        SectorSize::GiB64 => visitor.visit::<DiskTree<PoseidonHasher, U8, U8, U2>>(),
    }
}

fn public_params<Tree: 'static + MerkleTreeTrait<Hasher = PoseidonHasher>>(
    proof: RegisteredProof,
    challenges: Challenges,
) -> Result<PublicParams<Tree>> {
    Ok(PublicParams::new(graph(proof)?, challenges, proof.size.layers()))
}

struct Blank<V> {
    size: SectorSize,
    challenges: usize,
    visitor: V,
}

impl<V: CircuitVisitor> TreeVisitor for Blank<V> {
    type Output = V::Output;

    fn visit<Tree: 'static + MerkleTreeTrait<Hasher = PoseidonHasher>>(self) -> Result<V::Output> {
        // The blank circuit takes counts from the graph and the number of challenges, the same for all kinds.
        let proof = RegisteredProof::new(self.size, ProofKind::V1_1);
        let params = public_params::<Tree>(proof, Challenges::new_interactive(self.challenges))?;
        Ok(self.visitor.visit(<Compound<Tree> as CompoundProof<Drg<'_, Tree>, _>>::blank_circuit(&params)))
    }
}

struct Filled<'a, V> {
    checked: &'a CheckedC1,
    partition: usize,
    visitor: V,
}

impl<V: CircuitVisitor> TreeVisitor for Filled<'_, V> {
    type Output = V::Output;

    fn visit<Tree: 'static + MerkleTreeTrait<Hasher = PoseidonHasher>>(self) -> Result<V::Output> {
        let c1 = self.checked.c1();
        let proof = c1.registered_proof;
        let params = public_params::<Tree>(proof, proof.challenges())?;
        let inputs = verifier_inputs(c1.comm_r, c1.comm_d, c1.replica_id, c1.seed, self.partition);
        let vanilla: Vec<_> = c1.vanilla_proofs[self.partition].iter().map(vanilla_proof::<Tree>).collect();
        let circuit = <Compound<Tree> as CompoundProof<Drg<'_, Tree>, _>>::circuit(
            &inputs,
            (),
            &vanilla,
            &params,
            Some(self.partition),
        )
        .map_err(|error| Error::internal(format!("circuit of partition {}: {error:#}", self.partition)))?;
        Ok(self.visitor.visit(circuit))
    }
}

struct Inputs {
    proof: RegisteredProof,
    inputs: stacked::PublicInputs<PoseidonDomain, filecoin_hashers::sha256::Sha256Domain>,
    partition: usize,
}

impl TreeVisitor for Inputs {
    type Output = Vec<Scalar>;

    fn visit<Tree: 'static + MerkleTreeTrait<Hasher = PoseidonHasher>>(self) -> Result<Self::Output> {
        let params = public_params::<Tree>(self.proof, self.proof.challenges())?;
        <Compound<Tree> as CompoundProof<Drg<'_, Tree>, _>>::generate_public_inputs(
            &self.inputs,
            &params,
            Some(self.partition),
        )
        .map_err(|error| Error::internal(format!("public inputs of partition {}: {error:#}", self.partition)))
    }
}

/// A Merkle proof of the tree type's arities.
type ProofOf<Tree> = TreeProof<
    PoseidonHasher,
    <Tree as MerkleTreeTrait>::Arity,
    <Tree as MerkleTreeTrait>::SubTreeArity,
    <Tree as MerkleTreeTrait>::TopTreeArity,
>;

fn vanilla_proof<Tree: 'static + MerkleTreeTrait<Hasher = PoseidonHasher>>(
    proof: &VanillaProof,
) -> stacked::Proof<Tree, Sha256Hasher> {
    let column = |column: &ColumnProof| {
        stacked::ColumnProof::<ProofOf<Tree>>::new(
            column.index,
            domains(&column.rows),
            tree_proof::<Tree>(&column.inclusion_proof),
        )
    };
    let data = &proof.comm_d_proof;
    let data_path =
        data.path().map(|level| (level.hashes.iter().map(|node| node.0.into()).collect(), level.index as usize));
    stacked::Proof {
        comm_d_proofs: TreeProof::from_parts(data.leaf.0.into(), data.root.0.into(), data_path.collect()),
        comm_r_last_proof: tree_proof::<Tree>(&proof.comm_r_last_proof),
        replica_column_proofs: ReplicaColumnProof {
            c_x: column(&proof.c_x),
            drg_parents: proof.drg_parents.iter().map(column).collect(),
            exp_parents: proof.exp_parents.iter().map(column).collect(),
        },
        labeling_proofs: proof
            .labeling_proofs
            .iter()
            .map(|LabelingProof { parents, layer_index, node }| {
                StackedLabelingProof::new(*layer_index, *node, domains(parents))
            })
            .collect(),
        encoding_proof: EncodingProof::new(
            proof.encoding_proof.layer_index,
            proof.encoding_proof.node,
            domains(&proof.encoding_proof.parents),
        ),
    }
}

fn tree_proof<Tree: 'static + MerkleTreeTrait<Hasher = PoseidonHasher>>(proof: &MerkleProof) -> ProofOf<Tree> {
    let path = proof.path().map(|level| (domains(&level.hashes), level.index as usize));
    ProofOf::<Tree>::from_parts(proof.leaf.0.into(), proof.root.0.into(), path.collect())
}

fn domains(nodes: &[Node]) -> Vec<PoseidonDomain> {
    nodes.iter().map(|node| node.0.into()).collect()
}
