// How a kernel makes itself known to the emulator: by name, with the types of its parameters.
#pragma once

#include <stdint.h>
#include <string>
#include <vector>

namespace emulator {

// A kernel's body, callable with a launch's list of pointers to arguments.
struct Body {
    void (*call)(void **arguments);
    std::vector<uint32_t> parameter_sizes;
};

template <auto kernel> struct Describe;

template <typename... T, void (*kernel)(T...)> struct Describe<kernel> {
    template <size_t... i> static void unpack(void **arguments, std::integer_sequence<size_t, i...>) {
        (void)arguments;
        kernel(*static_cast<T *>(arguments[i])...);
    }
    static void call(void **arguments) { unpack(arguments, std::index_sequence_for<T...>{}); }
    static Body body() { return Body{call, {static_cast<uint32_t>(sizeof(T))...}}; }
};

template <auto kernel> Body describe() {
    return Describe<kernel>::body();
}

struct Kernel {
    std::string name;
    // The .cu file's name without its ending.
    std::string module;
    uint32_t max_threads;
    Body body;
};

// Adds a kernel to the list when the program starts.
struct Registration {
    Registration(const char *name, const char *file, uint32_t max_threads, Body body);
};

// The kernel of this name in this module, or null.
const Kernel *find_kernel(const std::string &module, const std::string &name);

// Whether any kernel is registered for the module.
bool has_module(const std::string &module);

} // namespace emulator
