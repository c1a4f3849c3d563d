//! What of a proof is where on a device: which bases stay there between proofs and which come anew for each, how the sums
//! are cut, and where everything lies. Decided from numbers alone, before anything is allocated; what is allocated later is
//! carved by the same plan.
//!
//! Bases stay in this order of preference: those of h, which every witness needs, if need be only the first ones; then
//! those of l, a and b, which a proof needs once for up to [`MAX_WITNESSES`] witnesses. The rest is streamed in chunks,
//! each summed while the next one is on its way.
//!
//! Memory of a proof, beside bases and tables: packed witnesses and results, and three vectors of field elements. Two of
//! these are free while sums are made, and hold the chunks and the sums' scratch then; in the third are the scalars of the
//! sum over h, and after that what the other sums take from the witnesses. Where h comes in pieces, the sums of the buckets
//! are part of that scratch, from the first piece of a witness to its last.

use std::fmt;
use std::ops::Range;

use super::arena::Arena;
use super::curves::{DeviceCurve, G1, G2};
use super::feeder::Ring;
use super::gpu::{Limits, Span, Words};
use super::queries::MAX_WITNESSES;
use super::quotient::Quotient;
use super::shape::{HostTables, Sizes};
use super::summary::PlannedBases;
use super::sums::{KeyResult, KeySums, Msm, PiecewiseMsm, POINTS_APART};
use super::witness::DeviceWitness;
use crate::error::{Error, Result};
use crate::groth16::{Counts, G1Section};

/// Points in G1 of a chunk, at most: with fewer, sums of chunks cost notably more than one of all.
pub(super) const LARGEST_CHUNK: usize = 1 << 24;
/// .. and at least; and how many chunks a query has, at most.
const SMALLEST_CHUNK: usize = 1 << 6;
const MOST_CHUNKS: usize = 1 << 10;

/// Chunks begin at multiples of this many points.
const CHUNK_UNIT: usize = 32;

/// A part of h that is shorter than a chunk over this is not worth a piece of its own.
const SHORTEST_PREFIX: usize = 8;

/// Chunks on the device: one is summed while the other one comes.
pub(super) const CHUNKS: usize = 2;

/// Scratch for a sum, at most, where memory is plenty: all windows of the largest circuits at once.
const MOST_SCRATCH: usize = 40 << 30;

/// Witnesses on their way at once: one is copied to pinned memory while the other goes to the device.
pub(super) const STAGINGS: usize = 2;

/// Host memory for the largest circuit's templates with their densities and positions, rounded up.
pub(super) const CONSTRAINTS: u64 = 160 << 20;

const G1_BYTES: usize = size_of::<<G1 as DeviceCurve>::Affine>();
const G2_BYTES: usize = size_of::<<G2 as DeviceCurve>::Affine>();

/// The numbers of a circuit that a plan depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Demand {
    pub sizes: Sizes,
    pub l: QueryDemand,
    pub a: QueryDemand,
    pub b: QueryDemand,
    /// Bytes of tables on the device: templates, queries, roots of unity.
    pub tables: u64,
    /// Bytes of pinned memory through which bases come.
    pub ring: u64,
}

/// The numbers of a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct QueryDemand {
    pub bases: usize,
    /// Those of them that belong to inputs and full-width variables.
    pub full: usize,
}

impl Demand {
    /// Those of a circuit with such tables and counts.
    pub fn of(tables: &HostTables<'_>, counts: &Counts) -> Result<Self> {
        let sizes = tables.sizes();
        let [l, a, b] = tables.queries().each_ref().map(|query| QueryDemand { bases: query.len(), full: query.full() });
        Ok(Demand {
            sizes,
            l,
            a,
            b,
            tables: tables.bytes() + Quotient::table_bytes(sizes.log_domain)?,
            ring: Ring::pinned_bytes(counts) as u64,
        })
    }

    fn h(&self) -> usize {
        self.domain() - 1
    }

    fn domain(&self) -> usize {
        1 << self.sizes.log_domain
    }
}

