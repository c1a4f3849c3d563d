// One pass of a transform: a block transforms the columns of a tile.
//
// A tile is a matrix of 2^11 elements, 2^bits rows and 2^(11 - bits) columns, at number t = row 2^(11 - bits) + column.
// A thread holds the eight elements whose numbers differ in a window of three bits, [place, place + 3): it transforms
// them in registers, multiplies by roots of unity, and the block exchanges elements so that the next three bits are the
// window. The first step takes what is left over of the bits, so that all others take three.
//
// Only forward transforms are computed: the inverse transform is the forward one with its results' order reversed.
#pragma once
#include "ntt_field.cuh"

namespace ntt {

constexpr uint32_t TILE_BITS = 11;
constexpr uint32_t TILE = 1u << TILE_BITS;
constexpr uint64_t NOWHERE = ~0ull;

// Where a tile's elements are, and which factor each result takes. Passed by value from Rust (ntt.rs has the same).
struct Pass {
    uint32_t bits;    // log2 of the rows, 0 to 11
    uint32_t stride;  // log2 of the distance of rows in memory
    uint32_t columns; // all columns of the data
    // The factor of result k of column c is number k << row_shift | (c >> column_drop & column_mask) << column_shift.
    uint32_t row_shift, column_drop, column_mask, column_shift;

    BOTH uint64_t element(uint32_t row, uint32_t column) const {
        uint64_t low = column & ((1u << stride) - 1);
        return (uint64_t)(column >> stride) << (stride + bits) | (uint64_t)row << stride | low;
    }
};

// 16 bytes each way: half an element. All accesses to elements in memory are such.
DEVICE uint4 half_of(const Fr &x, int half) {
    return make_uint4(x.v[4 * half], x.v[4 * half + 1], x.v[4 * half + 2], x.v[4 * half + 3]);
}

DEVICE void set_half(Fr &x, int half, const uint4 &words) {
    x.v[4 * half] = words.x;
    x.v[4 * half + 1] = words.y;
    x.v[4 * half + 2] = words.z;
    x.v[4 * half + 3] = words.w;
}

DEVICE Fr load(const uint4 *data, uint64_t index) {
    Fr x;
    set_half(x, 0, data[2 * index]);
    set_half(x, 1, data[2 * index + 1]);
    return x;
}

DEVICE FrShoup load_factor(const uint4 *table, uint32_t index) {
    const uint4 *from = table + 4 * (uint64_t)index;
    FrShoup factor;
    set_half(factor.w, 0, __ldg(from));
    set_half(factor.w, 1, __ldg(from + 1));
    set_half(factor.q, 0, __ldg(from + 2));
    set_half(factor.q, 1, __ldg(from + 3));
    return factor;
}

// -x / r mod 2^256: the quotient floor(w 2^256 / r) of a constant w, if x is its Montgomery form w 2^256 mod r, since
// w 2^256 - x is that quotient times r.
DEVICE Fr quotient_of(const Fr &x) {
    constexpr uint32_t minus_inverse[8] = {0xffffffff, 0xfffffffe, 0xfffe5bfd, 0x53ba5bff,
                                           0x0004ec06, 0x181b2c17, 0xd7bf2839, 0x3d443ab0};
    Fr q = Fr::zero();
#pragma unroll
    for (int i = 0; i < 8; i++) {
        uint64_t carry = 0;
#pragma unroll
        for (int j = 0; i + j < 8; j++) {
            carry += q.v[i + j] + (uint64_t)x.v[i] * minus_inverse[j];
            q.v[i + j] = (uint32_t)carry;
            carry >>= 32;
        }
    }
    return q;
}

DEVICE void store_alone(uint4 *data, uint64_t index, const Fr &x) {
    data[2 * index] = half_of(x, 0);
    data[2 * index + 1] = half_of(x, 1);
}

// Stores this lane's element at `index`, or nowhere. Two lanes store their elements together, so that
// each instruction writes whole 32-byte sectors.
DEVICE void store(uint4 *data, uint64_t index, const Fr &x) {
    bool odd = threadIdx.x & 1;
    uint4 low = half_of(x, 0), high = half_of(x, 1), given = odd ? low : high, taken;
    taken.x = __shfl_xor_sync(~0u, given.x, 1);
    taken.y = __shfl_xor_sync(~0u, given.y, 1);
    taken.z = __shfl_xor_sync(~0u, given.z, 1);
    taken.w = __shfl_xor_sync(~0u, given.w, 1);
    uint64_t other = __shfl_xor_sync(~0u, (unsigned long long)index, 1);
    uint64_t first = odd ? other : index, second = odd ? index : other;
    if (first != NOWHERE)
        data[2 * first + odd] = odd ? taken : low;
    if (second != NOWHERE)
        data[2 * second + odd] = odd ? high : taken;
}

// A thread's place in the tile.
struct Tile {
    const Pass &pass;
    uint32_t first_column;

