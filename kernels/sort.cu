// Multi-scalar multiplication, first half: from scalars to lists of points. Knows no curve.
//
// A scalar becomes one signed digit a window. For a digit d at position i, the point of i (negated for d < 0) belongs
// to bucket |d| - 1 of the window. The kernels here put the points of each bucket beside each other: partition by the
// upper bits of the bucket into bins, then sort each bin by the lower bits in shared memory. Afterwards buckets are cut
// into tasks of bounded length, which are ordered by length so that the lanes of a warp end together.
//
// An entry is a point's index, with the top bit set where the point is subtracted. Where points come in pieces, a
// bucket's sum so far is the first of its points.
#include "msm.cuh"

namespace {

constexpr uint32_t THREADS = 512;
// What a thread holds of a block's part of a partition, and the part.
constexpr uint32_t EACH = 16;
constexpr uint32_t TILE = EACH * THREADS;

// Exclusive prefix sums within a block of THREADS threads; `total` is the sum over the block.
DEVICE uint32_t block_scan(uint32_t value, uint32_t &total) {
    SHARED uint32_t sums[THREADS / 32];
    uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32, inclusive = value;
#pragma unroll
    for (uint32_t delta = 1; delta < 32; delta *= 2) {
        uint32_t below = __shfl_up_sync(~0u, inclusive, delta);
        inclusive += lane >= delta ? below : 0;
    }
    if (lane == 31)
        sums[warp] = inclusive;
    __syncthreads();
    uint32_t before = 0;
    total = 0;
    for (uint32_t i = 0; i < THREADS / 32; i++) {
        before += i < warp ? sums[i] : 0;
        total += sums[i];
    }
    __syncthreads();
    return before + inclusive - value;
}

} // namespace

// Signed digits of n canonical scalars: digits[w * n + i] for the windows of the plan. A scalar above r / 2 is replaced
// by its negative, so that the top window needs no carry out.
KERNEL(256, 4, msm_digits, (uint32_t *digits, const uint4 *scalars, uint64_t n, DigitPlan plan)) {
    // Indexed by numbers that the compiler does not know, so not in registers.
    SHARED uint32_t words[9][256];
    uint64_t i = (uint64_t)blockIdx.x * 256 + threadIdx.x;
    if (i >= n)
        return;
    uint4 low = scalars[2 * i], high = scalars[2 * i + 1];
    uint32_t s[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w}, m[8], t[8];
    detail::modulus_of<detail::ScalarField>(m);
    limbs::sub<8>(t, m, s);
    uint32_t larger = limbs::sub<8>(m, t, s); // r - s < s
    limbs::select<8>(s, larger, t, s);
    limbs::add<8>(s, s, plan.rounding);
#pragma unroll
    for (int j = 0; j < 8; j++)
        words[j][threadIdx.x] = s[j];
    words[8][threadIdx.x] = 0;
    for (uint32_t w = 0; w < plan.count; w++) {
        uint32_t window = plan.first + w, wide = window < plan.wide ? window : plan.wide;
        uint32_t offset = window * plan.bits + wide, bits = plan.bits + (window < plan.wide);
        uint32_t word = offset / 32;
        uint64_t pair = words[word][threadIdx.x] | (uint64_t)words[word + 1][threadIdx.x] << 32;
        int32_t digit = (int32_t)((uint32_t)(pair >> offset % 32) & ((1u << bits) - 1)) - (int32_t)(1u << (bits - 1));
        uint32_t sign = digit < 0 ? ~0u : 0;
        uint32_t magnitude = ((uint32_t)digit ^ sign) - sign;
        digits[w * n + i] = magnitude == 0 ? 0 : magnitude | ((sign ^ larger) & SIGN);
    }
}