/// What there is for a proof.
#[derive(Debug, Clone, Copy)]
pub(super) struct Means {
    pub limits: Limits,
    /// Bytes that may be allocated on the device.
    pub device: u64,
    /// Bytes that a proof may take on the host.
    pub host: u64,
    /// Points in G1 of a chunk at most, a power of two.
    pub largest_chunk: usize,
    /// Which bases stay, if that is not to be chosen.
    pub only: Option<Residency>,
}

/// Which bases stay on the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Residency {
    /// How many of the first of h.
    pub h: usize,
    pub l: bool,
    pub a: bool,
    pub b_g1: bool,
    pub b_g2: bool,
}

impl Residency {
    /// None of them.
    pub const NONE: Residency = Residency { h: 0, l: false, a: false, b_g1: false, b_g2: false };

    /// All of them.
    pub fn all(h: usize) -> Self {
        Residency { h, l: true, a: true, b_g1: true, b_g2: true }
    }

    /// How many bases of a section stay, the first ones, of `len`.
    pub fn of_section(&self, section: G1Section, len: usize) -> usize {
        let stays = match section {
            G1Section::H => return self.h.min(len),
            G1Section::L => self.l,
            G1Section::A => self.a,
            G1Section::B => self.b_g1,
        };
        if stays {
            len
        } else {
            0
        }
    }

    fn bytes(&self, demand: &Demand) -> u64 {
        let g1 = |section, len| (self.of_section(section, len) * G1_BYTES) as u64;
        let Demand { l, a, b, .. } = demand;
        let b_g2 = if self.b_g2 { (b.bases * G2_BYTES) as u64 } else { 0 };
        g1(G1Section::H, demand.h())
            + g1(G1Section::L, l.bases)
            + g1(G1Section::A, a.bases)
            + g1(G1Section::B, b.bases)
            + b_g2
    }
}

/// How the sum over h is made.
pub(super) enum PlanH {
    /// At once.
    Whole(Msm<G1>),
    /// Piece by piece, with the bases of each: all of them stay on the device, or none. They are brought to a chunk in either
    /// case.
    Pieces { ranges: Vec<Range<usize>>, sum: PiecewiseMsm<G1> },
}

/// A part of a sum by keys.
pub(super) struct Piece<C: DeviceCurve> {
    /// Its bases: all of them stay on the device, or none.
    pub range: Range<usize>,
    pub sum: KeySums<C>,
}

/// How the sums over one of l, a, b are made.
pub(super) struct QueryPlan<C: DeviceCurve> {
    pub pieces: Vec<Piece<C>>,
    pub full: Msm<C>,
    /// Whether the bases are streamed: those of full-width variables are picked from the chunks then.
    pub streamed: bool,
    demand: QueryDemand,
}

/// Where the results of one query are put.
pub(super) struct QueryOut<C: DeviceCurve> {
    /// For each piece.
    pub bits: Vec<KeyResult<C>>,
    /// Witness after witness, the sums that the reduction leaves.
    pub full: Span<C::Xyzz>,
}

/// What is where, and how the sums are cut.
pub(super) struct MemoryPlan {
    pub demand: Demand,
    /// Witnesses that a proof has together, at most.
    pub group: usize,
    pub residency: Residency,
    /// Points in G1 of a chunk, at most.
    pub chunk: usize,
    pub h: PlanH,
    pub l: QueryPlan<G1>,
    pub a: QueryPlan<G1>,
    pub b_g1: QueryPlan<G1>,
    pub b_g2: QueryPlan<G2>,
}

/// A proof's parts of the device's memory.
pub(super) struct Slots {
    pub witnesses: Vec<DeviceWitness>,
    /// For each witness the quotient's highest coefficient, which is zero.
    pub top: Vec<Span<Words>>,
    /// For each witness, the sums that the reduction leaves.
    pub sum_h: Vec<Span<<G1 as DeviceCurve>::Xyzz>>,
    pub l: QueryOut<G1>,
    pub a: QueryOut<G1>,
    pub b_g1: QueryOut<G1>,
    pub b_g2: QueryOut<G2>,
    /// The scalars of the sum over h.
    pub scalars_h: Span<Words>,
    /// In place of these, later.
    pub keys: Span<u32>,
    pub scalars: Span<Words>,
    pub picked: Span<u8>,
    /// What else a transform takes.
    pub others: [Span<Words>; 2],
    /// In place of these, while sums are made.
    pub chunks: [Span<u8>; CHUNKS],
    pub scratch: Span<u8>,
}

