// The fields of BLS12-381: Fr (scalars), Fp and Fp2 (coordinates), in Montgomery form with R = 2^256 and 2^384.
//
// Values are canonical (below the modulus) before and after every operation that does not say otherwise, and
// bit-identical in memory to blst's, so that nothing is converted on the way to the device or back.
#pragma once
#include "limbs.cuh"

// A constant of Fr for Shoup's multiplication: w itself, not in Montgomery form, and floor(w 2^256 / r).
// x * w mod r costs 93 products instead of 112, and keeps x in whichever form it is.
struct FrShoup;

namespace detail {

struct ScalarField {
    static constexpr int LIMBS = 8;
    static constexpr int BITS = 255;
    static constexpr uint32_t MINUS_INVERSE = 0xffffffff; // -1 / r mod 2^32
    BOTH static constexpr uint32_t modulus(int i) {
        constexpr uint32_t limbs[LIMBS] = {0x00000001, 0xffffffff, 0xfffe5bfe, 0x53bda402,
                                           0x09a1d805, 0x3339d808, 0x299d7d48, 0x73eda753};
        return limbs[i];
    }
    BOTH static constexpr uint32_t one(int i) {
        constexpr uint32_t limbs[LIMBS] = {0xfffffffe, 0x00000001, 0x00034802, 0x5884b7fa,
                                           0xecbc4ff5, 0x998c4fef, 0xacc5056f, 0x1824b159};
        return limbs[i];
    }
    // R^2: into Montgomery form.
    BOTH static constexpr uint32_t r_squared(int i) {
        constexpr uint32_t limbs[LIMBS] = {0xf3f29c6d, 0xc999e990, 0x87925c23, 0x2b6cedcb,
                                           0x7254398f, 0x05d31496, 0x9f59ff11, 0x0748d9d9};
        return limbs[i];
    }
    // R^3: mends an inverse taken of a value in Montgomery form.
    BOTH static constexpr uint32_t r_cubed(int i) {
        constexpr uint32_t limbs[LIMBS] = {0x439b73af, 0xc62c1807, 0x8cf06990, 0x1b3e0d18,
                                           0xc7b5f418, 0x73d13c71, 0xc8db33e9, 0x6e2a5bb9};
        return limbs[i];
    }
    // 2^192 - (floor(r / 2^64) + 1): r = 2^256 - 2^64 that - 2^32 + 1 replaces most products of a reduction.
    BOTH static constexpr uint32_t complement(int i) {
        constexpr uint32_t limbs[6] = {0x0001a401, 0xac425bfd, 0xf65e27fa, 0xccc627f7, 0xd66282b7, 0x8c1258ac};
        return limbs[i];
    }
};

struct BaseField {
    static constexpr int LIMBS = 12;
    static constexpr int BITS = 381;
    static constexpr uint32_t MINUS_INVERSE = 0xfffcfffd;
    BOTH static constexpr uint32_t modulus(int i) {
        constexpr uint32_t limbs[LIMBS] = {0xffffaaab, 0xb9feffff, 0xb153ffff, 0x1eabfffe, 0xf6b0f624, 0x6730d2a0,
                                           0xf38512bf, 0x64774b84, 0x434bacd7, 0x4b1ba7b6, 0x397fe69a, 0x1a0111ea};
        return limbs[i];
    }
    BOTH static constexpr uint32_t one(int i) {
        constexpr uint32_t limbs[LIMBS] = {0x0002fffd, 0x76090000, 0xc40c0002, 0xebf4000b, 0x53c758ba, 0x5f489857,
                                           0x70525745, 0x77ce5853, 0xa256ec6d, 0x5c071a97, 0xfa80e493, 0x15f65ec3};
        return limbs[i];
    }
    BOTH static constexpr uint32_t r_squared(int i) {
        constexpr uint32_t limbs[LIMBS] = {0x1c341746, 0xf4df1f34, 0x09d104f1, 0x0a76e6a6, 0x4c95b6d5, 0x8de5476c,
                                           0x939d83c0, 0x67eb88a9, 0xb519952d, 0x9a793e85, 0x92cae3aa, 0x11988fe5};
        return limbs[i];
    }
    BOTH static constexpr uint32_t r_cubed(int i) {
        constexpr uint32_t limbs[LIMBS] = {0xd94ca1e0, 0xed48ac6b, 0x03a7adf8, 0x315f831e, 0x615e29dd, 0x9a53352a,
                                           0x921e1761, 0x34c04e5e, 0x65724728, 0x2512d435, 0x91755d4d, 0x0aa63460};
        return limbs[i];
    }
};

// Copies of the constants in registers; the compiler turns them into immediate operands.
template <class P> BOTH void modulus_of(uint32_t *m) {
#pragma unroll
    for (int i = 0; i < P::LIMBS; i++)
        m[i] = P::modulus(i);
}

// r -= modulus if r >= modulus.
template <class P> BOTH void subtract_once(uint32_t *r) {
    uint32_t m[P::LIMBS], t[P::LIMBS];
    modulus_of<P>(m);
    uint32_t below = limbs::sub<P::LIMBS>(t, r, m);
    limbs::select<P::LIMBS>(r, below, r, t);
}

// The device's way: carry chains.
namespace chains {

// One row of a * b interleaved with one row of the reduction. Products at even limbs gather in `e`, those one limb
// higher in `o`; each row ends a limb higher, so that the two change places.
template <class P> BOTH void montgomery_mul(uint32_t *r, const uint32_t *a, const uint32_t *b) {
    constexpr int N = P::LIMBS;
    uint32_t m[N], even[N], odd[N];
    modulus_of<P>(m);
#pragma unroll
    for (int i = 0; i < N; i++) {
        uint32_t *e = i % 2 ? odd : even, *o = i % 2 ? even : odd;
        if (i == 0) {
            limbs::chains::mul_row<N>(o, a + 1, b[0]);
            limbs::chains::mul_row<N>(e, a, b[0]);
        } else {
            limbs::add_begin(e[0], e[0], o[1]);
            limbs::chains::shift_mad_row<N>(o, a + 1, b[i]);
            limbs::chains::mad_row<N>(e, a, b[i]);
            limbs::chains::add_carry(o[N - 1]);
        }
        uint32_t q = e[0] * P::MINUS_INVERSE;
        limbs::chains::mad_row<N>(o, m + 1, q);
        limbs::chains::mad_row<N>(e, m, q);
        limbs::chains::add_carry(o[N - 1]);
    }
    // N is even, so the last row had `odd` at its lower limbs; the lowest is zero now and falls away.
    limbs::chains::add_flag<N - 1>(r, even, odd + 1);
    r[N - 1] = even[N - 1];
    limbs::chains::add_carry(r[N - 1]);
    subtract_once<P>(r);
}

// t = t / R for t < modulus * R; t has 2 N limbs.
template <class P> BOTH void montgomery_reduce(uint32_t *r, uint32_t *t) {
    constexpr int N = P::LIMBS;
    uint32_t m[N], odd[N];
    modulus_of<P>(m);
#pragma unroll
    for (int i = 0; i < N; i++) {
        uint32_t *e = i % 2 ? odd : t, *o = i % 2 ? t : odd;
        if (i == 0) {
            uint32_t q = e[0] * P::MINUS_INVERSE;
            limbs::chains::mul_row<N>(o, m + 1, q);
            limbs::chains::mad_row<N>(e, m, q);
        } else {
            // The flag of this addition goes through the next three statements only.
            limbs::add_begin(e[0], e[0], o[1]);
            uint32_t q = e[0] * P::MINUS_INVERSE;
            limbs::chains::shift_mad_row<N>(o, m + 1, q);
            limbs::chains::mad_row<N>(e, m, q);
        }
        limbs::chains::add_carry(o[N - 1]);
    }
    limbs::chains::add_flag<N - 1>(r, t, odd + 1);
    r[N - 1] = t[N - 1];
    limbs::chains::add_carry(r[N - 1]);
    limbs::chains::add_flag<N>(r, r, t + N);
    subtract_once<P>(r);
}

// Fr: q r = q - q 2^32 - q 2^64 complement + q 2^256. With q the lowest limb, subtracting q r clears that limb, adds q
// one limb higher and q * complement two limbs higher; the q 2^256 are gathered and subtracted at the end. The sum
// stays below 2^256: each row adds at most (2^32 - 1) 2^256 before it is shifted, as a < r.
template <> BOTH void montgomery_mul<ScalarField>(uint32_t *r, const uint32_t *a, const uint32_t *b) {
    constexpr int N = 8;
    uint32_t even[N], odd[N], q[N], c[6];
#pragma unroll
    for (int i = 0; i < 6; i++)
        c[i] = ScalarField::complement(i);
#pragma unroll
    for (int i = 0; i < N; i++) {
        uint32_t *e = i % 2 ? odd : even, *o = i % 2 ? even : odd;
        if (i == 0) {
            limbs::chains::mul_row<N>(o, a + 1, b[0]);
            limbs::chains::mul_row<N>(e, a, b[0]);
        } else {
            limbs::add_begin(e[0], e[0], o[1]);
            limbs::chains::shift_mad_row<N>(o, a + 1, b[i]);
            limbs::chains::mad_row<N>(e, a, b[i]);
            limbs::chains::add_carry(o[N - 1]);
        }
        q[i] = e[0];
        limbs::add_begin(o[0], o[0], q[i]);
        limbs::add_next(o[1], o[1], 0);
#pragma unroll
        for (int j = 0; j < 6; j += 2)
            limbs::mad_next(o + 2 + j, c[j + 1], q[i]);
        limbs::chains::mad_row<6>(e + 2, c, q[i]);
        limbs::chains::add_carry(o[N - 1]);
    }
    limbs::chains::add_flag<N - 1>(even, even, odd + 1);
    limbs::chains::add_carry(even[N - 1]);
    uint32_t m[N];
    modulus_of<ScalarField>(m);
    uint32_t negative = limbs::chains::sub<N>(r, even, q);
#pragma unroll
    for (int i = 0; i < N; i++)
        m[i] &= negative;
    limbs::chains::add_flag<N>(r, r, m);
}

} // namespace chains

#ifdef __CUDA_ARCH__

using chains::montgomery_mul;
using chains::montgomery_reduce;

#else

// Limb by limb.
template <class P> inline void montgomery_reduce(uint32_t *r, uint32_t *t) {
    constexpr int N = P::LIMBS;
    uint64_t top = 0;
    for (int i = 0; i < N; i++) {
        uint32_t q = t[i] * P::MINUS_INVERSE;
        uint64_t carry = 0;
        for (int j = 0; j < N; j++) {
            carry += t[i + j] + (uint64_t)q * P::modulus(j);
            t[i + j] = (uint32_t)carry;
            carry >>= 32;
        }
        carry += t[i + N] + top;
        t[i + N] = (uint32_t)carry;
        top = carry >> 32;
    }
    for (int i = 0; i < N; i++)
        r[i] = t[N + i];
    subtract_once<P>(r);
}

template <class P> inline void montgomery_mul(uint32_t *r, const uint32_t *a, const uint32_t *b) {
    uint32_t t[2 * P::LIMBS];
    limbs::mul<P::LIMBS>(t, a, b);
    montgomery_reduce<P>(r, t);
}

#endif

template <class P> DEVICE_CALL void invert(uint32_t *r, const uint32_t *y);

} // namespace detail

