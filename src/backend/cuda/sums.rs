//! Sums of points on the device: multi-scalar multiplications, and sums of points by a small key.
//!
//! Both put points into buckets and sum each bucket. A multiplication has a bucket for each digit of each window, and
//! reduces them to one point a window; a sum by keys has one bucket a key and returns their sums. A multiplication whose
//! points come in pieces keeps the sums of its buckets from piece to piece.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;

use group::Group;

use super::arena::Arena;
use super::curves::DeviceCurve;
use super::digits::{DigitPlan, Windows};
use super::gpu::{args, Limits, Plain, Span, Stream, Words};
use crate::error::Result;

// As in kernels/sort.cu, msm.cuh and sums.cuh.
const SORT_THREADS: u32 = 512;
const TILE: usize = 16 * SORT_THREADS as usize;
const GIANT: usize = 8192;
const SPLIT: u32 = 256;
const TASK_SPLIT: u32 = 32;
const JOIN_THREADS: u32 = 128;
const SIGN: u64 = 1 << 31;
const NOTHING_KEPT: u32 = u32::MAX;

/// Bits of a bucket that one partition can tell apart: with more, a block's part gives too few entries a bin.
const ONE_STEP_BITS: u32 = 10;

/// Bits that a partition and the sort of its bins can tell apart together.
const TWO_STEP_BITS: u32 = 17;

/// Bits of each of the two later steps where there are three.
const LATER_BITS: u32 = 7;

/// Entries of a bin that are put in order in shared memory: 80 KB, so that two blocks fit.
const SORT_ROOM: u32 = 20 << 10;

/// Buckets that a thread reduces, at most, and chunks that a thread joins, as bits.
const LEAF_BITS: u32 = 5;
const JOIN_BITS: u32 = 4;

/// Chunks of a window, as bits, that the last step of a reduction takes at most: it adds each of them half as often as they
/// have bits, but in few steps after each other.
const LAST_BITS: u32 = 12;

/// Tasks a thread from which on batched affine additions win over one accumulator a task.
const ROWS_FROM: usize = 24;

/// .. and how many a thread should have, where there is a choice.
const TASKS_A_THREAD: usize = 85;

/// What sums cost on an H200, in the products of coordinates that it can make meanwhile: adding a point to a bucket, and
/// reducing a bucket, both ways. Few buckets are reduced with the device half idle.
const ROW_PRODUCTS: usize = 6;
const CHAIN_PRODUCTS: usize = 10;
const AFFINE_BUCKET_PRODUCTS: usize = 31;
const XYZZ_BUCKET_PRODUCTS: usize = 80;

/// .. and, for each thread that adds rows, what it costs beside these that all buckets advance by a point, where it is not
/// an inversion as for rows ([`DeviceCurve::INVERSION`]): chains leave room on the device.
const CHAIN_STEP: usize = 7;

/// Entries of a task, where there is a choice.
const SHORTEST_TASK: usize = 16;
const LONGEST_TASK: usize = 1024;

/// Three pointers; see `Tasks` in kernels/msm.cuh.
#[repr(C)]
#[derive(Clone, Copy)]
struct Tasks {
    starts: u64,
    lengths: u64,
    sums: u64,
}

// SAFETY: words only.
unsafe impl Plain for Tasks {}

/// See `LongBucket` in kernels/msm.cuh.
type LongBucket = [u32; 8];

/// What the size of a sum says about how it is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    /// Positions: scalars, or keys.
    positions: usize,
    /// Windows that are done at once.
    windows: u32,
    /// Buckets of one window.
    window_buckets: usize,
    /// Bins of one window after the first partition.
    bins: u32,
    /// Bits of a bucket that a second partition tells apart.
    middle: u32,
    /// Bits of a bucket that are sorted within a bin.
    low: u32,
    /// Entries of a task at most.
    cap: usize,
    /// Batched affine additions; one XYZZ accumulator a task otherwise.
    rows: bool,
    /// The sums are not in scratch but where those so far are, which are added to.
    kept: bool,
}

impl Shape {
    fn new(
        positions: usize,
        windows: u32,
        bucket_bits: u32,
        window_buckets: usize,
        cap: usize,
        threads: usize,
    ) -> Self {
        let (middle, low) = if bucket_bits <= ONE_STEP_BITS {
            (0, 0)
        } else if bucket_bits <= TWO_STEP_BITS {
            (0, bucket_bits / 2)
        } else {
            (LATER_BITS, LATER_BITS)
        };
        let mut shape =
            Shape { positions, windows, window_buckets, bins: 0, middle, low, cap, rows: false, kept: false };
        shape.set_steps(middle, low);
        let tasks = (shape.buckets() + shape.entries() / cap).min(shape.entries());
        shape.rows = tasks >= ROWS_FROM * threads;
        shape
    }

    /// With sums that are kept: affine ones, which are entries like all others.
    fn keeping(mut self) -> Self {
        (self.rows, self.kept) = (true, true);
        if self.low == 0 {
            // Only the sort of bins adds entries.
            self.set_steps(0, 1);
        }
        self
    }

    fn set_steps(&mut self, middle: u32, low: u32) {
        (self.middle, self.low) = (middle, low);
        self.bins = self.window_buckets.div_ceil(1 << (middle + low)) as u32;
    }

    fn buckets(&self) -> usize {
        self.window_buckets * self.windows as usize
    }

    /// Bins of all windows after the first partition.
    fn all_bins(&self) -> usize {
        self.bins as usize * self.windows as usize
    }

    /// .. and after the second, if there is one.
    fn parts_of_bins(&self) -> usize {
        self.all_bins() << self.middle
    }

    /// Tiles of the second partition, at most.
    fn tiles(&self) -> usize {
        self.entries() / TILE + self.all_bins()
    }

    fn entries(&self) -> usize {
        self.positions * self.windows as usize
    }

    /// Entries of all buckets, with the sums so far.
    fn listed(&self) -> usize {
        self.entries() + if self.kept { self.buckets() } else { 0 }
    }

    /// Buckets that are cut have more than `cap` entries each.
    fn longs(&self) -> usize {
        self.listed() / self.cap + 1
    }

    /// .. and give a task for each `cap` entries, and one for the rest.
    fn parts(&self) -> usize {
        2 * self.longs()
    }

    fn giants(&self) -> usize {
        self.listed() / (self.cap * GIANT) + 1
    }

    /// Places of sums: of buckets, and behind them of parts.
    fn sums(&self) -> usize {
        self.buckets() + self.parts()
    }

    /// Tasks, at most: beside one for each bucket only those of `cap` entries.
    fn tasks(&self) -> usize {
        self.buckets() + self.listed() / self.cap
    }

    /// Which of two kernels.
    fn kind(&self) -> usize {
        usize::from(!self.rows)
    }
}

/// Device memory of one sum.
struct Scratch<C: DeviceCurve> {
    counts: Span<u32>,
    bin_starts: Span<u32>,
    cursors: Span<u32>,
    tile_counts: Span<u32>,
    tile_starts: Span<u32>,
    tile_cursors: Span<u32>,
    part_starts: Span<u32>,
    pairs: [Span<[u32; 2]>; 2],
    sorted: Span<u32>,
    starts: Span<u32>,
    lengths: Span<u32>,
    task_cursors: Span<u32>,
    counters: Span<u32>,
    tasks: [Span<u32>; 3],
    longs: Span<LongBucket>,
    giants: Span<u32>,
    /// Sums of buckets, and from place `first_part` on those of parts: affine or XYZZ.
    first_part: u32,
    affine: Span<C::Affine>,
    xyzz: Span<C::Xyzz>,
    running: Span<C::Affine>,
    prefix: Span<C::Affine>,
    splits: Span<C::Xyzz>,
}