/// The parts of a range of bases, of about the same size and no longer than a chunk; one if there is nothing.
fn cut(bases: Range<usize>, chunk: usize) -> Vec<Range<usize>> {
    let count = bases.len().div_ceil(chunk).max(1);
    let size = bases.len().div_ceil(count).next_multiple_of(CHUNK_UNIT);
    let begins = (0..count).map(|part| bases.start + part * size);
    begins.map(|begin| begin..(begin + size).min(bases.end)).collect()
}

impl PlanH {
    /// For `len` bases of which so many stay. Whether there are chunks for other bases anyway decides whether those that
    /// all stay may be summed in pieces, which takes less scratch for as many windows at once.
    fn new(means: &Means, len: usize, resident: usize, chunk: usize, scratch: usize, chunks: bool) -> Self {
        let mut ranges = cut(resident..len, chunk);
        if resident == len {
            ranges = cut(0..len, chunk);
        } else if resident > 0 {
            ranges.splice(..0, cut(0..resident, chunk));
        }
        let whole = || Msm::new(means.limits, len, 1, scratch);
        if ranges.len() == 1 || (resident == len && !chunks) {
            return PlanH::Whole(whole());
        }
        let lengths: Vec<usize> = ranges.iter().map(Range::len).collect();
        let sum = PiecewiseMsm::new(means.limits, &lengths, scratch);
        if resident == len {
            let whole = whole();
            let fits = whole.scratch_bytes().max(sum.scratch_bytes()) <= scratch;
            let whole_is_better = match fits {
                true => whole.cost() <= sum.cost(),
                false => whole.scratch_bytes() <= sum.scratch_bytes(),
            };
            if whole_is_better {
                return PlanH::Whole(whole);
            }
        }
        PlanH::Pieces { sum, ranges }
    }

    fn result_len(&self) -> usize {
        match self {
            PlanH::Whole(sum) => sum.result_len(),
            PlanH::Pieces { sum, .. } => sum.result_len(),
        }
    }

    fn scratch_bytes(&self) -> usize {
        match self {
            PlanH::Whole(sum) => sum.scratch_bytes(),
            PlanH::Pieces { sum, .. } => sum.scratch_bytes(),
        }
    }

    /// Bytes of the largest chunk of `len` bases of which so many stay.
    fn chunk_bytes(&self, len: usize, resident: usize) -> usize {
        let longest = match self {
            PlanH::Whole(_) => len - resident,
            PlanH::Pieces { ranges, .. } => ranges.iter().map(Range::len).fold(0, usize::max),
        };
        longest * G1_BYTES
    }
}

impl<C: DeviceCurve> QueryPlan<C> {
    fn new(means: &Means, demand: QueryDemand, resident: bool, chunk: usize, group: usize, scratch: usize) -> Self {
        let ranges = cut(0..demand.bases, if resident { usize::MAX } else { chunk });
        let piece = |range: Range<usize>| Piece { sum: KeySums::new(means.limits, range.len(), group as u32), range };
        QueryPlan {
            pieces: ranges.into_iter().map(piece).collect(),
            full: Msm::new(means.limits, demand.full, group, scratch),
            streamed: !resident && demand.bases > 0,
            demand,
        }
    }

    fn scratch_bytes(&self) -> usize {
        let pieces = self.pieces.iter().map(|piece| piece.sum.scratch_bytes());
        pieces.max().unwrap_or(0).max(self.full.scratch_bytes())
    }

    /// Bytes of the largest chunk.
    fn chunk_bytes(&self) -> usize {
        let longest = self.pieces.iter().map(|piece| piece.range.len()).max().unwrap_or(0);
        if self.streamed {
            longest * size_of::<C::Affine>()
        } else {
            0
        }
    }

    /// Bytes of the bases that are picked from chunks.
    fn picked_bytes(&self) -> usize {
        if self.streamed {
            self.demand.full * size_of::<C::Affine>()
        } else {
            0
        }
    }

    fn streamed_bytes(&self) -> u64 {
        if self.streamed {
            (self.demand.bases * size_of::<C::Affine>()) as u64
        } else {
            0
        }
    }

