// Number-theoretic transforms over Fr, and the quotient (A B - C)/Z of a satisfied system.
//
// N = 2^(first + second + third), and the parts of indices are numbers of so many bits:
//     of evaluations     n = n1 2^(second + third) + n2 2^third + n3,
//     of coefficients    k = k1 + k2 2^first + k3 2^(first + second), at k1 2^(second + third) + k2 2^third + k3.
// The inverse transform goes over memory three times, in place: n1 becomes k1, then n2 k2, then n3 k3. The forward
// transform takes them back in the opposite order. With w the root of unity of order N, or its inverse, elements take
// factors from three tables of about N^(2/3) entries:
//     between the passes of the first and the second part: w^(n2 k1 2^third),
//     in the pass of the second part, one for a column: w^(n3 k1), as part of that pass's roots,
//     between the passes of the second and the third part: w^(n3 k2 2^first).
// Powers of the coset's shift, 1/N and other constants are part of the tables. Up to 2^18 there is no first part.
//
// Products of an element: for a pass of 9 bits 3 (4/8) + 2 (7/8), of which 6/8 are by i (ntt_field.cuh), and one for
// each factor, but 3.4/8 for that of a column.
#include "ntt_order.cuh"
#include "ntt_tile.cuh"

namespace ntt {
namespace {

DEVICE void load_tile(Fr *x, const uint4 *data, const Tile &tile) {
#pragma unroll
    for (int reg = 0; reg < 8; reg++) {
        uint64_t index = tile.input(reg);
        x[reg] = index == NOWHERE ? Fr::zero() : load(data, index);
    }
}

DEVICE void load_product(Fr *x, const uint4 *a, const uint4 *b, const Tile &tile) {
#pragma unroll
    for (int reg = 0; reg < 8; reg++) {
        uint64_t index = tile.input(reg);
        x[reg] = index == NOWHERE ? Fr::zero() : load(a, index) * load(b, index);
    }
}

DEVICE void store_tile(Fr *x, uint4 *data, const Tile &tile, bool inverse, const uint4 *factors) {
    uint32_t reversed = tile.reversed_thread();
#pragma unroll
    for (int reg = 0; reg < 8; reg++) {
        Output out(tile, reversed, reg, inverse);
        x[reg] = factors ? x[reg].mul(load_factor(factors, out.factor(tile.pass))) : reduced(x[reg]);
        store(data, out.index, x[reg]);
    }
}

// A number of 256 bits, as a kernel's argument.
struct Words {
    uint32_t v[8];
};

DEVICE Fr element(const Words &words) {
    Fr x;
    for (int i = 0; i < 8; i++)
        x.v[i] = words.v[i];
    return x;
}

DEVICE Fr power(Fr base, uint32_t exponent) {
    Fr result = Fr::one();
    for (; exponent > 0; exponent >>= 1) {
        if (exponent & 1)
            result = result * base;
        base = base.sqr();
    }
    return result;
}

} // namespace
} // namespace ntt

using namespace ntt;

// One pass: transforms, in place. `factors` (or null) has a factor for each result.
KERNEL(256, 2, ntt_pass, (uint4 * data, const uint4 *roots, const uint4 *factors, uint32_t inverse, Pass pass)) {
    SHARED uint4 shared[TILE];
    Tile tile(pass);
    Fr x[8];
    load_tile(x, data, tile);
    transform(x, tile, shared, roots, threadIdx.x);
    store_tile(x, data, tile, inverse, factors);
}

// The second of three passes, of 9 bits: `pairs` has a factor for each column too (ntt_tile.cuh).
KERNEL(256, 2, ntt_second,
       (uint4 * data, const uint4 *roots, const uint4 *pairs, const uint4 *factors, uint32_t inverse, Pass pass)) {
    SHARED uint4 shared[TILE];
    SHARED uint4 merged[4 * MERGED];
    Tile tile(pass);
    Fr x[8];
    load_tile(x, data, tile);
    merge_factors(merged, tile, roots, pairs);
    transform<true>(x, tile, shared, roots, threadIdx.x, merged);
    store_tile(x, data, tile, inverse, factors);
}

// The first inverse pass of the quotient: c = a b, and the pass for each of the three.
KERNEL(256, 2, ntt_open,
       (uint4 * a, uint4 *b, uint4 *c, const uint4 *roots, const uint4 *factors, const uint4 *factors_of_c,
        Pass pass)) {
    SHARED uint4 shared[TILE];
    Tile tile(pass);
    Fr x[8];
    load_product(x, a, b, tile);
    // A loop, so that the transform's code is there once.
#pragma unroll 1
    for (int which = 0;; which++) {
        transform(x, tile, shared, roots, threadIdx.x);
        store_tile(x, which == 0 ? c : which == 1 ? a : b, tile, true, which == 0 ? factors_of_c : factors);
        if (which == 2)
            break;
        load_tile(x, which == 0 ? a : b, tile);
        // Others may still read what the last exchange left.
        __syncthreads();
    }
}

