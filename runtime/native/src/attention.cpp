// Causal attention over keys and values that lie in pages.
//
// A task owns some heads that share a KV head, for some rows. Scores of a row lie in one line of
// scratch from its first visible position on, so that neither pages nor the rows beside it change
// the order in which anything is summed.
#include <algorithm>
#include <cstring>
#include <vector>

#include "ops.h"
#include "pool.h"

namespace larder {
namespace {

constexpr int64_t kTaskTokens = 8;
constexpr int64_t kSerialProducts = 32768;  // multiply-adds below which waking threads costs more

// One (row, head) pair of a task, and the positions that it sees: [first, end).
struct View {
    const float* q;
    float* out;
    int64_t first, end;
    const float* sink;  // a further score that adds nothing, or null
};

struct Pages {
    const AttentionShape& shape;
    const std::vector<uint64_t>& keys;
    const std::vector<uint64_t>& values;

    int64_t stride() const { return shape.num_kv_heads * shape.head_dim; }

    // Call visit(page, position, row of the page, count) for each page's part of [first, end).
    template <class Visit>
    void each(int64_t first, int64_t end, Visit visit) const {
        for (int64_t position = first; position < end;) {
            const int64_t page = position / shape.page_tokens;
            const int64_t row = position % shape.page_tokens;
            const int64_t count = std::min(end - position, shape.page_tokens - row);
            visit(static_cast<size_t>(page), position, row, count);
            position += count;
        }
    }
};

struct Scratch {
    std::vector<float> scores;
    std::vector<const uint8_t*> q;
    std::vector<const float*> weights;
    std::vector<float*> out;
};

void score(const Pages& pages, int64_t kv_head, const std::vector<View>& views, int64_t first,
           int64_t end, int64_t line, Scratch& scratch) {
    const int64_t width = pages.shape.head_dim;
    const KernelTable::Dot dot = table().dot[static_cast<int>(Format::F32)];
    pages.each(first, end, [&](size_t page, int64_t position, int64_t row, int64_t count) {
        const float* const keys =
            floats_at(pages.keys[page]) + row * pages.stride() + kv_head * width;
        const Weights part{Format::F32, reinterpret_cast<const uint8_t*>(keys), count, width,
                           pages.stride() * 4};
        dot(part, 0, count, scratch.q.data(), static_cast<int64_t>(views.size()),
            scratch.scores.data() + (position - first), line);
    });
}

// Add the values at [first, end) to the outputs of views [start, start + count).
void add_values(const Pages& pages, int64_t kv_head, int64_t base, int64_t first, int64_t end,
                int64_t line, size_t start, size_t count, Scratch& scratch) {
    const int64_t width = pages.shape.head_dim;
    pages.each(first, end, [&](size_t page, int64_t position, int64_t row, int64_t num_tokens) {
        for (size_t i = start; i < start + count; ++i)
            scratch.weights[i] =
                scratch.scores.data() + static_cast<int64_t>(i) * line + (position - base);
        const float* const values =
            floats_at(pages.values[page]) + row * pages.stride() + kv_head * width;
        table().accumulate(scratch.weights.data() + start, static_cast<int64_t>(count), values,
                           pages.stride(), num_tokens, width, scratch.out.data() + start);
    });
}

void attend(const Pages& pages, int64_t kv_head, const std::vector<View>& views, float scale) {
    thread_local Scratch scratch;
    const int64_t width = pages.shape.head_dim;
    const int64_t base = views.front().first;
    const int64_t limit = views.back().end;
    const int64_t line = round_up(limit - base, kPad) + kPad;
    const size_t num_views = views.size();
    scratch.scores.resize(num_views * static_cast<size_t>(line));
    scratch.q.resize(num_views);
    scratch.weights.resize(num_views);
    scratch.out.resize(num_views);
    for (size_t i = 0; i < num_views; ++i) {
        scratch.q[i] = reinterpret_cast<const uint8_t*>(views[i].q);
        scratch.out[i] = views[i].out;
        std::memset(views[i].out, 0, static_cast<size_t>(width) * sizeof(float));
    }
    score(pages, kv_head, views, base, limit, line, scratch);

    thread_local std::vector<float> sums;
    sums.resize(num_views);
    for (size_t i = 0; i < num_views; ++i) {
        float* const scores =
            scratch.scores.data() + static_cast<int64_t>(i) * line + (views[i].first - base);
        int64_t count = views[i].end - views[i].first;
        // The place behind a view's scores is free: no view of its line sees that far.
        if (views[i].sink) scores[count++] = *views[i].sink / scale;
        sums[i] = table().exponentials(scores, count, scale);
    }
    // What all see is added for all at once; what only some see, before and after, one by one.
    const int64_t common_first = views.back().first;
    const int64_t common_end = std::max(common_first, views.front().end);
    for (size_t i = 0; i < num_views; ++i)
        add_values(pages, kv_head, base, views[i].first, std::min(common_first, views[i].end), line,
                   i, 1, scratch);
    add_values(pages, kv_head, base, common_first, std::min(common_end, views.front().end), line, 0,
               num_views, scratch);
    for (size_t i = 0; i < num_views; ++i) {
        add_values(pages, kv_head, base, common_end, views[i].end, line, i, 1, scratch);
        const float factor = 1.0f / sums[i];
        for (int64_t c = 0; c < width; ++c) views[i].out[c] *= factor;
    }
}

}  // namespace

void attention(const AttentionShape& shape, const float* q, int64_t n,
               const std::vector<uint64_t>& key_pages, const std::vector<uint64_t>& value_pages,
               int64_t start_position, float scale, int64_t window, const float* sinks, float* out) {
    const Pages pages{shape, key_pages, value_pages};
    const int64_t group = shape.num_heads / shape.num_kv_heads;
    const int64_t tiles = (n + kTaskTokens - 1) / kTaskTokens;
    const bool is_short_of_tasks = tiles * shape.num_kv_heads < 2 * pool::num_threads();
    const int64_t task_heads = is_short_of_tasks ? 1 : group;
    const int64_t head_tasks = shape.num_heads / task_heads;
    const auto task = [=, &pages](int64_t index) {
        // The last rows see most: they go first, so that no thread ends on a long task.
        const int64_t tile = tiles - 1 - index / head_tasks;
        const int64_t first_head = index % head_tasks * task_heads;
        thread_local std::vector<View> views;
        views.clear();
        for (int64_t i = tile * kTaskTokens; i < std::min(n, (tile + 1) * kTaskTokens); ++i) {
            const int64_t end = start_position + i + 1;
            const int64_t first = window > 0 ? std::max<int64_t>(0, end - window) : 0;
            for (int64_t h = first_head; h < first_head + task_heads; ++h) {
                const int64_t place = (i * shape.num_heads + h) * shape.head_dim;
                views.push_back({q + place, out + place, first, end, sinks ? sinks + h : nullptr});
            }
        }
        attend(pages, first_head / group, views, scale);
    };
    const int64_t products = n * shape.num_heads * shape.head_dim * (start_position + n);
    if (products <= kSerialProducts) {
        for (int64_t i = 0; i < tiles * head_tasks; ++i) task(i);
    } else {
        pool::run(tiles * head_tasks, task);
    }
}

void store_kv(const AttentionShape& shape, const std::vector<uint64_t>& key_pages,
              const std::vector<uint64_t>& value_pages, int64_t start_position, int64_t n,
              const float* keys, const float* values) {
    const Pages pages{shape, key_pages, value_pages};
    const int64_t stride = pages.stride();
    pages.each(start_position, start_position + n,
               [&](size_t page, int64_t position, int64_t row, int64_t count) {
                   const int64_t source = (position - start_position) * stride;
                   const size_t num_bytes = static_cast<size_t>(count * stride) * sizeof(float);
                   std::memcpy(room_at(key_pages[page]) + row * stride, keys + source, num_bytes);
                   std::memcpy(room_at(value_pages[page]) + row * stride, values + source,
                               num_bytes);
               });
}

}  // namespace larder