    fn carve(&self, arena: &mut Arena, group: usize) -> QueryOut<C> {
        QueryOut {
            bits: self.pieces.iter().map(|piece| piece.sum.carve_result(arena)).collect(),
            full: arena.take(group * self.full.result_len()),
        }
    }
}

impl MemoryPlan {
    /// The plan for so many witnesses that moves least, with these bases on the device if it can be, which are there
    /// already.
    ///
    /// # Errors
    /// [`Error::Memory`] with the least that is needed where that is more than there is.
    pub fn new(demand: Demand, witnesses: usize, means: &Means, loaded: Option<Residency>) -> Result<Self> {
        let group = witnesses.clamp(1, MAX_WITNESSES);
        let mut least = u64::MAX;
        // The plan with the largest chunks that fits.
        let mut first = |residency| {
            means.chunks(&demand).map(|chunk| Self::with(demand, group, means, residency, chunk, 0)).find(|plan| {
                least = least.min(plan.device_bytes());
                plan.fits(means)
            })
        };
        let whole = means.only.or(loaded).into_iter().chain(means.only.is_none().then_some(Residency::all(demand.h())));
        for residency in whole {
            if let Some(plan) = first(residency) {
                return plan.widened(means).check_host(means, witnesses);
            }
        }
        if means.only.is_none() {
            if let Some(plan) = first(Residency::NONE) {
                return plan.filled(means).widened(means).check_host(means, witnesses);
            }
        }
        Err(Error::Memory {
            what: format!("a proof of 2^{} rows, {group} at once, on a GPU", demand.sizes.log_domain),
            needed: least,
            available: means.device,
            advice: "use a GPU with more memory, end other programs that use this one, allow more, or prove on the CPU"
                .into(),
        })
    }

    fn with(demand: Demand, group: usize, means: &Means, residency: Residency, chunk: usize, scratch: usize) -> Self {
        let Demand { l, a, b, .. } = demand;
        // Points in G2 are twice as long.
        let chunk_g2 = (chunk / 2).max(CHUNK_UNIT);
        let l = QueryPlan::new(means, l, residency.l, chunk, group, scratch);
        let a = QueryPlan::new(means, a, residency.a, chunk, group, scratch);
        let b_g1 = QueryPlan::new(means, b, residency.b_g1, chunk, group, scratch);
        let b_g2 = QueryPlan::new(means, b, residency.b_g2, chunk_g2, group, scratch);
        let chunks = l.streamed || a.streamed || b_g1.streamed || b_g2.streamed;
        let h = PlanH::new(means, demand.h(), residency.h, chunk, scratch, chunks);
        MemoryPlan { demand, group, residency, chunk, h, l, a, b_g1, b_g2 }
    }

    fn fits(&self, means: &Means) -> bool {
        self.device_bytes() <= means.device
    }

    /// As this one, where nothing stays, with as many bases as there is room for.
    fn filled(self, means: &Means) -> Self {
        let again = |residency| Self::with(self.demand, self.group, means, residency, self.chunk, 0);
        let all_of_h = Residency { h: self.demand.h(), ..self.residency };
        // Of the sets of whole queries that fit, the largest.
        let sets = (0..16u32).map(|set| {
            let has = |bit: u32| set >> bit & 1 == 1;
            Residency { l: has(0), a: has(1), b_g1: has(2), b_g2: has(3), ..all_of_h }
        });
        let plans = sets.map(again).filter(|plan| plan.fits(means));
        if let Some(plan) = plans.max_by_key(|plan| plan.residency.bytes(&plan.demand)) {
            return plan;
        }
        let shortest = self.chunk / SHORTEST_PREFIX;
        let mut spare = means.device - self.device_bytes();
        loop {
            let prefix = (spare as usize / G1_BYTES).min(self.demand.h() - 1) / CHUNK_UNIT * CHUNK_UNIT;
            if prefix < shortest.max(CHUNK_UNIT) {
                return self;
            }
            let plan = again(Residency { h: prefix, ..self.residency });
            match plan.device_bytes().saturating_sub(means.device) {
                0 => return plan,
                // Its part of the sum takes scratch too.
                over => spare = ((prefix * G1_BYTES) as u64).saturating_sub(over),
            }
        }
    }

