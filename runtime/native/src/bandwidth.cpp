// How fast threads read memory, the limit of every kernel that reads weights once.
#include <atomic>
#include <chrono>
#include <cstring>

#include "ops.h"
#include "pool.h"

namespace larder {
namespace {

constexpr int64_t kChunkBytes = 1 << 20;

uint64_t sum_words(const uint8_t* data, int64_t num_bytes) {
    uint64_t sums[8] = {};
    for (int64_t offset = 0; offset + 64 <= num_bytes; offset += 64) {
        uint64_t words[8];
        std::memcpy(words, data + offset, sizeof words);
        for (int l = 0; l < 8; ++l) sums[l] += words[l];
    }
    uint64_t total = 0;
    for (const uint64_t sum : sums) total += sum;
    return total;
}

}  // namespace

double read_bandwidth(const uint8_t* data, int64_t num_bytes, int num_threads) {
    const int64_t num_chunks = (num_bytes + kChunkBytes - 1) / kChunkBytes;
    std::atomic<uint64_t> total{0};
    std::atomic<int64_t> next{0};
    const auto start = std::chrono::steady_clock::now();
    pool::run(num_threads, [&](int64_t) {
        for (int64_t chunk = next++; chunk < num_chunks; chunk = next++) {
            const int64_t offset = chunk * kChunkBytes;
            const int64_t left = num_bytes - offset;
            total += sum_words(data + offset, left < kChunkBytes ? left : kChunkBytes);
        }
    });
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    return static_cast<double>(num_bytes) / seconds.count();
}

}  // namespace larder
