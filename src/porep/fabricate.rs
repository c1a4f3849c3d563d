//! C1 outputs of any sector size without sealing, for tests and measurements: labels and trees only where challenges
//! look, made-up values around them. Knows no more of Filecoin than the check of C1 outputs does.

mod columns;
mod data;
mod made_up;
mod tree;

use rayon::prelude::*;

use super::c1::{C1Output, ColumnProof, LabelingProof, Node, VanillaProof};
use super::check::{challenged_nodes, graph, parents, StackedGraph};
use super::hashes::{comm_r, encode};
use super::ids::{prover_id, replica_id};
use super::sector::{names, ProofKind, RegisteredProof, SectorSize, DRG_PARENTS, LABEL_PARENTS};
use crate::error::{Error, Result};
use crate::pipeline::Control;
use columns::Columns;
use data::Data;
use made_up::MadeUp;
use tree::{Indices, Tree};

/// What to fabricate. The same values give the same bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fabrication {
    /// The sector size and kind.
    pub registered_proof: RegisteredProof,
    /// What everything made up depends on.
    pub seed: u64,
    /// The sector number; by default one that follows from the seed.
    pub sector: Option<u64>,
    /// The miner's actor id; by default one that follows from the seed.
    pub miner: Option<u64>,
}

impl Fabrication {
    /// With sector number and miner from the seed.
    pub const fn new(registered_proof: RegisteredProof, seed: u64) -> Self {
        Fabrication { registered_proof, seed, sector: None, miner: None }
    }
}

/// A fabricated C1 output and whom it is for.
#[derive(Debug, Clone)]
pub struct Fabricated {
    /// The C1 output; [`C1Output::encode`] gives its bytes.
    pub c1: C1Output,
    /// The sector number.
    pub sector: u64,
    /// The miner's actor id.
    pub miner: u64,
}