impl<C: DeviceCurve> Scratch<C> {
    fn carve(shape: &Shape, arena: &mut Arena) -> Self {
        let (bins, parts) = (shape.all_bins(), shape.parts_of_bins());
        let slots = shape.tasks();
        let (affine, xyzz) = match (shape.kept, shape.rows) {
            (true, _) => (Span::none(0), Span::none(0)),
            (false, true) => (arena.take(shape.sums()), Span::none(0)),
            (false, false) => (Span::none(0), arena.take(shape.sums())),
        };
        let starts = arena.take(shape.buckets() + 1);
        let bin_starts = if shape.low == 0 { starts } else { arena.take(bins + 1) };
        let second = if shape.middle == 0 { 0 } else { bins };
        let part_starts = if shape.middle == 0 { bin_starts } else { arena.take(parts + 1) };
        // What is sorted lies where the pairs before last were, and rows where the last ones are: these are read for the
        // last time before the first row is added.
        let rows = if shape.rows { slots.next_multiple_of(32) } else { 0 };
        let rows = |arena: &mut Arena| (arena.take(rows), arena.take(rows.div_ceil(2)));
        let pairs = |arena: &mut Arena, wanted: bool| arena.take(if wanted { shape.entries() } else { 0 });
        let (first, sorted) = arena.either(|arena| pairs(arena, shape.middle > 0), |arena| arena.take(shape.listed()));
        let (last, (running, prefix)) = arena.either(|arena| pairs(arena, shape.low > 0), rows);
        let pairs = if shape.middle > 0 { [first, last] } else { [last, last] };
        Scratch {
            counts: arena.take(parts),
            bin_starts,
            cursors: arena.take(parts),
            tile_counts: arena.take(second),
            tile_starts: arena.take(second + 1),
            tile_cursors: arena.take(second),
            part_starts,
            pairs,
            sorted,
            starts,
            lengths: arena.take(shape.cap + 1),
            task_cursors: arena.take(shape.cap + 1),
            counters: arena.take(5),
            tasks: [(); 3].map(|()| arena.take(slots)),
            longs: arena.take(shape.longs()),
            giants: arena.take(shape.giants()),
            first_part: shape.buckets() as u32,
            affine,
            xyzz,
            running,
            prefix,
            splits: arena.take(shape.giants() * SPLIT as usize),
        }
    }
}

/// Sums the points of each bucket, over digits or keys that are on the device.
struct Buckets<C: DeviceCurve> {
    shape: Shape,
    multiprocessors: u32,
    row_threads: u32,
    curve: PhantomData<C>,
}

/// Shared memory of a block that puts a tile into so many bins: three numbers a bin, and the tile.
fn scatter_shared(bins: u32) -> u32 {
    (3 * bins).next_multiple_of(2) * 4 + TILE as u32 * 8
}

/// Threads that add row by row on the whole device.
fn row_threads<C: DeviceCurve>(limits: Limits) -> u32 {
    let fitting = limits.shared_optin / C::ROW_SHARED / 32 * 32;
    fitting.clamp(32, C::ROW_THREADS)
}

impl<C: DeviceCurve> Buckets<C> {
    fn new(limits: Limits, shape: Shape) -> Self {
        let multiprocessors = limits.multiprocessors;
        Buckets { shape, multiprocessors, row_threads: row_threads::<C>(limits), curve: PhantomData }
    }

    /// Queues everything from `digits` to the sums of the buckets. If those of the points before are to be added to them,
    /// `kept` is the index of the first one as if it were among the points.
    fn queue(
        &self,
        stream: &Stream,
        points: Span<C::Affine>,
        digits: Span<u32>,
        indices: Option<Span<u32>>,
        kept: Option<u32>,
        scratch: &Scratch<C>,
    ) -> Result<()> {
        self.sort(stream, digits, indices, kept, scratch)?;
        self.plan_tasks(stream, scratch)?;
        self.sum_tasks(stream, points, scratch)?;
        self.join(stream, scratch)
    }

    fn sort(
        &self,
        stream: &Stream,
        digits: Span<u32>,
        indices: Option<Span<u32>>,
        kept: Option<u32>,
        scratch: &Scratch<C>,
    ) -> Result<()> {
        let Shape { positions, windows, bins, middle, low, .. } = self.shape;
        let (n, all) = (positions as u64, self.shape.all_bins());
        let shift = middle + low;
        let per_window = positions.div_ceil(TILE) as u32;
        let counts = scratch.counts.slice(..all);
        stream.zero(counts)?;
        let blocks = per_window.min(self.multiprocessors * 4).max(1);
        let histogram = args![counts, digits, n, shift, bins, blocks];
        stream.launch("msm_histogram", windows * blocks, SORT_THREADS, bins * 4, &histogram)?;
        let scan = args![scratch.bin_starts, scratch.cursors, counts, all as u32];
        stream.launch("msm_scan", 1, SORT_THREADS, 0, &scan)?;
        let out = if shift == 0 { scratch.sorted.address() } else { scratch.pairs[0].address() };
        let indices = indices.map_or(0, |indices| indices.address());
        let partition = args![out, scratch.cursors, digits, indices, n, shift, bins, per_window];
        stream.launch("msm_partition", windows * per_window, SORT_THREADS, scatter_shared(bins), &partition)?;
        if middle > 0 {
            self.sort_again(stream, scratch)?;
        }
        if low == 0 {
            return Ok(());
        }
        let all = self.shape.parts_of_bins() as u32;
        let (sorted, starts, pairs) = (scratch.sorted, scratch.starts, scratch.pairs[1]);
        let kept = kept.unwrap_or(NOTHING_KEPT);
        let sort = args![sorted, starts, pairs, scratch.part_starts, low, all, SORT_ROOM, kept];
        stream.launch("msm_sort_bins", all, SORT_THREADS, (4 << low) + 4 * SORT_ROOM, &sort)
    }

    /// The second partition.
    fn sort_again(&self, stream: &Stream, scratch: &Scratch<C>) -> Result<()> {
        let Shape { middle, low, .. } = self.shape;
        let (bins, parts) = (self.shape.all_bins() as u32, 1u32 << middle);
        let tiles = self.shape.tiles() as u32;
        let counts = args![scratch.tile_counts, scratch.bin_starts, bins];
        stream.launch("msm_tile_counts", bins.div_ceil(SORT_THREADS), SORT_THREADS, 0, &counts)?;
        let scan = args![scratch.tile_starts, scratch.tile_cursors, scratch.tile_counts, bins];
        stream.launch("msm_scan", 1, SORT_THREADS, 0, &scan)?;
        stream.zero(scratch.counts)?;
        let (tile_starts, bin_starts, pairs) = (scratch.tile_starts, scratch.bin_starts, scratch.pairs[0]);
        let histogram = args![scratch.counts, pairs, tile_starts, bin_starts, bins, low, parts];
        stream.launch("msm_part_histogram", tiles, SORT_THREADS, parts * 4, &histogram)?;
        let scan = args![scratch.part_starts, scratch.cursors, scratch.counts, bins * parts];
        stream.launch("msm_scan", 1, SORT_THREADS, 0, &scan)?;
        let part = args![scratch.pairs[1], scratch.cursors, pairs, tile_starts, bin_starts, bins, low, parts];
        stream.launch("msm_part", tiles, SORT_THREADS, scatter_shared(parts), &part)
    }

    fn task_pointers(scratch: &Scratch<C>) -> Tasks {
        let [starts, lengths, sums] = scratch.tasks.map(|span| span.address());
        Tasks { starts, lengths, sums }
    }

    fn plan_tasks(&self, stream: &Stream, scratch: &Scratch<C>) -> Result<()> {
        let (buckets, cap) = (self.shape.buckets() as u32, self.shape.cap as u32);
        let shared = (cap + 1) * 4;
        let grid = buckets.div_ceil(SORT_THREADS).min(self.multiprocessors * 4);
        let tasks = Self::task_pointers(scratch);
        stream.zero(scratch.lengths)?;
        stream.zero(scratch.counters)?;
        let lengths = args![scratch.lengths, scratch.starts, buckets, cap];
        stream.launch("msm_task_lengths", grid, SORT_THREADS, shared, &lengths)?;
        let starts = args![scratch.task_cursors, scratch.counters, scratch.lengths, cap];
        stream.launch("msm_task_starts", 1, SORT_THREADS, 0, &starts)?;
        let short = args![
            tasks,
            scratch.longs,
            scratch.giants,
            scratch.counters,
            scratch.task_cursors,
            scratch.starts,
            buckets,
            cap,
            scratch.first_part
        ];
        stream.launch("msm_tasks", grid, SORT_THREADS, shared, &short)?;
        let long = args![tasks, scratch.longs, scratch.counters, cap];
        let groups = self.shape.longs().min(self.multiprocessors as usize) as u32;
        stream.launch("msm_long_tasks", TASK_SPLIT * groups, 128, 0, &long)
    }

    fn sum_tasks(&self, stream: &Stream, points: Span<C::Affine>, scratch: &Scratch<C>) -> Result<()> {
        let tasks = Self::task_pointers(scratch);
        if self.shape.rows {
            let shared = self.row_threads * C::ROW_SHARED;
            let Scratch { affine, running, prefix, sorted, counters, .. } = *scratch;
            let rows = args![affine, running, prefix, points, sorted, tasks, counters, stream.stop_flag()];
            return stream.launch(C::KERNELS.sum_rows, self.multiprocessors, self.row_threads, shared, &rows);
        }
        let tasks_at_most = self.shape.tasks().min(self.shape.entries().max(1)) as u32;
        let grid = tasks_at_most.div_ceil(C::OTHER_THREADS).min(self.multiprocessors * 32);
        let chains = args![scratch.xyzz, points, scratch.sorted, tasks, scratch.counters];
        stream.launch(C::KERNELS.sum_chains, grid, C::OTHER_THREADS, 0, &chains)
    }