    DEVICE explicit Tile(const Pass &pass) : pass(pass), first_column(blockIdx.x << (TILE_BITS - pass.bits)) {}

    DEVICE uint32_t log_columns() const { return TILE_BITS - pass.bits; }

    // Steps of three bits and, before them, of the rest.
    DEVICE uint32_t steps() const { return (pass.bits + 2) / 3; }
    DEVICE uint32_t first_bits() const { return pass.bits == 0 ? 0 : pass.bits - 3 * (steps() - 1); }

    // Before the first step: the tile's number of register `reg`.
    DEVICE static uint32_t number_before(int reg, uint32_t thread) { return (uint32_t)reg << (TILE_BITS - 3) | thread; }

    DEVICE uint32_t column(uint32_t number) const { return first_column + (number & ((1u << log_columns()) - 1)); }

    // The memory index of an input.
    DEVICE uint64_t input(int reg) const {
        uint32_t number = number_before(reg, threadIdx.x), c = column(number);
        return c < pass.columns ? pass.element(number >> log_columns(), c) : NOWHERE;
    }

    // After the last step a thread holds results in the order of digits reversed: the thread that holds them if the
    // results are read as inputs again, each at the same register.
    DEVICE uint32_t reversed_thread() const {
        if (pass.bits <= 3)
            return threadIdx.x;
        uint32_t rows = threadIdx.x >> log_columns(), left = pass.bits - 3, at = first_bits();
        uint32_t reversed = rows >> (left - at);
        for (left -= at; left > 0; left -= 3, at += 3)
            reversed |= (rows >> (left - 3) & 7) << at;
        return reversed << log_columns() | (threadIdx.x & ((1u << log_columns()) - 1));
    }
};

// A result's row and column, after the last step.
struct Output {
    uint32_t k, column;
    uint64_t index; // in memory

    // `reversed` is the tile's reversed_thread().
    DEVICE Output(const Tile &tile, uint32_t reversed, int reg, bool inverse) {
        uint32_t number = Tile::number_before(reg, reversed);
        k = number >> tile.log_columns();
        if (inverse)
            k = (0u - k) & ((1u << tile.pass.bits) - 1);
        column = tile.column(number);
        index = column < tile.pass.columns ? tile.pass.element(k, column) : NOWHERE;
    }

    // The number of the factor that it takes.
    DEVICE uint32_t factor(const Pass &pass) const {
        uint32_t number = k << pass.row_shift | (column >> pass.column_drop & pass.column_mask) << pass.column_shift;
        return index == NOWHERE ? 0 : number;
    }
};

// Slot of an element: the lowest three bits are changed so that eight neighbouring lanes never meet in a bank,
// whichever window they write or read by.
DEVICE uint32_t slot(uint32_t number) {
    return number ^ (number >> 3 & 7);
}

DEVICE uint32_t number_in_window(int reg, uint32_t thread, uint32_t place) {
    uint32_t low = thread & ((1u << place) - 1);
    return (thread >> place) << (place + 3) | (uint32_t)reg << place | low;
}

DEVICE void barrier(bool within_warp) {
    if (within_warp)
        __syncwarp();
    else
        __syncthreads();
}

// Elements of window `from` (as `thread` holds them) become those of window `to`, half an element at a time: 32 KiB of
// shared memory. Windows below bit 8 divide the tile among warps alike.
DEVICE void exchange(Fr *x, uint4 *shared, uint32_t thread, uint32_t from, uint32_t to) {
    bool within_warp = from <= 5, reads_own = to <= 5;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        if (half > 0)
            barrier(within_warp);
#pragma unroll
        for (int reg = 0; reg < 8; reg++)
            shared[slot(number_in_window(reg, thread, from))] = half_of(x[reg], half);
        barrier(within_warp);
#pragma unroll
        for (int reg = 0; reg < 8; reg++)
            set_half(x[reg], half, shared[slot(number_in_window(reg, threadIdx.x, to))]);
    }
    barrier(reads_own);
}

