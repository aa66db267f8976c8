// A whole attention block in one call: projections, norms, rotary turn, cache, attention, output.
#pragma once

#include <cstdint>
#include <vector>

#include "ops.h"

namespace larder {

struct AttentionBlock {
    AttentionShape shape;
    int64_t hidden;
    Projection q, k, v, o;
    const float* q_norm;  // one weight for each channel of a head, or null
    const float* k_norm;
    float eps;
    const float* cosines;  // [positions, num_angles], or null
    const float* sines;
    int64_t num_positions, num_angles;
    float scale;
    int64_t window;
    const float* sinks;  // one for each head, or null

    // out[n, hidden] for rows x[n, hidden] at positions from start_position on, whose keys and
    // values are written to the pages first. Throws std::invalid_argument for positions that
    // tables or pages lack.
    void run(const float* x, int64_t n, const std::vector<uint64_t>& key_pages,
             const std::vector<uint64_t>& value_pages, int64_t start_position, float* out) const;
};

}  // namespace larder