    fn join(&self, stream: &Stream, scratch: &Scratch<C>) -> Result<()> {
        let kernels = C::KERNELS;
        let kind = self.shape.kind();
        let sums = Self::sums(scratch);
        let shared = JOIN_THREADS * size_of::<C::Xyzz>() as u32;
        let (longs, giants, counters) = (scratch.longs, scratch.giants, scratch.counters);
        let grid = self.shape.longs().min(self.multiprocessors as usize * 4) as u32;
        stream.launch(kernels.join_longs[kind], grid, JOIN_THREADS, shared, &args![sums, longs, counters])?;
        let groups = self.shape.giants().min(self.multiprocessors as usize / 8 + 1) as u32;
        let split = args![scratch.splits, sums, longs, giants, counters];
        stream.launch(kernels.split_giants[kind], SPLIT * groups, JOIN_THREADS, shared, &split)?;
        let shared = SPLIT * size_of::<C::Xyzz>() as u32;
        let join = args![sums, scratch.splits, longs, giants, counters];
        stream.launch(kernels.join_giants[kind], groups, SPLIT, shared, &join)
    }

    /// Where the sums are, of either kind.
    fn sums(scratch: &Scratch<C>) -> u64 {
        match scratch.affine.is_empty() {
            true => scratch.xyzz.address(),
            false => scratch.affine.address(),
        }
    }
}

/// Multi-scalar multiplications of a fixed number of points, each by several sets of scalars at once: the windows of all
/// sets are summed together, which keeps the device busy where one set has too few points for that.
pub(super) struct Msm<C: DeviceCurve> {
    /// Of one set.
    windows: Windows,
    /// How many windows at once, whichever sets they are of.
    batch: u32,
    limits: Limits,
    shape: Shape,
    /// Chunks of a window that the last step of the reduction takes at most, as bits.
    last_at_most: u32,
    curve: PhantomData<C>,
}

/// Device memory of a multiplication.
struct MsmScratch<C: DeviceCurve> {
    digits: Span<u32>,
    buckets: Scratch<C>,
    chunks: [Span<[C::Xyzz; 2]>; 2],
}

impl<C: DeviceCurve> Msm<C> {
    /// For `points` points and up to `sets` sets of scalars, with scratch of at most `memory` bytes if that suffices for one
    /// window at all.
    pub fn new(limits: impl Into<Limits>, points: usize, sets: usize, memory: usize) -> Self {
        let limits = limits.into();
        let windows = Self::best_windows(limits, points, sets);
        let mut batch = windows.count * sets as u32;
        loop {
            let msm = Self::with_batch(limits, points, windows, batch);
            let entries_fit = points as u64 * u64::from(batch) <= u64::from(u32::MAX / 2);
            if batch == 1 || (entries_fit && msm.scratch_bytes() <= memory) {
                return msm;
            }
            batch -= 1;
        }
    }

    /// The windows with which sums of so many points take least time.
    fn best_windows(limits: Limits, points: usize, sets: usize) -> Windows {
        Windows::all().min_by_key(|&windows| Self::cost_of(limits, points, sets, windows, 1)).expect("there are some")
    }

    /// About the time of the sum of one set, in products of coordinates that the device makes meanwhile.
    pub fn cost(&self) -> usize {
        let batches = self.windows.count.div_ceil(self.batch) as usize;
        Self::cost_of(self.limits, self.shape.positions, 1, self.windows, batches)
    }

    /// .. of so many sets, in so many batches.
    fn cost_of(limits: Limits, points: usize, sets: usize, windows: Windows, batches: usize) -> usize {
        let shape = Self::with_batch(limits, points, windows, windows.count * sets as u32).shape;
        let (addition, bucket, step) = match shape.rows {
            true => (ROW_PRODUCTS, AFFINE_BUCKET_PRODUCTS, C::INVERSION),
            false => (CHAIN_PRODUCTS, XYZZ_BUCKET_PRODUCTS, CHAIN_STEP),
        };
        // The narrowest windows have the fullest buckets; how full these are varies as by chance.
        let full = points.div_ceil(1 << (windows.bits - 1));
        let fullest = full + 4 * full.isqrt();
        let each = |window| points * addition + (bucket << (windows.width(window) - 1));
        let threads = (row_threads::<C>(limits) * limits.multiprocessors) as usize;
        sets * (0..windows.count).map(each).sum::<usize>() + batches * fullest * step * threads
    }

    fn with_batch(limits: impl Into<Limits>, points: usize, windows: Windows, batch: u32) -> Self {
        let limits = limits.into();
        // The narrower windows have half as many buckets, twice as full.
        let buckets = 1usize << (windows.widest() - 1);
        let fullest = points >> (windows.bits - 1);
        let cap = (2 * fullest).next_power_of_two().clamp(SHORTEST_TASK * 2, LONGEST_TASK);
        let threads = (row_threads::<C>(limits) * limits.multiprocessors) as usize;
        let shape = Shape::new(points, batch, windows.widest() - 1, buckets, cap, threads);
        Msm { windows, batch, limits, shape, last_at_most: LAST_BITS, curve: PhantomData }
    }

    /// How many windows a set has.
    pub fn windows(&self) -> usize {
        self.windows.count as usize
    }

    /// The length of a set's result on the device.
    pub fn result_len(&self) -> usize {
        self.windows() * self.reduction().window_len()
    }

    /// Of all windows, narrower ones as if they were as wide as the widest.
    fn reduction(&self) -> Reduction {
        Reduction::new::<C>(self.limits, self.shape.buckets(), self.windows.widest() - 1, self.last_at_most)
    }

    /// Scratch that [`Msm::queue`] takes.
    pub fn scratch_bytes(&self) -> usize {
        let mut arena = Arena::counting();
        self.carve(&mut arena);
        arena.used()
    }

    fn carve(&self, arena: &mut Arena) -> MsmScratch<C> {
        MsmScratch {
            digits: arena.take(self.shape.entries()),
            buckets: Scratch::carve(&self.shape, arena),
            chunks: self.reduction().carve_chunks::<C>(self.shape.buckets(), arena),
        }
    }

    /// Queues for each set the sum of `scalars[i] * points[indices[i]]`, or of `scalars[i] * points[i]`. Scalars are canonical
    /// numbers below r, set after set; the points are the same for all. `out` gets [`Msm::result_len`] sums a set, which
    /// [`Msm::finish`] takes.
    pub fn queue(
        &self,
        stream: &Stream,
        points: Span<C::Affine>,
        scalars: Span<Words>,
        indices: Option<Span<u32>>,
        scratch: Span<u8>,
        out: Span<C::Xyzz>,
    ) -> Result<()> {
        let n = self.shape.positions;
        let sets = out.len() / self.result_len();
        assert_eq!((scalars.len(), out.len()), (n * sets, self.result_len() * sets), "not as planned");
        if n == 0 {
            // Zeros are infinity.
            return stream.zero(out);
        }
        let scratch = self.carve(&mut Arena::new(scratch));
        let all = (self.windows() * sets) as u32;
        let each = self.reduction().window_len();
        for first in (0..all).step_by(self.batch as usize) {
            let windows = first..all.min(first + self.batch);
            let shape = Shape { windows: windows.len() as u32, ..self.shape };
            self.digits(stream, scalars, windows.clone(), scratch.digits)?;
            let buckets = Buckets::<C>::new(self.limits, shape);
            buckets.queue(stream, points, scratch.digits, indices, None, &scratch.buckets)?;
            let out = out.slice(windows.start as usize * each..windows.end as usize * each);
            let (address, starts) = (Buckets::sums(&scratch.buckets), Some(scratch.buckets.starts));
            let sums = Sums { address, kind: shape.kind(), starts };
            self.reduction().queue::<C>(stream, sums, windows.len(), scratch.chunks, out)?;
        }
        Ok(())
    }

