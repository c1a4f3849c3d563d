//! Proofs on one device: what is kept there between them, and the order of a proof's work.
//!
//! The host only queues: witnesses go to the device on a stream of their own while the sums of an earlier one are made,
//! and results are read when all is done. To be able to stop, it stays a bounded number of steps ahead.

use std::collections::VecDeque;

use super::arena::Arena;
use super::bases::Bases;
use super::curves::{DeviceCurve, G1, G2};
use super::gpu::{Buffer, Event, Gpu, Span, Stream, Words};
use super::queries::{Query, MAX_WITNESSES};
use super::quotient::Quotient;
use super::shape::{ShapeTables, Sizes};
use super::sums::{read, sums_by_bit, KeyResult, KeySums, Msm};
use super::witness::{DeviceWitness, Staging};
use crate::backend::Job;
use crate::error::{Error, Result};
use crate::groth16::{Parameters, ProofParts};
use crate::pipeline::{Control, Stage};
use crate::r1cs::{Constraints, Matrix, PartitionWitness};

/// Steps that may be queued while another runs.
const AHEAD: usize = 2;

/// Witnesses on their way at once: one is copied to pinned memory while the other goes to the device.
const STAGINGS: usize = 2;

/// Scratch for a sum over h, at most, where memory is plenty: all windows of the largest circuits at once.
const MOST_SCRATCH: usize = 40 << 30;

/// Memory that is left to the driver and to others.
const RESERVE: u64 = 512 << 20;

/// What is kept between proofs.
#[derive(Default)]
pub(super) struct Resident {
    work: Option<Work>,
    bases: Option<Bases>,
}

/// A [`Job`] for the bases that are loaded.
pub(super) struct Loaded<'a> {
    pub r1cs: &'a dyn Constraints,
    pub witnesses: &'a [PartitionWitness],
    pub first_partition: usize,
    pub control: &'a Control,
}

/// All for one shape: tables, streams and the memory of proofs.
struct Work {
    sizes: Sizes,
    entries: [usize; 2],
    group: usize,
    shape: ShapeTables,
    quotient: Quotient,
    sum_h: Msm<G1>,
    queries: Queries,
    memory: Buffer<u8>,
    compute: Stream,
    copy: Stream,
    staging: Vec<Staging>,
}

/// How the sums over l, a, b in G1 and b in G2 are made.
struct Queries {
    l: QueryPlan<G1>,
    a: QueryPlan<G1>,
    b_g1: QueryPlan<G1>,
    b_g2: QueryPlan<G2>,
}

struct QueryPlan<C: DeviceCurve> {
    bits: KeySums<C>,
    full: Msm<C>,
}

/// Where the results of one query are put.
struct QueryOut<C: DeviceCurve> {
    bits: KeyResult<C>,
    /// Witness after witness, a value a window.
    full: Span<[C::Xyzz; 2]>,
}

/// A proof's parts of the device's memory.
struct Slots {
    witnesses: Vec<DeviceWitness>,
    a: Span<Words>,
    b: Span<Words>,
    c: Span<Words>,
    /// For each witness the quotient's highest coefficient, which is zero.
    top: Vec<Span<Words>>,
    sum_h: Vec<Span<[<G1 as DeviceCurve>::Xyzz; 2]>>,
    l: QueryOut<G1>,
    a_out: QueryOut<G1>,
    b_g1: QueryOut<G1>,
    b_g2: QueryOut<G2>,
    keys: Span<u32>,
    scalars: Span<Words>,
    scratch: Span<u8>,
}

impl<C: DeviceCurve> QueryPlan<C> {
    fn new(gpu: &Gpu, query: &Query, group: usize) -> Self {
        let full = Msm::new(gpu, query.full_bases().len(), group, MOST_SCRATCH);
        QueryPlan { bits: KeySums::new(gpu, query.len(), group as u32), full }
    }

