//! Proofs on one device: what is kept there between them, and the order of a proof's work.
//!
//! The host only queues: witnesses and bases go to the device on streams of their own while the sums of earlier ones are
//! made, and results are read when all is done. To be able to stop, it stays a bounded number of steps ahead.

use std::ops::Range;
use std::time::Instant;

use super::arena::Arena;
use super::bases::Bases;
use super::curves::{DeviceCurve, G1Words, G1};
use super::feed::{Chunks, Fed, Feed, Turns};
use super::feeder::{Feeder, Ring};
use super::gpu::{Buffer, Gpu, Span, Stream, Words};
use super::host_bases::{HostBases, HostFeed};
use super::memory_plan::{
    Demand, Means, MemoryPlan, PlanH, QueryOut, QueryPlan, Residency, Slots, LARGEST_CHUNK, STAGINGS,
};
use super::ntt::Layout;
use super::queries::{Query, MAX_WITNESSES};
use super::quotient::Quotient;
use super::shape::{HostTables, ShapeTables, Sizes};
use super::steps::Steps;
use super::sums::{read, sums_by_bit};
use super::witness::{DeviceWitness, Staging};
use crate::backend::{DeviceMemory, Job, Load, Witnesses};
use crate::error::{Error, Result};
use crate::groth16::{Counts, G1Section, Parameters, ProofParts};
use crate::pipeline::{Control, Stage};
use crate::r1cs::{Constraints, Matrix};

/// Rows from which on the kernels of a transform take several milliseconds each: so long that the host need not hurry, and
/// should not stay far ahead.
const LONG: usize = 1 << 25;

/// Memory that is left to the driver and to others.
const RESERVE: u64 = 512 << 20;

/// Bytes of host memory that proofs of one device take beside their witnesses: what is pinned for witnesses and bases on
/// their way, and the tables of a new shape.
pub(crate) fn host_memory(load: &Load) -> u64 {
    let Load { counts, full, .. } = *load;
    let sizes = Sizes { inputs: counts.inputs, aux: counts.aux, full, rows: 0, log_domain: counts.log_domain };
    let tables = counts.aux as u64 / 4 + 32 * full as u64;
    staging_bytes(sizes) + Ring::pinned_bytes(&counts) as u64 + tables
}

fn staging_bytes(sizes: Sizes) -> u64 {
    (STAGINGS * sizes.witness_words() * size_of::<u64>()) as u64
}

/// What is kept between proofs.
pub(super) struct Resident {
    work: Option<Work>,
    bases: Option<Bases>,
    /// What bases of files come through, where they do.
    ring: Option<Ring>,
    /// Bases that were made and do not all stay on the device.
    made: Option<HostBases>,
    /// Points of a chunk of bases, at most.
    largest_chunk: usize,
    /// Which bases stay, if that is not to be chosen.
    only: Option<Residency>,
}

/// A [`Job`] for the bases that are loaded.
pub(super) struct Loaded<'a> {
    pub r1cs: &'a dyn Constraints,
    pub witnesses: Witnesses<'a>,
    pub first_partition: usize,
    pub control: &'a Control,
}

/// What bases are wanted for.
#[derive(Clone, Copy)]
pub(super) struct Wanted<'a> {
    pub r1cs: &'a dyn Constraints,
    /// The file that they are from; none if they were made.
    pub parameters: Option<&'a Parameters>,
    /// Witnesses of a proof.
    pub witnesses: usize,
    /// Bytes that may be used on the device; what is free if there is no number.
    pub memory: Option<u64>,
}

/// All for one shape: tables, streams and the memory of proofs.
struct Work {
    plan: MemoryPlan,
    entries: [usize; 2],
    shape: ShapeTables,
    quotient: Quotient,
    layout: Layout,
    memory: Buffer<u8>,
    compute: Stream,
    copy: Stream,
    staging: Vec<Staging>,
    turns: Turns,
}

impl Default for Resident {
    fn default() -> Self {
        Resident { work: None, bases: None, ring: None, made: None, largest_chunk: LARGEST_CHUNK, only: None }
    }
}

