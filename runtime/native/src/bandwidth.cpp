// How fast threads read memory, the limit of every kernel that reads weights once.
#include <algorithm>
#include <atomic>
#include <chrono>

#include "ops.h"
#include "pool.h"

namespace larder {

double read_bandwidth(const uint8_t* data, int64_t num_bytes, int num_threads,
                      int64_t chunk_bytes) {
    const int64_t num_chunks = (num_bytes + chunk_bytes - 1) / chunk_bytes;
    const auto read = table().read_through;
    std::atomic<uint64_t> total{0};
    std::atomic<int64_t> next{0};
    const auto start = std::chrono::steady_clock::now();
    pool::run(num_threads, [&](int64_t) {
        for (int64_t chunk = next++; chunk < num_chunks; chunk = next++) {
            const int64_t offset = chunk * chunk_bytes;
            const int64_t count = std::min(chunk_bytes, num_bytes - offset);
            if (count >= 32) total += read(data + offset, count);
        }
    });
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    return static_cast<double>(num_bytes) / seconds.count();
}

}  // namespace larder
