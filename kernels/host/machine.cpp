#include "machine.h"

#include <cstring>

namespace emulator {

Machine &machine() {
    // Never destroyed: other threads may still use it while the program ends.
    static Machine *machine = new Machine;
    return *machine;
}

uint64_t Machine::available(int device) const {
    uint64_t bytes = 0;
    for (const Context *context : contexts)
        if (context->device == device)
            for (const auto &entry : context->allocations)
                bytes += entry.second.bytes;
    return bytes < memory ? memory - bytes : 0;
}

std::vector<Context *> &current_contexts() {
    static thread_local std::vector<Context *> contexts;
    return contexts;
}

namespace {

// Names of calls are compared without the driver's version suffix.
bool same_call(const std::string &asked, const char *name) {
    size_t length = asked.size();
    return strncmp(asked.c_str(), name, length) == 0 && (name[length] == 0 || strcmp(name + length, "_v2") == 0);
}

// Counts this call down in the ordered faults; the one that is due, if any, is taken off the list.
bool take_fault(Machine &machine, const char *name, Fault &due) {
    bool found = false;
    for (auto fault = machine.faults.begin(); fault != machine.faults.end();) {
        if (same_call(fault->call, name) && fault->remaining-- == 0 && !found) {
            due = *fault;
            found = true;
            fault = machine.faults.erase(fault);
        } else {
            ++fault;
        }
    }
    return found;
}

} // namespace

Call::Call(const char *name, bool needs_context) : lock(machine().mutex), context(nullptr), code(SUCCESS) {
    Machine &m = machine();
    if (!current_contexts().empty() && m.contexts.count(current_contexts().back()) != 0)
        context = current_contexts().back();
    if (needs_context && context == nullptr)
        code = m.initialized ? INVALID_CONTEXT : NOT_INITIALIZED;
    else if (needs_context)
        code = context->sticky;
    Fault fault;
    if (code == SUCCESS && take_fault(m, name, fault))
        code = fail(fault.code, fault.sticky);
}

int32_t Call::fail(int32_t error, bool sticky) const {
    if (sticky && context != nullptr)
        context->sticky = error;
    return error;
}

bool within(const Context &context, uint64_t address, uint64_t bytes) {
    auto after = context.allocations.upper_bound(address);
    if (after == context.allocations.begin())
        return false;
    const auto &[begin, allocation] = *std::prev(after);
    return address - begin <= allocation.bytes && bytes <= allocation.bytes - (address - begin);
}

bool margin_damaged(const Allocation &allocation) {
    for (uint64_t i = 0; i < MARGIN_BYTES; i++)
        if (allocation.memory[allocation.bytes + i] != POISON_BYTE)
            return true;
    return false;
}

} // namespace emulator