impl Resident {
    /// Loads what is kept between proofs of a circuit with these parameters unless it is there: nothing is allocated before
    /// it is known that all of it fits.
    pub fn load(&mut self, gpu: &Gpu, wanted: &Wanted<'_>, control: &Control) -> Result<()> {
        let Wanted { r1cs, parameters, witnesses, memory } = *wanted;
        let group = witnesses.clamp(1, MAX_WITNESSES);
        let belong = |bases: &&Bases| parameters.is_none_or(|parameters| bases.belong_to(parameters));
        let loaded = self.bases.as_ref().filter(belong).map(|bases| bases.residency);
        if loaded.is_some() && self.work.as_ref().is_some_and(|work| work.is_for(r1cs, group)) {
            return Ok(());
        }
        gpu.queue_for(Stage::Shape.name(), None);
        let (tables, plan) = control.stage(Stage::Shape, None, || {
            let tables = control.compute(|| HostTables::of(r1cs))?;
            let free = usable_memory(gpu)?;
            let device = memory.map_or(free, |memory| memory.min(free));
            // The host's part of a proof was looked at when it was admitted.
            let (largest_chunk, only) = (self.largest_chunk, self.only);
            let means = Means { limits: gpu.into(), device, host: u64::MAX, largest_chunk, only };
            let plan = MemoryPlan::new(Demand::of(&tables, &Counts::of(r1cs))?, group, &means, loaded)?;
            Ok((tables, plan))
        })?;
        log::debug!("{}: {plan}", gpu.label());
        self.work = None;
        if loaded != Some(plan.residency) {
            gpu.queue_for(Stage::Parameters.name(), None);
            control.stage(Stage::Parameters, None, || self.load_bases(gpu, wanted, &plan, control))?;
        }
        if !plan.is_streaming() {
            self.ring = None;
        }
        gpu.queue_for(Stage::Shape.name(), None);
        let entries = entries(r1cs);
        self.work = Some(control.stage(Stage::Shape, None, || Work::new(gpu, &tables, entries, plan))?);
        Ok(())
    }

    /// Bytes of host memory that are kept.
    pub fn host_bytes(&self) -> u64 {
        let staging = self.work.as_ref().map_or(0, |work| staging_bytes(work.shape.sizes()));
        staging + self.ring.as_ref().map_or(0, Ring::bytes) as u64
    }

    /// What the device's memory is used for, by the plan.
    pub fn device_uses(&self) -> DeviceMemory {
        self.work.as_ref().map_or_else(DeviceMemory::default, |Work { plan, .. }| DeviceMemory {
            tables: plan.demand.tables,
            bases: plan.resident_bytes(),
            proofs: plan.memory_bytes() as u64,
        })
    }

    /// Whether there are bases that were made and not read.
    pub fn has_made_bases(&self) -> bool {
        self.bases.as_ref().is_some_and(Bases::were_made)
    }

    fn load_bases(&mut self, gpu: &Gpu, wanted: &Wanted<'_>, plan: &MemoryPlan, control: &Control) -> Result<()> {
        // Freed before the next ones are read: two sets need not fit.
        let old = self.bases.take();
        let counts = Counts::of(wanted.r1cs);
        let bases = match wanted.parameters {
            Some(parameters) => {
                drop(old);
                self.made = None;
                let ring = match &mut self.ring {
                    Some(ring) => ring,
                    none => none.insert(Ring::new(gpu, &counts)?),
                };
                let begin = Instant::now();
                let mut feeder = Feeder::new(ring, parameters, control)?;
                let bases = Bases::load(&mut feeder, &counts, plan.residency, Some(parameters.identity()))?;
                let (bytes, elapsed, (reading, waiting)) = (plan.resident_bytes(), begin.elapsed(), feeder.times());
                control.observe(|observer| observer.parameters_loaded(elapsed));
                log::info!(
                    "{bytes} bytes of bases to {} in {elapsed:.2?}, {:.1} GB/s: {reading:.2?} in the file, {waiting:.2?} on the device",
                    gpu.label(),
                    bytes as f64 / elapsed.as_secs_f64() * 1e-9,
                );
                bases
            }
            None => {
                let made = match (&self.made, old) {
                    (Some(made), _) => made,
                    (None, Some(old)) => self.made.insert(HostBases::of(&old, &counts)?),
                    (None, None) => return Err(Error::internal("a proof without bases on the device")),
                };
                Bases::load(&mut HostFeed::new(gpu, made, control)?, &counts, plan.residency, None)?
            }
        };
        self.bases = Some(bases);
        Ok(())
    }

    /// Takes bases in place of those that are there.
    pub fn install(&mut self, make: impl FnOnce() -> Result<Bases>) -> Result<()> {
        *self = Resident { largest_chunk: self.largest_chunk, only: self.only, ..Resident::default() };
        self.bases = Some(make()?);
        Ok(())
    }