    fn scratch_bytes(&self) -> usize {
        self.bits.scratch_bytes().max(self.full.scratch_bytes())
    }

    fn carve(&self, arena: &mut Arena, group: usize) -> QueryOut<C> {
        let bits = self.bits.carve_result(arena);
        QueryOut { bits, full: arena.take(group * self.full.windows()) }
    }

    /// The sums of each witness, after waiting for them.
    fn finish(&self, stream: &Stream, out: &QueryOut<C>, witnesses: usize) -> Result<Vec<C::Projective>> {
        let mut sums = sums_by_bit(out.bits.read(stream)?);
        sums.truncate(witnesses);
        for (sum, full) in sums.iter_mut().zip(read(stream, out.full)?.chunks(self.full.windows())) {
            *sum += self.full.finish(full);
        }
        Ok(sums)
    }
}

impl Resident {
    /// Loads the bases of these parameters unless they are there.
    pub fn load(&mut self, gpu: &Gpu, parameters: &Parameters, control: &Control) -> Result<&Bases> {
        if !self.bases.as_ref().is_some_and(|bases| bases.belong_to(parameters)) {
            // Freed before the next ones are read: two sets need not fit.
            self.bases = None;
            self.work = None;
            self.bases = Some(Bases::read(gpu, parameters, control)?);
        }
        Ok(self.bases.as_ref().expect("they were just read"))
    }

    /// The sums of every witness, in order. `memory` bounds the bytes that may be used on the device.
    pub fn prove(&mut self, gpu: &Gpu, job: &Job<'_>, memory: Option<u64>) -> Result<Vec<ProofParts>> {
        let Job { r1cs, parameters, witnesses, first_partition, control } = *job;
        gpu.queue_for(Stage::Parameters.name(), None);
        control.stage(Stage::Parameters, None, || self.load(gpu, parameters, control).map(drop))?;
        self.prove_loaded(gpu, &Loaded { r1cs, witnesses, first_partition, control }, memory)
    }

    /// Takes bases in place of those that are there.
    pub fn install(&mut self, make: impl FnOnce() -> Result<Bases>) -> Result<()> {
        *self = Resident::default();
        self.bases = Some(make()?);
        Ok(())
    }

    /// As [`Resident::prove`], with the bases that are there.
    pub fn prove_loaded(&mut self, gpu: &Gpu, job: &Loaded<'_>, memory: Option<u64>) -> Result<Vec<ProofParts>> {
        let Loaded { r1cs, witnesses, first_partition, control } = *job;
        let bases = self.bases.as_ref().ok_or_else(|| Error::internal("a proof without bases on the device"))?;
        gpu.queue_for(Stage::Shape.name(), None);
        let group = witnesses.len().clamp(1, MAX_WITNESSES);
        if !self.work.as_ref().is_some_and(|work| work.is_for(r1cs, group)) {
            self.work = None;
            self.work = Some(control.stage(Stage::Shape, None, || Work::new(gpu, r1cs, group, memory))?);
        }
        let work = self.work.as_mut().expect("it was just made");
        let mut parts = Vec::with_capacity(witnesses.len());
        for (index, witnesses) in witnesses.chunks(MAX_WITNESSES).enumerate() {
            let first = first_partition + index * MAX_WITNESSES;
            parts.extend(work.prove(bases, witnesses, first, control)?);
        }
        Ok(parts)
    }
}

fn entries(r1cs: &dyn Constraints) -> [usize; 2] {
    [r1cs.num_entries(Matrix::A), r1cs.num_entries(Matrix::B)]
}

impl Work {
    fn is_for(&self, r1cs: &dyn Constraints, group: usize) -> bool {
        self.sizes == Sizes::of(r1cs) && self.entries == entries(r1cs) && self.group == group
    }