    /// As this one, which fits, with as much scratch for sums as there is room for.
    fn widened(self, means: &Means) -> Self {
        let spare = (means.device - self.device_bytes()) as usize;
        let vectors = 2 * self.demand.domain() * size_of::<Words>();
        let chunks = self.chunks_bytes();
        let scratch = vectors.max(chunks + self.scratch_bytes()) + spare - chunks;
        let plan = |scratch| Self::with(self.demand, self.group, means, self.residency, self.chunk, scratch);
        let wide = plan(scratch.min(MOST_SCRATCH));
        // What is carved begins at round addresses.
        if wide.fits(means) {
            wide
        } else {
            self
        }
    }

    fn check_host(self, means: &Means, witnesses: usize) -> Result<Self> {
        let needed = self.host_bytes(witnesses);
        if needed <= means.host {
            return Ok(self);
        }
        Err(Error::Memory {
            what: format!("the host's part of proofs of {witnesses} witnesses on a GPU"),
            needed,
            available: means.host,
            advice: "free some memory, or use a machine with more".into(),
        })
    }

    fn scratch_bytes(&self) -> usize {
        let MemoryPlan { h, l, a, b_g1, b_g2, .. } = self;
        [h.scratch_bytes(), l.scratch_bytes(), a.scratch_bytes(), b_g1.scratch_bytes(), b_g2.scratch_bytes()]
            .into_iter()
            .fold(0, usize::max)
    }

    /// Bytes of each chunk, or 0.
    fn chunk_bytes(&self) -> usize {
        let MemoryPlan { h, l, a, b_g1, b_g2, .. } = self;
        let h = h.chunk_bytes(self.demand.h(), self.residency.h);
        let longest = [h, l.chunk_bytes(), a.chunk_bytes(), b_g1.chunk_bytes(), b_g2.chunk_bytes()];
        // A sum in pieces wants its bases so far from the scratch behind them.
        longest.into_iter().fold(0, usize::max).next_multiple_of(POINTS_APART)
    }

    fn chunks_bytes(&self) -> usize {
        let mut arena = Arena::counting();
        Self::carve_chunks(self.chunk_bytes(), &mut arena);
        arena.used()
    }

    fn carve_chunks(bytes: usize, arena: &mut Arena) -> [Span<u8>; CHUNKS] {
        [(); CHUNKS].map(|()| arena.take(bytes))
    }

    /// Whether any bases are streamed.
    pub fn is_streaming(&self) -> bool {
        self.chunk_bytes() > 0
    }

    /// Whether all bases of h stay, each at the place of its coefficient. Otherwise they are in the order of coefficients,
    /// into which the scalars are brought.
    pub fn is_arranged(&self) -> bool {
        self.residency.h == self.demand.h()
    }

    /// Divides the memory of a proof.
    pub fn carve(&self, arena: &mut Arena) -> Slots {
        let MemoryPlan { demand, group, l, a, b_g1, b_g2, .. } = self;
        let (sizes, group, domain) = (demand.sizes, *group, demand.domain());
        let queries = [demand.l, demand.a, demand.b];
        let longest = |length: fn(&QueryDemand) -> usize| queries.iter().map(length).fold(0, usize::max);
        let (keys, full) = (longest(|query| query.bases), longest(|query| query.full));
        let picked = [l.picked_bytes(), a.picked_bytes(), b_g1.picked_bytes(), b_g2.picked_bytes()]
            .into_iter()
            .fold(0, usize::max);
        let witnesses = (0..group).map(|_| DeviceWitness::new(arena.take(sizes.witness_words()), sizes)).collect();
        let top = (0..group).map(|_| arena.take(1)).collect();
        let sum_h = (0..group).map(|_| arena.take(self.h.result_len())).collect();
        let [l, a, b_g1] = [l, a, b_g1].map(|query| query.carve(arena, group));
        let b_g2 = b_g2.carve(arena, group);
        let (scalars_h, (keys, scalars, picked)) = arena.either(
            |arena| arena.take(domain),
            |arena| (arena.take(keys), arena.take(group * full), arena.take(picked)),
        );
        let (others, (chunks, scratch)) = arena.either(
            |arena| [arena.take(domain), arena.take(domain)],
            |arena| (Self::carve_chunks(self.chunk_bytes(), arena), arena.take(self.scratch_bytes())),
        );
        Slots { witnesses, top, sum_h, l, a, b_g1, b_g2, scalars_h, keys, scalars, picked, others, chunks, scratch }
    }

