// The emulated machine: devices with memory of their own, contexts, and faults to order.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "kernel.h"

namespace emulator {

// Codes of the CUDA driver that the emulator gives.
enum Code : int32_t {
    SUCCESS = 0,
    INVALID_VALUE = 1,
    OUT_OF_MEMORY = 2,
    NOT_INITIALIZED = 3,
    NO_DEVICE = 100,
    INVALID_DEVICE = 101,
    INVALID_IMAGE = 200,
    INVALID_CONTEXT = 201,
    INVALID_HANDLE = 400,
    NOT_FOUND = 500,
    ILLEGAL_ADDRESS = 700,
    LAUNCH_FAILED = 719,
};

constexpr int MAX_DEVICES = 16;
constexpr uint32_t MAX_THREADS = 1024;
constexpr uint32_t SHARED_BYTES = 48 << 10;
constexpr uint32_t SHARED_OPTIN_BYTES = 227 << 10;
constexpr uint32_t MULTIPROCESSORS = 4;

struct Context;

struct Module {
    Context *context;
    std::string name;
};

struct Function {
    Context *context;
    const Kernel *kernel;
    uint32_t dynamic_shared = SHARED_BYTES;
};

struct Allocation {
    uint64_t bytes;
    unsigned char *memory;
};

struct Event {
    Context *context;
    // Seconds; negative before the first record.
    double time = -1;
};

struct Context {
    int device;
    // The error that makes every later call fail, or SUCCESS.
    int32_t sticky = SUCCESS;
    std::map<uint64_t, Allocation> allocations;
    std::map<void *, uint64_t> host_allocations;
    std::set<Module *> modules;
    std::set<Function *> functions;
    std::set<void *> streams;
    std::set<Event *> events;
};

// An error that a coming call gives.
struct Fault {
    std::string call;
    // How many more calls succeed.
    int remaining;
    int32_t code;
    bool sticky;
};

struct Machine {
    std::mutex mutex;
    bool initialized = false;
    int devices = 1;
    uint64_t memory = uint64_t(4) << 30;
    std::set<Context *> contexts;
    std::vector<Fault> faults;
    // How many copies to the host go well before one gets a wrong bit; negative: all.
    int corrupt_after = -1;

    // Bytes of a device's memory that nobody holds.
    uint64_t available(int device) const;
};

Machine &machine();

// What a device allocation has past its end, to see writes there.
constexpr uint64_t MARGIN_BYTES = 256;
constexpr unsigned char POISON_BYTE = 0xa5;

// The calling thread's stack of current contexts.
std::vector<Context *> &current_contexts();

// The start of a call that works on the current context, under the machine's lock: `code` says whether it may go on.
struct Call {
    explicit Call(const char *name, bool needs_context = true);
    // The same call's result: sticky ones stay with the context.
    int32_t fail(int32_t code, bool sticky = false) const;

    std::unique_lock<std::mutex> lock;
    Context *context;
    int32_t code;
};

// Whether [address, address + bytes) lies in one allocation of the context.
bool within(const Context &context, uint64_t address, uint64_t bytes);

// Whether anything was written past the end of an allocation.
bool margin_damaged(const Allocation &allocation);

} // namespace emulator
