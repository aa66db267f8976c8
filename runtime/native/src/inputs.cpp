#include "inputs.h"

#include <algorithm>

#include "pool.h"

namespace larder {
namespace {

constexpr int64_t kTaskValues = 16384;  // values below which waking a thread costs more

}  // namespace

void Inputs::prepare(Format format, const float* x, int64_t n, int64_t columns) {
    row_bytes_ = input_bytes(format, columns);
    first_ = reinterpret_cast<const uint8_t*>(x);
    if (!is_grouped(format)) return;
    const size_t needed = static_cast<size_t>(n * row_bytes_);
    if (copy_.size() < needed) copy_.resize(needed);
    first_ = copy_.data();
    uint8_t* const copy = copy_.data();
    const int64_t row_bytes = row_bytes_;
    const auto quantise = table().quantise;
    const int64_t task_rows = std::max<int64_t>(1, kTaskValues / std::max<int64_t>(1, columns));
    pool::run((n + task_rows - 1) / task_rows, [=](int64_t index) {
        const int64_t end = std::min(n, (index + 1) * task_rows);
        for (int64_t i = index * task_rows; i < end; ++i)
            quantise(x + i * columns, columns, copy + i * row_bytes);
    });
}

}  // namespace larder
