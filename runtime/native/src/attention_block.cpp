#include "attention_block.h"

#include <stdexcept>

namespace larder {
namespace {

// Rows between the steps of a block, kept by the calling thread for the next call.
struct Rows {
    std::vector<float> q, k, v, mixed;
    void make(size_t queries, size_t keys) {
        for (std::vector<float>* each : {&q, &mixed})
            if (each->size() < queries) each->resize(queries);
        for (std::vector<float>* each : {&k, &v})
            if (each->size() < keys) each->resize(keys);
    }
};

}  // namespace

void AttentionBlock::run(const float* x, int64_t n, const std::vector<uint64_t>& key_pages,
                         const std::vector<uint64_t>& value_pages, int64_t start_position,
                         float* out) const {
    const int64_t end = start_position + n;
    if (n < 1 || start_position < 0 || (cosines && end > num_positions))
        throw std::invalid_argument("attention block: positions outside the tables");
    if (key_pages.size() != value_pages.size() ||
        static_cast<int64_t>(key_pages.size()) * shape.page_tokens < end)
        throw std::invalid_argument("attention block: positions beyond the pages");
    thread_local Rows rows;
    const int64_t heads = shape.num_heads, kv_heads = shape.num_kv_heads, dim = shape.head_dim;
    rows.make(static_cast<size_t>(n * heads * dim), static_cast<size_t>(n * kv_heads * dim));
    float* const queries = rows.q.data();
    float* const keys = rows.k.data();
    project({{q, queries}, {k, keys}, {v, rows.v.data()}}, x, n);
    if (q_norm) rms_norm(queries, n * heads, dim, q_norm, eps, queries);
    if (k_norm) rms_norm(keys, n * kv_heads, dim, k_norm, eps, keys);
    if (cosines) {
        const int64_t skip = start_position * num_angles;
        rope(queries, n, heads, dim, num_angles, cosines + skip, sines + skip);
        rope(keys, n, kv_heads, dim, num_angles, cosines + skip, sines + skip);
    }
    store_kv(shape, key_pages, value_pages, start_position, n, keys, rows.v.data());
    attention(shape, queries, n, key_pages, value_pages, start_position, scale, window, sinks,
              rows.mixed.data());
    project({{o, out}}, rows.mixed.data(), n);
}

}  // namespace larder
