// Multi-scalar multiplication, second half: sums of lists of points, for either curve.
//
// Two ways of summing a task: batched affine additions, where each thread advances tens of tasks by one point with a
// single inversion; and one XYZZ accumulator a task, where tasks are few. Parts of long buckets are joined, and the
// buckets of each window reduced to sum (b + 1) bucket[b].
#pragma once
#include "curve.cuh"
#include "msm.cuh"

namespace {

constexpr uint32_t NONE = 0xffffffff;

// Keeps the compiler from loading operands early, which costs registers.
#ifdef __CUDA_ARCH__
#define LOAD_LATE() asm volatile("" ::: "memory")
#else
#define LOAD_LATE() (void)0
#endif

// Sixteen bytes from global to shared memory, in the background where the hardware can.
DEVICE void copy_async(uint4 *to, const uint4 *from) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    uint32_t address = (uint32_t)__cvta_generic_to_shared(to);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(from));
#else
    *to = *from;
#endif
}

// Until this thread's copies have arrived.
DEVICE void copies_wait() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group; cp.async.wait_group 0;" ::: "memory");
#endif
}

// A field element that lies in pieces of 16 bytes, `stride` pieces apart.
template <class F> DEVICE F load(const uint4 *from, uint32_t stride) {
    F value;
    uint32_t *words = reinterpret_cast<uint32_t *>(&value);
#pragma unroll
    for (uint32_t j = 0; j < sizeof(F) / 16; j++) {
        uint4 piece = from[j * stride];
        words[4 * j] = piece.x;
        words[4 * j + 1] = piece.y;
        words[4 * j + 2] = piece.z;
        words[4 * j + 3] = piece.w;
    }
    return value;
}

template <class F> DEVICE void store(uint4 *to, uint32_t stride, const F &value) {
    const uint32_t *words = reinterpret_cast<const uint32_t *>(&value);
#pragma unroll
    for (uint32_t j = 0; j < sizeof(F) / 16; j++)
        to[j * stride] = make_uint4(words[4 * j], words[4 * j + 1], words[4 * j + 2], words[4 * j + 3]);
}

template <class F> DEVICE Affine<F> load_point(const Affine<F> *points, uint32_t entry) {
    const uint4 *from = reinterpret_cast<const uint4 *>(points + (entry & ~SIGN));
    Affine<F> point = {load<F>(from, 1), load<F>(from + sizeof(F) / 16, 1)};
    point.y = point.y.neg_if(entry & SIGN);
    return point;
}

// What adding two points needs beyond the ordinary formula.
enum Kind : uint32_t { ADD, DOUBLE, TAKE_FIRST, TAKE_SECOND, CANCEL };

// The denominator of the slope for the points that the quick test singled out.
template <class F> DEVICE Kind classify(F &denominator, const Affine<F> &p, const Affine<F> &q) {
    denominator = q.x - p.x;
    Kind kind = ADD;
    if (q.is_infinity())
        kind = TAKE_FIRST;
    else if (p.is_infinity())
        kind = TAKE_SECOND;
    else if (denominator.is_zero())
        kind = p.y == q.y && !p.y.is_zero() ? DOUBLE : CANCEL;
    if (kind == DOUBLE)
        denominator = p.y.dbl();
    else if (kind != ADD)
        denominator = F::one();
    return kind;
}

// Where the entries of a task are.
struct Task {
    uint32_t start, length;
};

