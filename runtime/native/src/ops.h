// Every operation that the bindings offer, on addresses and plain numbers.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <vector>

#include "table.h"

namespace larder {

inline const float* floats_at(uint64_t address) { return reinterpret_cast<const float*>(address); }
inline float* room_at(uint64_t address) { return reinterpret_cast<float*>(address); }

inline Weights weights_at(uint64_t address, int format, int64_t rows, int64_t columns) {
    const Format kind = static_cast<Format>(format);
    return {kind, reinterpret_cast<const uint8_t*>(address), rows, columns,
            plain_row_bytes(kind, columns)};
}

// A matrix and the bias behind it (null: none); a product puts its results somewhere.
struct Projection {
    Weights weights;
    const float* bias;
};
struct Product {
    Projection projection;
    float* out;
};

// Products of the same rows x[n, columns] with some matrices, in one job.
void project(std::initializer_list<Product> products, const float* x, int64_t n);

// out[n, rows] = x[n, columns] . weights + bias (null: none).
void linear(const Weights& weights, const float* x, int64_t n, const float* bias, float* out);

// One gated feed-forward block and the rows that it works on.
//
// Without `up.data` there is no second matrix; a bias that is null is none.
struct Block {
    Weights gate, up, down;
    std::vector<int32_t> rows;
    std::vector<float> scales;  // the weight of each row's result
    Activation activation{};
    const float* gate_bias = nullptr;
    const float* up_bias = nullptr;
    const float* down_bias = nullptr;
};

// out[row] += scale * block(x[row]), block after block in their order for every row.
void feed_forward(const std::vector<Block>& blocks, const float* x, int64_t n, float* out);

// Turn the choices ids[n, k], weights[n, k] into the rows of each numbered block.
void assign_rows(std::vector<Block>& blocks, const std::vector<int32_t>& numbers,
                 const int32_t* ids, const float* weights, int64_t n, int64_t k);

struct AttentionShape {
    int64_t num_heads, num_kv_heads, head_dim, page_tokens;
};

// out[n, heads * head_dim]; see Kernels.attention.
void attention(const AttentionShape& shape, const float* q, int64_t n,
               const std::vector<uint64_t>& key_pages, const std::vector<uint64_t>& value_pages,
               int64_t start_position, float scale, int64_t window, const float* sinks, float* out);

void store_kv(const AttentionShape& shape, const std::vector<uint64_t>& key_pages,
              const std::vector<uint64_t>& value_pages, int64_t start_position, int64_t n,
              const float* keys, const float* values);

void rms_norm(const float* x, int64_t n, int64_t width, const float* weight, float eps, float* out);
void rope(float* x, int64_t n, int64_t heads, int64_t head_dim, int64_t num_angles,
          const float* cosines, const float* sines);
void embed(const Weights& weights, const int64_t* ids, int64_t n, float* out);
void add_gated(float* out, const float* x, const float* logits, int64_t n, int64_t width);
void route(const float* logits, int64_t n, int64_t num_experts, int64_t k, bool is_normalised,
           int32_t* ids, float* weights);

// Bytes per second at which `num_threads` threads read a buffer once, chunk by chunk.
double read_bandwidth(const uint8_t* data, int64_t num_bytes, int num_threads, int64_t chunk_bytes);

}  // namespace larder