    /// The digits of these windows, counted over all sets.
    fn digits(&self, stream: &Stream, scalars: Span<Words>, windows: Range<u32>, out: Span<u32>) -> Result<()> {
        let (n, each) = (self.shape.positions, self.windows.count);
        let mut first = windows.start;
        while first < windows.end {
            let set = first / each;
            let count = windows.end.min((set + 1) * each) - first;
            let scalars = scalars.slice(set as usize * n..(set as usize + 1) * n);
            let out = out.slice((first - windows.start) as usize * n..);
            queue_digits(stream, scalars, self.windows.plan(first % each, count), out)?;
            first += count;
        }
        Ok(())
    }

    /// The sum of one set from what [`Msm::queue`] left of its windows.
    pub fn finish(&self, result: &[C::Xyzz]) -> C::Projective {
        join_windows::<C>(&self.windows, |_| self.reduction(), result)
    }
}

/// Queues the digits that are planned, of these scalars.
fn queue_digits(stream: &Stream, scalars: Span<Words>, plan: DigitPlan, out: Span<u32>) -> Result<()> {
    let n = scalars.len();
    stream.launch("msm_digits", n.div_ceil(256) as u32, 256, 0, &args![out, scalars, n as u64, plan])
}

/// Horner's rule over all bits, from what reductions left of the windows.
fn join_windows<C: DeviceCurve>(
    windows: &Windows,
    reduction: impl Fn(u32) -> Reduction,
    mut result: &[C::Xyzz],
) -> C::Projective {
    let mut sums = Vec::new();
    for window in 0..windows.count {
        let (own, others) = result.split_at(reduction(window).window_len());
        sums.push(own);
        result = others;
    }
    let mut sum = C::Projective::identity();
    for (window, own) in (0..windows.count).zip(sums).rev() {
        let reduction = reduction(window);
        let (bits, halves) = own.split_at(reduction.last as usize);
        for bit in (0..windows.width(window)).rev() {
            sum = sum.double();
            // Where windows are reduced as if they were wider, the buckets with the highest bit are empty.
            let number = bit.checked_sub(reduction.bits - reduction.last);
            if let Some(bit) = number.and_then(|number| bits.get(number as usize)) {
                sum += C::xyzz(bit);
            }
        }
        sum += C::xyzz(&halves[0]) + C::xyzz(&halves[1]);
    }
    sum
}

/// How the buckets of some windows are reduced, which have 2^`bits` each.
#[derive(Clone, Copy)]
struct Reduction {
    bits: u32,
    /// Buckets that a thread reduces, as bits.
    leaf: u32,
    /// Chunks of a window that the last step gets, as bits.
    last: u32,
}

/// Sums of buckets.
struct Sums {
    address: u64,
    /// Affine or XYZZ.
    kind: usize,
    /// Says which buckets have entries; without it the sums of those that have none are infinity.
    starts: Option<Span<u32>>,
}

impl Reduction {
    /// For so many buckets in all.
    fn new<C: DeviceCurve>(limits: Limits, buckets: usize, bits: u32, last_at_most: u32) -> Self {
        // Few enough for a thread that all multiprocessors have work.
        let threads = (limits.multiprocessors * C::OTHER_THREADS) as usize;
        let leaf = (buckets / threads).checked_ilog2().unwrap_or(0).clamp(1, LEAF_BITS).min(bits);
        Reduction { bits, leaf, last: (bits - leaf).min(last_at_most) }
    }

    /// Sums that are left of a window.
    fn window_len(&self) -> usize {
        self.last as usize + 2
    }

    /// Room for what `buckets` buckets are reduced to on the way.
    fn carve_chunks<C: DeviceCurve>(&self, buckets: usize, arena: &mut Arena) -> [Span<[C::Xyzz; 2]>; 2] {
        [(); 2].map(|()| arena.take(buckets >> self.leaf))
    }

    /// From buckets to some sums a window.
    fn queue<C: DeviceCurve>(
        &self,
        stream: &Stream,
        sums: Sums,
        windows: usize,
        [mut from, mut to]: [Span<[C::Xyzz; 2]>; 2],
        out: Span<C::Xyzz>,
    ) -> Result<()> {
        let grid = |threads: usize| (threads as u32).div_ceil(C::OTHER_THREADS);
        let buckets = windows << self.bits;
        let mut covered = self.leaf;
        let mut chunks = buckets >> covered;
        let starts = sums.starts.map_or(0, |starts| starts.address());
        let leaves = args![from, sums.address, starts, buckets as u32, 1u32 << covered];
        stream.launch(C::KERNELS.reduce_buckets[sums.kind], grid(chunks), C::OTHER_THREADS, 0, &leaves)?;
        while covered + self.last < self.bits {
            let step = JOIN_BITS.min(self.bits - self.last - covered);
            let join = args![to, from, chunks as u32, 1u32 << step, covered];
            chunks >>= step;
            stream.launch(C::KERNELS.reduce_chunks, grid(chunks), C::OTHER_THREADS, 0, &join)?;
            covered += step;
            (from, to) = (to, from);
        }
        let threads = (1 << self.last).clamp(32, JOIN_THREADS);
        let shared = threads * size_of::<C::Xyzz>() as u32;
        stream.launch(C::KERNELS.reduce_bits, out.len() as u32, threads, shared, &args![out, from, self.last])
    }
}

/// A multiplication whose points come in pieces. The sums of the buckets of all windows are kept from piece to piece: the
/// windows are those for all points together, and the buckets are reduced once. A bucket's sum so far is the first of the
/// points that a piece adds up for it, so that each point takes one addition however many pieces there are.
pub(super) struct PiecewiseMsm<C: DeviceCurve> {
    windows: Windows,
    limits: Limits,
    pieces: Vec<Piece>,
    curve: PhantomData<C>,
}

/// How a piece is added.
struct Piece {
    points: usize,
    batches: Vec<Batch>,
}

/// Windows of the same width that are done at once.
struct Batch {
    windows: Range<u32>,
    shape: Shape,
}

/// Device memory while a piece is added.
struct PieceScratch<C: DeviceCurve> {
    digits: Span<u32>,
    buckets: Scratch<C>,
}

/// Sums that are kept are a multiple of so many: what is carved behind them is at a whole number of points from them.
const KEPT_UNIT: usize = 8;

/// Points lie at multiples of so many bytes from what is carved behind them.
pub(super) const POINTS_APART: usize = 768;

impl Piece {
    /// For so many points, with scratch of at most `memory` bytes if that suffices for one window at all.
    fn new<C: DeviceCurve>(limits: Limits, points: usize, windows: &Windows, memory: usize) -> Self {
        let mut batches = Vec::new();
        for alike in windows.alike() {
            let bits = windows.width(alike.start) - 1;
            let most = (1..=alike.len()).rev().find(|&count| {
                let shape = Self::shape::<C>(limits, points, bits, count);
                count == 1 || (shape.listed() <= u32::MAX as usize / 2 && Self::bytes::<C>(&shape) <= memory)
            });
            let size = alike.len().div_ceil(alike.len().div_ceil(most.unwrap_or(1)));
            for first in alike.clone().step_by(size) {
                let windows = first..alike.end.min(first + size as u32);
                batches.push(Batch { shape: Self::shape::<C>(limits, points, bits, windows.len()), windows });
            }
        }
        Piece { points, batches }
    }

    /// Of `count` windows with 2^bits buckets each.
    fn shape<C: DeviceCurve>(limits: Limits, points: usize, bits: u32, count: usize) -> Shape {
        // Four times the mean: random scalars leave no bucket to be cut, which would take time and room.
        let cap = ((4 * points) >> bits).clamp(SHORTEST_TASK * 2, LONGEST_TASK);
        let threads = (row_threads::<C>(limits) * limits.multiprocessors) as usize;
        Shape::new(points, count as u32, bits, 1 << bits, cap, threads).keeping()
    }

    /// Scratch beside the sums that are kept.
    fn bytes<C: DeviceCurve>(shape: &Shape) -> usize {
        let mut arena = Arena::counting();
        Self::carve::<C>(shape, &mut arena);
        arena.used()
    }

    fn carve<C: DeviceCurve>(shape: &Shape, arena: &mut Arena) -> PieceScratch<C> {
        // Digits are sorted before anything is summed.
        let (digits, parts) = arena.either(|arena| arena.take(shape.entries()), |arena| arena.take(shape.parts()));
        PieceScratch { digits, buckets: Scratch { affine: parts, ..Scratch::carve(shape, arena) } }
    }
}

