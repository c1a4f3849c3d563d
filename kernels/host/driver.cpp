// The calls of libcuda that the library makes, with the same names, signatures and checks, on the emulated machine.
// Everything is done before a call returns.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "block.h"
#include "machine.h"

namespace {

using namespace emulator;
using Device = int32_t;
using Address = uint64_t;

#define BEGIN(name, ...)                                                                                               \
    Call call(#name, ##__VA_ARGS__);                                                                                   \
    if (call.code != SUCCESS)                                                                                          \
        return call.code;                                                                                              \
    [[maybe_unused]] Machine &m = machine()

int32_t cuInit(uint32_t flags) {
    BEGIN(cuInit, false);
    if (flags != 0)
        return INVALID_VALUE;
    if (m.devices == 0)
        return NO_DEVICE;
    m.initialized = true;
    return SUCCESS;
}

int32_t cuDriverGetVersion(int32_t *version) {
    BEGIN(cuDriverGetVersion, false);
    *version = 13000;
    return SUCCESS;
}

// Errors by number, as far as the emulator or an ordered fault gives them.
struct Name {
    int32_t code;
    const char *name, *text;
};
constexpr Name NAMES[] = {
    {SUCCESS, "CUDA_SUCCESS", "no error"},
    {INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {209, "CUDA_ERROR_NO_BINARY_FOR_GPU", "no kernel image is available for execution on the device"},
    {214, "CUDA_ERROR_ECC_UNCORRECTABLE", "uncorrectable ECC error encountered"},
    {INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "too many resources requested for launch"},
    {LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {999, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

int32_t error_text(int32_t code, const char **text, const char *Name::*field) {
    for (const Name &name : NAMES) {
        if (name.code == code) {
            *text = name.*field;
            return SUCCESS;
        }
    }
    *text = nullptr;
    return INVALID_VALUE;
}
int32_t cuGetErrorName(int32_t code, const char **text) {
    return error_text(code, text, &Name::name);
}
int32_t cuGetErrorString(int32_t code, const char **text) {
    return error_text(code, text, &Name::text);
}

// Devices.

int32_t cuDeviceGetCount(int32_t *count) {
    BEGIN(cuDeviceGetCount, false);
    *count = m.devices;
    return m.initialized ? SUCCESS : NOT_INITIALIZED;
}

int32_t cuDeviceGet(Device *device, int32_t ordinal) {
    BEGIN(cuDeviceGet, false);
    if (ordinal < 0 || ordinal >= m.devices)
        return INVALID_DEVICE;
    *device = ordinal;
    return SUCCESS;
}

int32_t cuDeviceGetName(char *name, int32_t length, Device) {
    BEGIN(cuDeviceGetName, false);
    snprintf(name, size_t(length), "Emulated GPU");
    return SUCCESS;
}

int32_t cuDeviceGetUuid_v2(unsigned char *uuid, Device device) {
    BEGIN(cuDeviceGetUuid_v2, false);
    memset(uuid, 0, 16);
    memcpy(uuid, "emulated", 8);
    uuid[15] = static_cast<unsigned char>(device);
    return SUCCESS;
}

int32_t cuDeviceGetAttribute(int32_t *value, int32_t attribute, Device) {
    BEGIN(cuDeviceGetAttribute, false);
    switch (attribute) {
    case 1:
        *value = MAX_THREADS;
        return SUCCESS;
    case 8:
        *value = SHARED_BYTES;
        return SUCCESS;
    case 16:
        *value = MULTIPROCESSORS;
        return SUCCESS;
    case 75:
        *value = 9;
        return SUCCESS;
    case 76:
        *value = 0;
        return SUCCESS;
    case 97:
        *value = SHARED_OPTIN_BYTES;
        return SUCCESS;
    default:
        return INVALID_VALUE;
    }
}

int32_t cuDeviceTotalMem_v2(size_t *bytes, Device) {
    BEGIN(cuDeviceTotalMem_v2, false);
    *bytes = m.memory;
    return SUCCESS;
}

// Contexts. The calls that leave a broken one must work.

int32_t cuCtxCreate_v2(Context **context, uint32_t, Device device) {
    BEGIN(cuCtxCreate_v2, false);
    if (!m.initialized)
        return NOT_INITIALIZED;
    if (device < 0 || device >= m.devices)
        return INVALID_DEVICE;
    *context = new Context{device, SUCCESS, {}, {}, {}, {}, {}, {}};
    m.contexts.insert(*context);
    current_contexts().push_back(*context);
    return SUCCESS;
}

int32_t cuCtxPushCurrent_v2(Context *context) {
    BEGIN(cuCtxPushCurrent_v2, false);
    if (m.contexts.count(context) == 0)
        return INVALID_CONTEXT;
    current_contexts().push_back(context);
    return SUCCESS;
}

int32_t cuCtxPopCurrent_v2(Context **context) {
    BEGIN(cuCtxPopCurrent_v2, false);
    if (current_contexts().empty())
        return INVALID_CONTEXT;
    *context = current_contexts().back();
    current_contexts().pop_back();
    return SUCCESS;
}

int32_t cuCtxDestroy_v2(Context *context) {
    BEGIN(cuCtxDestroy_v2, false);
    if (m.contexts.erase(context) == 0)
        return INVALID_CONTEXT;
    for (auto &entry : context->allocations)
        free(entry.second.memory);
    for (auto &entry : context->host_allocations)
        free(entry.first);
    for (Module *module : context->modules)
        delete module;
    for (Function *function : context->functions)
        delete function;
    for (void *stream : context->streams)
        delete static_cast<char *>(stream);
    for (Event *event : context->events)
        delete event;
    delete context;
    return SUCCESS;
}

// Modules: the image is the name of a .cu file.

int32_t cuModuleLoadData(Module **module, const void *image) {
    BEGIN(cuModuleLoadData);
    const char *name = static_cast<const char *>(image);
    if (!has_module(name))
        return INVALID_IMAGE;
    *module = new Module{call.context, name};
    call.context->modules.insert(*module);
    return SUCCESS;
}

int32_t cuModuleUnload(Module *module) {
    BEGIN(cuModuleUnload);
    if (call.context->modules.erase(module) == 0)
        return INVALID_HANDLE;
    delete module;
    return SUCCESS;
}

int32_t cuModuleGetFunction(Function **function, Module *module, const char *name) {
    BEGIN(cuModuleGetFunction);
    if (call.context->modules.count(module) == 0)
        return INVALID_HANDLE;
    const Kernel *kernel = find_kernel(module->name, name);
    if (kernel == nullptr)
        return NOT_FOUND;
    *function = new Function{call.context, kernel};
    call.context->functions.insert(*function);
    return SUCCESS;
}

int32_t cuFuncGetParamInfo(Function *function, size_t index, size_t *offset, size_t *size) {
    BEGIN(cuFuncGetParamInfo);
    if (call.context->functions.count(function) == 0)
        return INVALID_HANDLE;
    const auto &sizes = function->kernel->body.parameter_sizes;
    if (index >= sizes.size())
        return INVALID_VALUE;
    *offset = 0;
    *size = sizes[index];
    return SUCCESS;
}

int32_t cuFuncSetAttribute(Function *function, int32_t attribute, int32_t value) {
    BEGIN(cuFuncSetAttribute);
    if (call.context->functions.count(function) == 0)
        return INVALID_HANDLE;
    if (attribute != 8 || value < 0 || uint32_t(value) > SHARED_OPTIN_BYTES)
        return INVALID_VALUE;
    function->dynamic_shared = uint32_t(value);
    return SUCCESS;
}

// Memory.

int32_t cuMemAlloc_v2(Address *address, size_t bytes) {
    BEGIN(cuMemAlloc_v2);
    if (bytes == 0)
        return INVALID_VALUE;
    if (bytes > m.available(call.context->device))
        return OUT_OF_MEMORY;
    void *memory = nullptr;
    if (posix_memalign(&memory, 256, bytes + MARGIN_BYTES) != 0)
        return OUT_OF_MEMORY;
    // Nobody may rely on zeros.
    memset(memory, POISON_BYTE, bytes + MARGIN_BYTES);
    *address = reinterpret_cast<Address>(memory);
    call.context->allocations[*address] = Allocation{bytes, static_cast<unsigned char *>(memory)};
    return SUCCESS;
}

int32_t cuMemFree_v2(Address address) {
    BEGIN(cuMemFree_v2);
    auto found = call.context->allocations.find(address);
    if (found == call.context->allocations.end())
        return INVALID_VALUE;
    bool damaged = margin_damaged(found->second);
    free(found->second.memory);
    call.context->allocations.erase(found);
    return damaged ? call.fail(ILLEGAL_ADDRESS, true) : SUCCESS;
}

int32_t cuMemGetInfo_v2(size_t *available, size_t *total) {
    BEGIN(cuMemGetInfo_v2);
    *total = m.memory;
    *available = m.available(call.context->device);
    return SUCCESS;
}

int32_t cuMemHostAlloc(void **pointer, size_t bytes, uint32_t) {
    BEGIN(cuMemHostAlloc);
    if (bytes == 0)
        return INVALID_VALUE;
    if (posix_memalign(pointer, 4096, bytes) != 0)
        return OUT_OF_MEMORY;
    memset(*pointer, POISON_BYTE, bytes);
    call.context->host_allocations[*pointer] = bytes;
    return SUCCESS;
}

int32_t cuMemFreeHost(void *pointer) {
    BEGIN(cuMemFreeHost);
    if (call.context->host_allocations.erase(pointer) == 0)
        return INVALID_VALUE;
    free(pointer);
    return SUCCESS;
}

bool knows_stream(const Context &context, void *stream) {
    return context.streams.count(stream) != 0;
}

int32_t cuMemcpyHtoDAsync_v2(Address to, const void *from, size_t bytes, void *stream) {
    BEGIN(cuMemcpyHtoDAsync_v2);
    if (!knows_stream(*call.context, stream))
        return INVALID_HANDLE;
    if (!within(*call.context, to, bytes))
        return INVALID_VALUE;
    memcpy(reinterpret_cast<void *>(to), from, bytes);
    return SUCCESS;
}

int32_t cuMemcpyDtoHAsync_v2(void *to, Address from, size_t bytes, void *stream) {
    BEGIN(cuMemcpyDtoHAsync_v2);
    if (!knows_stream(*call.context, stream))
        return INVALID_HANDLE;
    if (!within(*call.context, from, bytes))
        return INVALID_VALUE;
    memcpy(to, reinterpret_cast<const void *>(from), bytes);
    if (bytes != 0 && m.corrupt_after >= 0 && m.corrupt_after-- == 0)
        static_cast<unsigned char *>(to)[0] ^= 1;
    return SUCCESS;
}

int32_t cuMemcpyDtoDAsync_v2(Address to, Address from, size_t bytes, void *stream) {
    BEGIN(cuMemcpyDtoDAsync_v2);
    if (!knows_stream(*call.context, stream))
        return INVALID_HANDLE;
    if (!within(*call.context, from, bytes) || !within(*call.context, to, bytes))
        return INVALID_VALUE;
    memmove(reinterpret_cast<void *>(to), reinterpret_cast<const void *>(from), bytes);
    return SUCCESS;
}

int32_t cuMemsetD8Async(Address to, unsigned char value, size_t count, void *stream) {
    BEGIN(cuMemsetD8Async);
    if (!knows_stream(*call.context, stream))
        return INVALID_HANDLE;
    if (!within(*call.context, to, count))
        return INVALID_VALUE;
    memset(reinterpret_cast<void *>(to), value, count);
    return SUCCESS;
}

int32_t cuMemsetD32Async(Address to, uint32_t value, size_t count, void *stream) {
    BEGIN(cuMemsetD32Async);
    if (!knows_stream(*call.context, stream))
        return INVALID_HANDLE;
    if (to % 4 != 0 || count > SIZE_MAX / 4 || !within(*call.context, to, 4 * count))
        return INVALID_VALUE;
    for (size_t i = 0; i < count; i++)
        reinterpret_cast<uint32_t *>(to)[i] = value;
    return SUCCESS;
}

// Streams and events.

int32_t cuStreamCreate(void **stream, uint32_t) {
    BEGIN(cuStreamCreate);
    *stream = new char;
    call.context->streams.insert(*stream);
    return SUCCESS;
}

int32_t cuStreamDestroy_v2(void *stream) {
    BEGIN(cuStreamDestroy_v2);
    if (call.context->streams.erase(stream) == 0)
        return INVALID_HANDLE;
    delete static_cast<char *>(stream);
    return SUCCESS;
}

int32_t cuStreamSynchronize(void *stream) {
    BEGIN(cuStreamSynchronize);
    return knows_stream(*call.context, stream) ? SUCCESS : INVALID_HANDLE;
}

int32_t cuStreamQuery(void *stream) {
    BEGIN(cuStreamQuery);
    return knows_stream(*call.context, stream) ? SUCCESS : INVALID_HANDLE;
}

bool knows_event(const Context &context, Event *event) {
    return context.events.count(event) != 0;
}

int32_t cuStreamWaitEvent(void *stream, Event *event, uint32_t) {
    BEGIN(cuStreamWaitEvent);
    return knows_stream(*call.context, stream) && knows_event(*call.context, event) ? SUCCESS : INVALID_HANDLE;
}

int32_t cuEventCreate(Event **event, uint32_t) {
    BEGIN(cuEventCreate);
    *event = new Event{call.context};
    call.context->events.insert(*event);
    return SUCCESS;
}

int32_t cuEventDestroy_v2(Event *event) {
    BEGIN(cuEventDestroy_v2);
    if (call.context->events.erase(event) == 0)
        return INVALID_HANDLE;
    delete event;
    return SUCCESS;
}

int32_t cuEventRecord(Event *event, void *stream) {
    BEGIN(cuEventRecord);
    if (!knows_stream(*call.context, stream) || !knows_event(*call.context, event))
        return INVALID_HANDLE;
    event->time = std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
    return SUCCESS;
}

int32_t cuEventSynchronize(Event *event) {
    BEGIN(cuEventSynchronize);
    return knows_event(*call.context, event) ? SUCCESS : INVALID_HANDLE;
}

int32_t cuEventQuery(Event *event) {
    BEGIN(cuEventQuery);
    return knows_event(*call.context, event) ? SUCCESS : INVALID_HANDLE;
}

int32_t cuEventElapsedTime(float *milliseconds, Event *begin, Event *end) {
    BEGIN(cuEventElapsedTime);
    if (!knows_event(*call.context, begin) || !knows_event(*call.context, end) || begin->time < 0 || end->time < 0)
        return INVALID_HANDLE;
    *milliseconds = float(1e3 * (end->time - begin->time));
    return SUCCESS;
}

// Launches.

int32_t check_launch(const Call &call, const Function *function, Index grid, Index block, uint32_t shared) {
    if (call.context->functions.count(const_cast<Function *>(function)) == 0)
        return INVALID_HANDLE;
    uint64_t threads = uint64_t(block.x) * block.y * block.z;
    bool grid_fits =
        grid.x >= 1 && grid.x < 1u << 31 && grid.y >= 1 && grid.y < 1u << 16 && grid.z >= 1 && grid.z < 1u << 16;
    if (!grid_fits || threads == 0 || threads > MAX_THREADS || shared > function->dynamic_shared)
        return INVALID_VALUE;
    // More than the kernel was compiled for.
    return threads > function->kernel->max_threads ? 701 : SUCCESS;
}

int32_t cuLaunchKernel(Function *function, uint32_t grid_x, uint32_t grid_y, uint32_t grid_z, uint32_t block_x,
                       uint32_t block_y, uint32_t block_z, uint32_t shared, void *stream, void **arguments, void **) {
    BEGIN(cuLaunchKernel);
    if (!knows_stream(*call.context, stream))
        return INVALID_HANDLE;
    Index grid{grid_x, grid_y, grid_z}, block{block_x, block_y, block_z};
    int32_t code = check_launch(call, function, grid, block, shared);
    if (code != SUCCESS)
        return code;
    const Kernel *kernel = function->kernel;
    // Other threads may work on the machine meanwhile.
    call.lock.unlock();
    std::string failure = run(Launch{kernel->body.call, arguments, grid, block, shared});
    call.lock.lock();
    for (const auto &entry : call.context->allocations)
        if (failure.empty() && margin_damaged(entry.second))
            failure = "a write past the end of an allocation of " + std::to_string(entry.second.bytes) + " bytes";
    if (failure.empty())
        return SUCCESS;
    fprintf(stderr, "emulator: kernel %s: %s\n", kernel->name.c_str(), failure.c_str());
    // A real device would tell at a later call, too.
    return call.fail(LAUNCH_FAILED, true);
}

struct Symbol {
    const char *name;
    void *address;
};

#define SYMBOL(name)                                                                                                   \
    Symbol {                                                                                                           \
        #name, reinterpret_cast<void *>(&name)                                                                         \
    }

const Symbol SYMBOLS[] = {
    SYMBOL(cuInit),
    SYMBOL(cuDriverGetVersion),
    SYMBOL(cuGetErrorName),
    SYMBOL(cuGetErrorString),
    SYMBOL(cuDeviceGetCount),
    SYMBOL(cuDeviceGet),
    SYMBOL(cuDeviceGetName),
    SYMBOL(cuDeviceGetUuid_v2),
    SYMBOL(cuDeviceGetAttribute),
    SYMBOL(cuDeviceTotalMem_v2),
    SYMBOL(cuCtxCreate_v2),
    SYMBOL(cuCtxPushCurrent_v2),
    SYMBOL(cuCtxPopCurrent_v2),
    SYMBOL(cuCtxDestroy_v2),
    SYMBOL(cuModuleLoadData),
    SYMBOL(cuModuleUnload),
    SYMBOL(cuModuleGetFunction),
    SYMBOL(cuFuncGetParamInfo),
    SYMBOL(cuFuncSetAttribute),
    SYMBOL(cuMemAlloc_v2),
    SYMBOL(cuMemFree_v2),
    SYMBOL(cuMemGetInfo_v2),
    SYMBOL(cuMemHostAlloc),
    SYMBOL(cuMemFreeHost),
    SYMBOL(cuMemcpyHtoDAsync_v2),
    SYMBOL(cuMemcpyDtoHAsync_v2),
    SYMBOL(cuMemcpyDtoDAsync_v2),
    SYMBOL(cuMemsetD8Async),
    SYMBOL(cuMemsetD32Async),
    SYMBOL(cuStreamCreate),
    SYMBOL(cuStreamDestroy_v2),
    SYMBOL(cuStreamSynchronize),
    SYMBOL(cuStreamQuery),
    SYMBOL(cuStreamWaitEvent),
    SYMBOL(cuEventCreate),
    SYMBOL(cuEventDestroy_v2),
    SYMBOL(cuEventRecord),
    SYMBOL(cuEventSynchronize),
    SYMBOL(cuEventQuery),
    SYMBOL(cuEventElapsedTime),
    SYMBOL(cuLaunchKernel),
};

} // namespace

extern "C" void *cuporep_emulated_symbol(const char *name) {
    for (const Symbol &symbol : SYMBOLS)
        if (strcmp(symbol.name, name) == 0)
            return symbol.address;
    return nullptr;
}