    /// The sums of every witness, in order. `memory` bounds the bytes that may be used on the device.
    pub fn prove(&mut self, gpu: &Gpu, job: &Job<'_>, memory: Option<u64>) -> Result<Vec<ProofParts>> {
        let Job { r1cs, parameters, witnesses, first_partition, control } = *job;
        self.prove_with(gpu, &Loaded { r1cs, witnesses, first_partition, control }, Some(parameters), memory)
    }

    /// As [`Resident::prove`], with bases that were made.
    pub fn prove_loaded(&mut self, gpu: &Gpu, job: &Loaded<'_>, memory: Option<u64>) -> Result<Vec<ProofParts>> {
        if self.bases.is_none() {
            return Err(Error::internal("a proof without bases on the device"));
        }
        self.prove_with(gpu, job, None, memory)
    }

    fn prove_with(
        &mut self,
        gpu: &Gpu,
        job: &Loaded<'_>,
        parameters: Option<&Parameters>,
        memory: Option<u64>,
    ) -> Result<Vec<ProofParts>> {
        let Loaded { r1cs, witnesses, first_partition, control } = *job;
        self.load(gpu, &Wanted { r1cs, parameters, witnesses: witnesses.len(), memory }, control)?;
        let (Some(work), Some(bases)) = (&mut self.work, &self.bases) else {
            return Err(Error::internal("what was loaded is not there"));
        };
        let (mut from_file, mut from_memory);
        let feed: Option<&mut dyn Feed> = match (parameters, &mut self.ring, &self.made) {
            (Some(parameters), Some(ring), _) => {
                from_file = Feeder::new(ring, parameters, control)?;
                Some(&mut from_file)
            }
            (None, _, Some(made)) => {
                from_memory = HostFeed::new(gpu, made, control)?;
                Some(&mut from_memory)
            }
            _ => None,
        };
        work.prove_all(bases, feed, witnesses, first_partition, control)
    }
}

/// Bytes of a device's memory for all that is kept there: what is kept now will be used again, or freed.
pub(super) fn usable_memory(gpu: &Gpu) -> Result<u64> {
    Ok((gpu.free_memory()? + gpu.allocated()).saturating_sub(RESERVE))
}

fn entries(r1cs: &dyn Constraints) -> [usize; 2] {
    [r1cs.num_entries(Matrix::A), r1cs.num_entries(Matrix::B)]
}

impl Work {
    /// Also for fewer witnesses than it was planned for: whole proofs and parts of proofs take turns.
    fn is_for(&self, r1cs: &dyn Constraints, group: usize) -> bool {
        self.plan.demand.sizes == Sizes::of(r1cs) && self.entries == entries(r1cs) && self.plan.group >= group
    }

    fn new(gpu: &Gpu, tables: &HostTables<'_>, entries: [usize; 2], plan: MemoryPlan) -> Result<Self> {
        let (compute, copy) = (gpu.stream()?, gpu.stream()?);
        let sizes = plan.demand.sizes;
        let shape = tables.upload(gpu, &compute)?;
        let quotient = Quotient::new(gpu, sizes.log_domain)?;
        let layout = Layout::new(sizes.log_domain)?;
        let staging = (0..STAGINGS).map(|_| Staging::new(gpu, sizes)).collect::<Result<_>>()?;
        let memory = gpu.allocate(plan.memory_bytes(), "the memory of proofs")?;
        let turns = Turns::new(gpu)?;
        Ok(Work { plan, entries, shape, quotient, layout, memory, compute, copy, staging, turns })
    }

    /// The sums of every witness, group by group.
    fn prove_all(
        &mut self,
        bases: &Bases,
        mut feed: Option<&mut dyn Feed>,
        witnesses: Witnesses<'_>,
        first_partition: usize,
        control: &Control,
    ) -> Result<Vec<ProofParts>> {
        let mut parts = Vec::with_capacity(witnesses.len());
        for first in (0..witnesses.len()).step_by(MAX_WITNESSES) {
            let witnesses = witnesses.slice(first..witnesses.len().min(first + MAX_WITNESSES));
            let feed: Option<&mut dyn Feed> = match &mut feed {
                Some(feed) => Some(&mut **feed),
                None => None,
            };
            parts.extend(self.prove(bases, feed, witnesses, first_partition + first, control)?);
        }
        Ok(parts)
    }