impl<C: DeviceCurve> PiecewiseMsm<C> {
    /// For pieces of these many points, none of them empty, with scratch of at most `memory` bytes if that suffices for the
    /// widths of windows that suit the longest piece alone.
    pub fn new(limits: impl Into<Limits>, lengths: &[usize], memory: usize) -> Self {
        let limits = limits.into();
        let (all, longest) = (lengths.iter().sum(), lengths.iter().copied().fold(0, usize::max));
        let [fewest, most] = [all, longest].map(|points| Msm::<C>::best_windows(limits, points, 1).count);
        let with = |count| Self::with_windows(limits, lengths, Windows::new(count), memory);
        // Narrower windows have fewer buckets to keep, and leave room to do more of them at once.
        let fitting = (fewest..=most).map(with).filter(|msm| msm.scratch_bytes() <= memory);
        fitting.min_by_key(Self::cost).unwrap_or_else(|| with(most))
    }

    /// As [`Msm::cost`]. The longest of tasks are about twice as long as the mean.
    pub fn cost(&self) -> usize {
        let threads = (row_threads::<C>(self.limits) * self.limits.multiprocessors) as usize;
        let batches = self.pieces.iter().flat_map(|piece| &piece.batches);
        let adding =
            batches.map(|Batch { shape, .. }| shape.entries() * ROW_PRODUCTS + threads * C::INVERSION * shape.cap / 2);
        adding.sum::<usize>() + AFFINE_BUCKET_PRODUCTS * self.windows.buckets_before(self.windows.count)
    }

    fn with_windows(limits: Limits, lengths: &[usize], windows: Windows, memory: usize) -> Self {
        let mut msm = PiecewiseMsm { windows, limits, pieces: Vec::new(), curve: PhantomData };
        let memory = memory.saturating_sub(msm.kept_bytes());
        msm.pieces = lengths.iter().map(|&points| Piece::new::<C>(limits, points, &windows, memory)).collect();
        msm
    }

    /// How many windows there are.
    pub fn windows(&self) -> usize {
        self.windows.count as usize
    }

    /// The length of the result on the device.
    pub fn result_len(&self) -> usize {
        self.result_before(self.windows.count)
    }

    /// .. and of its part for the windows before window `window`.
    fn result_before(&self, window: u32) -> usize {
        (0..window).map(|window| self.reduction(window).window_len()).sum()
    }

    /// Of windows of the same width as window `window`, all at once.
    fn reduction(&self, window: u32) -> Reduction {
        let alike = self.windows.alike().find(|alike| alike.contains(&window)).map_or(0, |alike| alike.len());
        let bits = self.windows.width(window) - 1;
        Reduction::new::<C>(self.limits, alike << bits, bits, LAST_BITS)
    }

    /// Scratch of the whole multiplication: nothing else may use it from the first piece until the result is there.
    pub fn scratch_bytes(&self) -> usize {
        let batches = self.pieces.iter().flat_map(|piece| &piece.batches);
        let adding = batches.map(|batch| Piece::bytes::<C>(&batch.shape)).fold(0, usize::max);
        let reducing = self.windows.alike().map(|alike| {
            let mut arena = Arena::counting();
            self.carve_chunks(&alike, &mut arena);
            arena.used()
        });
        self.kept_bytes() + reducing.fold(adding, usize::max)
    }

    fn kept_bytes(&self) -> usize {
        let mut arena = Arena::counting();
        self.carve_kept(&mut arena);
        arena.used()
    }

    /// The sums of the buckets of all windows, window after window.
    fn carve_kept(&self, arena: &mut Arena) -> Span<C::Affine> {
        arena.take(self.windows.buckets_before(self.windows.count).next_multiple_of(KEPT_UNIT))
    }

    fn carve_chunks(&self, alike: &Range<u32>, arena: &mut Arena) -> [Span<[C::Xyzz; 2]>; 2] {
        let reduction = self.reduction(alike.start);
        reduction.carve_chunks::<C>(alike.len() << reduction.bits, arena)
    }

    /// Divides scratch into the sums that are kept and what else there is.
    fn split(&self, scratch: Span<u8>) -> (Span<C::Affine>, Span<u8>) {
        let mut arena = Arena::new(scratch);
        (self.carve_kept(&mut arena), scratch.slice(arena.used()..))
    }

    /// Queues the addition of piece `index`: of `scalars[i] * points[i]`. Scalars are canonical numbers below r. The pieces
    /// come in order, with the same scratch; their points lie before it, at a multiple of [`POINTS_APART`] bytes from it.
    pub fn add(
        &self,
        stream: &Stream,
        index: usize,
        points: Span<C::Affine>,
        scalars: Span<Words>,
        scratch: Span<u8>,
    ) -> Result<()> {
        let piece = &self.pieces[index];
        assert_eq!((points.len(), scalars.len()), (piece.points, piece.points), "not as planned");
        let (kept, rest) = self.split(scratch);
        if index == 0 {
            // Zeros are infinity.
            stream.zero(kept)?;
        }
        for Batch { windows, shape } in &piece.batches {
            let PieceScratch { digits, mut buckets } = Piece::carve::<C>(shape, &mut Arena::new(rest));
            let plan = self.windows.plan(windows.start, windows.len() as u32);
            queue_digits(stream, scalars, plan, digits)?;
            let kept = kept.slice(self.windows.buckets_before(windows.start)..);
            let first_part = places_between(kept, buckets.affine);
            (buckets.affine, buckets.first_part) = (kept, first_part);
            let kept = (index > 0).then(|| places_between(points, kept));
            Buckets::new(self.limits, *shape).queue(stream, points, digits, None, kept, &buckets)?;
        }
        Ok(())
    }

    /// Queues what is left to do after the last piece. `out` gets [`PiecewiseMsm::result_len`] sums, which
    /// [`PiecewiseMsm::finish`] takes.
    pub fn reduce(&self, stream: &Stream, scratch: Span<u8>, out: Span<C::Xyzz>) -> Result<()> {
        let (kept, rest) = self.split(scratch);
        for alike in self.windows.alike() {
            let kept = kept.slice(self.windows.buckets_before(alike.start)..);
            let sums = Sums { address: kept.address(), kind: 0, starts: None };
            let chunks = self.carve_chunks(&alike, &mut Arena::new(rest));
            let out = out.slice(self.result_before(alike.start)..self.result_before(alike.end));
            self.reduction(alike.start).queue::<C>(stream, sums, alike.len(), chunks, out)?;
        }
        Ok(())
    }

    /// The sum from what [`PiecewiseMsm::reduce`] left.
    pub fn finish(&self, result: &[C::Xyzz]) -> C::Projective {
        join_windows::<C>(&self.windows, |window| self.reduction(window), result)
    }
}

/// How many places after the first of some points the first of others is.
fn places_between<T: Plain>(points: Span<T>, others: Span<T>) -> u32 {
    let bytes = others.address().checked_sub(points.address()).expect("others lie behind");
    let size = size_of::<T>() as u64;
    assert!(bytes.is_multiple_of(size), "{bytes} bytes between points of {size}");
    let places = bytes / size;
    assert!(places + others.len() as u64 <= SIGN, "an index has 31 bits");
    places as u32
}

/// Sums of points by a key from 1 on; 0 means that a point is in no sum.
pub(super) struct KeySums<C: DeviceCurve> {
    buckets: Buckets<C>,
}

/// How it is done.
impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let way = if self.rows { "rows" } else { "chains" };
        write!(f, "{} windows at once, {} buckets, {way} of up to {}", self.windows, self.buckets(), self.cap)
    }
}

impl<C: DeviceCurve> fmt::Display for Msm<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} windows, {}", self.windows.count, self.shape)
    }
}

impl<C: DeviceCurve> fmt::Display for PiecewiseMsm<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} windows, whose buckets are kept over {} pieces", self.windows.count, self.pieces.len())?;
        let longest = self.pieces.iter().max_by_key(|piece| piece.points);
        let batches = longest.into_iter().flat_map(|piece| &piece.batches);
        batches.into_iter().try_for_each(|batch| write!(f, ", {}", batch.shape))
    }
}

impl<C: DeviceCurve> fmt::Display for KeySums<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.buckets.shape.fmt(f)
    }
}

/// Where [`KeySums::queue`] puts its result.
#[derive(Clone, Copy)]
pub(super) struct KeyResult<C: DeviceCurve> {
    starts: Span<u32>,
    affine: Span<C::Affine>,
    xyzz: Span<C::Xyzz>,
}

impl<C: DeviceCurve> KeySums<C> {
    /// For `points` points with keys of so many bits, ten at most.
    pub fn new(limits: impl Into<Limits>, points: usize, key_bits: u32) -> Self {
        let limits = limits.into();
        assert!((1..=10).contains(&key_bits), "keys of {key_bits} bits");
        let threads = (row_threads::<C>(limits) * limits.multiprocessors) as usize;
        // Short tasks make many: each inversion then serves many additions. What they leave is joined one by one.
        let expected = points - (points >> key_bits);
        let cap = (expected / (TASKS_A_THREAD * threads)).next_power_of_two().clamp(SHORTEST_TASK, LONGEST_TASK);
        let shape = Shape::new(points, 1, key_bits, (1 << key_bits) - 1, cap, threads);
        KeySums { buckets: Buckets::new(limits, shape) }
    }

