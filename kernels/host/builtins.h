// CUDA's built-in variables and functions, as far as the kernels use them, for host compilers.
#pragma once

#include <stdint.h>
#include <string.h>
#include <type_traits>
#include <utility>

#include "block.h"

#define threadIdx (::emulator::here->thread)
#define blockIdx (::emulator::here->block)
#define blockDim (::emulator::here->block_size)
#define gridDim (::emulator::here->grid_size)

constexpr int warpSize = 32;

// Vectors that one instruction loads and stores.
struct alignas(8) uint2 {
    uint32_t x, y;
};
struct alignas(16) uint4 {
    uint32_t x, y, z, w;
};
struct alignas(16) ulonglong2 {
    unsigned long long x, y;
};
inline uint2 make_uint2(uint32_t x, uint32_t y) {
    return uint2{x, y};
}
inline uint4 make_uint4(uint32_t x, uint32_t y, uint32_t z, uint32_t w) {
    return uint4{x, y, z, w};
}
inline ulonglong2 make_ulonglong2(unsigned long long x, unsigned long long y) {
    return ulonglong2{x, y};
}

// Barriers.
inline void __syncthreads() {
    ::emulator::block_barrier();
}
inline void __syncwarp(uint32_t mask = ~0u) {
    ::emulator::exchange("__syncwarp", mask, 0);
}
inline void __threadfence() {
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
inline void __threadfence_block() {
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

namespace emulator {

template <typename T> uint64_t to_bits(T value) {
    static_assert(std::is_arithmetic_v<T> && (sizeof(T) == 4 || sizeof(T) == 8), "CUDA shuffles 4 and 8 byte numbers");
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof(T));
    return bits;
}

// What lane `source` gave, or nonsense if it took no part: CUDA leaves that value undefined.
template <typename T> T from_lane(const Exchange &exchange, uint32_t source) {
    uint64_t bits = exchange.arrived >> source & 1 ? exchange.values[source] : 0xa5a5a5a5a5a5a5a5u;
    T value;
    memcpy(&value, &bits, sizeof(T));
    return value;
}

inline uint32_t lane_index() {
    return here->lane;
}

} // namespace emulator

// Shuffles among the lanes of segments of `width` lanes.
template <typename T> T __shfl_sync(uint32_t mask, T value, int source, int width = 32) {
    auto all = ::emulator::exchange("__shfl_sync", mask, ::emulator::to_bits(value));
    uint32_t first = ::emulator::lane_index() & ~(uint32_t(width) - 1);
    return ::emulator::from_lane<T>(all, first + (uint32_t(source) & (uint32_t(width) - 1)));
}
template <typename T> T __shfl_up_sync(uint32_t mask, T value, uint32_t delta, int width = 32) {
    auto all = ::emulator::exchange("__shfl_up_sync", mask, ::emulator::to_bits(value));
    uint32_t lane = ::emulator::lane_index(), within = lane & (uint32_t(width) - 1);
    return within < delta ? value : ::emulator::from_lane<T>(all, lane - delta);
}
template <typename T> T __shfl_down_sync(uint32_t mask, T value, uint32_t delta, int width = 32) {
    auto all = ::emulator::exchange("__shfl_down_sync", mask, ::emulator::to_bits(value));
    uint32_t lane = ::emulator::lane_index(), within = lane & (uint32_t(width) - 1);
    return within + delta >= uint32_t(width) ? value : ::emulator::from_lane<T>(all, lane + delta);
}
template <typename T> T __shfl_xor_sync(uint32_t mask, T value, int bits, int width = 32) {
    auto all = ::emulator::exchange("__shfl_xor_sync", mask, ::emulator::to_bits(value));
    uint32_t lane = ::emulator::lane_index(), source = lane ^ uint32_t(bits);
    // Lanes of a later segment cannot be read.
    bool later = source / uint32_t(width) > lane / uint32_t(width);
    return later ? value : ::emulator::from_lane<T>(all, source);
}

// Votes.
inline uint32_t __ballot_sync(uint32_t mask, int predicate) {
    auto all = ::emulator::exchange("__ballot_sync", mask, predicate != 0);
    uint32_t votes = 0;
    for (uint32_t lane = 0; lane < 32; lane++)
        if (all.arrived >> lane & 1)
            votes |= uint32_t(all.values[lane]) << lane;
    return votes;
}
inline int __any_sync(uint32_t mask, int predicate) {
    return __ballot_sync(mask, predicate) != 0;
}
inline int __all_sync(uint32_t mask, int predicate) {
    return __ballot_sync(mask, !predicate) == 0;
}
template <typename T> uint32_t __match_any_sync(uint32_t mask, T value) {
    uint64_t bits = ::emulator::to_bits(value);
    auto all = ::emulator::exchange("__match_any_sync", mask, bits);
    uint32_t equal = 0;
    for (uint32_t lane = 0; lane < 32; lane++)
        if (all.arrived >> lane & 1 && all.values[lane] == bits)
            equal |= 1u << lane;
    return equal;
}

// Atomics: relaxed, as CUDA's. Each returns the old value.
template <typename T> using Same = std::common_type_t<T>;
template <typename T, typename F> T atomic_update(T *address, F update) {
    T old = __atomic_load_n(address, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(address, &old, update(old), true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
    return old;
}
template <typename T> T atomicAdd(T *address, Same<T> value) {
    return __atomic_fetch_add(address, value, __ATOMIC_RELAXED);
}
template <typename T> T atomicSub(T *address, Same<T> value) {
    return __atomic_fetch_sub(address, value, __ATOMIC_RELAXED);
}
template <typename T> T atomicOr(T *address, Same<T> value) {
    return __atomic_fetch_or(address, value, __ATOMIC_RELAXED);
}
template <typename T> T atomicAnd(T *address, Same<T> value) {
    return __atomic_fetch_and(address, value, __ATOMIC_RELAXED);
}
template <typename T> T atomicXor(T *address, Same<T> value) {
    return __atomic_fetch_xor(address, value, __ATOMIC_RELAXED);
}
template <typename T> T atomicExch(T *address, Same<T> value) {
    return __atomic_exchange_n(address, value, __ATOMIC_RELAXED);
}
template <typename T> T atomicMax(T *address, Same<T> value) {
    return atomic_update(address, [=](T old) { return old < value ? value : old; });
}
template <typename T> T atomicMin(T *address, Same<T> value) {
    return atomic_update(address, [=](T old) { return value < old ? value : old; });
}
template <typename T> T atomicCAS(T *address, Same<T> expected, Same<T> value) {
    T old = expected;
    __atomic_compare_exchange_n(address, &old, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    return old;
}

// Bits and words. The lowest or highest bit of zero is where CUDA says it is.
inline int __popc(uint32_t x) {
    return __builtin_popcount(x);
}
inline int __popcll(uint64_t x) {
    return __builtin_popcountll(x);
}
inline int __clz(int x) {
    return x == 0 ? 32 : __builtin_clz(uint32_t(x));
}
inline int __clzll(long long x) {
    return x == 0 ? 64 : __builtin_clzll(uint64_t(x));
}
inline int __ffs(int x) {
    return __builtin_ffs(x);
}
inline int __ffsll(long long x) {
    return __builtin_ffsll(x);
}
inline uint32_t __brev(uint32_t x) {
    uint32_t reversed = 0;
    for (int bit = 0; bit < 32; bit++)
        reversed |= (x >> bit & 1) << (31 - bit);
    return reversed;
}
inline uint64_t __brevll(uint64_t x) {
    return uint64_t(__brev(uint32_t(x))) << 32 | __brev(uint32_t(x >> 32));
}
inline uint32_t __umulhi(uint32_t x, uint32_t y) {
    return uint32_t(uint64_t(x) * y >> 32);
}
inline uint64_t __umul64hi(uint64_t x, uint64_t y) {
    __extension__ typedef unsigned __int128 Wide;
    return uint64_t(Wide(x) * y >> 64);
}
inline uint32_t __funnelshift_l(uint32_t low, uint32_t high, uint32_t shift) {
    return uint32_t((uint64_t(high) << 32 | low) << (shift & 31) >> 32);
}
inline uint32_t __funnelshift_r(uint32_t low, uint32_t high, uint32_t shift) {
    return uint32_t((uint64_t(high) << 32 | low) >> (shift & 31));
}

// Loads and stores with cache hints.
template <typename T> T __ldg(const T *address) {
    return *address;
}
template <typename T> T __ldcs(const T *address) {
    return *address;
}
template <typename T> T __ldcg(const T *address) {
    return *address;
}
template <typename T> void __stcs(T *address, T value) {
    *address = value;
}
template <typename T> void __stcg(T *address, T value) {
    *address = value;
}

// CUDA has these without a namespace.
template <typename T> constexpr T min(T x, T y) {
    return y < x ? y : x;
}
template <typename T> constexpr T max(T x, T y) {
    return x < y ? y : x;
}
