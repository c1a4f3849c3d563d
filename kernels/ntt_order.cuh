// Which coefficient of a transform is where.
#pragma once
#include "simt.cuh"

namespace ntt {

// The bits of an index of evaluations, from the highest: n1 of `first` bits, n2 of `second`, n3 of `third`. Evaluations
// are in natural order. Passed by value from Rust (layout.rs has the same).
struct Layout {
    uint32_t first, second, third;

    // With k = k1 + k2 2^first + k3 2^(first + second): k1 2^(second + third) + k2 2^third + k3.
    BOTH uint32_t position_of_coefficient(uint32_t k) const {
        uint32_t k1 = k & ((1u << first) - 1), k2 = k >> first & ((1u << second) - 1), k3 = k >> (first + second);
        return k1 << (second + third) | k2 << third | k3;
    }

    BOTH uint32_t coefficient_at(uint32_t position) const {
        uint32_t k1 = position >> (second + third), k2 = position >> third & ((1u << second) - 1);
        uint32_t k3 = position & ((1u << third) - 1);
        return k1 | k2 << first | k3 << (first + second);
    }
};

} // namespace ntt
