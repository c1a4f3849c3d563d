//! Sums of the points of each bucket of one window. Knows no scalars, only digits.
//!
//! Points are sorted by bucket. A bucket's list is cut into pieces of bounded length, so that masses of equal
//! digits neither run serially nor leave the others waiting; pieces of similar length advance together, one
//! point each a row, in one batch of affine additions. Sums of pieces are points like any other: buckets of
//! several pieces go round again with the pieces as their points.

use rayon::prelude::*;

use super::digits::MINUS;
use crate::backend::cpu::lane::{prefetch, PointLane, Reference, NEGATIVE, NONE};
use crate::backend::cpu::shared::SharedSlice;
use crate::error::Result;
use crate::pipeline::Control;

/// References grouped by bucket.
struct Lists {
    /// Bucket b has `references[starts[b]..starts[b + 1]]`.
    starts: Vec<u32>,
    references: Vec<Reference>,
}

/// A run of one bucket's references.
#[derive(Clone, Copy, Default)]
struct Piece {
    start: u32,
    len: u32,
    bucket: u32,
    /// The place of its sum among the partial sums, or [`WHOLE`].
    partial: u32,
}

/// The piece is all of its bucket's list.
const WHOLE: u32 = u32::MAX;

/// No list up to this length is cut.
const UNCUT: usize = 64;

/// Pieces that are enough to advance together, where a few buckets have nearly all points.
const ENOUGH: usize = 1024;

/// Bytes that the lists and pieces of a window take: starts of both kinds of lists, references, pieces.
pub(super) fn scratch_bytes(points: usize, buckets: usize) -> usize {
    let pieces = (buckets + points / UNCUT).min(points);
    size_of::<u32>() * (2 * buckets + points) + size_of::<Piece>() * pieces
}

/// Bytes of a task's rows.
pub(super) fn rows_bytes<L: PointLane>() -> usize {
    let block = L::BATCH * L::WIDTH;
    block * (size_of::<L::Entry>() + 3 * size_of::<Reference>()) + 4 * L::BATCH * size_of::<L::Group>()
}

/// Adds to `sums[b]` the points of `table` whose digit has magnitude b + 1. `fresh` says that all sums are
/// still at infinity.
pub(super) fn accumulate<L: PointLane>(
    table: &[L::Entry],
    digits: &[u32],
    sums: &mut [L::Entry],
    fresh: bool,
    control: &Control,
) -> Result<()> {
    let mut lists = sort(digits, sums.len());
    let sums = SharedSlice::new(sums);
    let mut partials: Option<Vec<L::Entry>> = None;
    loop {
        control.check("a multi-scalar multiplication")?;
        let (pieces, next) = cut(&lists);
        let mut results = vec![L::infinity(); next.references.len()];
        let table = partials.as_deref().unwrap_or(table);
        // SAFETY: every bucket has at most one whole piece in all rounds together, and `cut` numbers the others.
        unsafe {
            let results = SharedSlice::new(&mut results);
            add_pieces::<L>(table, &lists.references, &pieces, results, sums, fresh, control)?;
        }
        if results.is_empty() {
            return Ok(());
        }
        lists = next;
        partials = Some(results);
    }
}

/// Counting sort by bucket; digits of zero are left out.
fn sort(digits: &[u32], buckets: usize) -> Lists {
    // starts[b + 1] counts bucket b at first, then is its end.
    let mut starts = vec![0u32; buckets + 1];
    for digit in digits {
        starts[(digit & !MINUS) as usize] += 1;
    }
    starts[0] = 0;
    for bucket in 0..buckets {
        starts[bucket + 1] += starts[bucket];
    }
    let mut next = starts.clone();
    let mut references = vec![0; starts[buckets] as usize];
    for (index, digit) in digits.iter().enumerate() {
        let magnitude = (digit & !MINUS) as usize;
        if magnitude > 0 {
            let place = &mut next[magnitude - 1];
            references[*place as usize] = index as u32 | if digit & MINUS != 0 { NEGATIVE } else { 0 };
            *place += 1;
        }
    }
    Lists { starts, references }
}