// Batched affine additions. A warp owns tiles of 32 tasks each, tile w, w + warps, ..; in row r every thread adds entry
// r to each of its tasks that has one. Slopes need inverses: going through the tasks in one direction a thread
// multiplies the denominators of the next row up, keeping the products before each (`prefix`), and inverts the last
// product; going back, each inverse is that times the kept product. Going back and forth are one loop.
//
// `running` and `prefix` hold what a task needs between rows, in tiles: piece j of lane l of tile t at
// (t * pieces + j) * 32 + l. Whatever comes from memory is asked for early, since three warps a scheduler cannot hide
// its way: while a task is computed, the operands of the next one come to shared memory, the entries of the one after
// that to registers, and where the entries of the third are.
template <class F> struct Rows {
    static constexpr uint32_t PIECES = sizeof(F) / 16;
    // x1 y1 x2 y2 prefix next-x, and one piece that spreads the threads over all banks.
    static constexpr uint32_t STAGE = 6 * PIECES + 1;

    Affine<F> *sums;
    uint4 *running, *prefix;
    const Affine<F> *points;
    const uint32_t *entries;
    Tasks tasks;
    uint32_t count;
    // Whether nobody wants the sums any more: on the host, and what this device knows of it.
    const volatile uint32_t *stop;
    volatile uint32_t *stopped;

    uint32_t lane, warp, warps;
    uint4 *stage;

    DEVICE uint32_t tile(uint32_t k) const { return warp + k * warps; }

    // The longest task of a tile is its first.
    DEVICE uint32_t tile_length(uint32_t k) const { return tasks.lengths[tile(k) * 32]; }

    DEVICE Task task(uint32_t k) const {
        uint32_t index = tile(k) * 32 + lane;
        Task task = {0, 0};
        if (index < count)
            task = {tasks.starts[index], tasks.lengths[index]};
        return task;
    }

    DEVICE uint32_t entry(const Task &task, uint32_t row) const {
        return row < task.length ? entries[task.start + row] : NONE;
    }

    DEVICE uint4 *running_at(uint32_t k) const { return running + (uint64_t)tile(k) * (2 * PIECES * 32) + lane; }
    DEVICE uint4 *prefix_at(uint32_t k) const { return prefix + (uint64_t)tile(k) * (PIECES * 32) + lane; }

    DEVICE const uint4 *point_at(uint32_t entry) const {
        return reinterpret_cast<const uint4 *>(points + (entry & ~SIGN));
    }

    // Puts a sum where it belongs: it is complete, or goes on in the next row.
    DEVICE void put(uint32_t k, bool complete, const F &x, const F &y) const {
        if (complete) {
            uint4 *to = reinterpret_cast<uint4 *>(sums + tasks.sums[tile(k) * 32 + lane]);
            store(to, 1, x);
            store(to + PIECES, 1, y);
        } else {
            store(running_at(k), 32, x);
            store(running_at(k) + PIECES * 32, 32, y);
        }
    }

    DEVICE void fetch_operands(uint32_t k, uint32_t entry) const {
        if (entry == NONE)
            return;
        const uint4 *point = point_at(entry), *sum = running_at(k), *before = prefix_at(k);
#pragma unroll
        for (uint32_t j = 0; j < 2 * PIECES; j++)
            copy_async(stage + 2 * PIECES + j, point + j);
#pragma unroll
        for (uint32_t j = 0; j < 2 * PIECES; j++)
            copy_async(stage + j, sum + j * 32);
#pragma unroll
        for (uint32_t j = 0; j < PIECES; j++)
            copy_async(stage + 4 * PIECES + j, before + j * 32);
    }

    DEVICE void fetch_next(uint32_t entry) const {
        if (entry == NONE)
            return;
        const uint4 *point = point_at(entry);
#pragma unroll
        for (uint32_t j = 0; j < PIECES; j++)
            copy_async(stage + 5 * PIECES + j, point + j);
    }

    DEVICE F staged(uint32_t operand) const { return load<F>(stage + operand * PIECES, 1); }

    DEVICE Affine<F> first() const { return {staged(0), staged(1)}; }
    DEVICE Affine<F> second(uint32_t entry) const { return {staged(2), staged(3).neg_if(entry & SIGN)}; }

    // The slope's denominator of the next row, multiplied into the product.
    DEVICE void go_on(uint32_t k, const F &x, const F &y, const F &next_x, uint32_t next, F &product) const {
        F denominator = next_x - x;
        if (x.is_zero() || next_x.is_zero() || denominator.is_zero()) {
            Affine<F> p = {x, y};
            classify(denominator, p, load_point(points, next));
        }
        store(prefix_at(k), 32, product);
        product = product * denominator;
    }

    // One thread asks the host, which takes a microsecond during which no other could. It is of the warp with the
    // longest tasks.
    DEVICE bool is_stopped() const {
        if (warp == 0 && lane == 0 && *stop != 0)
            *stopped = 1;
        return *stopped != 0;
    }

    DEVICE void run() {
        uint32_t tiles = (count + 31) / 32;
        if (warp >= tiles)
            return;
        uint32_t active = (tiles - 1 - warp) / warps + 1, remaining = active;
        F product = F::one();
        while (remaining != 0 && tile_length(remaining - 1) <= 1)
            remaining--;
#pragma unroll 1
        for (uint32_t k = 0; k < active; k++) {
            Task own = task(k);
            uint32_t e = entry(own, 0), next = entry(own, 1);
            if (e == NONE)
                continue;
            Affine<F> p = load_point(points, e);
            put(k, next == NONE, p.x, p.y);
            if (next != NONE)
                go_on(k, p.x, p.y, load<F>(point_at(next), 1), next, product);
        }
        bool upwards = false;
#pragma unroll 1
        for (uint32_t row = 1; remaining != 0 && !is_stopped(); row++) {
            active = remaining;
            while (remaining != 0 && tile_length(remaining - 1) <= row + 1)
                remaining--;
            F inverse = product.inverse();
            product = F::one();
            run_row(row, active, upwards, inverse, product);
            upwards = !upwards;
        }
    }

    DEVICE void run_row(uint32_t row, uint32_t active, bool upwards, F &inverse, F &product) {
        uint32_t k = upwards ? 0 : active - 1, step = upwards ? 1 : ~0u;
        Task first_task = task(k), second_task = {0, 0}, third = {0, 0};
        if (active > 1)
            second_task = task(k + step);
        if (active > 2)
            third = task(k + 2 * step);
        uint32_t e = entry(first_task, row), next = entry(first_task, row + 1);
        uint32_t e2 = entry(second_task, row), next2 = entry(second_task, row + 1);
        fetch_operands(k, e);
        fetch_next(next);
#pragma unroll 1
        for (uint32_t done = 0; done < active; done++) {
            uint32_t e3 = entry(third, row), next3 = entry(third, row + 1);
            third = {0, 0};
            if (done + 3 < active)
                third = task(k + 3 * step);
            copies_wait();
            F x, y;
            if (e != NONE) {
                add(e, inverse, x, y);
                put(k, next == NONE, x, y);
            }
            LOAD_LATE();
            F next_x;
            if (next != NONE)
                next_x = staged(5);
            LOAD_LATE();
            fetch_operands(k + step, e2);
            fetch_next(next2);
            if (next != NONE)
                go_on(k, x, y, next_x, next, product);
            k += step;
            e = e2;
            next = next2;
            e2 = e3;
            next2 = next3;
        }
    }

    // The staged points' sum; `inverse` passes from the inverse of all remaining denominators to that without this one.
    DEVICE void add(uint32_t e, F &inverse, F &x, F &y) const {
        Kind kind = ADD;
        F slope;
        {
            F x1 = staged(0), x2 = staged(2), denominator = x2 - x1;
            if (x1.is_zero() || x2.is_zero() || denominator.is_zero())
                kind = classify(denominator, first(), second(e));
            LOAD_LATE();
            slope = staged(4) * inverse;
            inverse = inverse * denominator;
        }
        LOAD_LATE();
        F numerator = staged(3).neg_if(e & SIGN) - staged(1);
        if (kind == DOUBLE) {
            numerator = staged(0).sqr();
            numerator = numerator.dbl() + numerator;
        }
        slope = numerator * slope;
        LOAD_LATE();
        x = slope.sqr() - staged(2) - staged(0);
        y = slope * (staged(0) - x) - staged(1);
        if (kind > DOUBLE) {
            Affine<F> p = kind == TAKE_FIRST ? first() : kind == TAKE_SECOND ? second(e) : Affine<F>::infinity();
            x = p.x;
            y = p.y;
        }
    }
};

