// Points as parameter files have them, and as kernels do.
//
// In a file an element of Fp is its 48 bytes, most significant first, and one of Fp2 is c1, c0. Both forms of a point
// have the same size, so that each thread turns one into the other in place.
#include "curve.cuh"

namespace {

constexpr uint32_t THREADS = 128;
constexpr int LIMBS = detail::BaseField::LIMBS;

// Of an element of Fp, each of 16 bytes.
constexpr int VECTORS = LIMBS / 4;

DEVICE void load(uint32_t *words, const uint4 *from) {
#pragma unroll
    for (int i = 0; i < VECTORS; i++) {
        uint4 vector = from[i];
        words[4 * i] = vector.x;
        words[4 * i + 1] = vector.y;
        words[4 * i + 2] = vector.z;
        words[4 * i + 3] = vector.w;
    }
}

DEVICE void store(uint4 *to, const uint32_t *words) {
#pragma unroll
    for (int i = 0; i < VECTORS; i++)
        to[i] = make_uint4(words[4 * i], words[4 * i + 1], words[4 * i + 2], words[4 * i + 3]);
}

DEVICE uint32_t swap_bytes(uint32_t word) {
    return word << 24 | (word & 0xff00) << 8 | (word >> 8 & 0xff00) | word >> 24;
}

// All bytes the other way round.
DEVICE void reverse(uint32_t *to, const uint32_t *from) {
#pragma unroll
    for (int i = 0; i < LIMBS; i++)
        to[i] = swap_bytes(from[LIMBS - 1 - i]);
}

// Whether the bytes are a number below the modulus. The flags of other forms of points are bits above it.
DEVICE bool decode(FpCalled &element, const uint4 *from) {
    uint32_t bytes[LIMBS], number[LIMBS], modulus[LIMBS], difference[LIMBS];
    load(bytes, from);
    reverse(number, bytes);
    detail::modulus_of<detail::BaseField>(modulus);
    element = FpCalled::from_canonical(number);
    return limbs::sub<LIMBS>(difference, number, modulus) != 0;
}

DEVICE bool decode(Fp2Called &element, const uint4 *from) {
    bool high = decode(element.c1, from), low = decode(element.c0, from + VECTORS);
    return high && low;
}

DEVICE void encode(uint4 *to, const FpCalled &element) {
    uint32_t number[LIMBS], bytes[LIMBS];
    element.canonical(number);
    reverse(bytes, number);
    store(to, bytes);
}

DEVICE void encode(uint4 *to, const Fp2Called &element) {
    encode(to, element.c1);
    encode(to + VECTORS, element.c0);
}

// As kernels have it.
DEVICE void read(FpCalled &element, const uint4 *from) {
    load(element.v, from);
}

DEVICE void read(Fp2Called &element, const uint4 *from) {
    read(element.c0, from);
    read(element.c1, from + VECTORS);
}

DEVICE void write(uint4 *to, const FpCalled &element) {
    store(to, element.v);
}

DEVICE void write(uint4 *to, const Fp2Called &element) {
    write(to, element.c0);
    write(to + VECTORS, element.c1);
}

// What the curve's equation adds to x^3: 4, and 4 + 4 u.
DEVICE void addend(FpCalled &b) {
    b = FpCalled::one().dbl().dbl();
}

DEVICE void addend(Fp2Called &b) {
    addend(b.c0);
    b.c1 = b.c0;
}

template <class F> DEVICE bool is_on_curve(const Affine<F> &p) {
    F b;
    addend(b);
    return p.y.sqr() == p.x.sqr() * p.x + b;
}

template <class F> constexpr int vectors = sizeof(F) / sizeof(uint4);

template <class F>
DEVICE void decode_points(uint4 *points, uint32_t count, uint64_t first, unsigned long long *first_bad) {
    uint32_t i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= count)
        return;
    uint4 *at = points + (uint64_t)i * 2 * vectors<F>;
    Affine<F> p;
    bool x = decode(p.x, at), y = decode(p.y, at + vectors<F>);
    // Infinity without a flag is (0, 0), which is off the curve.
    if (!x || !y || !is_on_curve(p)) {
        atomicMin(first_bad, first + i);
        p = Affine<F>::infinity();
    }
    write(at, p.x);
    write(at + vectors<F>, p.y);
}

template <class F> DEVICE void encode_points(uint4 *points, uint32_t count) {
    uint32_t i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= count)
        return;
    uint4 *at = points + (uint64_t)i * 2 * vectors<F>;
    Affine<F> p;
    read(p.x, at);
    read(p.y, at + vectors<F>);
    encode(at, p.x);
    encode(at + vectors<F>, p.y);
}

} // namespace

// points_decode: from a file's form into that of kernels. *first_bad becomes the least of first + i over all i whose
// coordinates are not canonical or not those of a point of the curve; infinity takes such a point's place.
//
// points_encode: the other way; no point may be infinity.
#define POINT_KERNELS(group, F)                                                                                        \
    KERNEL(THREADS, 1, points_decode_##group,                                                                          \
           (uint4 * points, uint32_t count, uint64_t first, unsigned long long *first_bad)) {                          \
        decode_points<F>(points, count, first, first_bad);                                                             \
    }                                                                                                                  \
    KERNEL(THREADS, 1, points_encode_##group, (uint4 * points, uint32_t count)) {                                      \
        encode_points<F>(points, count);                                                                               \
    }

POINT_KERNELS(g1, FpCalled)
POINT_KERNELS(g2, Fp2Called)
