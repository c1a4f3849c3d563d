// Every operation of the fields and curves on its own, for tests that compare it with another library's. On a host both
// versions of what has two are there: the carry chains of the device, and the plain ones.
#include "curve.cuh"

namespace {

using detail::BaseField;
using detail::ScalarField;

// The numbers of these operations are those of tests/arithmetic.rs.
enum LimbOperation { CHAIN_ADD, PLAIN_ADD, CHAIN_SUB, PLAIN_SUB, CHAIN_MUL, PLAIN_MUL, CHAIN_SQR, PLAIN_SQR };

// out = 2 N limbs; sums and differences have their carry or borrow mask behind them.
template <int N> DEVICE void operate_on_limbs(const uint32_t *a, const uint32_t *b, uint32_t *out, uint32_t operation) {
    uint32_t r[2 * N] = {0};
    switch (operation) {
    case CHAIN_ADD:
        r[N] = limbs::chains::add<N>(r, a, b);
        break;
    case PLAIN_ADD:
        r[N] = limbs::add<N>(r, a, b);
        break;
    case CHAIN_SUB:
        r[N] = limbs::chains::sub<N>(r, a, b);
        break;
    case PLAIN_SUB:
        r[N] = limbs::sub<N>(r, a, b);
        break;
    case CHAIN_MUL:
        limbs::chains::mul<N>(r, a, b);
        break;
    case PLAIN_MUL:
        limbs::mul<N>(r, a, b);
        break;
    case CHAIN_SQR:
        limbs::chains::sqr<N>(r, a);
        break;
    default:
        limbs::sqr<N>(r, a);
    }
    for (int i = 0; i < 2 * N; i++)
        out[i] = r[i];
}

enum FieldOperation {
    ADD,
    SUB,
    MUL,
    SQR,
    DBL,
    NEG,
    INVERSE,
    CHAINED_MUL,
    REDUCED_MUL,
    REDUCED_SQR,
    CANONICAL,
    MONTGOMERY
};

// What all fields have.
template <class F> DEVICE F operate(const F &a, const F &b, uint32_t operation) {
    switch (operation) {
    case ADD:
        return a + b;
    case SUB:
        return a - b;
    case MUL:
        return a * b;
    case SQR:
        return a.sqr();
    case DBL:
        return a.dbl();
    case NEG:
        return a.neg();
    default:
        return a.inverse();
    }
}

// What prime fields have besides, `detail` itself included.
template <class P, class F> DEVICE F operate_on_prime(const F &a, const F &b, uint32_t operation) {
    constexpr int N = P::LIMBS;
    F r;
    uint32_t t[2 * N];
    switch (operation) {
    case CHAINED_MUL:
        detail::chains::montgomery_mul<P>(r.v, a.v, b.v);
        return r;
    case REDUCED_MUL:
        limbs::chains::mul<N>(t, a.v, b.v);
        detail::chains::montgomery_reduce<P>(r.v, t);
        return r;
    case REDUCED_SQR:
        limbs::chains::sqr<N>(t, a.v);
        detail::chains::montgomery_reduce<P>(r.v, t);
        return r;
    case CANONICAL:
        a.canonical(r.v);
        return r;
    case MONTGOMERY:
        return F::from_canonical(a.v);
    default:
        return operate(a, b, operation);
    }
}

enum ShoupOperation { EXACT, LAZY, CHAINED };

enum CurveOperation { ADD_AFFINE, ADD_XYZZ, DOUBLE };

// The same point with other coordinates.
template <class F> DEVICE Xyzz<F> rescaled(const Affine<F> &p, const F &z) {
    Xyzz<F> r = Xyzz<F>::from(p);
    F square = z.sqr(), cube = square * z;
    return {r.x * square, r.y * cube, r.zz * square, r.zzz * cube};
}

// The sum of points with ZZ of u and v.
template <class F>
DEVICE Affine<F> sum(const Affine<F> &p, const Affine<F> &q, const F &u, const F &v, uint32_t operation) {
    Xyzz<F> r = rescaled(p, u);
    switch (operation) {
    case ADD_AFFINE:
        r.add(q);
        break;
    case ADD_XYZZ:
        r.add(rescaled(q, v));
        break;
    default:
        r = r.dbl();
    }
    return r.affine();
}

DEVICE uint32_t thread() {
    return blockIdx.x * blockDim.x + threadIdx.x;
}

} // namespace

KERNEL(128, 1, arithmetic_limbs8,
       (const uint32_t *a, const uint32_t *b, uint32_t *out, uint32_t count, uint32_t operation)) {
    uint32_t i = thread();
    if (i < count)
        operate_on_limbs<8>(a + 8 * i, b + 8 * i, out + 16 * i, operation);
}

KERNEL(128, 1, arithmetic_limbs12,
       (const uint32_t *a, const uint32_t *b, uint32_t *out, uint32_t count, uint32_t operation)) {
    uint32_t i = thread();
    if (i < count)
        operate_on_limbs<12>(a + 12 * i, b + 12 * i, out + 24 * i, operation);
}

KERNEL(128, 1, arithmetic_fr, (const Fr *a, const Fr *b, Fr *out, uint32_t count, uint32_t operation)) {
    uint32_t i = thread();
    if (i < count)
        out[i] = operate_on_prime<ScalarField>(a[i], b[i], operation);
}

KERNEL(128, 1, arithmetic_fp, (const Fp *a, const Fp *b, Fp *out, uint32_t count, uint32_t operation)) {
    uint32_t i = thread();
    if (i < count)
        out[i] = operate_on_prime<BaseField>(a[i], b[i], operation);
}

KERNEL(128, 1, arithmetic_fp_called,
       (const FpCalled *a, const FpCalled *b, FpCalled *out, uint32_t count, uint32_t operation)) {
    uint32_t i = thread();
    if (i < count)
        out[i] = operate(a[i], b[i], operation);
}

KERNEL(128, 1, arithmetic_fp2,
       (const Fp2Called *a, const Fp2Called *b, Fp2Called *out, uint32_t count, uint32_t operation)) {
    uint32_t i = thread();
    if (i < count)
        out[i] = operate(a[i], b[i], operation);
}

KERNEL(128, 1, arithmetic_shoup, (const Fr *x, const FrShoup *w, Fr *out, uint32_t count, uint32_t operation)) {
    uint32_t i = thread();
    if (i >= count)
        return;
    if (operation == EXACT)
        out[i] = x[i].mul(w[i]);
    else if (operation == LAZY)
        out[i] = x[i].mul_lazy(w[i]);
    else
        detail::chains::shoup_mul(out[i].v, x[i].v, w[i]);
}

KERNEL(128, 1, arithmetic_g1,
       (const Affine<FpCalled> *p, const Affine<FpCalled> *q, const FpCalled *scales, Affine<FpCalled> *out,
        uint32_t count, uint32_t operation)) {
    uint32_t i = thread();
    if (i < count)
        out[i] = sum(p[i], q[i], scales[0], scales[1], operation);
}

KERNEL(128, 1, arithmetic_g2,
       (const Affine<Fp2Called> *p, const Affine<Fp2Called> *q, const Fp2Called *scales, Affine<Fp2Called> *out,
        uint32_t count, uint32_t operation)) {
    uint32_t i = thread();
    if (i < count)
        out[i] = sum(p[i], q[i], scales[0], scales[1], operation);
}