    fn new(gpu: &Gpu, r1cs: &dyn Constraints, group: usize, limit: Option<u64>) -> Result<Self> {
        let (compute, copy) = (gpu.stream()?, gpu.stream()?);
        let sizes = Sizes::of(r1cs);
        let shape = ShapeTables::upload(gpu, &compute, r1cs)?;
        let quotient = Quotient::new(gpu, sizes.log_domain)?;
        let queries = Queries {
            l: QueryPlan::new(gpu, shape.l(), group),
            a: QueryPlan::new(gpu, shape.a(), group),
            b_g1: QueryPlan::new(gpu, shape.b(), group),
            b_g2: QueryPlan::new(gpu, shape.b(), group),
        };
        let staging = (0..STAGINGS).map(|_| Staging::new(gpu, sizes)).collect::<Result<_>>()?;
        let h = (1usize << sizes.log_domain) - 1;
        let within = limit.map_or(u64::MAX, |limit| limit.saturating_sub(gpu.allocated()));
        let spare = gpu.free_memory()?.saturating_sub(RESERVE).min(within);
        let plan = |scratch| {
            let sum_h = Msm::new(gpu, h, 1, scratch);
            let mut arena = Arena::counting();
            Slots::carve(&mut arena, sizes, group, &shape, &sum_h, &queries);
            (sum_h, arena.used())
        };
        // The sum over h gets what the rest leaves, which is found with one window at a time.
        let (smallest, rest) = plan(0);
        let scratch = (spare as usize).saturating_sub(rest) + smallest.scratch_bytes();
        let (sum_h, bytes) = plan(scratch.min(MOST_SCRATCH));
        let memory = gpu.allocate(bytes, "the memory of proofs")?;
        log::debug!(
            "{}: tables of {} bytes, roots of unity of {}, {bytes} for {group} witnesses; sum over h: {sum_h}",
            gpu.label(),
            shape.bytes(),
            Quotient::table_bytes(sizes.log_domain)?,
        );
        let entries = entries(r1cs);
        Ok(Work { sizes, entries, group, shape, quotient, sum_h, queries, memory, compute, copy, staging })
    }

    fn prove(
        &mut self,
        bases: &Bases,
        witnesses: &[PartitionWitness],
        first: usize,
        control: &Control,
    ) -> Result<Vec<ProofParts>> {
        let mut arena = Arena::new(self.memory.span());
        let slots = Slots::carve(&mut arena, self.sizes, self.group, &self.shape, &self.sum_h, &self.queries);
        let Work { shape, quotient, sum_h, queries, compute: stream, copy, staging, .. } = self;
        let mut steps = Steps::new(stream, control);
        for (index, witness) in witnesses.iter().enumerate() {
            // While the device is busy with the one before.
            let (staging, to) = (&mut staging[index % STAGINGS], &slots.witnesses[index]);
            let partition = Some(first + index);
            stream.gpu().queue_for(Stage::Witness.name(), partition);
            staging.upload(copy, witness, to)?;
            stream.wait(staging.copied())?;
            let Slots { a, b, c, scratch, .. } = slots;
            steps.queue(Stage::Evaluate, partition, &|| {
                shape.evaluate(stream, Matrix::A, to, a)?;
                shape.evaluate(stream, Matrix::B, to, b)
            })?;
            steps.queue(Stage::Transform, partition, &|| quotient.run(stream, a, b, c, slots.top[index]))?;
            let scalars = a.slice(..a.len() - 1);
            let out = slots.sum_h[index];
            steps
                .queue(Stage::SumH, partition, &|| sum_h.queue(stream, bases.h.span(), scalars, None, scratch, out))?;
        }
        let Queries { l, a, b_g1, b_g2 } = queries;
        let Slots { scratch, keys, scalars, .. } = slots;
        let run = QueryRun { shape, stream, witnesses: &slots.witnesses[..witnesses.len()], keys, scalars, scratch };
        steps.queue(Stage::SumL, None, &|| run.queue(shape.l(), l, bases.l.span(), &slots.l))?;
        steps.queue(Stage::SumA, None, &|| run.queue(shape.a(), a, bases.a.span(), &slots.a_out))?;
        steps.queue(Stage::SumB1, None, &|| run.queue(shape.b(), b_g1, bases.b_g1.span(), &slots.b_g1))?;
        steps.queue(Stage::SumB2, None, &|| run.queue(shape.b(), b_g2, bases.b_g2.span(), &slots.b_g2))?;
        steps.finish()?;
        self.finish(&slots, witnesses.len())
    }