template <class F>
DEVICE void sum_rows(Affine<F> *sums, uint4 *running, uint4 *prefix, const Affine<F> *points, const uint32_t *entries,
                     Tasks tasks, Counters *counters, const volatile uint32_t *stop) {
    DYNAMIC_SHARED(uint4, stage);
    volatile uint32_t *stopped = &counters->stopped;
    Rows<F> rows = {sums, running, prefix, points, entries, tasks, counters->tasks, stop, stopped, 0, 0, 0, nullptr};
    rows.lane = threadIdx.x % 32;
    rows.warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    rows.warps = gridDim.x * (blockDim.x / 32);
    rows.stage = stage + threadIdx.x * Rows<F>::STAGE;
    rows.run();
}

// One accumulator a task.
template <class F>
DEVICE void sum_chains(Xyzz<F> *sums, const Affine<F> *points, const uint32_t *entries, Tasks tasks,
                       const Counters *counters) {
    uint32_t count = counters->tasks;
    for (uint32_t task = blockIdx.x * blockDim.x + threadIdx.x; task < count; task += gridDim.x * blockDim.x) {
        uint32_t start = tasks.starts[task], length = tasks.lengths[task];
        Xyzz<F> sum = Xyzz<F>::infinity();
#pragma unroll 1
        for (uint32_t i = 0; i < length; i++)
            sum.add(load_point(points, entries[start + i]));
        sums[tasks.sums[task]] = sum;
    }
}