// An element in Montgomery form.
template <class P, class Self> struct alignas(16) PrimeField {
    static constexpr int LIMBS = P::LIMBS;
    uint32_t v[P::LIMBS];

    BOTH static Self zero() {
        Self r;
#pragma unroll
        for (int i = 0; i < LIMBS; i++)
            r.v[i] = 0;
        return r;
    }

    BOTH static Self one() {
        Self r;
#pragma unroll
        for (int i = 0; i < LIMBS; i++)
            r.v[i] = P::one(i);
        return r;
    }

    BOTH bool is_zero() const { return limbs::is_zero<LIMBS>(v); }

    friend BOTH bool operator==(const Self &a, const Self &b) { return limbs::equal<LIMBS>(a.v, b.v); }
    friend BOTH bool operator!=(const Self &a, const Self &b) { return !(a == b); }

    friend BOTH Self operator+(const Self &a, const Self &b) {
        // Both moduli leave the top bit free, so the sum has no carry.
        Self r;
        limbs::add<LIMBS>(r.v, a.v, b.v);
        detail::subtract_once<P>(r.v);
        return r;
    }

    friend BOTH Self operator-(const Self &a, const Self &b) {
        Self r;
        uint32_t m[LIMBS];
        uint32_t negative = limbs::sub<LIMBS>(r.v, a.v, b.v);
#pragma unroll
        for (int i = 0; i < LIMBS; i++)
            m[i] = P::modulus(i) & negative;
        limbs::add<LIMBS>(r.v, r.v, m);
        return r;
    }

    friend BOTH Self operator*(const Self &a, const Self &b) { return Self::product(a, b); }

    BOTH Self dbl() const { return *static_cast<const Self *>(this) + *static_cast<const Self *>(this); }

    BOTH Self neg() const {
        Self r;
        uint32_t m[LIMBS];
        uint32_t other = is_zero() ? 0 : ~0u;
#pragma unroll
        for (int i = 0; i < LIMBS; i++)
            m[i] = P::modulus(i) & other;
        limbs::sub<LIMBS>(r.v, m, v);
        return r;
    }

    BOTH Self neg_if(bool condition) const { return condition ? neg() : *static_cast<const Self *>(this); }

    // Out of Montgomery form.
    BOTH void canonical(uint32_t *out) const {
        uint32_t one[LIMBS] = {1};
        detail::montgomery_mul<P>(out, v, one);
    }

    // Into Montgomery form, from a number below the modulus.
    BOTH static Self from_canonical(const uint32_t *number) {
        Self factor, r;
#pragma unroll
        for (int i = 0; i < LIMBS; i++)
            factor.v[i] = P::r_squared(i);
        detail::montgomery_mul<P>(r.v, number, factor.v);
        return r;
    }

    // 1 / this; zero for zero.
    BOTH Self inverse() const {
        Self r;
        detail::invert<P>(r.v, v);
        return r;
    }
};

