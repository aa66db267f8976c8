// Threads that wait for jobs: they spin for a moment after a job, then sleep.
//
// A job is published by storing its fields and then its ticket:
//
//     ticket = generation (32 bits) | number of tasks not yet taken (32 bits)
//
// A thread takes a task by lowering the ticket with compare-and-swap. A ticket with tasks left
// belongs to a job that cannot have ended, so the fields read beside it are that job's; with none
// left nothing is taken. A late thread can therefore neither touch a job that it did not read nor
// keep a caller waiting. The pool is never destroyed: at the end of the process its threads sleep
// and touch nothing.
#include "pool.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>
#include <vector>

#ifndef _WIN32
#include <pthread.h>
#endif
#ifdef __linux__
#include <sched.h>
#endif
#if defined(__x86_64__) || defined(_M_X64)
#include <immintrin.h>
#endif

namespace larder::pool {
namespace {

constexpr uint64_t kTasksMask = 0xffffffffu;
constexpr int kSpinsBetweenClocks = 64;
constexpr auto kSpinTime = std::chrono::microseconds(60);

inline void relax() {
#if defined(__x86_64__) || defined(_M_X64)
    _mm_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

// Whether the condition came true within the spin time.
template <class Condition>
bool spin_until(Condition condition) {
    const auto end = std::chrono::steady_clock::now() + kSpinTime;
    do {
        for (int i = 0; i < kSpinsBetweenClocks; ++i) {
            if (condition()) return true;
            relax();
        }
    } while (std::chrono::steady_clock::now() < end);
    return condition();
}

class Pool {
public:
    void run(int64_t num_tasks, Task task, void* context) {
        const std::lock_guard<std::mutex> turn(callers_);
        grow();
        num_tasks_.store(num_tasks, std::memory_order_relaxed);
        task_.store(task, std::memory_order_relaxed);
        context_.store(context, std::memory_order_relaxed);
        num_left_.store(num_tasks, std::memory_order_relaxed);
        const uint32_t generation = generation_.load(std::memory_order_relaxed) + 1;
        const uint64_t ticket = static_cast<uint64_t>(generation) << 32;
        ticket_.store(ticket | static_cast<uint64_t>(num_tasks), std::memory_order_release);
        generation_.store(generation, std::memory_order_seq_cst);
        keep_apart();
        if (num_sleeping_.load(std::memory_order_seq_cst) > 0) generation_.notify_all();
        work();
        wait_for_end();
    }

    int num_threads() const { return num_wanted_.load(std::memory_order_relaxed) + 1; }

    void set_num_threads(int count) {
        num_wanted_.store(std::max(0, count - 1), std::memory_order_relaxed);
    }

private:
    void grow() {
        while (static_cast<int>(num_started_) < num_wanted_.load(std::memory_order_relaxed)) {
            const int number = num_started_++;
            std::thread thread([this, number] { serve(number); });
#ifdef __linux__
            handles_.push_back(thread.native_handle());
            left_out_ = -1;
#endif
            thread.detach();
        }
    }

    // Let the threads run on any core but the caller's. In a virtual machine a core that slept for
    // some milliseconds may not count as idle; a thread that is woken then lands on the core of
    // its waker, which is at work, and waits there for a millisecond.
    void keep_apart() {
#ifdef __linux__
        const int here = sched_getcpu();
        if (here < 0 || here == left_out_) return;
        cpu_set_t cores;
        if (sched_getaffinity(0, sizeof cores, &cores) != 0) return;
        left_out_ = here;
        if (CPU_COUNT(&cores) > static_cast<int>(handles_.size())) CPU_CLR(here, &cores);
        for (const pthread_t thread : handles_) pthread_setaffinity_np(thread, sizeof cores, &cores);
#endif
    }

    // Take tasks of the present job until none is left.
    void work() {
        uint64_t ticket = ticket_.load(std::memory_order_acquire);
        while (const int64_t num_untaken = static_cast<int64_t>(ticket & kTasksMask)) {
            const Task task = task_.load(std::memory_order_relaxed);
            void* const context = context_.load(std::memory_order_relaxed);
            const int64_t index = num_tasks_.load(std::memory_order_relaxed) - num_untaken;
            // Success shows that the fields above are this job's: it had a task left until now,
            // and the next job is not published before the task taken here is done.
            if (!ticket_.compare_exchange_weak(ticket, ticket - 1, std::memory_order_acq_rel,
                                               std::memory_order_acquire))
                continue;
            task(context, index);
            if (num_left_.fetch_sub(1, std::memory_order_acq_rel) == 1) num_left_.notify_all();
            ticket = ticket_.load(std::memory_order_acquire);
        }
    }

    void wait_for_end() {
        const auto is_done = [this] { return num_left_.load(std::memory_order_acquire) == 0; };
        if (spin_until(is_done)) return;
        for (int64_t left = num_left_.load(std::memory_order_acquire); left != 0;
             left = num_left_.load(std::memory_order_acquire))
            num_left_.wait(left, std::memory_order_acquire);
    }

    void serve(int number) {
        uint32_t seen = 0;
        while (true) {
            const auto is_new = [&] {
                return generation_.load(std::memory_order_seq_cst) != seen;
            };
            if (!spin_until(is_new)) {
                num_sleeping_.fetch_add(1, std::memory_order_seq_cst);
                generation_.wait(seen, std::memory_order_seq_cst);
                num_sleeping_.fetch_sub(1, std::memory_order_seq_cst);
            }
            seen = generation_.load(std::memory_order_seq_cst);
            if (number < num_wanted_.load(std::memory_order_relaxed)) work();
        }
    }

    std::mutex callers_;
    std::atomic<int> num_wanted_{
        static_cast<int>(std::max(1u, std::thread::hardware_concurrency())) - 1};
    int num_started_ = 0;  // guarded by callers_
#ifdef __linux__
    std::vector<pthread_t> handles_;  // guarded by callers_
    int left_out_ = -1;               // the core that they leave alone; guarded by callers_
#endif
    std::atomic<int> num_sleeping_{0};
    alignas(64) std::atomic<uint32_t> generation_{0};
    alignas(64) std::atomic<uint64_t> ticket_{0};
    std::atomic<Task> task_{nullptr};
    std::atomic<void*> context_{nullptr};
    std::atomic<int64_t> num_tasks_{0};
    alignas(64) std::atomic<int64_t> num_left_{0};
};

std::atomic<Pool*> the_pool{nullptr};

#ifndef _WIN32
// A forked child has no threads but its own: it starts with a fresh pool of the same size.
void replace_pool() {
    Pool* const fresh = new Pool;
    if (const Pool* old = the_pool.load()) fresh->set_num_threads(old->num_threads());
    the_pool.store(fresh);
}
#endif

Pool& instance() {
    static const bool is_made = [] {
        the_pool.store(new Pool);
#ifndef _WIN32
        pthread_atfork(nullptr, nullptr, replace_pool);
#endif
        return true;
    }();
    static_cast<void>(is_made);
    return *the_pool.load(std::memory_order_acquire);
}

}  // namespace

void run(int64_t num_tasks, Task task, void* context) {
    Pool& pool = instance();
    if (num_tasks <= 1 || pool.num_threads() == 1) {
        for (int64_t i = 0; i < num_tasks; ++i) task(context, i);
        return;
    }
    pool.run(num_tasks, task, context);
}

int num_threads() { return instance().num_threads(); }

void set_num_threads(int count) { instance().set_num_threads(count); }

}  // namespace larder::pool
