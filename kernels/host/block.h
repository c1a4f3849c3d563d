// A block of threads, emulated: each thread is a fiber of one OS thread, and another one runs only when it waits.
#pragma once

#include <stdint.h>
#include <string>

namespace emulator {

struct Index {
    uint32_t x, y, z;
};

// Where the running thread is.
struct Position {
    Index thread, block, block_size, grid_size;
    // Its number within its warp.
    uint32_t lane;
    unsigned char *dynamic_shared;
};

extern __thread Position *here;

// What the lanes of a warp gave to each other.
struct Exchange {
    // The lanes that took part; only their values mean anything.
    uint32_t arrived;
    const uint64_t *values;
};

// Waits until all threads of the block that have not returned are here.
void block_barrier();

// Gives a value to the lanes of `mask` and waits until all of them that have not returned have given theirs.
// `what` names the operation: lanes that meet in different ones are an error.
Exchange exchange(const char *what, uint32_t mask, uint64_t value);

// Ends the launch with this message.
[[noreturn]] void fail(const std::string &message);

// A launch of a kernel over a grid. Returns what went wrong, or an empty string.
struct Launch {
    void (*body)(void **arguments);
    void **arguments;
    Index grid, block;
    uint32_t dynamic_shared;
};
std::string run(const Launch &launch);

} // namespace emulator
