// Switching by hand takes some nanoseconds; swapcontext would make a system call each time.
#include "fiber.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>

#if !defined(__ELF__) || !(defined(__x86_64__) || defined(__aarch64__))
#error "the emulator switches stacks on x86-64 and aarch64 ELF systems only"
#endif

#ifdef __x86_64__
asm(R"(
.text
.globl cuporep_emulated_switch
.type cuporep_emulated_switch, @function
cuporep_emulated_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
.size cuporep_emulated_switch, . - cuporep_emulated_switch
)");
#else
asm(R"(
.text
.globl cuporep_emulated_switch
.type cuporep_emulated_switch, %function
cuporep_emulated_switch:
    sub sp, sp, #160
    stp x19, x20, [sp, #0]
    stp x21, x22, [sp, #16]
    stp x23, x24, [sp, #32]
    stp x25, x26, [sp, #48]
    stp x27, x28, [sp, #64]
    stp x29, x30, [sp, #80]
    stp d8, d9, [sp, #96]
    stp d10, d11, [sp, #112]
    stp d12, d13, [sp, #128]
    stp d14, d15, [sp, #144]
    mov x9, sp
    str x9, [x0]
    mov sp, x1
    ldp x19, x20, [sp, #0]
    ldp x21, x22, [sp, #16]
    ldp x23, x24, [sp, #32]
    ldp x25, x26, [sp, #48]
    ldp x27, x28, [sp, #64]
    ldp x29, x30, [sp, #80]
    ldp d8, d9, [sp, #96]
    ldp d10, d11, [sp, #112]
    ldp d12, d13, [sp, #128]
    ldp d14, d15, [sp, #144]
    add sp, sp, #160
    ret
.size cuporep_emulated_switch, . - cuporep_emulated_switch
)");
#endif
asm(".section .note.GNU-stack,\"\",%progbits\n.text");

namespace emulator {

namespace {
constexpr size_t STACK_BYTES = 256 << 10;
constexpr size_t GUARD_BYTES = 64 << 10;
} // namespace

Stack::Stack() {
    void *memory = mmap(nullptr, GUARD_BYTES + STACK_BYTES, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED || mprotect(memory, GUARD_BYTES, PROT_NONE) != 0) {
        perror("emulator: no memory for a stack");
        abort();
    }
    low_ = static_cast<char *>(memory);
}

Stack::~Stack() {
    if (low_ != nullptr)
        munmap(low_, GUARD_BYTES + STACK_BYTES);
}

void *Stack::prepare(void (*entry)()) {
    char *top = low_ + GUARD_BYTES + STACK_BYTES;
    auto address = reinterpret_cast<uintptr_t>(entry);
#ifdef __x86_64__
    // Six registers, the address that `ret` takes, and a null return address, with which the stack pointer is aligned
    // as after a call.
    uintptr_t frame[8] = {0, 0, 0, 0, 0, 0, address, 0};
#else
    // x29 and x30, the link register, are the eleventh and twelfth word.
    uintptr_t frame[20] = {};
    frame[11] = address;
#endif
    char *pointer = top - sizeof(frame);
    memcpy(pointer, frame, sizeof(frame));
    return pointer;
}

} // namespace emulator
