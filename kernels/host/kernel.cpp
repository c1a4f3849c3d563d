// The list of all kernels in the program.
#include "kernel.h"

#include <cstdio>
#include <cstdlib>

namespace emulator {

namespace {

// Made at first use: registrations run before main in no known order.
std::vector<Kernel> &kernels() {
    static std::vector<Kernel> list;
    return list;
}

std::string stem(const char *file) {
    std::string name(file);
    name = name.substr(name.find_last_of('/') + 1);
    return name.substr(0, name.find_last_of('.'));
}

} // namespace

Registration::Registration(const char *name, const char *file, uint32_t max_threads, Body body) {
    for (const Kernel &kernel : kernels()) {
        if (kernel.name == name) {
            fprintf(stderr, "emulator: two kernels are called %s\n", name);
            abort();
        }
    }
    kernels().push_back(Kernel{name, stem(file), max_threads, std::move(body)});
}

const Kernel *find_kernel(const std::string &module, const std::string &name) {
    for (const Kernel &kernel : kernels())
        if (kernel.module == module && kernel.name == name)
            return &kernel;
    return nullptr;
}

bool has_module(const std::string &module) {
    for (const Kernel &kernel : kernels())
        if (kernel.module == module)
            return true;
    return false;
}

} // namespace emulator