/// The pieces of all lists, longest first, and the lists of partial sums that belong together.
fn cut(lists: &Lists) -> (Vec<Piece>, Lists) {
    let occupied = lists.starts.windows(2).filter(|pair| pair[0] < pair[1]).count();
    let total = lists.references.len();
    // Odd, so that pieces of one list do not start a power of two apart, where a cache has few places for them.
    let longest = UNCUT.max((4 * total / occupied.max(1)).min(total / ENOUGH)) as u32 | 1;
    let mut next = Lists { starts: vec![0], references: Vec::new() };
    // Where pieces of each length begin, the longest first: a counting sort.
    let mut places = vec![0usize; longest as usize + 2];
    for pair in lists.starts.windows(2) {
        let len = pair[1] - pair[0];
        let parts = len.div_ceil(longest);
        for part in 0..parts {
            let (start, end) = bounds(len, part, parts);
            places[(longest - (end - start)) as usize + 1] += 1;
        }
        let partials = if parts > 1 { parts } else { 0 };
        next.starts.push(next.starts[next.starts.len() - 1] + partials);
    }
    for rank in 1..places.len() {
        places[rank] += places[rank - 1];
    }
    let mut pieces = vec![Piece::default(); places[places.len() - 1]];
    for (bucket, pair) in lists.starts.windows(2).enumerate() {
        let len = pair[1] - pair[0];
        let parts = len.div_ceil(longest);
        for part in 0..parts {
            let (start, end) = bounds(len, part, parts);
            let partial = if parts > 1 { next.starts[bucket] + part } else { WHOLE };
            let place = &mut places[(longest - (end - start)) as usize];
            pieces[*place] = Piece { start: pair[0] + start, len: end - start, bucket: bucket as u32, partial };
            *place += 1;
        }
    }
    next.references = (0..next.starts[next.starts.len() - 1]).collect();
    (pieces, next)
}

/// Where part `part` of `parts` nearly equal ones of `len` begins and ends.
fn bounds(len: u32, part: u32, parts: u32) -> (u32, u32) {
    let bound = |part: u32| (len as u64 * part as u64 / parts as u64) as u32;
    if parts == 1 {
        (0, len)
    } else {
        (bound(part), bound(part + 1))
    }
}

/// Sums every piece: whole ones into `sums`, others into `partials`.
///
/// # Safety
/// No bucket has two whole pieces, no two pieces share a place among the partial sums, and nobody else touches
/// either slice meanwhile.
unsafe fn add_pieces<L: PointLane>(
    table: &[L::Entry],
    references: &[Reference],
    pieces: &[Piece],
    partials: SharedSlice<'_, L::Entry>,
    sums: SharedSlice<'_, L::Entry>,
    fresh: bool,
    control: &Control,
) -> Result<()> {
    let block = L::BATCH * L::WIDTH;
    let run = block * pieces.len().div_ceil(4 * block * rayon::current_num_threads()).max(1);
    pieces.par_chunks(run).try_for_each(|all| {
        let mut rows = Rows::<L>::new();
        rows.begin(table, references, &all[..block.min(all.len())]);
        for (index, pieces) in all.chunks(block).enumerate() {
            let following = all.get(index * block + pieces.len()..).unwrap_or(&[]);
            let following = &following[..block.min(following.len())];
            for piece in following {
                prefetch(&references[piece.start as usize]);
            }
            rows.sum(table, references, pieces, sums, control)?;
            rows.announce(references, following);
            if fresh {
                rows.bring(table);
            } else {
                // SAFETY: this task alone touches the sums of its whole pieces' buckets.
                rows.add_each(table, pieces, |piece| unsafe { sums.read(piece.bucket as usize) });
            }
            for (piece, result) in pieces.iter().zip(rows.results(pieces.len())) {
                // SAFETY: as above, and likewise for its partial sums.
                unsafe {
                    match piece.partial {
                        WHOLE => sums.write(piece.bucket as usize, *result),
                        partial => partials.write(partial as usize, *result),
                    }
                }
            }
        }
        Ok(())
    })
}

/// A block of pieces that advance together.
struct Rows<L: PointLane> {
    lane: L,
    groups: Vec<L::Group>,
    /// The next two rows to be added. Their points have been asked for.
    coming: [Vec<Reference>; 2],
    row: Vec<Reference>,
    spare: Vec<L::Entry>,
}

impl<L: PointLane> Rows<L> {
    fn new() -> Self {
        let block = L::BATCH * L::WIDTH;
        let mut lane = L::new();
        let spare = vec![L::infinity(); block];
        let group = lane.group(&L::infinity());
        Rows { lane, groups: vec![group; L::BATCH], coming: Default::default(), row: Vec::new(), spare }
    }