/// Fabricates a C1 output that [`check`](super::check()) and the public verifier of vanilla proofs accept, as if a sector
/// had been sealed: input for tests and measurements.
///
/// **It proves nothing about stored data.** A C1 output opens a few thousand nodes, and only those are made here: the
/// challenged nodes' labels, hashed from made-up labels of their parents, and what lies above them in the trees, among
/// made-up siblings. Values are as wide as a real sector's. No chain accepts a proof of it: there comm_r is fixed before
/// the seed is drawn that chooses the challenges, while here comm_r is made for challenges that are known.
///
/// With synthetic and non-interactive proofs the challenges depend on comm_r, so that nothing can be left out: every node
/// gets its true label. Interactive proofs take seconds in every size; the others take seconds for 8 MiB, and by estimate a
/// quarter of an hour of one core and 3 GiB of memory for 512 MiB.
///
/// Runs on the current rayon pool.
///
/// ```
/// use cuporep::pipeline::Control;
/// use cuporep::porep::{check, fabricate, Fabrication, ProofKind, RegisteredProof, SectorSize};
///
/// # fn main() -> cuporep::Result<()> {
/// let proof = RegisteredProof::new(SectorSize::KiB2, ProofKind::V1_1);
/// let fabricated = fabricate(&Fabrication::new(proof, 1), &Control::new())?;
/// let json: Vec<u8> = fabricated.c1.encode()?; // what a node would pass to seal commit phase 2
/// check(fabricated.c1, fabricated.sector, fabricated.miner, &Control::new())?;
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::ProofType`] for synthetic and non-interactive proofs of more than 512 MiB, which only sealing can make.
/// Cancel and deadline of `control` stop it. [`Error::Internal`].
pub fn fabricate(fabrication: &Fabrication, control: &Control) -> Result<Fabricated> {
    let Fabrication { registered_proof: proof, seed, sector, miner } = *fabrication;
    if !is_feasible(proof) {
        return Err(Error::ProofType {
            what: format!("fabricating {proof}, whose challenges depend on comm_r so that every node must be sealed,"),
            supported: names(RegisteredProof::all().filter(|&proof| is_feasible(proof)).map(RegisteredProof::name)),
            version: env!("CARGO_PKG_VERSION"),
        });
    }
    let made_up = MadeUp::new(seed);
    let sector = sector.unwrap_or_else(|| 1 + made_up.number("sector") % 1_000_000);
    let miner = miner.unwrap_or_else(|| 1_000 + made_up.number("miner") % 5_000_000);
    let (ticket, seed) = (Node(made_up.bytes("ticket", &[])), Node(made_up.bytes("seed", &[])));

    let data = Data::new(proof.size.data_path_len(), made_up);
    let comm_d = data.root();
    let replica_id = Node(replica_id(&prover_id(miner), sector, &ticket.0, &comm_d.0, &proof.porep_id()));
    let graph = graph(proof)?;
    let challenges = |comm_r: Node| challenged_nodes(proof, comm_r, comm_d, replica_id, seed);

    // Before comm_r is there: the challenges that do not depend on it.
    let early = (!depends_on_comm_r(proof.kind)).then(|| challenges(Node([0; 32])));
    let (labelled, opened) = nodes(&graph, proof.size, early.as_deref())?;
    let columns = Columns::new(&graph, replica_id, proof.size.layers(), (opened, &labelled), made_up, control)?;
    let column_tree = Tree::new(proof.size, "column tree", made_up, columns.leaves(control)?, control)?;
    let encoded = labelled.as_slice().par_iter().map(|&node| encode(data.leaf(node.into()), columns.key(node)?));
    let encoded = encoded.collect::<Result<_>>()?;
    let replica_tree = Tree::new(proof.size, "replica tree", made_up, (labelled, encoded), control)?;

    let comm_r = comm_r(column_tree.root(), replica_tree.root());
    let sealed = Sealed { graph, data, columns, column_tree, replica_tree };
    let open = |partition: &Vec<u64>| {
        control.check("the opening of challenged nodes")?;
        partition.par_iter().map(|&node| sealed.open(node as u32)).collect::<Result<_>>()
    };
    let vanilla_proofs = early.unwrap_or_else(|| challenges(comm_r)).iter().map(open).collect::<Result<_>>()?;
    let inner_tag = proof.inner_tag().to_owned();
    let c1 = C1Output {
        registered_proof: proof,
        inner_tag,
        vanilla_proofs,
        comm_r,
        comm_d,
        replica_id,
        seed,
        ticket,
        envelope: None,
    };
    Ok(Fabricated { c1, sector, miner })
}

/// Whether challenges are known only when comm_r is.
const fn depends_on_comm_r(kind: ProofKind) -> bool {
    match kind {
        ProofKind::V1 | ProofKind::V1_1 => false,
        ProofKind::SyntheticPoRep | ProofKind::NonInteractivePoRep => true,
    }
}

/// Whether all nodes that must have true labels can have them.
fn is_feasible(proof: RegisteredProof) -> bool {
    !depends_on_comm_r(proof.kind) || proof.size <= SectorSize::MiB512
}

/// The nodes that need true labels: the challenged ones, or all that can be if those are not known; and all that need
/// columns: these and their parents.
fn nodes(graph: &StackedGraph, size: SectorSize, challenges: Option<&[Vec<u64>]>) -> Result<(Indices, Indices)> {
    let Some(challenges) = challenges else {
        // The first node has no parents and is never challenged.
        let all = size.nodes() as u32;
        return Ok((Indices::of(1..all), Indices::all(all)));
    };
    let labelled = Indices::of(challenges.iter().flatten().map(|&node| node as u32));
    let mut opened = labelled.as_slice().to_vec();
    for &node in labelled.as_slice() {
        opened.extend(parents(graph, node.into())?);
    }
    Ok((labelled, Indices::of(opened)))
}

/// What stands for a sealed sector.
struct Sealed {
    graph: StackedGraph,
    data: Data,
    columns: Columns,
    column_tree: Tree,
    replica_tree: Tree,
}

impl Sealed {
    /// The vanilla proof of one challenge.
    fn open(&self, node: u32) -> Result<VanillaProof> {
        let parents = parents(&self.graph, node.into())?;
        let column = |&index: &u32| {
            let rows = self.columns.rows(index)?;
            Ok(ColumnProof { index, rows, inclusion_proof: self.column_tree.path(index) })
        };
        let labeling = |layer: usize| {
            let labels = self.columns.parent_labels(layer, &parents)?;
            let parents = labels.into_iter().cycle().take(LABEL_PARENTS).collect();
            Ok(LabelingProof { parents, layer_index: layer as u32 + 1, node: node.into() })
        };
        let (same, before) = parents.split_at(DRG_PARENTS);
        let layers = self.columns.layers();
        Ok(VanillaProof {
            comm_d_proof: self.data.path(node.into()),
            comm_r_last_proof: self.replica_tree.path(node),
            c_x: column(&node)?,
            drg_parents: same.iter().map(column).collect::<Result<_>>()?,
            exp_parents: before.iter().map(column).collect::<Result<_>>()?,
            labeling_proofs: (0..layers).map(labeling).collect::<Result<_>>()?,
            encoding_proof: labeling(layers - 1)?,
        })
    }
}
