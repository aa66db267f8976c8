// Choice of experts: the highest logits of a row, weighted by the softmax over all.
#include <algorithm>
#include <numeric>
#include <vector>

#include "exponential.h"
#include "ops.h"

namespace larder {

void route(const float* logits, int64_t n, int64_t num_experts, int64_t k, bool is_normalised,
           int32_t* ids, float* weights) {
    thread_local std::vector<int32_t> order;
    thread_local std::vector<float> shares;
    shares.resize(static_cast<size_t>(num_experts));
    for (int64_t i = 0; i < n; ++i) {
        const float* const row = logits + i * num_experts;
        const float highest = *std::max_element(row, row + num_experts);
        float total = 0.0f;
        for (int64_t e = 0; e < num_experts; ++e) {
            const float share = exponential(row[e] - highest);
            shares[static_cast<size_t>(e)] = share;
            total += share;
        }
        order.resize(static_cast<size_t>(num_experts));
        std::iota(order.begin(), order.end(), 0);
        const auto is_before = [row](int32_t a, int32_t b) {
            return row[a] > row[b] || (row[a] == row[b] && a < b);
        };
        std::nth_element(order.begin(), order.begin() + (k - 1), order.end(), is_before);
        std::sort(order.begin(), order.begin() + k);
        if (is_normalised) {
            total = 0.0f;
            for (int64_t j = 0; j < k; ++j)
                total += shares[static_cast<size_t>(order[static_cast<size_t>(j)])];
        }
        for (int64_t j = 0; j < k; ++j) {
            const int32_t id = order[static_cast<size_t>(j)];
            ids[i * k + j] = id;
            weights[i * k + j] = shares[static_cast<size_t>(id)] / total;
        }
    }
}

}  // namespace larder