// The transforms of 2^bits elements each that the registers of a thread hold.
DEVICE void step(Fr *x, uint32_t bits) {
    if (bits == 3) {
        dft8(x);
    } else if (bits == 2) {
        dft4(x[0], x[2], x[4], x[6]);
        dft4(x[1], x[3], x[5], x[7]);
    } else if (bits == 1) {
#pragma unroll
        for (int reg = 0; reg < 4; reg++)
            dft2(x[reg], x[reg + 4]);
    }
}

// A layer of constants in shared memory: for columns of 2^9 rows, the roots of unity after the second step times a
// factor of each column. A thread makes one of them; their use costs no more products than that of the roots alone.
constexpr uint32_t MERGED_BITS = 9;
constexpr uint32_t MERGED = 256;

// `pairs` has each column's factor out of Montgomery form and in it. A barrier must follow before the constants are
// used.
DEVICE void merge_factors(uint4 *merged, const Tile &tile, const uint4 *roots, const uint4 *pairs) {
    uint32_t number = threadIdx.x, column = tile.column(number);
    uint32_t digit = number >> 5, row = number >> 2 & 7;
    FrShoup root = load_factor(roots, digit * row << 3);
    FrShoup pair = load_factor(pairs, column < tile.pass.columns ? column : 0);
    Fr w = pair.w.mul(root), q = quotient_of(pair.q.mul(root));
#pragma unroll
    for (int half = 0; half < 2; half++) {
        merged[half * MERGED + number] = half_of(w, half);
        merged[(2 + half) * MERGED + number] = half_of(q, half);
    }
}

// Where the constants of a layer are: in a table, or merged.
struct Layer {
    const uint4 *constants;
    uint32_t distance, plane; // of constants; of their quarters

    DEVICE FrShoup load(uint32_t number) const {
        const uint4 *from = constants + number * distance;
        FrShoup factor;
        set_half(factor.w, 0, from[0]);
        set_half(factor.w, 1, from[plane]);
        set_half(factor.q, 0, from[2 * plane]);
        set_half(factor.q, 1, from[3 * plane]);
        return factor;
    }
};

// The products after the second step of columns of 2^9 rows, or of any step with the roots alone.
DEVICE void multiply_layer(Fr *x, const uint4 *roots, const uint4 *merged, uint32_t thread, uint32_t row,
                           uint32_t spacing) {
    Layer layer = merged ? Layer{merged, 1, MERGED} : Layer{roots, 4, 1};
    x[0] = merged ? x[0].mul(layer.load(thread & 31)) : reduced(x[0]);
#pragma unroll
    for (uint32_t reg = 1; reg < 8; reg++)
        x[reg] = x[reg].mul(layer.load(merged ? reg << 5 | (thread & 31) : reg * row << spacing));
}

// Transforms the tile's columns. `thread` is the thread whose inputs x holds by number_before. Results are lazy, and
// are results `Output` of the same register. `roots` are the 2^bits powers of the primitive root. `merged` is null or
// from merge_factors.
template <bool MERGES>
DEVICE void transform(Fr *x, const Tile &tile, uint4 *shared, const uint4 *roots, uint32_t thread,
                      const uint4 *merged) {
    uint32_t steps = tile.steps(), bits = tile.first_bits(), place = TILE_BITS - 3, left = tile.pass.bits;
#pragma unroll 1
    for (uint32_t done = 1;; done++) {
        step(x, bits);
        if (done >= steps)
            break;
        // Rows are bits [log_columns, 11): `bits` of them, from the top, have become digits of the result.
        left -= bits;
        uint32_t below = (thread & ((1u << place) - 1)) >> tile.log_columns(), spacing = tile.pass.bits - bits - left;
        if (MERGES) {
            multiply_layer(x, roots, done == 2 ? merged : nullptr, thread, below, spacing);
        } else {
            x[0] = reduced(x[0]);
#pragma unroll
            for (int reg = 1; reg < 8; reg++) {
                uint32_t digit = (uint32_t)reg >> (3 - bits), passive = (uint32_t)reg & ((1u << (3 - bits)) - 1);
                uint32_t row = passive << (left - (3 - bits)) | below;
                x[reg] = x[reg].mul(load_factor(roots, digit * row << spacing));
            }
        }
        exchange(x, shared, thread, place, place - bits);
        thread = threadIdx.x;
        place -= bits;
        bits = 3;
    }
}

DEVICE void transform(Fr *x, const Tile &tile, uint4 *shared, const uint4 *roots, uint32_t thread) {
    transform<false>(x, tile, shared, roots, thread, nullptr);
}

} // namespace ntt
