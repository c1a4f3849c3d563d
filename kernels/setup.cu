// Multiples of one point by many numbers: what test parameters consist of.
#include "curve.cuh"
#include "ntt_order.cuh"

namespace {

constexpr uint32_t THREADS = 128;

// tables[(j << window) + d] = d bases[j], for d below 2^window.
template <class F> DEVICE void fill_tables(Affine<F> *tables, const Affine<F> *bases, uint32_t window, uint32_t count) {
    uint32_t i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= count)
        return;
    Affine<F> base = bases[i >> window];
    Xyzz<F> sum = Xyzz<F>::infinity();
#pragma unroll 1
    for (uint32_t bit = window; bit-- > 0;) {
        sum = sum.dbl();
        if (i >> bit & 1)
            sum.add(base);
    }
    tables[i] = sum.affine();
}

// out[i] = scalars[i] times the point whose tables these are: bases[j] is 2^(window j) times it. `window` divides 32.
template <class F>
DEVICE void multiply(Affine<F> *out, const Fr *scalars, const Affine<F> *tables, uint32_t window, uint32_t count) {
    uint32_t i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= count)
        return;
    uint32_t number[8];
    scalars[i].canonical(number);
    uint32_t mask = (1u << window) - 1;
    Xyzz<F> sum = Xyzz<F>::infinity();
#pragma unroll 1
    for (uint32_t bit = 0; bit < 256; bit += window, tables += mask + 1) {
        uint32_t digit = number[bit / 32] >> bit % 32 & mask;
        if (digit != 0)
            sum.add(tables[digit]);
    }
    out[i] = sum.affine();
}

} // namespace

#define SETUP_KERNELS(group, F)                                                                                        \
    KERNEL(THREADS, 1, setup_tables_##group,                                                                           \
           (Affine<F> * tables, const Affine<F> *bases, uint32_t window, uint32_t count)) {                            \
        fill_tables(tables, bases, window, count);                                                                     \
    }                                                                                                                  \
    KERNEL(THREADS, 1, setup_multiply_##group,                                                                         \
           (Affine<F> * out, const Fr *scalars, const Affine<F> *tables, uint32_t window, uint32_t count)) {           \
        multiply(out, scalars, tables, window, count);                                                                 \
    }

SETUP_KERNELS(g1, FpCalled)
SETUP_KERNELS(g2, Fp2Called)

// out[i] = factors[0] x^k for the coefficient k at position first + i; factors[1 + j] = x^(2^j).
KERNEL(THREADS, 1, setup_powers, (Fr * out, const Fr *factors, uint32_t first, uint32_t count, ntt::Layout layout)) {
    uint32_t i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= count)
        return;
    Fr product = factors[0];
    for (uint32_t k = layout.coefficient_at(first + i); k != 0; k &= k - 1)
        product = product * factors[__ffs(k)];
    out[i] = product;
}
