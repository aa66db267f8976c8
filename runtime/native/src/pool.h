// The one pool of threads that all kernels share.
#pragma once

#include <cstdint>
#include <type_traits>

namespace larder::pool {

using Task = void (*)(void* context, int64_t index);

// Call task(context, i) for every i below num_tasks, on the calling thread and the pool's; return
// when all are done. Several callers take turns.
void run(int64_t num_tasks, Task task, void* context);

template <class Function>
void run(int64_t num_tasks, Function&& function) {
    using Callable = std::remove_reference_t<Function>;
    run(
        num_tasks,
        [](void* context, int64_t index) { (*static_cast<Callable*>(context))(index); },
        const_cast<void*>(static_cast<const void*>(&function)));
}

// Threads that work on a job, the caller among them.
int num_threads();
// Set that number (at least 1); threads start with the next job that needs them.
void set_num_threads(int count);

}  // namespace larder::pool