    /// Scratch that [`KeySums::queue`] takes.
    pub fn scratch_bytes(&self) -> usize {
        let mut arena = Arena::counting();
        Scratch::<C>::carve(&self.buckets.shape, &mut arena);
        arena.used()
    }

    /// Room for a result.
    pub fn carve_result(&self, arena: &mut Arena) -> KeyResult<C> {
        let keys = self.buckets.shape.window_buckets;
        let (affine, xyzz) = if self.buckets.shape.rows { (keys, 0) } else { (0, keys) };
        KeyResult { starts: arena.take(keys + 1), affine: arena.take(affine), xyzz: arena.take(xyzz) }
    }

    /// Queues the sums over `points[i]` by `keys[i]`.
    pub fn queue(
        &self,
        stream: &Stream,
        points: Span<C::Affine>,
        keys: Span<u32>,
        scratch: Span<u8>,
        result: &KeyResult<C>,
    ) -> Result<()> {
        assert_eq!(keys.len(), self.buckets.shape.positions, "not as planned");
        if keys.is_empty() {
            return stream.zero(result.starts);
        }
        let scratch = Scratch::carve(&self.buckets.shape, &mut Arena::new(scratch));
        self.buckets.queue(stream, points, keys, None, None, &scratch)?;
        stream.copy(result.starts, scratch.starts)?;
        stream.copy(result.affine, scratch.affine.slice(..result.affine.len()))?;
        stream.copy(result.xyzz, scratch.xyzz.slice(..result.xyzz.len()))
    }
}

impl<C: DeviceCurve> KeyResult<C> {
    /// The sums of the keys 1, 2, .., after waiting for them.
    pub fn read(&self, stream: &Stream) -> Result<Vec<C::Projective>> {
        let starts = read(stream, self.starts)?;
        let sums: Vec<_> = match self.affine.is_empty() {
            false => read(stream, self.affine)?.iter().map(C::affine).collect(),
            true => read(stream, self.xyzz)?.iter().map(C::xyzz).collect(),
        };
        // Sums of keys that do not occur were never written.
        let occurs = starts.windows(2).map(|pair| pair[0] != pair[1]);
        let sum = |(sum, occurs)| if occurs { sum } else { C::Projective::identity() };
        Ok(sums.into_iter().zip(occurs).map(sum).collect())
    }
}

/// From sums by keys to sums by bits: element `j` is the sum over all keys with bit `j`. Takes two additions a key.
pub(super) fn sums_by_bit<P: Group>(mut by_key: Vec<P>) -> Vec<P> {
    // Key 0 adds nothing.
    by_key.insert(0, P::identity());
    let bits = by_key.len().trailing_zeros() as usize;
    let mut sums = vec![P::identity(); bits];
    for bit in (0..bits).rev() {
        let half = 1 << bit;
        for key in half..2 * half {
            let sum = by_key[key];
            sums[bit] += sum;
            // From now on this key's points count for the key without the bit.
            by_key[key - half] += sum;
        }
    }
    sums
}

/// The values of a span on the host, after waiting for them.
pub(super) fn read<T: Plain>(stream: &Stream, span: Span<T>) -> Result<Vec<T>> {
    // SAFETY: every bit pattern is a value of a plain type, also zeros.
    let mut values = vec![unsafe { std::mem::zeroed::<T>() }; span.len()];
    stream.download(span, &mut values)?;
    Ok(values)
}

#[cfg(all(test, feature = "emulator"))]
mod tests {
    use std::sync::atomic::Ordering;

    use blstrs::{G1Affine, G1Projective, Scalar};
    use ff::{Field, PrimeField};
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    use super::super::curves::{G1, G2};
    use super::super::gpu::Gpu;
    use super::super::testing;
    use super::*;
    use crate::backend::cpu::lane::Lanes;
    use crate::backend::cpu::msm::{msm_g1, msm_g2};
    use crate::backend::cpu::testing::sample_points;
    use crate::curve::AffinePoint;
    use crate::pipeline::Control;

    /// What the CPU computes and the device should.
    trait Case: DeviceCurve {
        fn host_msm(points: &[Self::Host], scalars: &[Scalar]) -> Self::Projective;
    }

    macro_rules! case {
        ($device:ty, $msm:path) => {
            impl Case for $device {
                fn host_msm(points: &[Self::Host], scalars: &[Scalar]) -> Self::Projective {
                    $msm(points, scalars, Lanes::default(), &Control::new()).unwrap()
                }
            }
        };
    }
    case!(G1, msm_g1);
    case!(G2, msm_g2);

    /// Distinct points, equal ones at several distances, opposite ones, and infinity.
    fn points<C: Case>(count: usize, rng: &mut StdRng) -> Vec<C::Host> {
        let mut points = sample_points::<C::Host>(count);
        for index in 0..count {
            match rng.gen_range(0..12) {
                0 if index >= 32 => points[index] = points[index - 32],
                1 if index >= 1 => points[index] = points[index - 1],
                2 if index >= 3 => points[index] = -points[index - 3],
                3 => points[index] = C::Host::INFINITY,
                _ => {}
            }
        }
        points
    }

    fn scalars(count: usize, kind: usize, rng: &mut StdRng) -> Vec<Scalar> {
        let edges = [Scalar::ZERO, Scalar::ONE, -Scalar::ONE, Scalar::from(2), -Scalar::from(2), Scalar::TWO_INV];
        let of = |rng: &mut StdRng| match kind {
            0 => Scalar::random(rng),
            1 => edges[rng.gen_range(0..edges.len())],
            2 => -Scalar::from(3),
            _ => Scalar::from(2).pow_vartime([rng.gen_range(0..256u64)]) - Scalar::from(rng.gen_range(0..2u64)),
        };
        (0..count).map(|_| of(rng)).collect()
    }

    fn canonical(scalars: &[Scalar]) -> Vec<Words> {
        let words =
            |bytes: [u8; 32]| std::array::from_fn(|i| u32::from_le_bytes(bytes[4 * i..4 * i + 4].try_into().unwrap()));
        scalars.iter().map(|scalar| words(scalar.to_repr())).collect()
    }

    fn run<C: Case>(
        gpu: &Gpu,
        msm: &Msm<C>,
        points: &[C::Host],
        scalars: &[Scalar],
        indices: Option<&[u32]>,
    ) -> Vec<C::Projective> {
        let stream = gpu.stream().unwrap();
        let bases = gpu.allocate(points.len(), "points").unwrap();
        stream.upload(bases.span(), C::words(points)).unwrap();
        let numbers = gpu.allocate(scalars.len(), "scalars").unwrap();
        stream.upload(numbers.span(), &canonical(scalars)).unwrap();
        let places = gpu.allocate(indices.map_or(0, <[u32]>::len), "indices").unwrap();
        if let Some(indices) = indices {
            stream.upload(places.span(), indices).unwrap();
        }
        let scratch = gpu.allocate(msm.scratch_bytes(), "scratch").unwrap();
        let count = indices.map_or(points.len(), <[u32]>::len);
        let sets = scalars.len().checked_div(count).unwrap_or(1);
        let out = gpu.allocate(msm.result_len() * sets, "windows").unwrap();
        let places = indices.map(|_| places.span());
        msm.queue(&stream, bases.span(), numbers.span(), places, scratch.span(), out.span()).unwrap();
        read(&stream, out.span()).unwrap().chunks(msm.result_len()).map(|result| msm.finish(result)).collect()
    }

    fn multiplications<C: Case>(counts: &[usize]) {
        let gpu = testing::gpu();
        let mut rng = StdRng::seed_from_u64(1);
        for &count in counts {
            let points = points::<C>(count, &mut rng);
            for kind in 0..4 {
                let scalars = scalars(count, kind, &mut rng);
                let expected = C::host_msm(&points, &scalars);
                for rows in [false, true] {
                    for batch in [1, 3, 100] {
                        let windows = Msm::<C>::best_windows((&gpu).into(), count, 1);
                        let mut msm = Msm::<C>::with_batch(&gpu, count, windows, windows.count.min(batch));
                        msm.shape.rows = rows;
                        let sums = run(&gpu, &msm, &points, &scalars, None);
                        assert_eq!(sums, [expected], "{count} points, scalars {kind}, rows {rows}, {batch} windows");
                    }
                }
            }
        }
    }

