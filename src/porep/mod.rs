//! What Filecoin knows: sectors and registered proofs, the output of seal commit phase 1 (C1), its checks, and the
//! circuits that prove it. Knows no device and no proving key.
//!
//! The way of the data: bytes are decoded to a [`C1Output`] (form only), which [`check`] turns into a [`CheckedC1`]
//! (everything about it is true), from which come the circuit ([`visit_partition_circuit`]) and the [`public_inputs`] of
//! each partition. [`fabricate()`] makes C1 outputs for tests and measurements, without sealing. Nothing here reads the
//! settings, parameter caches or parent caches of the storage-proofs crates.

mod c1;
mod check;
mod circuit;
mod fabricate;
mod hashes;
pub mod ids;
mod parameters;
pub mod sector;
mod shape;
mod witness;

pub use c1::{C1Output, Envelope, Node, MAX_C1_BYTES};
pub use check::{check, CheckedC1};
pub use circuit::{
    public_inputs, public_inputs_for, visit_blank_circuit, visit_blank_circuit_with_challenges,
    visit_partition_circuit, CircuitVisitor,
};
pub use fabricate::{fabricate, Fabricated, Fabrication};
pub use parameters::{CircuitCounts, ParameterSet};
pub use sector::{ProofKind, RegisteredProof, SectorSize};
pub use shape::{gadget_of_row, templates};
pub use witness::{full_positions, witness};