// Sums as they are kept: affine, or XYZZ.
template <class F> DEVICE void keep(Affine<F> &to, const Xyzz<F> &sum) {
    to = sum.affine();
}
template <class F> DEVICE void keep(Xyzz<F> &to, const Xyzz<F> &sum) {
    to = sum;
}

// The sum over the first `count` threads of a block at least, in thread 0; those after them have nothing. `shared` has
// one place a thread.
template <class F> DEVICE Xyzz<F> block_sum(Xyzz<F> *shared, const Xyzz<F> &mine, uint32_t count) {
    Xyzz<F> sum = mine;
    uint32_t half = blockDim.x / 2;
    while (half > 0 && half >= count)
        half /= 2;
#pragma unroll 1
    for (; half > 0; half /= 2) {
        if (threadIdx.x >= half && threadIdx.x < 2 * half)
            shared[threadIdx.x] = sum;
        __syncthreads();
        if (threadIdx.x < half)
            sum.add(shared[threadIdx.x + half]);
        __syncthreads();
    }
    return sum;
}

// Buckets that were cut, but for the giant ones. There can be many of a few parts, as scalars of real circuits repeat:
// a thread joins these. A block joins the parts of any other.
template <class F, class Point> DEVICE void join_longs(Point *sums, const LongBucket *longs, const Counters *counters) {
    DYNAMIC_SHARED(Xyzz<F>, shared);
    uint32_t count = counters->longs;
#pragma unroll 1
    for (uint32_t index = blockIdx.x * blockDim.x + threadIdx.x; index < count; index += gridDim.x * blockDim.x) {
        LongBucket item = longs[index];
        if (item.parts > FEW)
            continue;
        Xyzz<F> sum = Xyzz<F>::infinity();
#pragma unroll 1
        for (uint32_t i = 0; i < item.parts; i++)
            sum.add(sums[item.sums + i]);
        keep(sums[item.bucket], sum);
    }
#pragma unroll 1
    for (uint32_t index = blockIdx.x; index < count; index += gridDim.x) {
        LongBucket item = longs[index];
        if (item.parts <= FEW || item.parts > GIANT)
            continue;
        Xyzz<F> sum = Xyzz<F>::infinity();
#pragma unroll 1
        for (uint32_t i = threadIdx.x; i < item.parts; i += blockDim.x)
            sum.add(sums[item.sums + i]);
        sum = block_sum(shared, sum, item.parts);
        if (threadIdx.x == 0)
            keep(sums[item.bucket], sum);
    }
}

// Giant buckets: SPLIT blocks make a sum each ..
template <class F, class Point>
DEVICE void split_giants(Xyzz<F> *splits, const Point *sums, const LongBucket *longs, const uint32_t *giants,
                         const Counters *counters) {
    DYNAMIC_SHARED(Xyzz<F>, shared);
    uint32_t part = blockIdx.x % SPLIT;
    for (uint32_t index = blockIdx.x / SPLIT; index < counters->giants; index += gridDim.x / SPLIT) {
        LongBucket item = longs[giants[index]];
        Xyzz<F> sum = Xyzz<F>::infinity();
#pragma unroll 1
        for (uint32_t i = part * blockDim.x + threadIdx.x; i < item.parts; i += SPLIT * blockDim.x)
            sum.add(sums[item.sums + i]);
        sum = block_sum(shared, sum, blockDim.x);
        if (threadIdx.x == 0)
            splits[(uint64_t)index * SPLIT + part] = sum;
    }
}

// .. which one block of SPLIT threads joins.
template <class F, class Point>
DEVICE void join_giants(Point *sums, const Xyzz<F> *splits, const LongBucket *longs, const uint32_t *giants,
                        const Counters *counters) {
    DYNAMIC_SHARED(Xyzz<F>, shared);
    for (uint32_t index = blockIdx.x; index < counters->giants; index += gridDim.x) {
        Xyzz<F> sum = block_sum(shared, splits[(uint64_t)index * SPLIT + threadIdx.x], SPLIT);
        if (threadIdx.x == 0)
            keep(sums[longs[giants[index]].bucket], sum);
    }
}