struct Fr : PrimeField<detail::ScalarField, Fr> {
    BOTH static Fr product(const Fr &a, const Fr &b) {
        Fr r;
        detail::montgomery_mul<detail::ScalarField>(r.v, a.v, b.v);
        return r;
    }

    // A squaring of its own saves too little beside the special reduction.
    BOTH Fr sqr() const { return *this * *this; }

    BOTH Fr mul(const FrShoup &factor) const;
    // Below 2 r instead of below r; `this` may be any number below 2^256.
    BOTH Fr mul_lazy(const FrShoup &factor) const;
};

namespace detail {

template <class Self> BOTH Self base_product(const Self &a, const Self &b) {
    Self r;
    montgomery_mul<BaseField>(r.v, a.v, b.v);
    return r;
}

template <class Self> BOTH Self base_square(const Self &a) {
    Self r;
    uint32_t t[2 * BaseField::LIMBS];
    limbs::sqr<BaseField::LIMBS>(t, a.v);
    montgomery_reduce<BaseField>(r.v, t);
    return r;
}

} // namespace detail

struct Fp : PrimeField<detail::BaseField, Fp> {
    BOTH static Fp product(const Fp &a, const Fp &b) { return detail::base_product(a, b); }
    BOTH Fp sqr() const { return detail::base_square(*this); }
};

