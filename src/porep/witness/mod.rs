//! The packed witness of a partition straight from a checked C1 output: every wire of the circuit in its order, without
//! running the circuit. Knows the gadgets that the circuit is made of; knows no constraint and no proving key.
//!
//! The truth is the circuit itself ([`visit_partition_circuit`](super::visit_partition_circuit)), with which tests
//! compare every wire.

mod challenge;
mod element;
mod layout;
mod path;
mod poseidon;
mod sha256;
#[cfg(all(test, feature = "tool"))]
mod tests;
mod wires;

pub use layout::full_positions;

use blstrs::Scalar;
use ff::Field;
use parking_lot::Mutex;
use rayon::prelude::*;

use self::challenge::{challenge, Shared};
use self::wires::{Packer, Segment};
use super::c1::{C1Output, VanillaProof};
use super::check::CheckedC1;
use crate::error::{Error, Result};
use crate::pipeline::{Control, Stage};
use crate::r1cs::{Bitmap, PartitionWitness};

/// Room for the wires before the first challenge: the replica id's bits and the hash that makes comm_r.
const HEAD: usize = 1 << 10;

/// The witness of one partition, `partition` counting from 0.
///
/// `positions` are the full-width positions of the circuit: those of [`R1cs`](crate::r1cs::R1cs::full_positions), or
/// [`full_positions`] where no recorded circuit is at hand. Packing follows them whatever the gadgets mean: a bit there
/// becomes a field element. Works on the challenges in parallel, on the current rayon pool, and needs a bit for each wire
/// of the challenges in work beside the result, whose size is 71 MB for 32 GiB.
///
/// # Errors
/// [`Error::Argument`] for a partition out of range; [`Error::Internal`] if `positions` are those of another circuit, or
/// lack one whose value is no bit; [`Error::Cancelled`], [`Error::Deadline`].
pub fn witness(
    checked: &CheckedC1,
    partition: usize,
    positions: &[u32],
    control: &Control,
) -> Result<PartitionWitness> {
    of_partition(checked.c1(), partition, positions, control)
}

/// One challenge and its stretch of the witness.
struct Task<'a> {
    proof: &'a VanillaProof,
    start: usize,
    positions: &'a [u32],
    values: &'a mut [Scalar],
}

fn of_partition(c1: &C1Output, partition: usize, positions: &[u32], control: &Control) -> Result<PartitionWitness> {
    control.check(Stage::Witness)?;
    let proofs = c1.vanilla_proofs.get(partition).filter(|proofs| !proofs.is_empty()).ok_or_else(|| {
        let detail = format!("{partition}, {} has {}", c1.registered_proof, c1.registered_proof.partitions());
        Error::Argument { name: "partition", detail }
    })?;
    let aux = c1.registered_proof.size.parameters().counts.aux;
    let mut full = vec![Scalar::ZERO; positions.len()];
    let mut words = vec![0; aux.div_ceil(64)];

    let mut packer = Packer::new(0, HEAD, positions, &mut full);
    let (shared, mut inputs) = Shared::allocate(c1, &proofs[0], &mut packer)?;
    let head = packer.finish()?;
    head.merge_into(&mut words);

    let len = (aux - head.end) / proofs.len();
    let mut tasks = Vec::with_capacity(proofs.len());
    let (mut positions, mut values) = (&positions[head.full..], &mut full[head.full..]);
    for (index, proof) in proofs.iter().enumerate() {
        let start = head.end + index * len;
        let count = positions.partition_point(|&position| (position as usize) < start + len);
        let (task_values, rest) = values.split_at_mut(count);
        tasks.push(Task { proof, start, positions: &positions[..count], values: task_values });
        (positions, values) = (&positions[count..], rest);
    }
    if tasks.last().map(|task| task.start + len) != Some(aux) || !positions.is_empty() {
        return Err(Error::internal("the circuit's wires are not those of its challenges"));
    }

    let merged = Mutex::new(words);
    let more: Vec<Vec<Scalar>> = tasks
        .into_par_iter()
        .map(|Task { proof, start, positions, values }| {
            control.check(Stage::Witness)?;
            let count = values.len();
            let mut packer = Packer::new(start, len, positions, values);
            let inputs = challenge(&shared, proof, &mut packer)?;
            let segment = packer.finish()?;
            if (segment.end, segment.full) != (start + len, count) {
                return Err(other_circuit(start, len, &segment));
            }
            segment.merge_into(&mut merged.lock());
            Ok(inputs)
        })
        .collect::<Result<_>>()?;
    inputs.insert(0, Scalar::ONE);
    inputs.extend(more.into_iter().flatten());
    let bits = Bitmap::from_words(merged.into_inner(), aux);
    let bits = bits.ok_or_else(|| Error::internal("the packed wires have bits past the last one"))?;
    Ok(PartitionWitness { inputs, bits, full })
}

fn other_circuit(start: usize, len: usize, segment: &Segment) -> Error {
    Error::internal(format!(
        "a challenge's wires from {start} end at {} instead of {}, {} of them full-width",
        segment.end,
        start + len,
        segment.full
    ))
}
