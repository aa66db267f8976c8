// The Python module: numbers and addresses in, nothing kept. Callers answer for what they point to.
//
// Calls that take threads or long give the interpreter lock back; the small ones keep it, because
// getting it back can cost more than they take.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "ops.h"
#include "pool.h"
#include "repack.h"

namespace nb = nanobind;
using namespace larder;
using Unlocked = nb::call_guard<nb::gil_scoped_release>;

namespace {

Weights checked_weights(uint64_t address, int format, int64_t rows, int64_t columns) {
    if (format < 0 || format >= kNumFormats) throw std::invalid_argument("unknown weight format");
    return weights_at(address, format, rows, columns);
}

void run_linear(uint64_t x, int64_t n, uint64_t weights, int format, int64_t rows, int64_t columns,
                uint64_t bias, uint64_t out) {
    linear(checked_weights(weights, format, rows, columns), floats_at(x), n, floats_at(bias),
           room_at(out));
}

Activation checked_activation(int kind, float alpha, float limit) {
    if (kind < 0 || kind >= kNumActivations) throw std::invalid_argument("unknown activation");
    return {static_cast<ActivationKind>(kind), alpha, limit};
}

void run_gated(uint64_t x, int64_t n, uint64_t gate, int gate_format, uint64_t up, int up_format,
               uint64_t down, int down_format, int64_t hidden, int64_t width, uint64_t out,
               int kind, float alpha, float limit) {
    std::vector<Block> blocks{{checked_weights(gate, gate_format, width, hidden),
                               checked_weights(up, up_format, width, hidden),
                               checked_weights(down, down_format, hidden, width),
                               {},
                               std::vector<float>(static_cast<size_t>(n), 1.0f),
                               checked_activation(kind, alpha, limit)}};
    for (int64_t i = 0; i < n; ++i) blocks[0].rows.push_back(static_cast<int32_t>(i));
    feed_forward(blocks, floats_at(x), n, room_at(out));
}

// Formats and offsets are those of gate, up and down. Biases: addresses of [rows, width],
// [rows, width] and [rows, hidden], and the row of each expert; without rows there are none.
void run_experts(uint64_t x, int64_t n, const std::vector<int>& formats, int64_t hidden,
                 int64_t width, const std::vector<uint64_t>& offsets,
                 const std::vector<int32_t>& numbers, const std::vector<uint64_t>& slots,
                 uint64_t ids, uint64_t weights, int64_t k, uint64_t out, int kind, float alpha,
                 float limit, const std::vector<uint64_t>& biases,
                 const std::vector<int64_t>& bias_rows) {
    const bool has_biases = !bias_rows.empty();
    if (numbers.size() != slots.size() || offsets.size() != 3 || formats.size() != 3)
        throw std::invalid_argument("experts: lists of unequal length");
    if (has_biases && (biases.size() != 3 || bias_rows.size() != slots.size()))
        throw std::invalid_argument("experts: biases of unequal length");
    const Activation activation = checked_activation(kind, alpha, limit);
    std::vector<Block> blocks;
    blocks.reserve(slots.size());
    for (size_t b = 0; b < slots.size(); ++b) {
        if (numbers[b] < 0) throw std::invalid_argument("experts: a negative number");
        blocks.push_back({checked_weights(slots[b] + offsets[0], formats[0], width, hidden),
                          checked_weights(slots[b] + offsets[1], formats[1], width, hidden),
                          checked_weights(slots[b] + offsets[2], formats[2], hidden, width),
                          {},
                          {},
                          activation});
        if (!has_biases) continue;
        blocks[b].gate_bias = floats_at(biases[0]) + bias_rows[b] * width;
        blocks[b].up_bias = floats_at(biases[1]) + bias_rows[b] * width;
        blocks[b].down_bias = floats_at(biases[2]) + bias_rows[b] * hidden;
    }
    assign_rows(blocks, numbers, reinterpret_cast<const int32_t*>(ids), floats_at(weights), n, k);
    feed_forward(blocks, floats_at(x), n, room_at(out));
}

AttentionShape checked_shape(int64_t num_heads, int64_t num_kv_heads, int64_t head_dim,
                             int64_t page_tokens, size_t num_pages, size_t num_value_pages,
                             int64_t end_position) {
    if (num_kv_heads <= 0 || num_heads % num_kv_heads != 0 || page_tokens <= 0)
        throw std::invalid_argument("attention: heads do not divide");
    if (num_pages != num_value_pages ||
        static_cast<int64_t>(num_pages) * page_tokens < end_position)
        throw std::invalid_argument("attention: positions beyond the pages");
    return {num_heads, num_kv_heads, head_dim, page_tokens};
}

void run_attention(uint64_t q, int64_t n, int64_t num_heads, int64_t num_kv_heads,
                   int64_t head_dim, int64_t page_tokens, const std::vector<uint64_t>& keys,
                   const std::vector<uint64_t>& values, int64_t start_position, float scale,
                   int64_t window, uint64_t sinks, uint64_t out) {
    const AttentionShape shape = checked_shape(num_heads, num_kv_heads, head_dim, page_tokens,
                                               keys.size(), values.size(), start_position + n);
    attention(shape, floats_at(q), n, keys, values, start_position, scale, window,
              floats_at(sinks), room_at(out));
}

void run_store_kv(uint64_t new_keys, uint64_t new_values, int64_t n, int64_t num_kv_heads,
                  int64_t head_dim, int64_t page_tokens, const std::vector<uint64_t>& keys,
                  const std::vector<uint64_t>& values, int64_t start_position) {
    const AttentionShape shape = checked_shape(num_kv_heads, num_kv_heads, head_dim, page_tokens,
                                               keys.size(), values.size(), start_position + n);
    store_kv(shape, keys, values, start_position, n, floats_at(new_keys), floats_at(new_values));
}

void run_embed(uint64_t weights, int format, int64_t rows, int64_t columns, uint64_t ids,
               int64_t n, uint64_t out) {
    const int64_t* const wanted = reinterpret_cast<const int64_t*>(ids);
    for (int64_t i = 0; i < n; ++i)
        if (wanted[i] < 0 || wanted[i] >= rows) throw std::out_of_range("embed: id out of range");
    embed(checked_weights(weights, format, rows, columns), wanted, n, room_at(out));
}

void run_rms_norm(uint64_t x, int64_t n, int64_t width, uint64_t weight, float eps, uint64_t out) {
    rms_norm(floats_at(x), n, width, floats_at(weight), eps, room_at(out));
}

void run_rope(uint64_t x, int64_t n, int64_t heads, int64_t head_dim, int64_t num_angles,
              uint64_t cosines, uint64_t sines) {
    rope(room_at(x), n, heads, head_dim, num_angles, floats_at(cosines), floats_at(sines));
}

void run_route(uint64_t logits, int64_t n, int64_t num_experts, int64_t k, bool is_normalised,
               uint64_t ids, uint64_t weights) {
    if (k < 1 || k > num_experts) throw std::invalid_argument("route: top-k out of range");
    route(floats_at(logits), n, num_experts, k, is_normalised, reinterpret_cast<int32_t*>(ids),
          room_at(weights));
}

void run_add_gated(uint64_t out, uint64_t x, uint64_t logits, int64_t n, int64_t width) {
    add_gated(room_at(out), floats_at(x), floats_at(logits), n, width);
}

bool run_repack(int kind, int format, uint64_t stored, int64_t rows, int64_t columns,
                uint64_t out) {
    if (format < 0 || format >= kNumFormats) throw std::invalid_argument("unknown weight format");
    return repack(kind, static_cast<Format>(format), reinterpret_cast<const uint8_t*>(stored),
                  rows, columns, reinterpret_cast<uint8_t*>(out));
}

double run_read_bandwidth(uint64_t data, int64_t num_bytes, int num_threads, int64_t chunk_bytes) {
    if (num_bytes < 1 || num_threads < 1 || chunk_bytes < 1)
        throw std::invalid_argument("read_bandwidth: nothing to read");
    return read_bandwidth(reinterpret_cast<const uint8_t*>(data), num_bytes, num_threads,
                          chunk_bytes);
}

}  // namespace

