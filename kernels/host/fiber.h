// Stacks and the switch between them.
#pragma once

#include <cstddef>

namespace emulator {

// A stack with a page below it that cannot be touched.
class Stack {
  public:
    Stack();
    ~Stack();
    Stack(Stack &&other) noexcept : low_(other.low_) { other.low_ = nullptr; }
    Stack(const Stack &) = delete;
    Stack &operator=(const Stack &) = delete;

    // A stack pointer with which the first switch here calls `entry`, which must never return.
    void *prepare(void (*entry)());

  private:
    char *low_;
};

// Saves the caller's stack pointer and goes on where `to` was saved.
extern "C" void cuporep_emulated_switch(void **from, void *to);

} // namespace emulator