    fn prove(
        &mut self,
        bases: &Bases,
        feed: Option<&mut dyn Feed>,
        witnesses: Witnesses<'_>,
        first: usize,
        control: &Control,
    ) -> Result<Vec<ProofParts>> {
        let slots = self.plan.carve(&mut Arena::new(self.memory.span()));
        let Work { plan, shape, quotient, layout, compute: stream, copy, staging, turns, .. } = self;
        let buffers = slots.chunks;
        let mut source = Source { chunks: feed.map(|feed| Chunks { feed, compute: stream, buffers, turns }) };
        // Dropped before the source is.
        let mut steps = Steps::new(stream, control);
        let [x, y] = slots.others;
        // The scalars of the sum over h stay in their vector while chunks and scratch take the place of the others.
        let (a, b, c) = if plan.is_arranged() { (slots.scalars_h, x, y) } else { (x, y, slots.scalars_h) };
        let scalars = slots.scalars_h.slice(..slots.scalars_h.len() - 1);
        for index in 0..witnesses.len() {
            // While the device is busy with the one before.
            let witness = witnesses.get(index, control)?;
            let (staging, to) = (&mut staging[index % STAGINGS], &slots.witnesses[index]);
            let partition = Some(first + index);
            stream.gpu().queue_for(Stage::Witness.name(), partition);
            staging.upload(copy, witness, to)?;
            stream.wait(staging.copied())?;
            steps.queue(Stage::Evaluate, partition, || {
                shape.evaluate(stream, Matrix::A, to, a)?;
                shape.evaluate(stream, Matrix::B, to, b)
            })?;
            steps.queue_paced(Stage::Transform, partition, |pace| {
                let rest = || if a.len() >= LONG { pace.rest() } else { Ok(()) };
                quotient.run(stream, a, b, c, slots.top[index], &rest)?;
                if !plan.is_arranged() {
                    layout.collect(stream, scalars, a, 0)?;
                }
                source.open()
            })?;
            steps.queue(Stage::SumH, partition, || {
                plan.h.queue(stream, &mut source, bases.h.span(), scalars, slots.scratch, slots.sum_h[index])
            })?;
        }
        let witnesses = &slots.witnesses[..witnesses.len()];
        let mut run = QueryRun { shape, stream, witnesses, slots: &slots, source: &mut source };
        let MemoryPlan { l, a, b_g1, b_g2, .. } = plan;
        let section = G1Section::L;
        steps.queue(Stage::SumL, None, || run.queue(section, shape.l(), l, bases.l.span(), &slots.l))?;
        let section = G1Section::A;
        steps.queue(Stage::SumA, None, || run.queue(section, shape.a(), a, bases.a.span(), &slots.a))?;
        let section = G1Section::B;
        steps.queue(Stage::SumB1, None, || run.queue(section, shape.b(), b_g1, bases.b_g1.span(), &slots.b_g1))?;
        steps.queue(Stage::SumB2, None, || run.queue(section, shape.b(), b_g2, bases.b_g2.span(), &slots.b_g2))?;
        steps.finish()?;
        source.finish()?;
        let count = witnesses.len();
        drop(source);
        self.finish(&slots, count)
    }

    /// Reads the results and does what is left of them.
    fn finish(&self, slots: &Slots, witnesses: usize) -> Result<Vec<ProofParts>> {
        let (plan, stream) = (&self.plan, &self.compute);
        stream.gpu().queue_for("results", None);
        for top in &slots.top[..witnesses] {
            if read(stream, *top)? != [Words::default()] {
                let rows = plan.demand.sizes.log_domain;
                let detail = format!("the quotient over 2^{rows} rows has degree N - 1 on {:?}", stream.gpu());
                return Err(Error::Transform { detail });
            }
        }
        let l = plan.l.finish(stream, &slots.l, witnesses)?;
        let a = plan.a.finish(stream, &slots.a, witnesses)?;
        let b_g1 = plan.b_g1.finish(stream, &slots.b_g1, witnesses)?;
        let b_g2 = plan.b_g2.finish(stream, &slots.b_g2, witnesses)?;
        let part = |index: usize| {
            let h = plan.h.finish(&read(stream, slots.sum_h[index])?);
            Ok(ProofParts { h, l: l[index], a: a[index], b_g1: b_g1[index], b_g2: b_g2[index] })
        };
        (0..witnesses).map(part).collect()
    }
}