    #[test]
    fn multiplications_in_g1_are_those_of_the_cpu() {
        multiplications::<G1>(&[1, 2, 33, 700]);
    }

    #[test]
    fn multiplications_in_g2_are_those_of_the_cpu() {
        multiplications::<G2>(&[1, 300]);
    }

    #[test]
    fn wide_windows_are_sorted_in_two_or_three_steps() {
        let gpu = testing::gpu();
        let mut rng = StdRng::seed_from_u64(2);
        let points = points::<G1>(3000, &mut rng);
        for kind in 0..4 {
            let scalars = scalars(3000, kind, &mut rng);
            for (rows, middle, low) in [(false, 0, 3), (true, 0, 5), (false, 3, 2), (true, 2, 4)] {
                let mut msm = Msm::<G1>::with_batch(&gpu, 3000, Windows::new(30), 7);
                msm.shape.rows = rows;
                msm.shape.set_steps(middle, low);
                let sums = run(&gpu, &msm, &points, &scalars, None);
                assert_eq!(sums, [G1::host_msm(&points, &scalars)], "scalars {kind}");
            }
        }
    }

    #[test]
    fn reductions_end_in_any_number_of_steps() {
        let gpu = testing::gpu();
        let mut rng = StdRng::seed_from_u64(6);
        let points = points::<G1>(1000, &mut rng);
        let scalars = scalars(1000, 0, &mut rng);
        let expected = G1::host_msm(&points, &scalars);
        for last_at_most in [LAST_BITS, 5, 3, 0] {
            // Windows of two widths.
            let mut msm = Msm::<G1>::with_batch(&gpu, 1000, Windows::new(27), 5);
            msm.last_at_most = last_at_most;
            assert_eq!(run(&gpu, &msm, &points, &scalars, None), [expected], "up to {last_at_most} bits at last");
        }
    }

    #[test]
    fn windows_suit_the_number_of_points() {
        let limits = Limits { multiprocessors: 132, shared_optin: 232_448 };
        let count = |points, sets| Msm::<G1>::best_windows(limits, points, sets).count;
        let one: Vec<_> = [10, 14, 18, 22, 24, 27].map(|log| count(1 << log, 1)).into();
        assert_eq!(one, [25, 21, 17, 14, 13, 12]);
        // Rows of several sets share their inversions.
        assert!(count(1 << 14, 10) > count(1 << 14, 1));
    }

    #[test]
    fn points_may_be_gathered() {
        let gpu = testing::gpu();
        let mut rng = StdRng::seed_from_u64(3);
        let points = points::<G1>(500, &mut rng);
        let indices: Vec<u32> = (0..200).map(|_| rng.gen_range(0..500)).collect();
        let scalars = scalars(200, 0, &mut rng);
        let gathered: Vec<_> = indices.iter().map(|&index| points[index as usize]).collect();
        let msm = Msm::<G1>::new(&gpu, 200, 1, 1 << 30);
        let sums = run(&gpu, &msm, &points, &scalars, Some(&indices));
        assert_eq!(sums, [G1::host_msm(&gathered, &scalars)]);
        let nothing = run(&gpu, &Msm::<G1>::new(&gpu, 0, 1, 1 << 30), &points, &[], Some(&[]));
        assert_eq!(nothing, [G1::host_msm(&[], &[])]);
    }

    fn sets<C: Case>(count: usize) {
        const SETS: usize = 5;
        let gpu = testing::gpu();
        let mut rng = StdRng::seed_from_u64(5);
        let points = points::<C>(2 * count, &mut rng);
        let indices: Vec<u32> = (0..count).map(|index| 2 * index as u32).collect();
        let gathered: Vec<_> = points.iter().step_by(2).copied().collect();
        let scalars: Vec<_> = (0..SETS).map(|set| scalars(count, set % 4, &mut rng)).collect();
        let expected: Vec<_> = scalars.iter().map(|scalars| C::host_msm(&gathered, scalars)).collect();
        let windows = Msm::<C>::best_windows((&gpu).into(), count, SETS);
        // Batches that end within sets, that hold one or several, and all of them.
        let batches = [1, windows.count - 1, windows.count, 2 * windows.count + 3, SETS as u32 * windows.count];
        for (batch, rows) in batches.into_iter().zip([false, true].into_iter().cycle()) {
            let mut msm = Msm::<C>::with_batch(&gpu, count, windows, batch);
            msm.shape.rows = rows;
            for sets in [SETS, 2, 1] {
                let scalars = scalars[..sets].concat();
                let sums = run(&gpu, &msm, &points, &scalars, Some(&indices));
                assert_eq!(sums, expected[..sets], "{batch} windows at once, {sets} sets, rows {rows}");
            }
        }
    }

    #[test]
    fn several_sets_of_scalars_give_the_sum_of_each() {
        sets::<G1>(150);
        sets::<G2>(40);
    }

    /// The sum over pieces, several times with the same memory.
    fn run_pieces<C: Case>(
        gpu: &Gpu,
        msm: &PiecewiseMsm<C>,
        pieces: &[(Vec<C::Host>, Vec<Scalar>)],
        times: usize,
    ) -> Vec<C::Projective> {
        let stream = gpu.stream().unwrap();
        let longest = pieces.iter().map(|(points, _)| points.len()).max().unwrap();
        let chunk = (longest * size_of::<C::Affine>()).next_multiple_of(POINTS_APART);
        let room = gpu.allocate(2 * chunk + msm.scratch_bytes(), "chunks and scratch").unwrap();
        // What is there before is no sum of anything.
        stream.upload(room.span(), &vec![0xa5; room.len()]).unwrap();
        let scratch = room.span().slice(2 * chunk..);
        let numbers = gpu.allocate(longest, "scalars").unwrap();
        let out = gpu.allocate(msm.result_len(), "windows").unwrap();
        let sum = |_| {
            for (index, (points, scalars)) in pieces.iter().enumerate() {
                let chunk = room.span().slice(index % 2 * chunk..);
                let bases = chunk.slice(..points.len() * size_of::<C::Affine>()).cast();
                let scalars_there = numbers.span().slice(..scalars.len());
                stream.upload(bases, C::words(points)).unwrap();
                stream.upload(scalars_there, &canonical(scalars)).unwrap();
                msm.add(&stream, index, bases, scalars_there, scratch).unwrap();
            }
            msm.reduce(&stream, scratch, out.span()).unwrap();
            msm.finish(&read(&stream, out.span()).unwrap())
        };
        (0..times).map(sum).collect()
    }

    fn host_sum<C: Case>(pieces: &[(Vec<C::Host>, Vec<Scalar>)]) -> C::Projective {
        pieces.iter().map(|(points, scalars)| C::host_msm(points, scalars)).sum()
    }

    fn pieces<C: Case>(lengths: &[usize]) {
        let gpu = testing::gpu();
        let mut rng = StdRng::seed_from_u64(6);
        let all = points::<C>(lengths.iter().sum(), &mut rng);
        let mut windows_seen = Vec::new();
        for kind in 0..4 {
            let mut rest = &all[..];
            let piece = |&length: &usize| {
                let (points, others) = rest.split_at(length);
                rest = others;
                (points.to_vec(), scalars(length, kind, &mut rng))
            };
            let pieces: Vec<_> = lengths.iter().map(piece).collect();
            let expected = host_sum::<C>(&pieces);
            // Windows one by one, some at once, and all of a width.
            let least = PiecewiseMsm::<C>::new(&gpu, lengths, 0).scratch_bytes();
            let memories = [least + least / 2, 0, usize::MAX];
            for &memory in &memories[..if kind == 0 { 3 } else { 1 }] {
                let msm = PiecewiseMsm::<C>::new(&gpu, lengths, memory);
                assert!(msm.scratch_bytes() <= memory.max(least));
                let sums = run_pieces(&gpu, &msm, &pieces, 2);
                assert_eq!(sums, [expected; 2], "{lengths:?}, scalars {kind}, {memory} bytes: {msm}");
                windows_seen.push((msm.windows.count, msm.pieces[0].batches.len()));
            }
        }
        windows_seen.sort();
        windows_seen.dedup();
        assert!(windows_seen.len() >= 2, "{lengths:?}: {windows_seen:?}");
    }

    #[test]
    fn sums_in_pieces_are_those_of_the_cpu() {
        pieces::<G1>(&[40]);
        pieces::<G1>(&[1, 1]);
        pieces::<G1>(&[400, 33, 1, 300]);
        pieces::<G2>(&[20, 90, 64]);
    }

