// Small transforms in registers, and the constants of Fr that they need.
//
// "Lazy" values are below 2 r instead of below r: what Fr::mul and times_i take, and what saves a conditional
// subtraction where a product follows anyway.
#pragma once
#include "field.cuh"

namespace ntt {

// a + b, lazy, of values below r.
DEVICE Fr add_lazy(const Fr &a, const Fr &b) {
    Fr r;
    limbs::add<8>(r.v, a.v, b.v);
    return r;
}

// a - b + r, lazy, of values below r.
DEVICE Fr sub_lazy(const Fr &a, const Fr &b) {
    Fr r;
    uint32_t modulus[8];
    detail::modulus_of<detail::ScalarField>(modulus);
    limbs::add<8>(r.v, a.v, modulus);
    limbs::sub<8>(r.v, r.v, b.v);
    return r;
}

// A lazy value below r.
DEVICE Fr reduced(Fr a) {
    detail::subtract_once<detail::ScalarField>(a.v);
    return a;
}

// i = x^3 with x = 0xd201000000010000, where r = x^4 - x^2 + 1: the primitive fourth root of unity that is a power of
// this library's larger roots. It has 192 bits, so that Shoup's multiplication by it needs 68 products instead of 93.
namespace root4 {

// i's limbs 1..5; limb 0 and those above are zero.
BOTH constexpr uint32_t root(int limb) {
    constexpr uint32_t limbs[6] = {0, 0x00010000, 0x76030000, 0xec030002, 0x760304d0, 0x8d51ccce};
    return limbs[limb];
}

// floor(i 2^256 / r) - 2^192.
BOTH constexpr uint32_t quotient(int limb) {
    constexpr uint32_t limbs[6] = {0x5576304f, 0x61c5d9da, 0x3e76ec2a, 0x33cfcc0d, 0x56cd56b5, 0x381204ca};
    return limbs[limb];
}

// acc += x[FIRST], x[FIRST + 2], .. times b. The carry's limb was not yet reached by longer rows.
template <int FIRST> BOTH void row(uint32_t *acc, const uint32_t *x, uint32_t b) {
    limbs::mad_begin(acc, x[FIRST], b);
#pragma unroll
    for (int j = FIRST + 2; j < 8; j += 2)
        limbs::mad_next(acc + j - FIRST, x[j], b);
    limbs::chains::add_carry(acc[8 - FIRST + FIRST % 2]);
}

// floor(x i / r), less one at most, for a lazy x: 7 limbs. Products below limb 6 are left out, whose sum is below
// 2^-29 of 2^256.
BOTH void high_product(uint32_t *result, const uint32_t *x) {
    // Limb c of the product is even[c - 6] or odd[c - 7] by parity.
    uint32_t even[9], odd[8];
#pragma unroll
    for (int k = 0; k < 8; k++)
        even[k] = odd[k] = 0;
    even[8] = 0;
    row<6>(even, x, quotient(0));
    row<7>(odd, x, quotient(0));
    row<5>(even, x, quotient(1));
    row<6>(odd, x, quotient(1));
    row<4>(even, x, quotient(2));
    row<5>(odd, x, quotient(2));
    row<3>(even, x, quotient(3));
    row<4>(odd, x, quotient(3));
    row<2>(even, x, quotient(4));
    row<3>(odd, x, quotient(4));
    row<1>(even, x, quotient(5));
    row<2>(odd, x, quotient(5));
    uint32_t seven, ignored;
    limbs::add_begin(seven, even[1], odd[0]);
#pragma unroll
    for (int k = 0; k < 7; k++)
        limbs::add_next(result[k], even[k + 2], odd[k + 1]);
    // The quotient's top limb is 1: x 2^192.
    limbs::add_begin(ignored, even[0], x[0]);
    limbs::add_next(ignored, seven, x[1]);
#pragma unroll
    for (int k = 0; k < 6; k++)
        limbs::add_next(result[k], result[k], x[k + 2]);
    limbs::add_last(result[6], result[6], 0);
}

// x i mod r, lazy, for a lazy x.
BOTH void multiply(uint32_t *r, const uint32_t *x) {
    using detail::chains::low_row;
    uint32_t q[8], even[8], odd[8], c[6];
    high_product(q, x);
    q[7] = 0;
#pragma unroll
    for (int k = 0; k < 6; k++)
        c[k] = detail::ScalarField::complement(k);
#pragma unroll
    for (int k = 0; k < 8; k++)
        even[k] = odd[k] = 0;
    // x i - q r mod 2^256, with r = 1 - 2^32 - 2^64 complement mod 2^256.
    low_row<1, 8, false>(even, odd, x, root(1));
    low_row<2, 8, false>(even, odd, x, root(2));
    low_row<3, 8, false>(even, odd, x, root(3));
    low_row<4, 8, false>(even, odd, x, root(4));
    low_row<5, 8, false>(even, odd, x, root(5));
    low_row<2, 6, false>(even, odd, c, q[0]);
    low_row<3, 6, false>(even, odd, c, q[1]);
    low_row<4, 6, false>(even, odd, c, q[2]);
    low_row<5, 6, false>(even, odd, c, q[3]);
    low_row<6, 6, false>(even, odd, c, q[4]);
    low_row<7, 6, false>(even, odd, c, q[5]);
    limbs::chains::add_flag<7>(even + 1, even + 1, odd + 1);
    limbs::chains::add_flag<7>(even + 1, even + 1, q);
    limbs::chains::sub_flag<8>(r, even, q);
}

} // namespace root4

// a i, for a lazy a.
DEVICE Fr times_i(const Fr &a) {
    Fr r;
    root4::multiply(r.v, a.v);
    return reduced(r);
}

// With w the primitive eighth root of unity, w^2 = i: (w + w^3) / 2, a square root of -1/2.
BOTH FrShoup half_sum_of_roots() {
    constexpr uint32_t w[8] = {0xa306c7d4, 0x69307dda, 0x8de2036c, 0x20ffd8fc,
                               0x9daf1e24, 0x23614066, 0x306dbb96, 0x23c58c92};
    constexpr uint32_t q[8] = {0xca853396, 0x8a8dc2a9, 0x7f68e2f3, 0x93bdc41b,
                               0xf62d255c, 0x00ad26bb, 0x0956072d, 0x4efe41ca};
    FrShoup factor;
#pragma unroll
    for (int k = 0; k < 8; k++) {
        factor.w.v[k] = w[k];
        factor.q.v[k] = q[k];
    }
    return factor;
}

// (w - w^3) / 2, a square root of 1/2.
BOTH FrShoup half_difference_of_roots() {
    constexpr uint32_t w[8] = {0xf46d77a6, 0x08f87f58, 0xf931b394, 0x928b48c5,
                               0xd3285ebe, 0x68a4e566, 0xd38cab51, 0x1091da63};
    constexpr uint32_t q[8] = {0x0937dc72, 0xda6003c9, 0x9a31192f, 0x8e381741,
                               0x4c1e8070, 0x305e3aa4, 0x4adf8f8a, 0x24971e36};
    FrShoup factor;
#pragma unroll
    for (int k = 0; k < 8; k++) {
        factor.w.v[k] = w[k];
        factor.q.v[k] = q[k];
    }
    return factor;
}

// The transform of two elements in place; lazy results.
DEVICE void dft2(Fr &a, Fr &b) {
    Fr sum = add_lazy(a, b);
    b = sub_lazy(a, b);
    a = sum;
}

// The transform of four elements in place, natural order; lazy results.
DEVICE void dft4(Fr &x0, Fr &x1, Fr &x2, Fr &x3) {
    Fr even_sum = x0 + x2, odd_sum = x1 + x3;
    Fr even = x0 - x2, odd = times_i(sub_lazy(x1, x3));
    x0 = add_lazy(even_sum, odd_sum);
    x1 = add_lazy(even, odd);
    x2 = sub_lazy(even_sum, odd_sum);
    x3 = sub_lazy(even, odd);
}

// The transform of eight elements in place, natural order; lazy results. Four products, two of them by i:
// d1 w + d3 w^3 and d1 w^3 + d3 w are sum and difference of (d1 + d3) (w + w^3) / 2 and (d1 - d3) (w - w^3) / 2.
DEVICE void dft8(Fr *x) {
#pragma unroll
    for (int k = 0; k < 4; k++) {
        Fr sum = x[k] + x[k + 4];
        // The difference of k = 2 goes into a product only.
        x[k + 4] = k == 2 ? sub_lazy(x[k], x[k + 4]) : x[k] - x[k + 4];
        x[k] = sum;
    }
    dft4(x[0], x[1], x[2], x[3]);
    Fr turned = times_i(x[6]);
    Fr plus = add_lazy(x[5], x[7]).mul(half_sum_of_roots());
    Fr minus = sub_lazy(x[5], x[7]).mul(half_difference_of_roots());
    Fr first = x[4] + turned, third = x[4] - turned;
    Fr second = plus + minus, fourth = plus - minus;
    // dft4 left the even results 0, 2, 4, 6 at 0, 1, 2, 3.
    x[6] = x[3];
    x[4] = x[2];
    x[2] = x[1];
    x[1] = add_lazy(first, second);
    x[5] = sub_lazy(first, second);
    x[3] = add_lazy(third, fourth);
    x[7] = sub_lazy(third, fourth);
}

} // namespace ntt