// The same numbers, multiplied by functions instead of three hundred instructions in place: for kernels with long
// formulas and little work, which otherwise take minutes to compile.
struct FpCalled : PrimeField<detail::BaseField, FpCalled> {
    static DEVICE_CALL FpCalled product(FpCalled a, FpCalled b) { return detail::base_product(a, b); }
    BOTH FpCalled sqr() const { return square(*this); }

  private:
    static DEVICE_CALL FpCalled square(FpCalled a) { return detail::base_square(a); }
};

struct alignas(16) FrShoup {
    Fr w;
    Fr q;
};

namespace detail {
namespace chains {

// r = the low 8 limbs of r + (a[0..], shifted up by SHIFT limbs) * b, products split over even and odd limbs.
template <int SHIFT, int COUNT, bool FIRST>
BOTH void low_row(uint32_t *even, uint32_t *odd, const uint32_t *a, uint32_t b) {
    constexpr int E0 = SHIFT % 2;     // the first j whose product stands at an even limb
    constexpr int O0 = 1 - SHIFT % 2; // .. at an odd limb
    constexpr int LAST = 7 - SHIFT;   // its product counts with its low half only, at the odd limb 7
#pragma unroll
    for (int j = E0; j < COUNT && SHIFT + j <= 6; j += 2) {
        uint32_t *at = even + SHIFT + j;
        if (FIRST)
            limbs::mul_wide(at, a[j], b);
        else if (j == E0)
            limbs::mad_begin(at, a[j], b);
        else
            limbs::mad_next(at, a[j], b);
    }
#pragma unroll
    for (int j = O0; j < COUNT && SHIFT + j <= 5; j += 2) {
        uint32_t *at = odd + SHIFT + j;
        if (FIRST)
            limbs::mul_wide(at, a[j], b);
        else if (j == O0)
            limbs::mad_begin(at, a[j], b);
        else
            limbs::mad_next(at, a[j], b);
    }
    if (LAST >= COUNT)
        return;
    if (FIRST)
        odd[7] = a[LAST] * b;
    else if (LAST == O0)
        odd[7] += a[LAST] * b;
    else
        limbs::mad_low_last(odd[7], a[LAST], b);
}

// floor(x q / 2^256), less one at most: products below limb 6 are left out, whose sum is below 2^-29 of 2^256.
BOTH void high_product(uint32_t *result, const uint32_t *x, const uint32_t *q) {
    // Limb c of the product is even[c - 6] or odd[c - 7] by parity.
    uint32_t even[10], odd[10];
#pragma unroll
    for (int i = 0; i < 10; i++)
        even[i] = odd[i] = 0;
#pragma unroll
    for (int i = 0; i < 8; i++) {
        const int first = i < 6 ? 6 - i : 0;
        // j of i's parity: even limbs; the others: odd limbs.
        const int je = first + (first + i) % 2, jo = first + 1 - (first + i) % 2;
#pragma unroll
        for (int j = 0; j < 8; j++) {
            if (j >= je && (j - je) % 2 == 0) {
                if (j == je)
                    limbs::mad_begin(even + i + j - 6, x[j], q[i]);
                else
                    limbs::mad_next(even + i + j - 6, x[j], q[i]);
            }
        }
        {
            const int last = je + (7 - je) / 2 * 2;
            if (i + last - 4 < 10)
                limbs::chains::add_carry(even[i + last - 4]);
        }
#pragma unroll
        for (int j = 0; j < 8; j++) {
            if (j >= jo && (j - jo) % 2 == 0) {
                if (j == jo)
                    limbs::mad_begin(odd + i + j - 7, x[j], q[i]);
                else
                    limbs::mad_next(odd + i + j - 7, x[j], q[i]);
            }
        }
        if (jo < 8) {
            const int last = jo + (7 - jo) / 2 * 2;
            if (i + last - 5 < 10)
                limbs::chains::add_carry(odd[i + last - 5]);
        }
    }
    // Limbs 8..15: even[2..9] + odd[1..8], and the carry out of limb 7.
    uint32_t seven = even[1];
    limbs::add_begin(seven, seven, odd[0]);
#pragma unroll
    for (int k = 0; k < 8; k++)
        limbs::add_next(result[k], even[k + 2], odd[k + 1]);
}

// r = x w - floor(x w / r) r, or that plus r.
BOTH void shoup_mul(uint32_t *r, const uint32_t *x, const FrShoup &factor) {
    uint32_t quotient[8], even[8], odd[8], c[6];
    high_product(quotient, x, factor.q.v);
#pragma unroll
    for (int i = 0; i < 6; i++)
        c[i] = ScalarField::complement(i);
    // x w - quotient r mod 2^256, with r = 1 - 2^32 - 2^64 complement mod 2^256.
    low_row<0, 8, true>(even, odd, x, factor.w.v[0]);
    low_row<1, 8, false>(even, odd, x, factor.w.v[1]);
    low_row<2, 8, false>(even, odd, x, factor.w.v[2]);
    low_row<3, 8, false>(even, odd, x, factor.w.v[3]);
    low_row<4, 8, false>(even, odd, x, factor.w.v[4]);
    low_row<5, 8, false>(even, odd, x, factor.w.v[5]);
    low_row<6, 8, false>(even, odd, x, factor.w.v[6]);
    low_row<7, 8, false>(even, odd, x, factor.w.v[7]);
    low_row<2, 6, false>(even, odd, c, quotient[0]);
    low_row<3, 6, false>(even, odd, c, quotient[1]);
    low_row<4, 6, false>(even, odd, c, quotient[2]);
    low_row<5, 6, false>(even, odd, c, quotient[3]);
    low_row<6, 6, false>(even, odd, c, quotient[4]);
    low_row<7, 6, false>(even, odd, c, quotient[5]);
    limbs::chains::add_flag<7>(even + 1, even + 1, odd + 1);
    limbs::chains::add_flag<7>(even + 1, even + 1, quotient);
    limbs::chains::sub_flag<8>(r, even, quotient);
}

} // namespace chains

#ifdef __CUDA_ARCH__

using chains::shoup_mul;

#else

inline void shoup_mul(uint32_t *r, const uint32_t *x, const FrShoup &factor) {
    // The same approximate quotient as on the device.
    uint32_t wide[16] = {0}, quotient[8], t[16], m[8], product[16];
    for (int i = 0; i < 8; i++) {
        uint64_t carry = 0;
        for (int j = i < 6 ? 6 - i : 0; j < 8; j++) {
            carry += wide[i + j] + (uint64_t)x[j] * factor.q.v[i];
            wide[i + j] = (uint32_t)carry;
            carry >>= 32;
        }
        for (int k = i + 8; carry != 0 && k < 16; k++) {
            carry += wide[k];
            wide[k] = (uint32_t)carry;
            carry >>= 32;
        }
    }
    for (int i = 0; i < 8; i++)
        quotient[i] = wide[i + 8];
    modulus_of<ScalarField>(m);
    limbs::mul<8>(t, x, factor.w.v);
    limbs::mul<8>(product, quotient, m);
    limbs::sub<8>(r, t, product);
}

#endif

} // namespace detail

