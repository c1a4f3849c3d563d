// Numbers of 32-bit limbs, least significant first: what the fields are built from.
//
// Carry chains are written as several statements that pass a carry flag on, so that loops over limbs can be loops. On
// the device each is PTX: `volatile` keeps their order, and nothing else that the compiler emits touches the flag. On
// the host the flag is a variable, so that tests run the very chains of the device; host code itself uses plain 64-bit
// arithmetic, which is the slow and obvious way that the chains are compared with.
#pragma once
#include "simt.cuh"

namespace limbs {

#ifdef __CUDA_ARCH__

// r = a + b, the carry goes to the flag.
DEVICE void add_begin(uint32_t &r, uint32_t a, uint32_t b) {
    asm volatile("add.cc.u32 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
}

// As add_begin, the flag's carry added too.
DEVICE void add_next(uint32_t &r, uint32_t a, uint32_t b) {
    asm volatile("addc.cc.u32 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
}

// As add_next, at the end of a chain.
DEVICE void add_last(uint32_t &r, uint32_t a, uint32_t b) {
    asm volatile("addc.u32 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
}

// r = a - b, the borrow goes to the flag.
DEVICE void sub_begin(uint32_t &r, uint32_t a, uint32_t b) {
    asm volatile("sub.cc.u32 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
}

DEVICE void sub_next(uint32_t &r, uint32_t a, uint32_t b) {
    asm volatile("subc.cc.u32 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
}

DEVICE void sub_last(uint32_t &r, uint32_t a, uint32_t b) {
    asm volatile("subc.u32 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
}

// r[0..2) = a * b.
DEVICE void mul_wide(uint32_t *r, uint32_t a, uint32_t b) {
    asm volatile("mul.lo.u32 %0, %2, %3; mul.hi.u32 %1, %2, %3;" : "=r"(r[0]), "=r"(r[1]) : "r"(a), "r"(b));
}

// r[0..2) += a * b, the carry goes to the flag.
DEVICE void mad_begin(uint32_t *r, uint32_t a, uint32_t b) {
    asm volatile("mad.lo.cc.u32 %0, %2, %3, %0; madc.hi.cc.u32 %1, %2, %3, %1;"
                 : "+r"(r[0]), "+r"(r[1])
                 : "r"(a), "r"(b));
}

// As mad_begin, the flag's carry added too.
DEVICE void mad_next(uint32_t *r, uint32_t a, uint32_t b) {
    asm volatile("madc.lo.cc.u32 %0, %2, %3, %0; madc.hi.cc.u32 %1, %2, %3, %1;"
                 : "+r"(r[0]), "+r"(r[1])
                 : "r"(a), "r"(b));
}

// to[0..2) = from[0..2) + a * b + carry, the carry goes to the flag.
DEVICE void mad_move(uint32_t *to, const uint32_t *from, uint32_t a, uint32_t b) {
    asm volatile("madc.lo.cc.u32 %0, %2, %3, %4; madc.hi.cc.u32 %1, %2, %3, %5;"
                 : "=r"(to[0]), "=r"(to[1])
                 : "r"(a), "r"(b), "r"(from[0]), "r"(from[1]));
}

// to[0..2) = a * b + carry, which fits.
DEVICE void mad_last(uint32_t *to, uint32_t a, uint32_t b) {
    asm volatile("madc.lo.cc.u32 %0, %2, %3, 0; madc.hi.u32 %1, %2, %3, 0;"
                 : "=r"(to[0]), "=r"(to[1])
                 : "r"(a), "r"(b));
}

// r += a * b + carry, the low word only.
DEVICE void mad_low_last(uint32_t &r, uint32_t a, uint32_t b) {
    asm volatile("madc.lo.u32 %0, %1, %2, %0;" : "+r"(r) : "r"(a), "r"(b));
}

#else // The host

inline uint32_t &flag() {
    static thread_local uint32_t value;
    return value;
}

inline void put(uint32_t &r, uint64_t sum) {
    r = (uint32_t)sum;
    flag() = (uint32_t)(sum >> 32) & 1;
}

inline void add_begin(uint32_t &r, uint32_t a, uint32_t b) {
    put(r, (uint64_t)a + b);
}
inline void add_next(uint32_t &r, uint32_t a, uint32_t b) {
    put(r, (uint64_t)a + b + flag());
}
inline void add_last(uint32_t &r, uint32_t a, uint32_t b) {
    r = a + b + flag();
}
inline void sub_begin(uint32_t &r, uint32_t a, uint32_t b) {
    put(r, (uint64_t)a - b);
}
inline void sub_next(uint32_t &r, uint32_t a, uint32_t b) {
    put(r, (uint64_t)a - b - flag());
}
inline void sub_last(uint32_t &r, uint32_t a, uint32_t b) {
    r = a - b - flag();
}

inline void mul_wide(uint32_t *r, uint32_t a, uint32_t b) {
    uint64_t product = (uint64_t)a * b;
    r[0] = (uint32_t)product;
    r[1] = (uint32_t)(product >> 32);
}

inline void mad_move(uint32_t *to, const uint32_t *from, uint32_t a, uint32_t b) {
    uint64_t product = (uint64_t)a * b;
    uint32_t low = from[0], high = from[1];
    put(to[0], (uint64_t)low + (uint32_t)product + flag());
    put(to[1], (uint64_t)high + (product >> 32) + flag());
}

inline void mad_next(uint32_t *r, uint32_t a, uint32_t b) {
    mad_move(r, r, a, b);
}

inline void mad_begin(uint32_t *r, uint32_t a, uint32_t b) {
    flag() = 0;
    mad_move(r, r, a, b);
}

inline void mad_last(uint32_t *to, uint32_t a, uint32_t b) {
    const uint32_t zero[2] = {0, 0};
    mad_move(to, zero, a, b);
}

inline void mad_low_last(uint32_t &r, uint32_t a, uint32_t b) {
    r += a * b + flag();
}

#endif

// Carry chains, the same on device and host.
namespace chains {

BOTH uint32_t carry_to_word() {
    uint32_t word;
    add_last(word, 0, 0);
    return word;
}

// All ones if there was a borrow, zero otherwise.
BOTH uint32_t borrow_mask() {
    uint32_t mask;
    sub_last(mask, 0, 0);
    return mask;
}

BOTH void add_carry(uint32_t &word) {
    add_last(word, word, 0);
}

// r = a + b; leaves the carry in the flag.
template <int N> BOTH void add_flag(uint32_t *r, const uint32_t *a, const uint32_t *b) {
    add_begin(r[0], a[0], b[0]);
#pragma unroll
    for (int i = 1; i < N; i++)
        add_next(r[i], a[i], b[i]);
}

// r = a - b; leaves the borrow in the flag.
template <int N> BOTH void sub_flag(uint32_t *r, const uint32_t *a, const uint32_t *b) {
    sub_begin(r[0], a[0], b[0]);
#pragma unroll
    for (int i = 1; i < N; i++)
        sub_next(r[i], a[i], b[i]);
}

template <int N> BOTH uint32_t add(uint32_t *r, const uint32_t *a, const uint32_t *b) {
    add_flag<N>(r, a, b);
    return carry_to_word();
}

template <int N> BOTH uint32_t sub(uint32_t *r, const uint32_t *a, const uint32_t *b) {
    sub_flag<N>(r, a, b);
    return borrow_mask();
}

// acc = a[0], a[2], .. times b at limbs 0, 2, ..: products that do not overlap.
template <int N> BOTH void mul_row(uint32_t *acc, const uint32_t *a, uint32_t b) {
#pragma unroll
    for (int j = 0; j < N; j += 2)
        mul_wide(acc + j, a[j], b);
}

// acc += a[0], a[2], .. times b; leaves the carry in the flag.
template <int N> BOTH void mad_row(uint32_t *acc, const uint32_t *a, uint32_t b) {
    mad_begin(acc, a[0], b);
#pragma unroll
    for (int j = 2; j < N; j += 2)
        mad_next(acc + j, a[j], b);
}

// acc = (acc >> 64) + a[0], a[2], .. times b + carry.
template <int N> BOTH void shift_mad_row(uint32_t *acc, const uint32_t *a, uint32_t b) {
#pragma unroll
    for (int j = 0; j < N - 2; j += 2)
        mad_move(acc + j, acc + j + 2, a[j], b);
    mad_last(acc + N - 2, a[N - 2], b);
}

// even = a * b, 2 N limbs. `even` collects products at even limbs, `odd` those one limb higher.
template <int N> BOTH void mul(uint32_t *even, const uint32_t *a, const uint32_t *b) {
    uint32_t odd[2 * N - 2];
    mul_row<N>(even, a, b[0]);
    mul_row<N>(odd, a + 1, b[0]);
#pragma unroll
    for (int i = 1; i < N; i++) {
        // Row i begins at limb i: its products with even limbs of a are at limbs of i's parity.
        uint32_t *low = i % 2 ? odd + i - 1 : even + i;
        uint32_t *high = i % 2 ? even + i + 1 : odd + i;
        // The upper two limbs of `high` are new in this row.
        mad_begin(high, a[1], b[i]);
#pragma unroll
        for (int j = 2; j < N - 2; j += 2)
            mad_next(high + j, a[j + 1], b[i]);
        mad_last(high + N - 2, a[N - 1], b[i]);
        mad_row<N>(low, a, b[i]);
        add_carry(high[N - 1]);
    }
    add_flag<2 * N - 2>(even + 1, even + 1, odd);
    add_carry(even[2 * N - 1]);
}

// t = a * a, 2 N limbs: products of different limbs once, doubled, then the squares of limbs.
template <int N> BOTH void sqr(uint32_t *t, const uint32_t *a) {
    uint32_t even[2 * N], odd[2 * N];
#pragma unroll
    for (int i = 0; i < 2 * N; i++)
        even[i] = odd[i] = 0;
#pragma unroll
    for (int i = 0; i < N - 1; i++) {
        // a[i] a[j] stands at limb i + j: odd[i + j - 1] or even[i + j].
        mad_begin(odd + 2 * i, a[i + 1], a[i]);
#pragma unroll
        for (int j = i + 3; j < N; j += 2)
            mad_next(odd + i + j - 1, a[j], a[i]);
        add_carry(odd[i + (N - 1 - (N - 2 - i) % 2) + 1]);
        if (i + 2 < N) {
            mad_begin(even + 2 * i + 2, a[i + 2], a[i]);
#pragma unroll
            for (int j = i + 4; j < N; j += 2)
                mad_next(even + i + j, a[j], a[i]);
            add_carry(even[i + (N - 1 - (N - 3 - i) % 2) + 2]);
        }
    }
    t[0] = 0;
    add_flag<2 * N - 1>(t + 1, even + 1, odd);
    add_flag<2 * N>(t, t, t);
    mad_begin(t, a[0], a[0]);
#pragma unroll
    for (int i = 1; i < N; i++)
        mad_next(t + 2 * i, a[i], a[i]);
}

} // namespace chains

#ifdef __CUDA_ARCH__

using chains::add;
using chains::mul;
using chains::sqr;
using chains::sub;

#else

template <int N> inline uint32_t add(uint32_t *r, const uint32_t *a, const uint32_t *b) {
    uint64_t carry = 0;
    for (int i = 0; i < N; i++) {
        carry += (uint64_t)a[i] + b[i];
        r[i] = (uint32_t)carry;
        carry >>= 32;
    }
    return (uint32_t)carry;
}

template <int N> inline uint32_t sub(uint32_t *r, const uint32_t *a, const uint32_t *b) {
    uint64_t borrow = 0;
    for (int i = 0; i < N; i++) {
        uint64_t difference = (uint64_t)a[i] - b[i] - borrow;
        r[i] = (uint32_t)difference;
        borrow = difference >> 63;
    }
    return borrow ? ~0u : 0;
}

template <int N> inline void mul(uint32_t *t, const uint32_t *a, const uint32_t *b) {
    uint32_t product[2 * N] = {0};
    for (int i = 0; i < N; i++) {
        uint64_t carry = 0;
        for (int j = 0; j < N; j++) {
            carry += product[i + j] + (uint64_t)a[j] * b[i];
            product[i + j] = (uint32_t)carry;
            carry >>= 32;
        }
        product[i + N] = (uint32_t)carry;
    }
    for (int i = 0; i < 2 * N; i++)
        t[i] = product[i];
}

template <int N> inline void sqr(uint32_t *t, const uint32_t *a) {
    mul<N>(t, a, a);
}

#endif

// mask ? a : b, limb by limb; the mask is all ones or zero.
template <int N> BOTH void select(uint32_t *r, uint32_t mask, const uint32_t *a, const uint32_t *b) {
#pragma unroll
    for (int i = 0; i < N; i++)
        r[i] = mask ? a[i] : b[i];
}

template <int N> BOTH bool is_zero(const uint32_t *a) {
    uint32_t any = 0;
#pragma unroll
    for (int i = 0; i < N; i++)
        any |= a[i];
    return any == 0;
}

template <int N> BOTH bool equal(const uint32_t *a, const uint32_t *b) {
    uint32_t any = 0;
#pragma unroll
    for (int i = 0; i < N; i++)
        any |= a[i] ^ b[i];
    return any == 0;
}

} // namespace limbs