    #[test]
    fn pieces_with_wide_windows_are_sorted_in_two_or_three_steps() {
        let gpu = testing::gpu();
        let mut rng = StdRng::seed_from_u64(7);
        let lengths = [700, 1300, 1000];
        for kind in 0..4 {
            let pieces = lengths.map(|length| (points::<G1>(length, &mut rng), scalars(length, kind, &mut rng)));
            let expected = host_sum::<G1>(&pieces);
            for (middle, low) in [(0, 3), (0, 5), (3, 2), (2, 4)] {
                let mut msm = PiecewiseMsm::<G1>::with_windows((&gpu).into(), &lengths, Windows::new(30), 3 << 20);
                let batches = msm.pieces.iter_mut().flat_map(|piece| &mut piece.batches);
                batches.for_each(|batch| batch.shape.set_steps(middle, low));
                assert_eq!(run_pieces(&gpu, &msm, &pieces, 1), [expected], "scalars {kind}, steps {middle} {low}");
            }
        }
    }

    fn equal_pieces<C: Case>() {
        let gpu = testing::gpu();
        let mut rng = StdRng::seed_from_u64(8);
        // So few that most buckets get one point or none.
        let points = sample_points::<C::Host>(12);
        let opposite: Vec<_> = points.iter().map(|&point| -point).collect();
        let nothing = vec![C::Host::INFINITY; 12];
        let scalars = scalars(12, 0, &mut rng);
        // Sums so far meet equal and opposite points, and are infinity again.
        let orders = [
            [&points, &points, &opposite, &opposite, &nothing, &points],
            [&nothing, &points, &nothing, &opposite, &points, &points],
        ];
        for order in orders {
            for end in 1..=order.len() {
                let pieces: Vec<_> = order[..end].iter().map(|&points| (points.clone(), scalars.clone())).collect();
                let msm = PiecewiseMsm::<C>::new(&gpu, &vec![12; end], usize::MAX);
                assert_eq!(run_pieces(&gpu, &msm, &pieces, 1), [host_sum::<C>(&pieces)], "{end} pieces");
            }
        }
    }

    #[test]
    fn pieces_may_repeat_or_cancel_those_before() {
        equal_pieces::<G1>();
        equal_pieces::<G2>();
    }

    #[test]
    fn windows_of_pieces_are_as_wide_as_memory_allows() {
        let limits = Limits { multiprocessors: 132, shared_optin: 227 << 10 };
        let lengths = [1 << 24; 8];
        let windows = |memory| {
            let msm = PiecewiseMsm::<G1>::new(limits, &lengths, memory);
            assert!(msm.scratch_bytes() <= memory, "{} of {memory} bytes: {msm}", msm.scratch_bytes());
            msm.windows.count
        };
        // Beside two chunks in the place of two vectors, as for all points at once; and with less.
        let [all, one] = [1 << 27, 1 << 24].map(|points| Msm::<G1>::best_windows(limits, points, 1).count);
        assert!(all < one);
        assert_eq!(windows(5 << 30), all);
        assert_eq!(windows(1 << 30), one);
        let least = PiecewiseMsm::<G1>::new(limits, &lengths, 0);
        assert_eq!(least.windows.count, one);
        assert!(least.pieces.iter().flat_map(|piece| &piece.batches).all(|batch| batch.windows.len() == 1));
    }

    #[test]
    fn abandoned_sums_end_early_and_the_next_are_right() {
        let gpu = testing::gpu();
        let stream = gpu.stream().unwrap();
        let points = sample_points::<G1Affine>(1000);
        let (bases, keys) = (gpu.allocate(1000, "points").unwrap(), gpu.allocate(1000, "keys").unwrap());
        stream.upload(bases.span(), G1::words(&points)).unwrap();
        stream.upload(keys.span(), &[1u32; 1000]).unwrap();
        let mut sums = KeySums::<G1>::new(&gpu, 1000, 1);
        sums.buckets.shape.rows = true;
        let scratch = gpu.allocate(sums.scratch_bytes(), "scratch").unwrap();
        let mut arena = Arena::counting();
        sums.carve_result(&mut arena);
        let room = gpu.allocate(arena.used(), "result").unwrap();
        let result = sums.carve_result(&mut Arena::new(room.span()));
        let sum = || {
            stream.zero(scratch.span()).unwrap();
            sums.queue(&stream, bases.span(), keys.span(), scratch.span(), &result).unwrap();
        };
        let expected: G1Projective = points.iter().map(G1Projective::from).sum();
        for _ in 0..2 {
            sum();
            assert_eq!(result.read(&stream).unwrap(), [expected]);
            stream.stop().store(1, Ordering::SeqCst);
            sum();
            stream.abandon().unwrap();
            assert_ne!(result.read(&stream).unwrap(), [expected], "not all rows were added");
        }
    }

    fn key_sums<C: Case>(count: usize, key_bits: u32, some: u32) {
        let mut rng = StdRng::seed_from_u64(u64::from(key_bits));
        let points = points::<C>(count, &mut rng);
        let keys: Vec<u32> =
            (0..count).map(|_| if rng.gen_ratio(some, 8) { rng.gen_range(1..1 << key_bits) } else { 0 }).collect();
        compare_key_sums::<C>(&points, &keys, key_bits);
    }

    fn compare_key_sums<C: Case>(points: &[C::Host], keys: &[u32], key_bits: u32) {
        let gpu = testing::gpu();
        let count = points.len();
        for rows in [false, true] {
            let mut sums = KeySums::<C>::new(&gpu, count, key_bits);
            sums.buckets.shape.rows = rows;
            let stream = gpu.stream().unwrap();
            let bases = gpu.allocate(count, "points").unwrap();
            stream.upload(bases.span(), C::words(points)).unwrap();
            let on_device = gpu.allocate(count, "keys").unwrap();
            stream.upload(on_device.span(), keys).unwrap();
            let scratch = gpu.allocate(sums.scratch_bytes(), "scratch").unwrap();
            let mut arena = Arena::counting();
            sums.carve_result(&mut arena);
            let room = gpu.allocate(arena.used(), "result").unwrap();
            let result = sums.carve_result(&mut Arena::new(room.span()));
            sums.queue(&stream, bases.span(), on_device.span(), scratch.span(), &result).unwrap();
            let found = result.read(&stream).unwrap();
            let by_bit = sums_by_bit(found.clone());
            assert_eq!(found.len(), (1 << key_bits) - 1);
            for (index, sum) in found.iter().enumerate() {
                let mut expected = C::Projective::identity();
                for (point, _) in points.iter().zip(keys).filter(|(_, &key)| key as usize == index + 1) {
                    expected += point;
                }
                assert_eq!(*sum, expected, "key {}, rows {rows}", index + 1);
            }
            assert_eq!(by_bit.len(), key_bits as usize);
            for (bit, sum) in by_bit.iter().enumerate() {
                let with_bit = found.iter().enumerate().filter(|(index, _)| (index + 1) >> bit & 1 == 1);
                assert_eq!(*sum, with_bit.map(|(_, sum)| sum).sum::<C::Projective>(), "bit {bit}");
            }
        }
    }

    #[test]
    fn whole_warps_of_equal_and_opposite_points_are_summed() {
        // As in the queries of real circuits, where hundreds of thousands of points are those 32 before.
        let mut equal = sample_points::<G1Affine>(2048);
        for index in (0..2048).filter(|index| index / 32 % 2 == 1) {
            equal[index] = equal[index - 32];
        }
        let opposite: Vec<G1Affine> =
            equal.iter().enumerate().map(|(index, &point)| if index / 32 % 2 == 1 { -point } else { point }).collect();
        let same = vec![equal[0]; 2048];
        for points in [equal, opposite, same] {
            compare_key_sums::<G1>(&points, &vec![1; points.len()], 1);
            let keys: Vec<u32> = (0..2048).map(|index| 1 + index / 64 % 3).collect();
            compare_key_sums::<G1>(&points, &keys, 2);
        }
    }

    #[test]
    fn sums_by_key_are_those_of_single_additions() {
        key_sums::<G1>(2000, 1, 4);
        key_sums::<G1>(2000, 5, 7);
        key_sums::<G1>(100, 10, 8);
        key_sums::<G2>(700, 1, 4);
        key_sums::<G2>(300, 3, 8);
        key_sums::<G1>(50, 2, 0);
    }

    #[test]
    fn a_giant_bucket_is_split() {
        // More than 8,192 tasks of 16.
        key_sums::<G1>(140_000, 1, 8);
    }
}
