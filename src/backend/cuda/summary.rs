//! A plan in numbers, for those who ask what a proof will take.

use super::feeder::Ring;
use super::gpu::Limits;
use super::memory_plan::{Demand, Means, MemoryPlan, QueryDemand, LARGEST_CHUNK};
use super::quotient::Quotient;
use super::shape::Sizes;
use crate::error::Result;
use crate::groth16::{Counts, G1Section};

/// Where everything of a proof on a GPU is, and what it moves.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct GpuPlan {
    /// Bytes that are allocated on the device.
    pub device_bytes: u64,
    /// Of these, the circuit's tables.
    pub table_bytes: u64,
    /// .. the bases that stay there between proofs.
    pub resident_bytes: u64,
    /// .. witnesses, vectors and scratch.
    pub proof_bytes: u64,
    /// All bases, query by query.
    pub bases: Vec<PlannedBases>,
    /// Most bases of G1 in a chunk of what is streamed; `None` if everything stays.
    pub chunk: Option<usize>,
    /// Bytes that go to the device for a proof once what stays is there.
    pub moved_bytes: u64,
    /// Bytes of host memory for a proof: packed witnesses, pinned memory, the circuit.
    pub host_bytes: u64,
    /// Of these, what is pinned.
    pub pinned_bytes: u64,
}

/// Where the bases of one query are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct PlannedBases {
    /// The query.
    pub name: &'static str,
    /// How many there are.
    pub count: usize,
    /// How many of these stay on the device, the first ones.
    pub resident: usize,
    /// Bytes of one.
    pub bytes: usize,
}

/// What is known of a circuit beside its counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Recorded {
    pub rows: usize,
    /// Full-width variables: all auxiliary ones, those that occur in A, those that occur in B.
    pub full: [usize; 3],
    /// Bytes of its templates and queries on a device.
    pub tables: u64,
}

impl Recorded {
    /// What there is to know of a circuit.
    #[cfg(test)]
    pub fn of(system: &dyn crate::r1cs::Constraints) -> Result<Self> {
        let tables = super::shape::HostTables::of(system)?;
        let [l, a, b] = tables.queries();
        let (inputs, of_b) = (system.num_inputs(), system.b_input_density().count_ones());
        let full = [l.full(), a.full() - inputs, b.full() - of_b];
        Ok(Recorded { rows: system.num_rows(), full, tables: tables.bytes() })
    }

    fn demand(&self, counts: &Counts) -> Result<Demand> {
        let Recorded { rows, full: [full, full_a, full_b], tables } = *self;
        let Counts { inputs, aux, log_domain, b_input, .. } = *counts;
        let query = |section, full| QueryDemand { bases: counts.len(section), full };
        Ok(Demand {
            sizes: Sizes { inputs, aux, full, rows, log_domain },
            l: query(G1Section::L, full),
            a: query(G1Section::A, inputs + full_a),
            b: query(G1Section::B, b_input + full_b),
            tables: tables + Quotient::table_bytes(log_domain)?,
            ring: Ring::pinned_bytes(counts) as u64,
        })
    }
}

impl GpuPlan {
    /// The plan for proofs of so many witnesses on a device with so many bytes.
    pub(crate) fn new(
        counts: &Counts,
        recorded: &Recorded,
        witnesses: usize,
        limits: Limits,
        device: u64,
        host: u64,
    ) -> Result<Self> {
        let means = Means { limits, device, host, largest_chunk: LARGEST_CHUNK, only: None };
        let plan = MemoryPlan::new(recorded.demand(counts)?, witnesses, &means, None)?;
        Ok(Self::of(&plan, witnesses))
    }

    fn of(plan: &MemoryPlan, witnesses: usize) -> Self {
        GpuPlan {
            device_bytes: plan.device_bytes(),
            table_bytes: plan.demand.tables,
            resident_bytes: plan.resident_bytes(),
            proof_bytes: plan.memory_bytes() as u64,
            bases: plan.bases(),
            chunk: plan.is_streaming().then_some(plan.chunk),
            moved_bytes: plan.moved_bytes(witnesses),
            host_bytes: plan.host_bytes(witnesses),
            pinned_bytes: plan.pinned_bytes(),
        }
    }
}

impl PlannedBases {
    pub(super) fn new(name: &'static str, count: usize, resident: usize, bytes: usize) -> Self {
        PlannedBases { name, count, resident, bytes }
    }
}
