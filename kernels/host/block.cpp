// Runs the blocks of a launch one after the other, and the threads of a block in order, each until it waits.
#include "block.h"

#include <cstdlib>
#include <cstring>
#include <vector>

#include "fiber.h"

namespace emulator {

__thread Position *here;

namespace {

constexpr uint32_t WARP = 32;
// Beyond the dynamic shared memory, to see writes past its end.
constexpr uint32_t MARGIN = 64;
constexpr unsigned char POISON = 0xa5;

enum class State { New, Ready, AtBarrier, InWarp, Returned };

struct Thread {
    Position position;
    State state;
    void *stack_pointer;
    Stack *stack;
    // What it waits for with other lanes.
    const char *operation;
    uint32_t mask;
    uint64_t value;
    uint32_t arrived;
};

// Everything that one OS thread needs to run blocks; kept for the next launch.
struct Engine {
    std::vector<Thread> threads;
    // Values that the lanes of each warp exchanged last.
    std::vector<uint64_t> values;
    std::vector<Stack *> free_stacks;
    std::vector<unsigned char> shared;
    const Launch *launch = nullptr;
    Thread *running = nullptr;
    void *scheduler = nullptr;
    std::string failure;

    ~Engine() {
        for (Stack *stack : free_stacks)
            delete stack;
    }

    void run_block(Index block);
    void run_warp(uint32_t first, uint32_t last);
    bool complete_exchanges(uint32_t first, uint32_t last);
    bool release_barrier();
    void resume(Thread &thread);
    void give_up();
};

thread_local Engine engine;

void wait(State state) {
    Thread &thread = *engine.running;
    thread.state = state;
    cuporep_emulated_switch(&thread.stack_pointer, engine.scheduler);
}

void thread_main() {
    engine.launch->body(engine.launch->arguments);
    wait(State::Returned);
    abort();
}

void Engine::resume(Thread &thread) {
    if (thread.state == State::New) {
        if (free_stacks.empty())
            free_stacks.push_back(new Stack);
        thread.stack = free_stacks.back();
        free_stacks.pop_back();
        thread.stack_pointer = thread.stack->prepare(thread_main);
    }
    running = &thread;
    here = &thread.position;
    cuporep_emulated_switch(&scheduler, thread.stack_pointer);
    if (thread.state == State::Returned) {
        free_stacks.push_back(thread.stack);
        thread.stack = nullptr;
    }
}

// Lets exchanges go on whose lanes have all come. Returns whether there was one.
bool Engine::complete_exchanges(uint32_t first, uint32_t last) {
    uint32_t alive = 0, waiting = 0;
    for (uint32_t i = first; i < last; i++) {
        alive |= uint32_t(threads[i].state != State::Returned) << (i - first);
        waiting |= uint32_t(threads[i].state == State::InWarp) << (i - first);
    }
    bool any = false;
    for (uint32_t i = first; i < last; i++) {
        Thread &thread = threads[i];
        uint32_t group = thread.mask & alive;
        if (thread.state != State::InWarp || (group & ~waiting) != 0)
            continue;
        bool agreed = true;
        for (uint32_t j = first; j < last; j++)
            if (group >> (j - first) & 1)
                agreed = agreed && threads[j].state == State::InWarp && threads[j].mask == thread.mask;
        if (!agreed)
            continue;
        for (uint32_t j = first; j < last; j++) {
            if (!(group >> (j - first) & 1))
                continue;
            if (strcmp(threads[j].operation, thread.operation) != 0)
                failure = std::string("lanes of one warp meet in ") + thread.operation + " and " + threads[j].operation;
            values[j] = threads[j].value;
            threads[j].arrived = group;
            threads[j].state = State::Ready;
        }
        any = true;
    }
    return any;
}

void Engine::run_warp(uint32_t first, uint32_t last) {
    do {
        for (uint32_t i = first; i < last && failure.empty(); i++)
            if (threads[i].state == State::New || threads[i].state == State::Ready)
                resume(threads[i]);
    } while (failure.empty() && complete_exchanges(first, last));
}

// Lets the block go on when every thread that has not returned waits at the barrier. Returns whether any does.
bool Engine::release_barrier() {
    uint32_t waiting = 0, alive = 0;
    for (const Thread &thread : threads) {
        waiting += thread.state == State::AtBarrier;
        alive += thread.state != State::Returned;
    }
    if (waiting != alive) {
        failure = std::to_string(waiting) + " of " + std::to_string(alive) +
                  " threads wait at __syncthreads and the others in a warp operation whose lanes never all come";
        return false;
    }
    for (Thread &thread : threads)
        if (thread.state == State::AtBarrier)
            thread.state = State::Ready;
    return alive != 0;
}

void Engine::run_block(Index block) {
    const Index size = launch->block;
    uint32_t count = size.x * size.y * size.z;
    memset(shared.data(), POISON, shared.size());
    auto address = reinterpret_cast<uintptr_t>(shared.data());
    unsigned char *dynamic = shared.data() + (-address & 15);
    for (uint32_t i = 0; i < count; i++) {
        Thread &thread = threads[i];
        thread = Thread{};
        thread.position = Position{
            {i % size.x, i / size.x % size.y, i / size.x / size.y}, block, size, launch->grid, i % WARP, dynamic};
    }
    do {
        for (uint32_t first = 0; first < count && failure.empty(); first += WARP)
            run_warp(first, first + WARP < count ? first + WARP : count);
    } while (failure.empty() && release_barrier());
    for (uint32_t i = 0; i < MARGIN; i++)
        if (failure.empty() && dynamic[launch->dynamic_shared + i] != POISON)
            failure = "the block wrote past its dynamic shared memory";
}

// Drops the threads of a block that cannot go on, with their stacks.
void Engine::give_up() {
    for (Thread &thread : threads) {
        if (thread.stack != nullptr)
            free_stacks.push_back(thread.stack);
        thread.stack = nullptr;
    }
}

} // namespace

void block_barrier() {
    wait(State::AtBarrier);
}

Exchange exchange(const char *what, uint32_t mask, uint64_t value) {
    Thread &thread = *engine.running;
    if (!(mask >> thread.position.lane & 1))
        fail(std::string(what) + " by a lane that is not in its own mask");
    thread.operation = what;
    thread.mask = mask;
    thread.value = value;
    wait(State::InWarp);
    size_t warp = (&thread - engine.threads.data()) / WARP * WARP;
    return Exchange{thread.arrived, engine.values.data() + warp};
}

void fail(const std::string &message) {
    engine.failure = message;
    wait(State::AtBarrier);
    abort();
}

std::string run(const Launch &launch) {
    Engine &e = engine;
    uint32_t count = launch.block.x * launch.block.y * launch.block.z;
    e.launch = &launch;
    e.failure.clear();
    e.threads.assign(count, Thread{});
    e.values.assign((count + WARP - 1) / WARP * WARP, 0);
    e.shared.resize(launch.dynamic_shared + MARGIN + 16);
    for (uint32_t z = 0; z < launch.grid.z && e.failure.empty(); z++)
        for (uint32_t y = 0; y < launch.grid.y && e.failure.empty(); y++)
            for (uint32_t x = 0; x < launch.grid.x && e.failure.empty(); x++)
                e.run_block(Index{x, y, z});
    e.give_up();
    here = nullptr;
    return e.failure;
}

} // namespace emulator
