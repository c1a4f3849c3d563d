// Points of G1 and G2, with additions that hold for equal, opposite and infinite points.
#pragma once
#include "field.cuh"

// x, y; all zero for infinity (no point of either curve has x = y = 0).
template <class F> struct alignas(16) Affine {
    F x, y;

    BOTH static Affine infinity() { return {F::zero(), F::zero()}; }
    BOTH bool is_infinity() const { return x.is_zero() && y.is_zero(); }
    BOTH Affine neg_if(bool condition) const { return {x, y.neg_if(condition)}; }
};

// x = X / ZZ, y = Y / ZZZ with ZZ^3 = ZZZ^2; infinity has ZZ = 0.
template <class F> struct alignas(16) Xyzz {
    F x, y, zz, zzz;

    BOTH static Xyzz infinity() { return {F::zero(), F::zero(), F::zero(), F::zero()}; }
    BOTH bool is_infinity() const { return zz.is_zero(); }

    BOTH static Xyzz from(const Affine<F> &p) {
        if (p.is_infinity())
            return infinity();
        return {p.x, p.y, F::one(), F::one()};
    }

    BOTH Affine<F> affine() const {
        if (is_infinity())
            return Affine<F>::infinity();
        // 1 / ZZ = (ZZ / ZZZ)^2.
        F inverse = zzz.inverse();
        F ratio = inverse * zz;
        return {x * ratio.sqr(), y * inverse};
    }

    // A function of its own: rare inside additions.
    DEVICE_CALL Xyzz dbl() const {
        F u = y.dbl(), v = u.sqr(), w = u * v, s = x * v;
        F m = x.sqr();
        m = m.dbl() + m;
        F x3 = m.sqr() - s.dbl();
        // No point of order two exists in the subgroups, and outside of them v = 0 gives infinity, which is right.
        return {x3, m * (s - x3) - w * y, v * zz, w * zzz};
    }

    BOTH void add(const Affine<F> &p) {
        if (p.is_infinity())
            return;
        if (is_infinity()) {
            *this = from(p);
            return;
        }
        F dx = p.x * zz - x, dy = p.y * zzz - y;
        if (dx.is_zero()) {
            *this = dy.is_zero() ? from(p).dbl() : infinity();
            return;
        }
        finish(dx, dy);
    }

    BOTH void add(const Xyzz &p) {
        if (p.is_infinity())
            return;
        if (is_infinity()) {
            *this = p;
            return;
        }
        F u1 = x * p.zz, s1 = y * p.zzz;
        F dx = p.x * zz - u1, dy = p.y * zzz - s1;
        if (dx.is_zero()) {
            *this = dy.is_zero() ? dbl() : infinity();
            return;
        }
        x = u1;
        y = s1;
        zz = zz * p.zz;
        zzz = zzz * p.zzz;
        finish(dx, dy);
    }

  private:
    // The rest of an addition, for dx and dy scaled by ZZ and ZZZ.
    BOTH void finish(const F &dx, const F &dy) {
        F square = dx.sqr(), cube = dx * square, q = x * square;
        F x3 = dy.sqr() - cube - q.dbl();
        y = dy * (q - x3) - y * cube;
        x = x3;
        zz = zz * square;
        zzz = zzz * cube;
    }
};

using G1Affine = Affine<Fp>;
using G2Affine = Affine<Fp2>;
using G1Xyzz = Xyzz<Fp>;
using G2Xyzz = Xyzz<Fp2>;
