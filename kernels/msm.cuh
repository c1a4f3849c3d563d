// What the two halves of multi-scalar multiplication share.
#pragma once
#include "field.cuh"

// The bit of an entry or digit that says that the point is subtracted.
constexpr uint32_t SIGN = 0x80000000;

// Buckets cut into more parts than this are summed by several blocks; into no more than FEW: by one thread.
constexpr uint32_t GIANT = 8192;
constexpr uint32_t FEW = 8;

// How many blocks share a giant bucket.
constexpr uint32_t SPLIT = 256;

// .. and how many share the making of a cut bucket's tasks.
constexpr uint32_t TASK_SPLIT = 32;

// Which digits of a scalar are taken.
struct DigitPlan {
    // The first `wide` windows have one bit more than `bits`.
    uint32_t bits, wide;
    // The windows `first .. first + count`.
    uint32_t first, count;
    // The sum of half of each window: added before the windows are cut out, so that subtracting half afterwards leaves
    // signed digits.
    uint32_t rounding[8];
};

// Counted on the device; zero before.
struct Counters {
    // Tasks in all.
    uint32_t tasks;
    // Buckets that were cut, the parts that they gave, and how many of them are giant.
    uint32_t longs, parts, giants;
    // Not zero when nobody wants the sums any more.
    uint32_t stopped;
};

// Sums to make, the longest first: over entries starts[t] .. starts[t] + lengths[t], put where sums[t] says.
struct Tasks {
    uint32_t *starts;
    uint32_t *lengths;
    uint32_t *sums;
};

// A bucket that is cut into parts.
struct LongBucket {
    uint32_t bucket;
    // Its entries.
    uint32_t start, length;
    // The sums of its parts begin at `sums`.
    uint32_t parts, sums;
    // Where its tasks stand: those of full length, and the rest.
    uint32_t whole_place, rest_place;
    uint32_t unused;
};