BOTH Fr Fr::mul_lazy(const FrShoup &factor) const {
    Fr r;
    detail::shoup_mul(r.v, v, factor);
    return r;
}

BOTH Fr Fr::mul(const FrShoup &factor) const {
    Fr r = mul_lazy(factor);
    detail::subtract_once<detail::ScalarField>(r.v);
    return r;
}

// c0 + c1 u with u^2 = -1.
template <class B> struct alignas(16) Quadratic {
    B c0, c1;

    BOTH static Quadratic zero() { return {B::zero(), B::zero()}; }
    BOTH static Quadratic one() { return {B::one(), B::zero()}; }
    BOTH bool is_zero() const { return c0.is_zero() && c1.is_zero(); }
    friend BOTH bool operator==(const Quadratic &a, const Quadratic &b) { return a.c0 == b.c0 && a.c1 == b.c1; }
    friend BOTH bool operator!=(const Quadratic &a, const Quadratic &b) { return !(a == b); }
    friend BOTH Quadratic operator+(const Quadratic &a, const Quadratic &b) { return {a.c0 + b.c0, a.c1 + b.c1}; }
    friend BOTH Quadratic operator-(const Quadratic &a, const Quadratic &b) { return {a.c0 - b.c0, a.c1 - b.c1}; }
    friend BOTH Quadratic operator*(const Quadratic &a, const Quadratic &b) {
        B low = a.c0 * b.c0, high = a.c1 * b.c1;
        B both = (a.c0 + a.c1) * (b.c0 + b.c1);
        return {low - high, both - low - high};
    }
    BOTH Quadratic sqr() const {
        B product = c0 * c1;
        return {(c0 + c1) * (c0 - c1), product.dbl()};
    }
    BOTH Quadratic dbl() const { return {c0.dbl(), c1.dbl()}; }
    BOTH Quadratic neg() const { return {c0.neg(), c1.neg()}; }
    BOTH Quadratic neg_if(bool condition) const { return condition ? neg() : *this; }
    BOTH Quadratic inverse() const {
        B norm = (c0.sqr() + c1.sqr()).inverse();
        return {c0 * norm, (c1 * norm).neg()};
    }
};