// Some neighbouring buckets: their sum, and the sum with weights 1, 2, .. counted from the first of them.
template <class F> struct Chunk {
    Xyzz<F> sum, weighted;
};

// Chunks of `size` buckets. Buckets without entries were never written, where there are `starts`.
template <class F, class Point>
DEVICE void reduce_buckets(Chunk<F> *chunks, const Point *sums, const uint32_t *starts, uint32_t buckets,
                           uint32_t size) {
    uint32_t chunk = blockIdx.x * blockDim.x + threadIdx.x;
    if (chunk >= buckets / size)
        return;
    Chunk<F> result = {Xyzz<F>::infinity(), Xyzz<F>::infinity()};
    uint32_t end = starts == nullptr ? 0 : starts[(chunk + 1) * size];
#pragma unroll 1
    for (uint32_t i = size; i-- > 0;) {
        uint32_t bucket = chunk * size + i, start = starts == nullptr ? 0 : starts[bucket];
        if (starts == nullptr || start != end)
            result.sum.add(sums[bucket]);
        end = start;
        result.weighted.add(result.sum);
    }
    chunks[chunk] = result;
}

// Joins `size` neighbouring chunks of 2^log_covered buckets each.
template <class F>
DEVICE void reduce_chunks(Chunk<F> *out, const Chunk<F> *in, uint32_t chunks, uint32_t size, uint32_t log_covered) {
    uint32_t index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index >= chunks / size)
        return;
    Xyzz<F> sum = Xyzz<F>::infinity(), weighted = Xyzz<F>::infinity(), steps = Xyzz<F>::infinity();
#pragma unroll 1
    for (uint32_t i = size; i-- > 0;) {
        const Chunk<F> &chunk = in[(uint64_t)index * size + i];
        // After the loop: sum over i of i times the sum of chunk i.
        steps.add(sum);
        sum.add(chunk.sum);
        weighted.add(chunk.weighted);
    }
#pragma unroll 1
    for (uint32_t i = 0; i < log_covered; i++)
        steps = steps.dbl();
    weighted.add(steps);
    out[index] = {sum, weighted};
}

// The last step. With 2^log_chunks chunks c left in a window, each of 2^m buckets, its weighted sum is the sum over c
// of weighted[c] + 2^m c sum[c]: a block sums those sum[c] whose c has one bit, for each bit, and two blocks sum a half
// of weighted each. Doublings are left to the host, which has the powers of two of all windows in one chain anyway.
template <class F> DEVICE void reduce_bits(Xyzz<F> *out, const Chunk<F> *in, uint32_t log_chunks) {
    DYNAMIC_SHARED(Xyzz<F>, shared);
    uint32_t parts = log_chunks + 2, window = blockIdx.x / parts, part = blockIdx.x % parts;
    uint32_t chunks = 1u << log_chunks, half = chunks / 2;
    in += (uint64_t)window << log_chunks;
    Xyzz<F> sum = Xyzz<F>::infinity();
    if (part < log_chunks) {
        uint32_t bit = 1u << part;
#pragma unroll 1
        for (uint32_t i = threadIdx.x; i < half; i += blockDim.x) {
            uint32_t below = i & (bit - 1);
            sum.add(in[2 * (i - below) + bit + below].sum);
        }
    } else {
        uint32_t begin = part == log_chunks ? 0 : chunks - half, end = part == log_chunks ? chunks - half : chunks;
#pragma unroll 1
        for (uint32_t i = begin + threadIdx.x; i < end; i += blockDim.x)
            sum.add(in[i].weighted);
    }
    sum = block_sum(shared, sum, part < log_chunks ? half : chunks - half);
    if (threadIdx.x == 0)
        out[blockIdx.x] = sum;
}

} // namespace