// How many digits fall into each bin of each window. `counts` is zero before.
KERNEL(THREADS, 2, msm_histogram,
       (uint32_t *counts, const uint32_t *digits, uint64_t n, uint32_t shift, uint32_t bins,
        uint32_t blocks_per_window)) {
    DYNAMIC_SHARED(uint32_t, bin);
    uint32_t window = blockIdx.x / blocks_per_window, part = blockIdx.x % blocks_per_window;
    for (uint32_t b = threadIdx.x; b < bins; b += THREADS)
        bin[b] = 0;
    __syncthreads();
    for (uint64_t i = (uint64_t)part * THREADS + threadIdx.x; i < n; i += (uint64_t)blocks_per_window * THREADS) {
        uint32_t magnitude = digits[window * n + i] & ~SIGN;
        if (magnitude != 0)
            atomicAdd(&bin[(magnitude - 1) >> shift], 1u);
    }
    __syncthreads();
    for (uint32_t b = threadIdx.x; b < bins; b += THREADS)
        if (bin[b] != 0)
            atomicAdd(&counts[window * bins + b], bin[b]);
}

// Exclusive prefix sums of `length` counts into `starts`, which has one place more, and into `cursors`. One block.
KERNEL(THREADS, 1, msm_scan, (uint32_t *starts, uint32_t *cursors, const uint32_t *counts, uint32_t length)) {
    uint32_t share = (length + THREADS - 1) / THREADS, begin = threadIdx.x * share;
    uint32_t end = begin + share < length ? begin + share : length, sum = 0, total;
    for (uint32_t i = begin; i < end; i++)
        sum += counts[i];
    uint32_t running = block_scan(sum, total);
    for (uint32_t i = begin; i < end; i++) {
        starts[i] = cursors[i] = running;
        running += counts[i];
    }
    if (threadIdx.x == 0)
        starts[length] = total;
}

namespace {

// The bin of each bucket, of those that this step tells apart: bits from `shift` on of what is not sorted yet.
struct Step {
    uint32_t shift, bins;
};

constexpr uint32_t NO_KEY = 0xffffffff;

// Instead of the entry of the first bucket's sum so far.
constexpr uint32_t NOTHING_KEPT = 0xffffffff;

// Puts up to TILE pairs of entry and key into their bins: `cursors` says where each bin goes on. The pairs keep the
// bits below `shift`; where there are none, bare entries are written.
DEVICE void scatter(uint32_t *out, uint32_t *cursors, const uint2 (&pairs)[EACH], Step step) {
    DYNAMIC_SHARED(uint32_t, counts);
    uint32_t *local = counts + step.bins, *base = local + step.bins;
    uint2 *staged = reinterpret_cast<uint2 *>(counts + (3 * step.bins + 1) / 2 * 2);
    uint32_t ranks[EACH];
    for (uint32_t b = threadIdx.x; b < step.bins; b += THREADS)
        counts[b] = 0;
    __syncthreads();
#pragma unroll
    for (uint32_t k = 0; k < EACH; k++)
        ranks[k] = pairs[k].y == NO_KEY ? 0 : atomicAdd(&counts[pairs[k].y >> step.shift], 1u);
    __syncthreads();
    uint32_t share = (step.bins + THREADS - 1) / THREADS, first = threadIdx.x * share, sum = 0, total;
    uint32_t last = first + share < step.bins ? first + share : step.bins;
    for (uint32_t b = first; b < last; b++)
        sum += counts[b];
    uint32_t running = block_scan(sum, total);
    for (uint32_t b = first; b < last; b++) {
        uint32_t count = counts[b];
        local[b] = running;
        base[b] = count == 0 ? 0 : atomicAdd(&cursors[b], count) - running;
        running += count;
    }
    __syncthreads();
#pragma unroll
    for (uint32_t k = 0; k < EACH; k++)
        if (pairs[k].y != NO_KEY)
            staged[local[pairs[k].y >> step.shift] + ranks[k]] = pairs[k];
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < total; i += THREADS) {
        uint2 pair = staged[i];
        uint32_t position = base[pair.y >> step.shift] + i;
        if (step.shift == 0)
            out[position] = pair.x;
        else
            reinterpret_cast<uint2 *>(out)[position] = make_uint2(pair.x, pair.y & ((1u << step.shift) - 1));
    }
}