    /// Reads the results and does what is left of them.
    fn finish(&self, slots: &Slots, witnesses: usize) -> Result<Vec<ProofParts>> {
        let stream = &self.compute;
        stream.gpu().queue_for("results", None);
        for top in &slots.top[..witnesses] {
            if read(stream, *top)? != [Words::default()] {
                let rows = self.sizes.log_domain;
                let detail = format!("the quotient over 2^{rows} rows has degree N - 1 on {:?}", stream.gpu());
                return Err(Error::Transform { detail });
            }
        }
        let Queries { l, a, b_g1, b_g2 } = &self.queries;
        let l = l.finish(stream, &slots.l, witnesses)?;
        let a = a.finish(stream, &slots.a_out, witnesses)?;
        let b_g1 = b_g1.finish(stream, &slots.b_g1, witnesses)?;
        let b_g2 = b_g2.finish(stream, &slots.b_g2, witnesses)?;
        let part = |index: usize| {
            let h = self.sum_h.finish(&read(stream, slots.sum_h[index])?);
            Ok(ProofParts { h, l: l[index], a: a[index], b_g1: b_g1[index], b_g2: b_g2[index] })
        };
        (0..witnesses).map(part).collect()
    }
}

/// What the sums over all queries share.
struct QueryRun<'a> {
    shape: &'a ShapeTables,
    stream: &'a Stream,
    witnesses: &'a [DeviceWitness],
    keys: Span<u32>,
    scalars: Span<Words>,
    scratch: Span<u8>,
}

impl QueryRun<'_> {
    fn queue<C: DeviceCurve>(
        &self,
        query: &Query,
        plan: &QueryPlan<C>,
        bases: Span<C::Affine>,
        out: &QueryOut<C>,
    ) -> Result<()> {
        let keys = self.keys.slice(..query.len());
        query.keys(self.stream, self.shape, self.witnesses, keys)?;
        plan.bits.queue(self.stream, bases, keys, self.scratch, &out.bits)?;
        let indices = query.full_bases();
        let count = self.witnesses.len();
        let scalars = self.scalars.slice(..count * indices.len());
        for (index, witness) in self.witnesses.iter().enumerate() {
            let scalars = scalars.slice(index * indices.len()..(index + 1) * indices.len());
            query.full_scalars(self.stream, witness, scalars)?;
        }
        let out = out.full.slice(..count * plan.full.windows());
        plan.full.queue(self.stream, bases, scalars, Some(indices), self.scratch, out)
    }
}

impl Slots {
    fn carve(
        arena: &mut Arena,
        sizes: Sizes,
        group: usize,
        shape: &ShapeTables,
        sum_h: &Msm<G1>,
        queries: &Queries,
    ) -> Self {
        let domain = 1usize << sizes.log_domain;
        let Queries { l, a, b_g1, b_g2 } = queries;
        let scratch = [sum_h.scratch_bytes(), l.scratch_bytes(), a.scratch_bytes(), b_g1.scratch_bytes()];
        let scratch = scratch.into_iter().max().unwrap_or(0).max(b_g2.scratch_bytes());
        let all = [shape.l(), shape.a(), shape.b()];
        let longest = |length: &dyn Fn(&Query) -> usize| all.map(length).into_iter().max().unwrap_or(0);
        Slots {
            witnesses: (0..group).map(|_| DeviceWitness::new(arena.take(sizes.witness_words()), sizes)).collect(),
            a: arena.take(domain),
            b: arena.take(domain),
            c: arena.take(domain),
            top: (0..group).map(|_| arena.take(1)).collect(),
            sum_h: (0..group).map(|_| arena.take(sum_h.windows())).collect(),
            l: l.carve(arena, group),
            a_out: a.carve(arena, group),
            b_g1: b_g1.carve(arena, group),
            b_g2: b_g2.carve(arena, group),
            keys: arena.take(longest(&Query::len)),
            scalars: arena.take(group * longest(&|query| query.full_bases().len())),
            scratch: arena.take(scratch),
        }
    }
}