// The classes, in a file of their own.
void bind_attention_block(nb::module_& module);

NB_MODULE(_native, module) {
    bind_attention_block(module);
    module.def("linear", &run_linear, Unlocked());
    module.def("gated", &run_gated, Unlocked());
    module.def("experts", &run_experts, Unlocked());
    module.def("attention", &run_attention, Unlocked());
    module.def("read_bandwidth", &run_read_bandwidth, Unlocked());
    module.def("repack", &run_repack, Unlocked());
    module.def("store_kv", &run_store_kv);
    module.def("embed", &run_embed);
    module.def("rms_norm", &run_rms_norm);
    module.def("rope", &run_rope);
    module.def("route", &run_route);
    module.def("add_gated", &run_add_gated);
    module.def("instruction_set", [] { return std::string(table().name); });
    module.def("select_instruction_set",
               [](const std::string& name) { return select_table(name.c_str()); });
    module.def("num_threads", [] { return pool::num_threads(); });
    module.def("set_num_threads", [](int count) { pool::set_num_threads(count); });
    module.attr("GROUP_SIZE") = kGroup;
    module.attr("ROW_BLOCK") = kRowBlock;
    module.attr("Q8_GROUP_BYTES") = group_bytes(Format::Q8G32);
    module.attr("Q4_GROUP_BYTES") = group_bytes(Format::Q4G32);
    module.attr("MXFP4_GROUP_BYTES") = group_bytes(Format::Mxfp4);
    module.attr("Q4A_GROUP_BYTES") = group_bytes(Format::Q4AG32) + head_bytes(Format::Q4AG32);
    module.attr("Q6_GROUP_BYTES") = group_bytes(Format::Q6G32) + head_bytes(Format::Q6G32);
    module.attr("Q3_GROUP_BYTES") = group_bytes(Format::Q3G16) + head_bytes(Format::Q3G16);
    module.attr("Q4K_SPAN_BYTES") = kSpanBytes;
    module.attr("Q5K_SPAN_BYTES") = kFiveSpanBytes;
    module.attr("Q6K_SPAN_BYTES") = kSixSpanBytes;
    module.attr("Q3K_SPAN_BYTES") = kThreeSpanBytes;
    module.attr("Q2K_SPAN_BYTES") = kTwoSpanBytes;
    module.attr("Q2_GROUP_BYTES") = group_bytes(Format::Q2G16) + head_bytes(Format::Q2G16);
}