    /// Asks for the first rows of `pieces`.
    fn begin(&mut self, table: &[L::Entry], references: &[Reference], pieces: &[Piece]) {
        self.announce(references, pieces);
        self.bring(table);
    }

    /// Says which block comes next.
    fn announce(&mut self, references: &[Reference], pieces: &[Piece]) {
        for (position, row) in self.coming.iter_mut().enumerate() {
            fill::<L>(row, references, pieces, position as u32);
        }
    }

    /// Asks for the points of the coming rows.
    fn bring(&self, table: &[L::Entry]) {
        self.coming.iter().flatten().for_each(|reference| bring(table, *reference));
    }

    /// Sums each piece in an accumulator of its own. `pieces` are sorted by descending length, none empty; they were
    /// announced. The bucket sums of whole pieces are asked for at the end.
    fn sum(
        &mut self,
        table: &[L::Entry],
        references: &[Reference],
        pieces: &[Piece],
        sums: SharedSlice<'_, L::Entry>,
        control: &Control,
    ) -> Result<()> {
        let longest = pieces[0].len;
        let Rows { lane, groups: accumulators, coming: [row, next], .. } = self;
        let groups = row.len() / L::WIDTH;
        lane.load(&mut accumulators[..groups], table, row);
        std::mem::swap(row, next);
        for position in 1..longest {
            if position % 64 == 0 {
                control.check("a multi-scalar multiplication")?;
            }
            fill::<L>(next, references, pieces, position + 1);
            let groups = row.len() / L::WIDTH;
            let last = next.is_empty();
            lane.add(&mut accumulators[..groups], table, row, |group| {
                if last {
                    pieces[share(pieces.len(), group, groups)]
                        .iter()
                        .for_each(|piece| sums.bring(piece.bucket as usize));
                } else {
                    next[share(next.len(), group, groups)].iter().for_each(|reference| bring(table, *reference));
                }
            });
            std::mem::swap(row, next);
        }
        control.check("a multi-scalar multiplication")
    }

    /// Adds `point(piece)` to the accumulator of each whole piece, and asks for the points of the coming rows.
    fn add_each(&mut self, table: &[L::Entry], pieces: &[Piece], mut point: impl FnMut(&Piece) -> L::Entry) {
        self.row.clear();
        for (index, piece) in pieces.iter().enumerate() {
            if piece.partial == WHOLE {
                self.spare[index] = point(piece);
                self.row.push(index as Reference);
            } else {
                self.row.push(NONE);
            }
        }
        self.row.resize(self.row.len().next_multiple_of(L::WIDTH), NONE);
        let groups = self.row.len() / L::WIDTH;
        let coming = &self.coming;
        self.lane.add(&mut self.groups[..groups], &self.spare, &self.row, |group| {
            for row in coming {
                row[share(row.len(), group, groups)].iter().for_each(|reference| bring(table, *reference));
            }
        });
    }

    /// The first `count` accumulators as entries.
    fn results(&mut self, count: usize) -> &[L::Entry] {
        let groups = count.div_ceil(L::WIDTH);
        self.lane.store(&self.groups[..groups], &mut self.spare[..groups * L::WIDTH]);
        &self.spare[..count]
    }
}

/// Which of `count` things are the part of number `index` of `parts`.
#[inline(always)]
fn share(count: usize, index: usize, parts: usize) -> std::ops::Range<usize> {
    let each = count.div_ceil(parts);
    (index * each).min(count)..((index + 1) * each).min(count)
}

/// Asks for an entry.
#[inline(always)]
fn bring<T>(table: &[T], reference: Reference) {
    if let Some(entry) = table.get((reference & !NEGATIVE) as usize) {
        prefetch(entry);
    }
}

/// The references at `position` of all pieces that are long enough, padded to whole groups.
fn fill<L: PointLane>(row: &mut Vec<Reference>, references: &[Reference], pieces: &[Piece], position: u32) {
    row.clear();
    let active = pieces.iter().take_while(|piece| piece.len > position);
    row.extend(active.map(|piece| references[(piece.start + position) as usize]));
    row.resize(row.len().next_multiple_of(L::WIDTH), NONE);
}
