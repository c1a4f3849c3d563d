// One source, two worlds: what a kernel is written with, for CUDA and for a host compiler.
//
// Under nvcc the macros are CUDA's own words. Under a C++17 compiler the same file becomes host code that an emulator
// runs (host/), so that every kernel is tested where there is no GPU.
//
// Helpers of a .cu file belong into an anonymous namespace: on the host all files are linked into one program.
#pragma once

#include <stdint.h>

#ifdef __CUDACC__

// A kernel for blocks of at most `threads` threads, of which `blocks` fit on one multiprocessor.
#define KERNEL(threads, blocks, name, args) extern "C" __global__ void __launch_bounds__(threads, blocks) name args
#define DEVICE __device__ __forceinline__
#define DEVICE_CALL __device__ __noinline__
#define BOTH __host__ __device__ __forceinline__
// An array of constants at file scope.
#define CONSTANT static __constant__ const
// Memory of a block: an array of fixed length, or what the launch asked for.
#define SHARED __shared__
#define DYNAMIC_SHARED(T, name)                                                                                        \
    extern __shared__ __align__(16) unsigned char dynamic_shared_bytes[];                                              \
    T *const name = reinterpret_cast<T *>(dynamic_shared_bytes)

#else

#include "host/builtins.h"
#include "host/kernel.h"

#define KERNEL(threads, blocks, name, args)                                                                            \
    static void name args;                                                                                             \
    static const ::emulator::Registration registration_of_##name(#name, __BASE_FILE__, threads,                        \
                                                                 ::emulator::describe<&name>());                       \
    static void name args
#define DEVICE inline
#define DEVICE_CALL inline
#define BOTH inline
#define CONSTANT static const
#define SHARED static thread_local
#define DYNAMIC_SHARED(T, name) T *const name = reinterpret_cast<T *>(::emulator::here->dynamic_shared)

#endif
