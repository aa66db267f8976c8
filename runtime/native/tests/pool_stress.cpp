// Many short jobs of changing size from two callers, while the pool is resized; for thread
// sanitizers. Leaves with status 1 if a task ran not exactly once.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <thread>
#include <vector>

#include "../src/pool.h"

namespace {

constexpr int kNumJobs = 20000;

bool run_jobs(int seed) {
    for (int job = 0; job < kNumJobs; ++job) {
        const int num_tasks = 1 + (job * 7 + seed) % 37;
        std::vector<int> counts(static_cast<size_t>(num_tasks), 0);
        larder::pool::run(num_tasks, [&](int64_t i) { counts[static_cast<size_t>(i)] += 1; });
        for (const int count : counts)
            if (count != 1) return false;
        if (job % 500 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        if (seed == 0 && job % 700 == 0) larder::pool::set_num_threads(2 + job % 4);
    }
    return true;
}

}  // namespace

int main() {
    larder::pool::set_num_threads(4);
    bool is_right[2] = {false, false};
    std::thread first([&] { is_right[0] = run_jobs(0); });
    std::thread second([&] { is_right[1] = run_jobs(1); });
    first.join();
    second.join();
    std::puts(is_right[0] && is_right[1] ? "every task ran once" : "a task was lost or repeated");
    return is_right[0] && is_right[1] ? 0 : 1;
}