    /// Bytes of a proof's memory.
    pub fn memory_bytes(&self) -> usize {
        let mut arena = Arena::counting();
        self.carve(&mut arena);
        arena.used()
    }

    /// Bytes of the bases that stay on the device.
    pub fn resident_bytes(&self) -> u64 {
        self.residency.bytes(&self.demand)
    }

    /// All bytes that are allocated on the device.
    pub fn device_bytes(&self) -> u64 {
        let ring = if self.is_streaming() { Ring::DEVICE_BYTES } else { 0 };
        self.demand.tables + self.resident_bytes() + (self.memory_bytes() + ring) as u64
    }

    /// Where the bases of each query are.
    pub fn bases(&self) -> Vec<PlannedBases> {
        let Demand { l, a, b, .. } = self.demand;
        let g1 = |section: G1Section, count| {
            PlannedBases::new(section.name(), count, self.residency.of_section(section, count), G1_BYTES)
        };
        let b_g2 = if self.residency.b_g2 { b.bases } else { 0 };
        vec![
            g1(G1Section::H, self.demand.h()),
            g1(G1Section::L, l.bases),
            g1(G1Section::A, a.bases),
            g1(G1Section::B, b.bases),
            PlannedBases::new("b_g2", b.bases, b_g2, G2_BYTES),
        ]
    }

    /// Bytes of a witness, on the device or pinned.
    fn witness_bytes(&self) -> u64 {
        (self.demand.sizes.witness_words() * size_of::<u64>()) as u64
    }

    /// Bytes of pinned host memory.
    pub fn pinned_bytes(&self) -> u64 {
        STAGINGS as u64 * self.witness_bytes() + self.demand.ring
    }

    /// Bytes of host memory for a proof of so many witnesses: the packed witnesses, what is pinned, the circuit.
    pub fn host_bytes(&self, witnesses: usize) -> u64 {
        witnesses as u64 * self.witness_bytes() + self.pinned_bytes() + CONSTRAINTS
    }

    /// Bytes that go to the device for a proof of so many witnesses once everything that stays is there.
    pub fn moved_bytes(&self, witnesses: usize) -> u64 {
        let h = ((self.demand.h() - self.residency.h) * G1_BYTES) as u64;
        let MemoryPlan { l, a, b_g1, b_g2, .. } = self;
        let once = l.streamed_bytes() + a.streamed_bytes() + b_g1.streamed_bytes() + b_g2.streamed_bytes();
        witnesses as u64 * (h + self.witness_bytes()) + witnesses.div_ceil(self.group) as u64 * once
    }
}

impl Means {
    /// Sizes of chunks to try, the largest first.
    fn chunks(&self, demand: &Demand) -> impl Iterator<Item = usize> {
        let longest = [demand.h(), demand.l.bases, demand.a.bases, demand.b.bases].into_iter().fold(1, usize::max);
        let smallest = (longest.next_power_of_two() / MOST_CHUNKS).max(SMALLEST_CHUNK);
        let largest = self.largest_chunk.min(longest.next_power_of_two()).max(smallest);
        std::iter::successors(Some(largest), |chunk| Some(chunk / 2)).take_while(move |&chunk| chunk >= smallest)
    }
}

impl fmt::Display for MemoryPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} bytes on the device for {} witnesses: tables {}, bases {} ({} of {} of h), proofs {}; {} bytes are moved",
            self.device_bytes(),
            self.group,
            self.demand.tables,
            self.resident_bytes(),
            self.residency.h,
            self.demand.h(),
            self.memory_bytes(),
            self.moved_bytes(self.group),
        )?;
        if self.is_streaming() {
            write!(f, ", in chunks of {}", self.chunk)?;
        }
        match &self.h {
            PlanH::Whole(sum) => write!(f, "; sum over h: {sum}"),
            PlanH::Pieces { sum, .. } => write!(f, "; sum over h: {sum}"),
        }
    }
}