// Which part of which bin a block of a second partition works on: bins are cut into tiles.
DEVICE bool find_tile(uint32_t &bin, uint32_t &begin, uint32_t &end, const uint32_t *tile_starts,
                      const uint32_t *bin_starts, uint32_t bins) {
    if (blockIdx.x >= tile_starts[bins])
        return false;
    // The last bin whose tiles begin at or before this one.
    uint32_t low = 0, high = bins;
    while (high - low > 1) {
        uint32_t middle = (low + high) / 2;
        if (tile_starts[middle] <= blockIdx.x)
            low = middle;
        else
            high = middle;
    }
    bin = low;
    begin = bin_starts[bin] + (blockIdx.x - tile_starts[bin]) * TILE;
    end = bin_starts[bin + 1] - begin < TILE ? bin_starts[bin + 1] : begin + TILE;
    return true;
}

} // namespace

// Digits into bins of each window. `indices` gives the points of the positions where they are not the positions
// themselves.
KERNEL(THREADS, 2, msm_partition,
       (uint32_t *out, uint32_t *cursors, const uint32_t *digits, const uint32_t *indices, uint64_t n, uint32_t shift,
        uint32_t bins, uint32_t blocks_per_window)) {
    uint32_t window = blockIdx.x / blocks_per_window;
    uint64_t begin = (uint64_t)(blockIdx.x % blocks_per_window) * TILE;
    uint2 pairs[EACH];
#pragma unroll
    for (uint32_t k = 0; k < EACH; k++) {
        uint64_t i = begin + k * THREADS + threadIdx.x;
        uint32_t digit = i < n ? digits[window * n + i] : 0, magnitude = digit & ~SIGN;
        pairs[k] = make_uint2(0, NO_KEY);
        if (magnitude != 0)
            pairs[k] = make_uint2((indices == nullptr ? (uint32_t)i : indices[i]) | (digit & SIGN), magnitude - 1);
    }
    scatter(out, cursors + window * bins, pairs, {shift, bins});
}

// Into how many tiles each bin is cut.
KERNEL(THREADS, 2, msm_tile_counts, (uint32_t *counts, const uint32_t *bin_starts, uint32_t bins)) {
    uint32_t bin = blockIdx.x * THREADS + threadIdx.x;
    if (bin < bins)
        counts[bin] = (bin_starts[bin + 1] - bin_starts[bin] + TILE - 1) / TILE;
}

// How many pairs of each bin fall into each of its parts. `counts` is zero before.
KERNEL(THREADS, 2, msm_part_histogram,
       (uint32_t *counts, const uint2 *pairs, const uint32_t *tile_starts, const uint32_t *bin_starts, uint32_t bins,
        uint32_t shift, uint32_t parts)) {
    DYNAMIC_SHARED(uint32_t, part);
    uint32_t bin, begin, end;
    if (!find_tile(bin, begin, end, tile_starts, bin_starts, bins))
        return;
    for (uint32_t b = threadIdx.x; b < parts; b += THREADS)
        part[b] = 0;
    __syncthreads();
    for (uint32_t i = begin + threadIdx.x; i < end; i += THREADS)
        atomicAdd(&part[pairs[i].y >> shift], 1u);
    __syncthreads();
    for (uint32_t b = threadIdx.x; b < parts; b += THREADS)
        if (part[b] != 0)
            atomicAdd(&counts[bin * parts + b], part[b]);
}