// The kernels of one group: its name, its coordinates with products in place for the chains and with products as
// functions for all others (on the H200 rows are faster so: their loop fits better into the instruction cache), threads
// a block for the rows and for everything else.
#define SUM_KERNELS(group, CHAINS, CALLED, ROW_THREADS, OTHER_THREADS)                                                 \
    KERNEL(ROW_THREADS, 1, group##_sum_rows,                                                                           \
           (Affine<CALLED> * sums, uint4 * running, uint4 * prefix, const Affine<CALLED> *points,                      \
            const uint32_t *entries, Tasks tasks, Counters *counters, const uint32_t *stop)) {                         \
        sum_rows<CALLED>(sums, running, prefix, points, entries, tasks, counters, stop);                               \
    }                                                                                                                  \
    KERNEL(OTHER_THREADS, 1, group##_sum_chains,                                                                       \
           (Xyzz<CHAINS> * sums, const Affine<CHAINS> *points, const uint32_t *entries, Tasks tasks,                   \
            const Counters *counters)) {                                                                               \
        sum_chains<CHAINS>(sums, points, entries, tasks, counters);                                                    \
    }                                                                                                                  \
    KERNEL(128, 1, group##_join_longs_affine,                                                                          \
           (Affine<CALLED> * sums, const LongBucket *longs, const Counters *counters)) {                               \
        join_longs<CALLED>(sums, longs, counters);                                                                     \
    }                                                                                                                  \
    KERNEL(128, 1, group##_join_longs_xyzz,                                                                            \
           (Xyzz<CALLED> * sums, const LongBucket *longs, const Counters *counters)) {                                 \
        join_longs<CALLED>(sums, longs, counters);                                                                     \
    }                                                                                                                  \
    KERNEL(128, 1, group##_split_giants_affine,                                                                        \
           (Xyzz<CALLED> * splits, const Affine<CALLED> *sums, const LongBucket *longs, const uint32_t *giants,        \
            const Counters *counters)) {                                                                               \
        split_giants<CALLED>(splits, sums, longs, giants, counters);                                                   \
    }                                                                                                                  \
    KERNEL(128, 1, group##_split_giants_xyzz,                                                                          \
           (Xyzz<CALLED> * splits, const Xyzz<CALLED> *sums, const LongBucket *longs, const uint32_t *giants,          \
            const Counters *counters)) {                                                                               \
        split_giants<CALLED>(splits, sums, longs, giants, counters);                                                   \
    }                                                                                                                  \
    KERNEL(SPLIT, 1, group##_join_giants_affine,                                                                       \
           (Affine<CALLED> * sums, const Xyzz<CALLED> *splits, const LongBucket *longs, const uint32_t *giants,        \
            const Counters *counters)) {                                                                               \
        join_giants<CALLED>(sums, splits, longs, giants, counters);                                                    \
    }                                                                                                                  \
    KERNEL(SPLIT, 1, group##_join_giants_xyzz,                                                                         \
           (Xyzz<CALLED> * sums, const Xyzz<CALLED> *splits, const LongBucket *longs, const uint32_t *giants,          \
            const Counters *counters)) {                                                                               \
        join_giants<CALLED>(sums, splits, longs, giants, counters);                                                    \
    }                                                                                                                  \
    KERNEL(OTHER_THREADS, 1, group##_reduce_buckets_affine,                                                            \
           (Chunk<CALLED> * chunks, const Affine<CALLED> *sums, const uint32_t *starts, uint32_t buckets,              \
            uint32_t size)) {                                                                                          \
        reduce_buckets<CALLED>(chunks, sums, starts, buckets, size);                                                   \
    }                                                                                                                  \
    KERNEL(                                                                                                            \
        OTHER_THREADS, 1, group##_reduce_buckets_xyzz,                                                                 \
        (Chunk<CALLED> * chunks, const Xyzz<CALLED> *sums, const uint32_t *starts, uint32_t buckets, uint32_t size)) { \
        reduce_buckets<CALLED>(chunks, sums, starts, buckets, size);                                                   \
    }                                                                                                                  \
    KERNEL(OTHER_THREADS, 1, group##_reduce_chunks,                                                                    \
           (Chunk<CALLED> * out, const Chunk<CALLED> *in, uint32_t chunks, uint32_t size, uint32_t log_covered)) {     \
        reduce_chunks<CALLED>(out, in, chunks, size, log_covered);                                                     \
    }                                                                                                                  \
    KERNEL(128, 1, group##_reduce_bits, (Xyzz<CALLED> * out, const Chunk<CALLED> *in, uint32_t log_chunks)) {          \
        reduce_bits<CALLED>(out, in, log_chunks);                                                                      \
    }