using Fp2 = Quadratic<Fp>;
using Fp2Called = Quadratic<FpCalled>;

namespace detail {

// 30 steps a round: the factors of a round, up to 2^30, fit into signed words.
constexpr int STEPS = 30;
constexpr uint32_t STEP_MASK = (1u << STEPS) - 1;

// r = |x f + y g| / 2^30, exactly; all ones if the sum was negative. |f| + |g| <= 2^30.
template <int N>
BOTH uint32_t combine_exactly(uint32_t *r, const uint32_t *x, const uint32_t *y, int32_t f, int32_t g) {
    int64_t carry = 0;
    uint32_t low = 0;
#pragma unroll
    for (int i = 0; i < N; i++) {
        // |each product| < 2^62 + 2^62 / ..., since |f| + |g| <= 2^30: the sum is below 2^62, and the carry below 2^31.
        carry += (int64_t)((uint64_t)x[i] * (uint64_t)(int64_t)f + (uint64_t)y[i] * (uint64_t)(int64_t)g);
        uint32_t word = (uint32_t)carry;
        if (i > 0)
            r[i - 1] = low >> STEPS | word << (32 - STEPS);
        low = word;
        carry >>= 32;
    }
    r[N - 1] = low >> STEPS | (uint32_t)carry << (32 - STEPS);
    uint32_t negative = carry < 0 ? ~0u : 0;
    uint64_t increment = negative & 1;
#pragma unroll
    for (int i = 0; i < N; i++) {
        increment += r[i] ^ negative;
        r[i] = (uint32_t)increment;
        increment >>= 32;
    }
    return negative;
}

// r = (x f + y g) / 2^30 mod m, for x, y below m.
template <class P> BOTH void combine_modular(uint32_t *r, const uint32_t *x, const uint32_t *y, int32_t f, int32_t g) {
    constexpr int N = P::LIMBS;
    int64_t carry = 0;
    uint32_t words[N];
#pragma unroll
    for (int i = 0; i < N; i++) {
        carry += (int64_t)((uint64_t)x[i] * (uint64_t)(int64_t)f + (uint64_t)y[i] * (uint64_t)(int64_t)g);
        words[i] = (uint32_t)carry;
        carry >>= 32;
    }
    int32_t top = (int32_t)carry;
    // Adding q m, q < 2^30, clears the low 30 bits; the result lies in (-m, 2 m).
    uint32_t q = words[0] * P::MINUS_INVERSE & STEP_MASK;
    uint64_t sum = 0;
    uint32_t low = 0;
#pragma unroll
    for (int i = 0; i < N; i++) {
        sum += words[i] + (uint64_t)q * P::modulus(i);
        uint32_t word = (uint32_t)sum;
        if (i > 0)
            r[i - 1] = low >> STEPS | word << (32 - STEPS);
        low = word;
        sum >>= 32;
    }
    top += (int32_t)sum;
    r[N - 1] = low >> STEPS | (uint32_t)top << (32 - STEPS);
    uint32_t m[N], t[N];
    uint32_t negative = top < 0 ? ~0u : 0;
#pragma unroll
    for (int i = 0; i < N; i++)
        m[i] = P::modulus(i) & negative;
    limbs::add<N>(r, r, m);
    modulus_of<P>(m);
    uint32_t below = limbs::sub<N>(t, r, m);
    limbs::select<N>(r, below, r, t);
}

// The two leading limbs of a and b together with the lowest, for 30 steps of a binary gcd: the 34 top bits counted from
// the highest bit of either number, then the 30 lowest bits.
template <int N> BOTH void approximate(uint64_t &x, uint64_t &y, const uint32_t *a, const uint32_t *b) {
    uint32_t a2 = a[1], a1 = a[0], a0 = 0, b2 = b[1], b1 = b[0], b0 = 0;
    bool is_short = true;
#pragma unroll
    for (int i = 2; i < N; i++) {
        bool reaches = (a[i] | b[i]) != 0;
        a2 = reaches ? a[i] : a2;
        a1 = reaches ? a[i - 1] : a1;
        a0 = reaches ? a[i - 2] : a0;
        b2 = reaches ? b[i] : b2;
        b1 = reaches ? b[i - 1] : b1;
        b0 = reaches ? b[i - 2] : b0;
        is_short = is_short && !reaches;
    }
    uint64_t top_a = (uint64_t)a2 << 32 | a1, top_b = (uint64_t)b2 << 32 | b1;
    if (is_short) {
        x = top_a;
        y = top_b;
        return;
    }
    int shift = __clz((int)(a2 | b2));
    top_a = top_a << shift | (uint64_t)a0 >> (32 - shift);
    top_b = top_b << shift | (uint64_t)b0 >> (32 - shift);
    x = top_a >> STEPS << STEPS | (a[0] & STEP_MASK);
    y = top_b >> STEPS << STEPS | (b[0] & STEP_MASK);
}

// Inverse modulo an odd prime by the binary gcd with approximated comparisons (T. Pornin, "Optimized Binary GCD for
// Modular Inversion", 2020). Invariants: a = u y and b = v y modulo m. ROUNDS are enough for every input; a is zero
// after about 19 of 26 in Fp, and further rounds change nothing. Zero gives zero.
template <class P> DEVICE_CALL void invert(uint32_t *r, const uint32_t *y) {
    constexpr int N = P::LIMBS;
    constexpr int ROUNDS = (2 * P::BITS - 1 + STEPS - 1) / STEPS;
    uint32_t a[N], b[N], u[N], v[N];
#pragma unroll
    for (int i = 0; i < N; i++) {
        a[i] = y[i];
        b[i] = P::modulus(i);
        u[i] = i == 0;
        v[i] = 0;
    }
#pragma unroll 1
    for (int round = 0; round < ROUNDS && !limbs::is_zero<N>(a); round++) {
        uint64_t x, z;
        approximate<N>(x, z, a, b);
        int32_t f0 = 1, g0 = 0, f1 = 0, g1 = 1;
#pragma unroll 1
        for (int step = 0; step < STEPS; step++) {
            bool odd = x & 1;
            bool exchange = odd && x < z;
            uint64_t larger = exchange ? z : x;
            z = exchange ? x : z;
            int32_t f = exchange ? f1 : f0, g = exchange ? g1 : g0;
            f1 = exchange ? f0 : f1;
            g1 = exchange ? g0 : g1;
            x = (larger - (odd ? z : 0)) >> 1;
            f0 = f - (odd ? f1 : 0);
            g0 = g - (odd ? g1 : 0);
            f1 *= 2;
            g1 *= 2;
        }
        uint32_t na[N], nb[N];
        uint32_t negative_a = combine_exactly<N>(na, a, b, f0, g0);
        uint32_t negative_b = combine_exactly<N>(nb, a, b, f1, g1);
        f0 = negative_a ? -f0 : f0;
        g0 = negative_a ? -g0 : g0;
        f1 = negative_b ? -f1 : f1;
        g1 = negative_b ? -g1 : g1;
        uint32_t nu[N], nv[N];
        combine_modular<P>(nu, u, v, f0, g0);
        combine_modular<P>(nv, u, v, f1, g1);
#pragma unroll
        for (int i = 0; i < N; i++) {
            a[i] = na[i];
            b[i] = nb[i];
            u[i] = nu[i];
            v[i] = nv[i];
        }
    }
    // The input was y R: v = y^-1 R^-1, and two more factors R make it y^-1 R.
    uint32_t factor[N];
#pragma unroll
    for (int i = 0; i < N; i++)
        factor[i] = P::r_cubed(i);
    montgomery_mul<P>(r, v, factor);
}

} // namespace detail