// Pairs of each bin into the bin's parts.
KERNEL(THREADS, 2, msm_part,
       (uint32_t *out, uint32_t *cursors, const uint2 *from, const uint32_t *tile_starts, const uint32_t *bin_starts,
        uint32_t bins, uint32_t shift, uint32_t parts)) {
    uint32_t bin, begin, end;
    if (!find_tile(bin, begin, end, tile_starts, bin_starts, bins))
        return;
    uint2 pairs[EACH];
#pragma unroll
    for (uint32_t k = 0; k < EACH; k++) {
        uint32_t i = begin + k * THREADS + threadIdx.x;
        pairs[k] = i < end ? from[i] : make_uint2(0, NO_KEY);
    }
    scatter(out, cursors + bin * parts, pairs, {shift, parts});
}

// Sorts each bin by its lower bits; a block does one bin. starts[bucket] is where a bucket's entries begin. Bins of up
// to `room` entries are put in order in shared memory. Unless `kept` is NOTHING_KEPT every bucket gets one entry more,
// before its others: kept + bucket.
KERNEL(THREADS, 2, msm_sort_bins,
       (uint32_t *sorted, uint32_t *starts, const uint2 *pairs, const uint32_t *bin_starts, uint32_t shift,
        uint32_t all_bins, uint32_t room, uint32_t kept)) {
    DYNAMIC_SHARED(uint32_t, cursor);
    uint32_t buckets = 1u << shift, begin = bin_starts[blockIdx.x], end = bin_starts[blockIdx.x + 1];
    uint32_t first_bucket = blockIdx.x << shift, more = kept != NOTHING_KEPT;
    uint32_t *staged = cursor + buckets, *out = sorted + begin + more * first_bucket;
    uint32_t length = end - begin + more * buckets;
    bool fits = length <= room;
    for (uint32_t b = threadIdx.x; b < buckets; b += THREADS)
        cursor[b] = more;
    __syncthreads();
    for (uint32_t i = begin + threadIdx.x; i < end; i += THREADS)
        atomicAdd(&cursor[pairs[i].y], 1u);
    __syncthreads();
    uint32_t share = (buckets + THREADS - 1) / THREADS, first = threadIdx.x * share, sum = 0, total;
    for (uint32_t b = first; b < first + share && b < buckets; b++)
        sum += cursor[b];
    uint32_t running = block_scan(sum, total);
    for (uint32_t b = first; b < first + share && b < buckets; b++) {
        uint32_t count = cursor[b];
        starts[first_bucket + b] = begin + more * first_bucket + running;
        if (more != 0)
            (fits ? staged : out)[running] = kept + first_bucket + b;
        cursor[b] = running + more;
        running += count;
    }
    __syncthreads();
    for (uint32_t i = begin + threadIdx.x; i < end; i += THREADS) {
        uint2 pair = pairs[i];
        uint32_t place = atomicAdd(&cursor[pair.y], 1u);
        if (fits)
            staged[place] = pair.x;
        else
            out[place] = pair.x;
    }
    __syncthreads();
    if (fits)
        for (uint32_t i = threadIdx.x; i < length; i += THREADS)
            out[i] = staged[i];
    if (blockIdx.x + 1 == all_bins && threadIdx.x == 0)
        starts[all_bins << shift] = end + more * (all_bins << shift);
}

// How many tasks of each length the buckets give: lengths[1..cap], zero before. Longer buckets are cut.
KERNEL(THREADS, 2, msm_task_lengths, (uint32_t *lengths, const uint32_t *starts, uint32_t buckets, uint32_t cap)) {
    DYNAMIC_SHARED(uint32_t, counts);
    for (uint32_t l = threadIdx.x; l <= cap; l += THREADS)
        counts[l] = 0;
    __syncthreads();
    for (uint32_t b = blockIdx.x * THREADS + threadIdx.x; b < buckets; b += gridDim.x * THREADS) {
        uint32_t length = starts[b + 1] - starts[b];
        if (length >= cap)
            atomicAdd(&counts[cap], length / cap);
        if (length % cap != 0)
            atomicAdd(&counts[length % cap], 1u);
    }
    __syncthreads();
    for (uint32_t l = threadIdx.x; l <= cap; l += THREADS)
        if (counts[l] != 0)
            atomicAdd(&lengths[l], counts[l]);
}

