// Input for measurements: as many distinct points and scalars as are wanted, from a few.
#include "curve.cuh"

namespace {

template <class F>
DEVICE void fill_points(Affine<F> *out, const Affine<F> *low, const Affine<F> *high, uint32_t count,
                        uint32_t low_bits) {
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count)
        return;
    Xyzz<F> sum = Xyzz<F>::from(low[i & ((1u << low_bits) - 1)]);
    sum.add(high[i >> low_bits]);
    out[i] = sum.affine();
}

DEVICE uint64_t mix(uint64_t x) {
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

} // namespace

// out[i] = low[i mod 2^low_bits] + high[i / 2^low_bits].
KERNEL(128, 1, bench_fill_g1,
       (Affine<FpCalled> * out, const Affine<FpCalled> *low, const Affine<FpCalled> *high, uint32_t count,
        uint32_t low_bits)) {
    fill_points(out, low, high, count, low_bits);
}

KERNEL(128, 1, bench_fill_g2,
       (Affine<Fp2Called> * out, const Affine<Fp2Called> *low, const Affine<Fp2Called> *high, uint32_t count,
        uint32_t low_bits)) {
    fill_points(out, low, high, count, low_bits);
}

// Pseudo-random numbers below r, as scalars in either form.
KERNEL(256, 2, bench_fill_scalars, (Fr * out, uint64_t count, uint64_t seed)) {
    uint64_t i = (uint64_t)blockIdx.x * 256 + threadIdx.x;
    if (i >= count)
        return;
    Fr value;
#pragma unroll
    for (uint32_t j = 0; j < 4; j++) {
        uint64_t word = mix(seed + 4 * i + j);
        value.v[2 * j] = (uint32_t)word;
        value.v[2 * j + 1] = (uint32_t)(word >> 32);
    }
    value.v[7] &= 0x7fffffff;
    detail::subtract_once<detail::ScalarField>(value.v);
    out[i] = value;
}

// Pseudo-random keys below 2^bits.
KERNEL(256, 2, bench_fill_keys, (uint32_t *out, uint64_t count, uint64_t seed, uint32_t bits)) {
    uint64_t i = (uint64_t)blockIdx.x * 256 + threadIdx.x;
    if (i < count)
        out[i] = (uint32_t)mix(seed + i) & ((1u << bits) - 1);
}
