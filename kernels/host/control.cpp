// What tests order of the emulated machine and ask about it.
#include "machine.h"

using namespace emulator;

// The machine as it is at first: one device of 4 GiB, no faults. Contexts stay.
extern "C" void cuporep_emulated_reset() {
    Machine &m = machine();
    std::lock_guard<std::mutex> lock(m.mutex);
    m.devices = 1;
    m.memory = uint64_t(4) << 30;
    m.faults.clear();
    m.corrupt_after = -1;
}

// How many devices there are from now on.
extern "C" void cuporep_emulated_devices(int32_t count) {
    std::lock_guard<std::mutex> lock(machine().mutex);
    machine().devices = count < MAX_DEVICES ? count : MAX_DEVICES;
}

// Bytes of each device's memory.
extern "C" void cuporep_emulated_memory(uint64_t bytes) {
    std::lock_guard<std::mutex> lock(machine().mutex);
    machine().memory = bytes;
}

// Makes the nth (from 0) coming call of this name fail; with `sticky` every later call of the context, too.
extern "C" void cuporep_emulated_fault(const char *call, int32_t nth, int32_t code, int32_t sticky) {
    std::lock_guard<std::mutex> lock(machine().mutex);
    machine().faults.push_back(Fault{call, nth, code, sticky != 0});
}

// Flips a bit of the nth (from 0) coming copy to the host, and tells nobody.
extern "C" void cuporep_emulated_corrupt(int32_t nth) {
    std::lock_guard<std::mutex> lock(machine().mutex);
    machine().corrupt_after = nth;
}

// What is alive.
struct Census {
    uint64_t contexts, streams, events, modules, allocations, bytes, host_allocations, host_bytes;
    // Ordered faults that did not happen yet.
    uint64_t faults;
};

extern "C" void cuporep_emulated_census(Census *census) {
    Machine &m = machine();
    std::lock_guard<std::mutex> lock(m.mutex);
    *census = Census{};
    census->contexts = m.contexts.size();
    for (const Context *context : m.contexts) {
        census->streams += context->streams.size();
        census->events += context->events.size();
        census->modules += context->modules.size();
        census->allocations += context->allocations.size();
        for (const auto &entry : context->allocations)
            census->bytes += entry.second.bytes;
        census->host_allocations += context->host_allocations.size();
        for (const auto &entry : context->host_allocations)
            census->host_bytes += entry.second;
    }
    census->faults = m.faults.size();
}