// From evaluations to evaluations elsewhere: the last inverse pass, a factor for each coefficient's k3, and the first
// forward pass. The forward transform reads the inverse one's results before their order is reversed: so its
// results are in reversed order too.
KERNEL(256, 2, ntt_middle, (uint4 * data, const uint4 *roots, const uint4 *scale, const uint4 *factors, Pass pass)) {
    SHARED uint4 shared[TILE];
    Tile tile(pass);
    Fr x[8];
    load_tile(x, data, tile);
    uint32_t thread = threadIdx.x, reversed = tile.reversed_thread();
#pragma unroll 1
    for (bool again = false;; again = true) {
        transform(x, tile, shared, roots, thread);
        if (again)
            break;
#pragma unroll
        for (int reg = 0; reg < 8; reg++)
            x[reg] = x[reg].mul(load_factor(scale, Output(tile, reversed, reg, true).k));
        thread = reversed;
        __syncthreads();
    }
    store_tile(x, data, tile, true, factors);
}

// The last forward pass of a and b, and the first inverse pass of their product, to a.
KERNEL(256, 2, ntt_meet, (uint4 * a, const uint4 *b, const uint4 *roots, const uint4 *factors, Pass pass)) {
    SHARED uint4 shared[TILE];
    Tile tile(pass);
    uint32_t thread = threadIdx.x, reversed = tile.reversed_thread();
    Fr x[8];
    load_tile(x, a, tile);
#pragma unroll 1
    for (int which = 0;; which++) {
        transform(x, tile, shared, roots, thread);
        if (which == 2)
            break;
        if (which == 0) {
#pragma unroll
            for (int reg = 0; reg < 8; reg++) {
                uint64_t index = Output(tile, reversed, reg, false).index;
                if (index != NOWHERE)
                    store_alone(a, index, reduced(x[reg]));
            }
            load_tile(x, b, tile);
        } else {
#pragma unroll
            for (int reg = 0; reg < 8; reg++) {
                uint64_t index = Output(tile, reversed, reg, false).index;
                x[reg] = index == NOWHERE ? Fr::zero() : reduced(x[reg]) * load(a, index);
            }
            thread = reversed;
        }
        __syncthreads();
    }
    store_tile(x, a, tile, true, factors);
}

// The last inverse pass of p, and p - c: the quotient's coefficients as numbers out of Montgomery form, as the tables
// before have it. The coefficient N - 1, which must vanish, goes to `top` too.
KERNEL(256, 2, ntt_close, (uint4 * p, const uint4 *c, uint4 *top, const uint4 *roots, const uint4 *scale, Pass pass)) {
    SHARED uint4 shared[TILE];
    Tile tile(pass);
    Fr x[8];
    load_tile(x, p, tile);
    transform(x, tile, shared, roots, threadIdx.x);
    uint32_t reversed = tile.reversed_thread();
    uint64_t last = ((uint64_t)pass.columns << pass.bits) - 1;
#pragma unroll
    for (int reg = 0; reg < 8; reg++) {
        Output out(tile, reversed, reg, true);
        x[reg] = x[reg].mul(load_factor(scale, out.k));
        if (out.index != NOWHERE)
            x[reg] = x[reg] - load(c, out.index);
        store(p, out.index, x[reg]);
        if (out.index == last)
            store_alone(top, 0, x[reg]);
    }
}

// data[i] *= scale[i mod 2^bits]
KERNEL(256, 2, ntt_scale, (uint4 * data, const uint4 *scale, uint32_t bits, uint32_t count)) {
    uint32_t index = blockIdx.x * 256 + threadIdx.x;
    if (index >= count)
        return;
    Fr x = load(data, index).mul(load_factor(scale, index & ((1u << bits) - 1)));
    store_alone(data, index, x);
}

// A table of constants: number i 2^bits + j is start row^i column^j root^(i j), as a constant or, for merge_factors, as
// a pair: out of Montgomery form and in it.
KERNEL(256, 2, ntt_table,
       (uint4 * table, uint32_t bits, uint32_t count, uint32_t pairs, Words start, Words row, Words column,
        Words root)) {
    uint32_t index = blockIdx.x * 256 + threadIdx.x;
    if (index >= count)
        return;
    uint32_t i = index >> bits, j = index & ((1u << bits) - 1);
    Fr x = element(start) * power(element(row), i) * power(element(column) * power(element(root), i), j);
    Fr w;
    x.canonical(w.v);
    store_alone(table, 2 * (uint64_t)index, w);
    store_alone(table, 2 * (uint64_t)index + 1, pairs ? x : quotient_of(x));
}

namespace {

// Of pieces of `units` times 16 bytes, piece i for coefficient first + i: where unit `index` of them all lies if each
// piece is at its coefficient's position.
DEVICE uint64_t arranged(uint64_t index, uint32_t first, uint32_t units, Layout layout) {
    uint32_t piece = (uint32_t)(index / units), unit = (uint32_t)(index % units);
    return (uint64_t)layout.position_of_coefficient(first + piece) * units + unit;
}

} // namespace

// Brings what belongs to coefficients, such as bases, to the coefficients' positions.
KERNEL(256, 4, ntt_arrange,
       (uint4 * to, const uint4 *from, uint32_t first, uint32_t count, uint32_t units, Layout layout)) {
    uint64_t index = (uint64_t)blockIdx.x * 256 + threadIdx.x;
    if (index < (uint64_t)count * units)
        to[arranged(index, first, units, layout)] = from[index];
}

// The way back.
KERNEL(256, 4, ntt_collect,
       (uint4 * to, const uint4 *from, uint32_t first, uint32_t count, uint32_t units, Layout layout)) {
    uint64_t index = (uint64_t)blockIdx.x * 256 + threadIdx.x;
    if (index < (uint64_t)count * units)
        to[index] = from[arranged(index, first, units, layout)];
}
