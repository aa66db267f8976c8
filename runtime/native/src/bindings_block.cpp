// The attention block as a Python object: made once for each layer, run once for each chunk.
#include <nanobind/nanobind.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <stdexcept>
#include <tuple>
#include <vector>

#include "attention_block.h"

namespace nb = nanobind;
using namespace larder;

namespace {

using MatrixNumbers = std::tuple<uint64_t, int, int64_t, int64_t, uint64_t>;

// (address, format, rows, columns, address of the bias or 0)
Projection projection_of(const MatrixNumbers& numbers, int64_t rows, int64_t columns) {
    const auto& [address, format, found_rows, found_columns, bias] = numbers;
    if (format < 0 || format >= kNumFormats) throw std::invalid_argument("unknown weight format");
    if (found_rows != rows || found_columns != columns)
        throw std::invalid_argument("attention block: a matrix of another shape");
    return {weights_at(address, format, rows, columns), floats_at(bias)};
}

AttentionBlock* make_block(int64_t hidden, std::tuple<int64_t, int64_t, int64_t, int64_t> shape,
                           const MatrixNumbers& q, const MatrixNumbers& k, const MatrixNumbers& v,
                           const MatrixNumbers& o, std::tuple<uint64_t, uint64_t, float> norms,
                           std::tuple<uint64_t, uint64_t, int64_t, int64_t> tables, float scale,
                           int64_t window, uint64_t sinks) {
    const auto [num_heads, num_kv_heads, head_dim, page_tokens] = shape;
    const auto [q_norm, k_norm, eps] = norms;
    const auto [cosines, sines, num_positions, num_angles] = tables;
    if (num_heads < 1 || num_kv_heads < 1 || head_dim < 1 || page_tokens < 1 ||
        num_heads % num_kv_heads != 0)
        throw std::invalid_argument("attention block: heads do not divide");
    if (cosines && 2 * num_angles > head_dim)
        throw std::invalid_argument("attention block: more angles than channels");
    const int64_t queries = num_heads * head_dim, keys = num_kv_heads * head_dim;
    return new AttentionBlock{{num_heads, num_kv_heads, head_dim, page_tokens},
                              hidden,
                              projection_of(q, queries, hidden),
                              projection_of(k, keys, hidden),
                              projection_of(v, keys, hidden),
                              projection_of(o, hidden, queries),
                              floats_at(q_norm),
                              floats_at(k_norm),
                              eps,
                              floats_at(cosines),
                              floats_at(sines),
                              num_positions,
                              num_angles,
                              scale,
                              window,
                              floats_at(sinks)};
}

}  // namespace

void bind_attention_block(nb::module_& module) {
    nb::class_<AttentionBlock>(module, "AttentionBlock")
        .def(
            "run",
            [](const AttentionBlock& block, uint64_t x, int64_t n,
               const std::vector<uint64_t>& keys, const std::vector<uint64_t>& values,
               int64_t start_position, uint64_t out) {
                block.run(floats_at(x), n, keys, values, start_position, room_at(out));
            },
            nb::call_guard<nb::gil_scoped_release>());
    module.def("attention_block", &make_block, nb::rv_policy::take_ownership);
}