/// Queued steps of a proof: the host stays a few ahead of the device, so that a cancelled proof stops soon and the device
/// never waits.
struct Steps<'a> {
    stream: &'a Stream,
    control: &'a Control,
    queued: VecDeque<Step>,
}

struct Step {
    stage: Stage,
    partition: Option<usize>,
    begin: Event,
    end: Event,
}

impl<'a> Steps<'a> {
    fn new(stream: &'a Stream, control: &'a Control) -> Self {
        Steps { stream, control, queued: VecDeque::new() }
    }

    fn queue(&mut self, stage: Stage, partition: Option<usize>, work: &dyn Fn() -> Result<()>) -> Result<()> {
        while self.queued.len() > AHEAD {
            self.retire()?;
        }
        self.control.check(stage)?;
        self.control.begin(stage, partition);
        let gpu = self.stream.gpu();
        gpu.queue_for(stage.name(), partition);
        let (begin, end) = (gpu.event()?, gpu.event()?);
        self.stream.record(&begin)?;
        work()?;
        self.stream.record(&end)?;
        self.queued.push_back(Step { stage, partition, begin, end });
        Ok(())
    }

    /// Waits for the oldest step.
    fn retire(&mut self) -> Result<()> {
        // Taken away when it is done: until then there is something to abandon.
        if let Some(step) = self.queued.front() {
            self.stream.gpu().queue_for(step.stage.name(), step.partition);
            step.end.wait_while(|| self.control.check(step.stage))?;
            let milliseconds = step.end.since(&step.begin)?;
            let elapsed = std::time::Duration::from_secs_f32(milliseconds.max(0.0) / 1e3);
            self.control.end(step.stage, step.partition, elapsed);
            self.queued.pop_front();
        }
        Ok(())
    }

    fn finish(mut self) -> Result<()> {
        while !self.queued.is_empty() {
            self.retire()?;
        }
        self.control.check("the sums on the device")
    }
}

impl Drop for Steps<'_> {
    fn drop(&mut self) {
        // After an error or a cancel nothing of this proof may still run when the next one begins.
        if !self.queued.is_empty() {
            if let Err(error) = self.stream.abandon() {
                log::debug!("{error}");
            }
        }
    }
}

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
            witnesses: &witnesses,
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
                witnesses: std::slice::from_ref(&witness),
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
        let (r1cs, witnesses, parameters, control) = (&fixture.r1cs, &witnesses[..], &parameters, &control);
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
    fn memory_that_does_not_suffice_is_an_error_and_a_limit_makes_the_scratch_smaller() {
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
            witnesses: &witnesses,
            first_partition: 0,
            control: &control,
        };
        let allocated = |limit| {
            let mut resident = Resident::default();
            let parts = resident.prove(&gpu, &job, limit).unwrap();
            (parts, gpu.allocated())
        };
        let (parts, plenty) = allocated(None);
        let (same, little) = allocated(Some(1));
        assert_eq!(parts, same);
        assert!(little < plenty, "{little} and {plenty} bytes");
        assert_eq!(gpu.allocated(), 0, "everything is given back");
        super::super::gpu::emulated::set_memory(little / 2);
        let error = Resident::default().prove(&gpu, &job, None).unwrap_err();
        assert!(matches!(error, Error::Memory { .. }), "{error}");
    }
}