// Where the tasks of each length begin, the longest first. One block.
KERNEL(THREADS, 1, msm_task_starts, (uint32_t *cursors, Counters *counters, const uint32_t *lengths, uint32_t cap)) {
    uint32_t share = (cap + THREADS - 1) / THREADS, begin = threadIdx.x * share;
    uint32_t end = begin + share < cap ? begin + share : cap, sum = 0, total;
    for (uint32_t i = begin; i < end; i++)
        sum += lengths[cap - i];
    uint32_t running = block_scan(sum, total);
    for (uint32_t i = begin; i < end; i++) {
        cursors[cap - i] = running;
        running += lengths[cap - i];
    }
    if (threadIdx.x == 0)
        counters->tasks = total;
}

// The tasks of buckets that need no cutting, and a list of those that do. Sums of parts are put behind `first_part`.
KERNEL(THREADS, 2, msm_tasks,
       (Tasks tasks, LongBucket *longs, uint32_t *giants, Counters *counters, uint32_t *cursors, const uint32_t *starts,
        uint32_t buckets, uint32_t cap, uint32_t first_part)) {
    DYNAMIC_SHARED(uint32_t, places);
    // Each round of a block takes one bucket a thread, and reserves places for all of them at once.
    for (uint32_t base = blockIdx.x * THREADS; base < buckets; base += gridDim.x * THREADS) {
        for (uint32_t l = threadIdx.x; l <= cap; l += THREADS)
            places[l] = 0;
        __syncthreads();
        uint32_t bucket = base + threadIdx.x, start = 0, length = 0;
        if (bucket < buckets) {
            start = starts[bucket];
            length = starts[bucket + 1] - start;
        }
        bool is_short = length != 0 && length <= cap;
        uint32_t rank = is_short ? atomicAdd(&places[length], 1u) : 0;
        __syncthreads();
        for (uint32_t l = threadIdx.x; l <= cap; l += THREADS)
            if (places[l] != 0)
                places[l] = atomicAdd(&cursors[l], places[l]);
        __syncthreads();
        if (is_short) {
            uint32_t place = places[length] + rank;
            tasks.starts[place] = start;
            tasks.lengths[place] = length;
            tasks.sums[place] = bucket;
        } else if (length > cap) {
            uint32_t whole = length / cap, rest = length % cap, parts = whole + (rest != 0);
            LongBucket item;
            item.bucket = bucket;
            item.start = start;
            item.length = length;
            item.parts = parts;
            item.sums = first_part + atomicAdd(&counters->parts, parts);
            item.whole_place = atomicAdd(&cursors[cap], whole);
            item.rest_place = rest != 0 ? atomicAdd(&cursors[rest], 1u) : 0;
            uint32_t index = atomicAdd(&counters->longs, 1u);
            longs[index] = item;
            if (parts > GIANT)
                giants[atomicAdd(&counters->giants, 1u)] = index;
        }
        __syncthreads();
    }
}

// The tasks of the buckets that were cut. Blocks in groups of TASK_SPLIT share a bucket.
KERNEL(128, 8, msm_long_tasks, (Tasks tasks, const LongBucket *longs, const Counters *counters, uint32_t cap)) {
    uint32_t part = blockIdx.x % TASK_SPLIT, groups = gridDim.x / TASK_SPLIT;
    for (uint32_t index = blockIdx.x / TASK_SPLIT; index < counters->longs; index += groups) {
        LongBucket item = longs[index];
        uint32_t whole = item.length / cap;
        for (uint32_t i = part * 128 + threadIdx.x; i < item.parts; i += TASK_SPLIT * 128) {
            uint32_t place = i < whole ? item.whole_place + i : item.rest_place;
            tasks.starts[place] = item.start + i * cap;
            tasks.lengths[place] = i < whole ? cap : item.length % cap;
            tasks.sums[place] = item.sums + i;
        }
    }
}
