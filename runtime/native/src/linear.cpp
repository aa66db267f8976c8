// Products with some matrices, cut into tasks of some rows of a matrix by some rows of x.
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

// One matrix and how it is cut.
struct Cut {
    const Product* product;
    int64_t first_task;
    int64_t task_rows;
    int64_t row_tasks;
};

void run_task(const Cut& cut, int64_t index, const uint8_t* const* x_rows, int64_t n) {
    const Projection& projection = cut.product->projection;
    const Weights& weights = projection.weights;
    const int64_t rows = weights.rows;
    const int64_t row = index % cut.row_tasks * cut.task_rows;
    const int64_t num_rows = std::min(cut.task_rows, rows - row);
    const int64_t start = index / cut.row_tasks * kTaskX;
    const int64_t count = std::min(kTaskX, n - start);
    float* const y = cut.product->out + start * rows + row;
    table().dot[static_cast<int>(weights.format)](weights, row, num_rows, x_rows + start, count, y,
                                                  rows);
    if (!projection.bias) return;
    for (int64_t i = 0; i < count; ++i)
        for (int64_t j = 0; j < num_rows; ++j) y[i * rows + j] += projection.bias[row + j];
}

// Products that take rows of x in the same form.
void run_alike(const Product* products, int64_t count, const float* x, int64_t n) {
    const Weights& first = products[0].projection.weights;
    thread_local Inputs inputs;
    thread_local std::vector<const uint8_t*> x_rows;
    thread_local std::vector<Cut> cuts;
    inputs.prepare(first.format, x, n, first.columns);
    x_rows.resize(static_cast<size_t>(n));
    for (int64_t i = 0; i < n; ++i) x_rows[static_cast<size_t>(i)] = inputs.row(i);

    cuts.clear();
    int64_t all_rows = 0, num_tasks = 0;
    for (int64_t p = 0; p < count; ++p) all_rows += products[p].projection.weights.rows;
    const int64_t share = round_up(all_rows / (4 * pool::num_threads()), kRowBlock);
    const int64_t task_rows =
        std::clamp(share, kRowBlock, n == 1 ? 4 * kMaxTaskRows : kMaxTaskRows);
    const int64_t x_tasks = (n + kTaskX - 1) / kTaskX;
    for (int64_t p = 0; p < count; ++p) {
        const int64_t rows = products[p].projection.weights.rows;
        const int64_t row_tasks = (rows + task_rows - 1) / task_rows;
        cuts.push_back({products + p, num_tasks, task_rows, row_tasks});
        num_tasks += row_tasks * x_tasks;
    }
    const Cut* const first_cut = cuts.data();
    const uint8_t* const* const rows = x_rows.data();
    const auto task = [=](int64_t index) {
        int64_t p = count - 1;
        while (first_cut[p].first_task > index) --p;
        run_task(first_cut[p], index - first_cut[p].first_task, rows, n);
    };
    if (n * all_rows * first.columns <= kSerialWeights) {
        for (int64_t i = 0; i < num_tasks; ++i) task(i);
    } else {
        pool::run(num_tasks, task);
    }
}

}  // namespace

void project(std::initializer_list<Product> products, const float* x, int64_t n) {
    const Product* const all = products.begin();
    const int64_t count = static_cast<int64_t>(products.size());
    for (int64_t first = 0, end = 1; first < count; first = end++) {
        const bool is_grouped_run = is_grouped(all[first].projection.weights.format);
        while (end < count && is_grouped(all[end].projection.weights.format) == is_grouped_run)
            ++end;
        run_alike(all + first, end - first, x, n);
    }
}

void linear(const Weights& weights, const float* x, int64_t n, const float* bias, float* out) {
    project({{{weights, bias}, out}}, x, n);
}

}  // namespace larder
