// Known answers: shows that launches, shared memory, barriers, shuffles and atomics work on this device and in this
// build, before anything is trusted to them.
#include "curve.cuh"

namespace {

constexpr uint32_t THREADS = 256;

// Mixes a word well enough that any lost or doubled one changes the sum (the finisher of SplitMix64).
DEVICE uint64_t mix(uint64_t x) {
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

} // namespace

// output[i] = mix(input[i] + seed), and the block's part of their sum is added to *sum.
KERNEL(256, 1, selftest_mix,
       (const uint64_t *input, uint64_t *output, uint64_t count, uint64_t seed, unsigned long long *sum)) {
    SHARED unsigned long long of_warps[THREADS / 32];
    uint64_t i = uint64_t(blockIdx.x) * THREADS + threadIdx.x;
    unsigned long long value = 0;
    if (i < count) {
        value = mix(input[i] + seed);
        output[i] = value;
    }
    for (int step = 16; step > 0; step /= 2)
        value += __shfl_xor_sync(~0u, value, step);
    if (threadIdx.x % 32 == 0)
        of_warps[threadIdx.x / 32] = value;
    __syncthreads();
    if (threadIdx.x == 0) {
        unsigned long long total = 0;
        for (unsigned long long part : of_warps)
            total += part;
        atomicAdd(sum, total);
    }
}

// Reverses each block's words through dynamic shared memory.
KERNEL(256, 1, selftest_reverse, (uint32_t *words)) {
    DYNAMIC_SHARED(uint32_t, copy);
    uint32_t *own = words + uint64_t(blockIdx.x) * blockDim.x;
    copy[threadIdx.x] = own[threadIdx.x];
    __syncthreads();
    own[threadIdx.x] = copy[blockDim.x - 1 - threadIdx.x];
}

// Runs through the operations of the scalar field: each block computes the same from the same numbers, so that every
// multiprocessor is asked.
KERNEL(64, 1, selftest_field, (const Fr *numbers, Fr *results)) {
    Fr x = numbers[threadIdx.x];
    Fr cube = x.sqr() * x;
    Fr shifted = (cube - x.dbl()).neg() + Fr::one();
    results[blockIdx.x * 64 + threadIdx.x] = shifted.inverse() * cube;
}

namespace {

// One copy of the additions, not one a use: this need not be fast.
template <class F> DEVICE_CALL void add(Xyzz<F> &sum, const Xyzz<F> &p) {
    sum.add(p);
}

// 2 (p + q) + (p - p): sums of different, equal, opposite and infinite points.
template <class F> DEVICE void add_points(const Affine<F> *points, Affine<F> *results) {
    Affine<F> p = points[threadIdx.x];
    Xyzz<F> terms[4] = {Xyzz<F>::from(points[(threadIdx.x + 1) % 64]), Xyzz<F>::infinity(), Xyzz<F>::from(p),
                        Xyzz<F>::from(p.neg_if(true))};
    Xyzz<F> sum = Xyzz<F>::from(p);
#pragma unroll 1
    for (int i = 0; i < 4; i++) {
        if (i == 1)
            terms[1] = sum;
        add(sum, terms[i]);
    }
    results[blockIdx.x * 64 + threadIdx.x] = sum.affine();
}

} // namespace

KERNEL(64, 1, selftest_g1, (const Affine<FpCalled> *points, Affine<FpCalled> *results)) {
    add_points(points, results);
}

KERNEL(64, 1, selftest_g2, (const Affine<Fp2Called> *points, Affine<Fp2Called> *results)) {
    add_points(points, results);
}
