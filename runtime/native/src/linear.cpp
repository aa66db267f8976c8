// Products with one matrix, cut into tasks of some rows of the matrix by some rows of x.
#include <algorithm>
#include <vector>

#include "inputs.h"
#include "ops.h"
#include "pool.h"

namespace larder {
namespace {

constexpr int64_t kMaxTaskRows = 64;      // rows of the matrix in a task: they stay in L1 or L2
constexpr int64_t kTaskX = 48;            // rows of x in a task
constexpr int64_t kSerialWeights = 8192;  // multiply-adds below which waking threads costs more

}  // namespace

void linear(const Weights& weights, const float* x, int64_t n, const float* bias, float* out) {
    const KernelTable::Dot dot = table().dot[static_cast<int>(weights.format)];
    const int64_t rows = weights.rows;
    thread_local Inputs inputs;
    thread_local std::vector<const uint8_t*> x_rows;
    inputs.prepare(weights.format, x, n, weights.columns);
    x_rows.resize(static_cast<size_t>(n));
    for (int64_t i = 0; i < n; ++i) x_rows[static_cast<size_t>(i)] = inputs.row(i);
    const uint8_t* const* const first_x = x_rows.data();

    const int64_t share = rows / (4 * pool::num_threads());
    const int64_t task_rows =
        std::clamp(round_up(share, kRowBlock), kRowBlock, n == 1 ? 4 * kMaxTaskRows : kMaxTaskRows);
    const int64_t row_tasks = (rows + task_rows - 1) / task_rows;
    const int64_t x_tasks = (n + kTaskX - 1) / kTaskX;
    const auto task = [=, &weights](int64_t index) {
        const int64_t row = index % row_tasks * task_rows;
        const int64_t num_rows = std::min(task_rows, rows - row);
        const int64_t start = index / row_tasks * kTaskX;
        const int64_t count = std::min(kTaskX, n - start);
        float* const y = out + start * rows + row;
        dot(weights, row, num_rows, first_x + start, count, y, rows);
        if (!bias) return;
        for (int64_t i = 0; i < count; ++i)
            for (int64_t j = 0; j < num_rows; ++j) y[i * rows + j] += bias[row + j];
    };
    if (n * rows * weights.columns <= kSerialWeights) {
        for (int64_t i = 0; i < row_tasks * x_tasks; ++i) task(i);
    } else {
        pool::run(row_tasks * x_tasks, task);
    }
}

}  // namespace larder