/// Where bases come from: memory of the device in which they stay, or elsewhere.
struct Source<'a> {
    chunks: Option<Chunks<'a>>,
}

impl Source<'_> {
    /// Behind what was queued so far chunks may come.
    fn open(&mut self) -> Result<()> {
        self.chunks.as_mut().map_or(Ok(()), Chunks::open)
    }

    /// Queues the use of a range of bases, of which the first ones are `resident`.
    fn bring<C: Fed>(
        &mut self,
        section: G1Section,
        resident: Span<C::Affine>,
        range: Range<usize>,
        queue_use: impl FnOnce(Span<C::Affine>) -> Result<()>,
    ) -> Result<()> {
        if range.end <= resident.len() {
            return queue_use(resident.slice(range));
        }
        let chunks = self.chunks.as_mut().ok_or_else(|| Error::internal("streamed bases come from nowhere"))?;
        chunks.bring::<C>(section, range, queue_use)
    }

    /// As [`Source::bring`], of h, and to a chunk also if they stay.
    fn bring_to_chunk(
        &mut self,
        resident: Span<G1Words>,
        range: Range<usize>,
        queue_use: impl FnOnce(Span<G1Words>) -> Result<()>,
    ) -> Result<()> {
        match &mut self.chunks {
            Some(chunks) if range.end <= resident.len() => chunks.copy::<G1>(resident.slice(range), queue_use),
            _ => self.bring::<G1>(G1Section::H, resident, range, queue_use),
        }
    }

    /// Fails unless all that came was good.
    fn finish(&mut self) -> Result<()> {
        self.chunks.as_mut().map_or(Ok(()), |chunks| chunks.feed.finish())
    }
}

impl PlanH {
    /// Queues the sum over h, of which the first bases are `resident`.
    fn queue(
        &self,
        stream: &Stream,
        source: &mut Source<'_>,
        resident: Span<G1Words>,
        scalars: Span<Words>,
        scratch: Span<u8>,
        out: Span<<G1 as DeviceCurve>::Xyzz>,
    ) -> Result<()> {
        match self {
            PlanH::Whole(sum) => source.bring::<G1>(G1Section::H, resident, 0..scalars.len(), |bases| {
                sum.queue(stream, bases, scalars, None, scratch, out)
            }),
            PlanH::Pieces { ranges, sum } => {
                for (index, range) in ranges.iter().enumerate() {
                    let scalars = scalars.slice(range.clone());
                    source.bring_to_chunk(resident, range.clone(), |bases| {
                        sum.add(stream, index, bases, scalars, scratch)
                    })?;
                }
                sum.reduce(stream, scratch, out)
            }
        }
    }

    /// The sum from what was left of it.
    fn finish(&self, result: &[<G1 as DeviceCurve>::Xyzz]) -> <G1 as DeviceCurve>::Projective {
        match self {
            PlanH::Whole(sum) => sum.finish(result),
            PlanH::Pieces { sum, .. } => sum.finish(result),
        }
    }
}

/// What the sums over all queries share.
struct QueryRun<'a, 's> {
    shape: &'a ShapeTables,
    stream: &'a Stream,
    witnesses: &'a [DeviceWitness],
    slots: &'a Slots,
    source: &'a mut Source<'s>,
}

impl QueryRun<'_, '_> {
    fn queue<C: Fed>(
        &mut self,
        section: G1Section,
        query: &Query,
        plan: &QueryPlan<C>,
        resident: Span<C::Affine>,
        out: &QueryOut<C>,
    ) -> Result<()> {
        let (stream, scratch) = (self.stream, self.slots.scratch);
        let keys = self.slots.keys.slice(..query.len());
        query.keys(stream, self.shape, self.witnesses, keys)?;
        let indices = query.full_bases();
        let (mut full, mut of_full) = (resident, Some(indices));
        if plan.streamed {
            // The bases of full-width variables are picked from chunks, and summed when all are there.
            full = self.slots.picked.slice(..indices.len() * size_of::<C::Affine>()).cast();
            of_full = None;
        }
        for (piece, out) in plan.pieces.iter().zip(&out.bits) {
            let range = piece.range.clone();
            let keys = keys.slice(range.clone());
            self.source.bring::<C>(section, resident, range.clone(), |bases| {
                if plan.streamed {
                    query.pick_full(stream, bases, range.start, full)?;
                }
                piece.sum.queue(stream, bases, keys, scratch, out)
            })?;
        }
        let count = self.witnesses.len();
        let scalars = self.slots.scalars.slice(..count * indices.len());
        for (index, witness) in self.witnesses.iter().enumerate() {
            let scalars = scalars.slice(index * indices.len()..(index + 1) * indices.len());
            query.full_scalars(stream, witness, scalars)?;
        }
        let out = out.full.slice(..count * plan.full.result_len());
        plan.full.queue(stream, full, scalars, of_full, scratch, out)
    }
}

impl<C: DeviceCurve> QueryPlan<C> {
    /// The sums of each witness, after waiting for them.
    fn finish(&self, stream: &Stream, out: &QueryOut<C>, witnesses: usize) -> Result<Vec<C::Projective>> {
        let mut by_key: Vec<C::Projective> = Vec::new();
        for piece in &out.bits {
            let sums = piece.read(stream)?;
            match by_key.is_empty() {
                true => by_key = sums,
                false => by_key.iter_mut().zip(sums).for_each(|(all, sum)| *all += sum),
            }
        }
        let mut sums = sums_by_bit(by_key);
        sums.truncate(witnesses);
        for (sum, full) in sums.iter_mut().zip(read(stream, out.full)?.chunks(self.full.result_len())) {
            *sum += self.full.finish(full);
        }
        Ok(sums)
    }
}

#[cfg(all(test, feature = "emulator"))]
mod streaming_tests;
#[cfg(all(test, feature = "emulator"))]
mod tests {
    use bellperson::Circuit;
    use blstrs::Scalar;

    use super::super::testing;
    use super::*;
    use crate::backend::cpu::CpuBackend;
    use crate::backend::Backend;
    use crate::groth16::testing::{Chain, Fixture, Hash};
    use crate::pipeline::{CancelToken, Trace};

    fn compare<C: Circuit<Scalar> + Send>(fixture: &Fixture, circuits: Vec<C>, resident: &mut Resident, gpu: &Gpu) {
        let control = Control::new();
        let parameters = fixture.open().unwrap();
        let assign = |circuit| fixture.r1cs.assign(circuit, &control).unwrap();
        let witnesses: Vec<_> = circuits.into_iter().map(assign).collect();
        let job = Job {
            r1cs: &fixture.r1cs,
            parameters: &parameters,
            witnesses: (&witnesses[..]).into(),
            first_partition: 0,
            control: &control,
        };
        let expected = CpuBackend::default().prove(&job).unwrap();
        let found = resident.prove(gpu, &job, None).unwrap();
        assert_eq!(found.len(), witnesses.len());
        for (index, (found, expected)) in found.iter().zip(&expected).enumerate() {
            assert_eq!(found, expected, "witness {index} of {}", witnesses.len());
        }
    }

    #[test]
    fn sums_are_those_of_the_cpu_for_any_number_of_witnesses() {
        let gpu = testing::gpu();
        let fixture = Fixture::new(Chain::small(), 1);
        let mut resident = Resident::default();
        for count in [1, 2, 1, 12] {
            let chains = (0..count).map(|index| Chain { start: 3 + 77 * index, ..Chain::small() }).collect();
            compare(&fixture, chains, &mut resident, &gpu);
        }
        // Other parameters, and another circuit.
        compare(&Fixture::new(Chain::small(), 2), vec![Chain::small()], &mut resident, &gpu);
        let long = Chain { links: 300, start: 5 };
        compare(&Fixture::new(long.clone(), 1), vec![long], &mut resident, &gpu);
    }

    #[test]
    fn sums_of_a_hash_are_those_of_the_cpu() {
        compare(&Fixture::new(Hash, 1), vec![Hash], &mut Resident::default(), &testing::gpu());
    }

    #[test]
    fn a_cancelled_proof_leaves_the_device_usable() {
        let gpu = testing::gpu();
        let fixture = Fixture::new(Chain::small(), 1);
        let parameters = fixture.open().unwrap();
        let mut resident = Resident::default();
        let witness = fixture.r1cs.assign(Chain::small(), &Control::new()).unwrap();
        for stage in [Stage::Parameters, Stage::Evaluate, Stage::SumH, Stage::SumB2] {
            let token = CancelToken::new();
            let cancel = token.clone();
            let control = Control::new().with_cancel(token).with_progress(move |event| {
                if event.stage == stage {
                    cancel.cancel();
                }
            });
            let job = Job {
                r1cs: &fixture.r1cs,
                parameters: &parameters,
                witnesses: std::slice::from_ref(&witness).into(),
                first_partition: 0,
                control: &control,
            };
            let error = resident.prove(&gpu, &job, None).unwrap_err();
            assert!(matches!(error, Error::Cancelled { .. }), "{stage}: {error}");
            compare(&fixture, vec![Chain::small()], &mut resident, &gpu);
        }
    }

    #[test]
    fn a_trace_shows_the_next_witness_on_its_way_before_the_sums_of_one_are_waited_for() {
        const COUNT: usize = 5;
        let gpu = testing::gpu();
        let fixture = Fixture::new(Chain::small(), 1);
        let (control, parameters, trace) = (Control::new(), fixture.open().unwrap(), Trace::new());
        let assign = |start| fixture.r1cs.assign(Chain { start, ..Chain::small() }, &control).unwrap();
        let witnesses: Vec<_> = (3..3 + COUNT as u64).map(assign).collect();
        let (r1cs, witnesses, parameters, control) = (&fixture.r1cs, (&witnesses[..]).into(), &parameters, &control);
        let job = Job { r1cs, parameters, witnesses, first_partition: 10, control };
        gpu.traced(Some(&trace), || Resident::default().prove(&gpu, &job, None)).unwrap();

        let json: serde_json::Value = serde_json::from_str(&trace.to_json().to_string()).unwrap();
        let events: Vec<_> =
            json["traceEvents"].as_array().unwrap().iter().filter(|event| event["ph"] == "X").collect();
        let find = |name: &str, stage: &str, partition: Option<usize>| {
            let of_partition = |event: &serde_json::Value| match partition {
                Some(partition) => event["args"]["partition"] == partition + 10,
                None => event["args"].get("partition").is_none(),
            };
            let fits = |event: &&&serde_json::Value| {
                event["name"] == name && event["args"]["stage"] == stage && of_partition(event)
            };
            *events.iter().find(fits).unwrap_or_else(|| panic!("no {name} for {stage} of {partition:?}"))
        };
        for index in 0..COUNT {
            find("r1cs_rows", "evaluate", Some(index));
            let transform = find("ntt_meet", "transform", Some(index));
            let sort = find("msm_digits", "sum_h", Some(index));
            let upload = find("upload", "witness", Some(index));
            assert!(sort["tid"] == transform["tid"] && upload["tid"] != sort["tid"], "streams of their own");
        }
        for stage in ["sum_l", "sum_a", "sum_b_g1", "sum_b_g2"] {
            find("r1cs_keys", stage, None);
        }
        // However fast the device is: the host does not wait for its sums first.
        for index in 0..COUNT - 1 {
            let queued = find("upload", "witness", Some(index + 1))["args"]["queued"].as_f64().unwrap();
            let waited = find("wait", "sum_h", Some(index))["ts"].as_f64().unwrap();
            assert!(queued < waited, "witness {} left at {queued}, sums waited for at {waited}", index + 1);
        }
    }

    #[test]
    fn memory_that_does_not_suffice_is_an_error() {
        let Some(_machine) = testing::machine() else { return };
        let gpu = Gpu::open(0).unwrap();
        let fixture = Fixture::new(Chain { links: 300, start: 5 }, 1);
        let control = Control::new();
        let witness = fixture.r1cs.assign(Chain { links: 300, start: 9 }, &control).unwrap();
        let parameters = fixture.open().unwrap();
        let witnesses = [witness];
        let job = Job {
            r1cs: &fixture.r1cs,
            parameters: &parameters,
            witnesses: (&witnesses[..]).into(),
            first_partition: 0,
            control: &control,
        };
        let allocated = |limit| {
            let mut resident = Resident::default();
            let parts = resident.prove(&gpu, &job, limit).unwrap();
            (parts, gpu.allocated())
        };
        let (parts, plenty) = allocated(None);
        let (same, little) = allocated(Some(plenty - 1));
        assert_eq!(parts, same);
        assert!(little < plenty, "{little} and {plenty} bytes");
        assert_eq!(gpu.allocated(), 0, "everything is given back");
        super::super::gpu::emulated::set_memory(RESERVE + little / 20);
        let error = Resident::default().prove(&gpu, &job, None).unwrap_err();
        assert!(matches!(error, Error::Memory { .. }), "{error}");
        assert_eq!(gpu.allocated(), 0);
    }
}
