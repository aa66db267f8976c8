// Products, feed-forward blocks and attention over odd shapes, on buffers that end where their
// contents end, with one thread and with several; for the sanitizers. Leaves with status 1 if the
// number of threads changes a bit.
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>

#include "../src/ops.h"
#include "../src/pool.h"
#include "../src/repack.h"

using namespace larder;

namespace {

uint32_t state = 1;

float random_value() {
    state = state * 1664525u + 1013904223u;
    return static_cast<float>(state >> 8) / static_cast<float>(1 << 23) - 1.0f;
}

std::vector<float> random_floats(int64_t count) {
    std::vector<float> values(static_cast<size_t>(count));
    for (float& value : values) value = random_value();
    return values;
}

// Any bytes will do but for exponents that make infinities: the scales of halves are kept small.
std::vector<uint8_t> random_weights(Format format, int64_t rows, int64_t columns) {
    const int64_t blocks = (rows + kRowBlock - 1) / kRowBlock;
    const int64_t bytes = is_grouped(format) ? blocks * block_bytes(format, columns)
                                             : rows * plain_row_bytes(format, columns);
    std::vector<uint8_t> data(static_cast<size_t>(bytes));
    for (uint8_t& byte : data) byte = static_cast<uint8_t>((state = state * 1664525u + 1u) >> 26);
    if (format == Format::F32) {
        const std::vector<float> values = random_floats(rows * columns);
        std::memcpy(data.data(), values.data(), data.size());
    }
    return data;
}

struct Matrix {
    std::vector<uint8_t> data;
    Weights weights;
    Matrix(Format format, int64_t rows, int64_t columns)
        : data(random_weights(format, rows, columns)),
          weights(weights_at(reinterpret_cast<uint64_t>(data.data()), static_cast<int>(format),
                             rows, columns)) {}
};

std::vector<float> run_products(const Matrix& matrix, const std::vector<float>& x, int64_t n) {
    std::vector<float> out(static_cast<size_t>(n * matrix.weights.rows));
    linear(matrix.weights, x.data(), n, nullptr, out.data());
    return out;
}

std::vector<float> run_block(const Matrix& gate, const Matrix& up, const Matrix& down,
                             const std::vector<float>& x, int64_t n, int kind) {
    std::vector<float> out(static_cast<size_t>(n * down.weights.rows));
    const std::vector<float> bias = random_floats(gate.weights.rows);
    Block block{gate.weights, up.weights, down.weights, {}, {}};
    block.activation = {static_cast<ActivationKind>(kind), 1.7f, 0.5f};
    for (int64_t i = 0; i < n; ++i) {
        block.rows.push_back(static_cast<int32_t>(i));
        block.scales.push_back(0.5f);
    }
    feed_forward({block, block}, x.data(), n, out.data());
    return out;
}

std::vector<float> run_attention(int64_t n, int64_t start, int64_t page_tokens) {
    const AttentionShape shape{6, 2, 19, page_tokens};
    const int64_t page_values = page_tokens * 2 * 19;
    std::vector<std::vector<float>> pages;
    std::vector<uint64_t> places;
    for (int64_t first = 0; first < start + n; first += page_tokens)
        pages.push_back(random_floats(page_values));
    for (const std::vector<float>& page : pages)
        places.push_back(reinterpret_cast<uint64_t>(page.data()));
    const std::vector<float> q = random_floats(n * 6 * 19), sinks = random_floats(6);
    std::vector<float> out(q.size());
    attention(shape, q.data(), n, places, places, start, 0.3f, 5, sinks.data(), out.data());
    return out;
}

// The same bits with one thread and with four.
template <class Function>
bool is_the_same(Function function) {
    const uint32_t seed = state;
    pool::set_num_threads(1);
    const std::vector<float> alone = function();
    state = seed;
    pool::set_num_threads(4);
    const std::vector<float> together = function();
    return std::memcmp(alone.data(), together.data(), alone.size() * sizeof(float)) == 0;
}

bool check_shapes() {
    bool is_right = true;
    for (int f = 0; f < kNumFormats; ++f) {
        const Format format = static_cast<Format>(f);
        for (const int64_t columns : {1, 31, 33, 200, 301}) {
            for (const int64_t n : {1, 2, 7, 50}) {
                const Matrix wide(format, 45, columns), other(format, 45, columns);
                const Matrix narrow(format, columns, 45);
                const std::vector<float> x = random_floats(n * columns);
                is_right &= is_the_same([&] { return run_products(wide, x, n); });
                for (int kind = 0; kind < kNumActivations; ++kind)
                    is_right &=
                        is_the_same([&] { return run_block(wide, other, narrow, x, n, kind); });
                // Each matrix in a format of its own, plain and grouped ones beside each other.
                const Matrix up(static_cast<Format>((f + 2) % kNumFormats), 45, columns);
                const Matrix down(static_cast<Format>((f + 5) % kNumFormats), columns, 45);
                is_right &= is_the_same([&] { return run_block(wide, up, down, x, n, 0); });
            }
        }
    }
    for (const int64_t page_tokens : {1, 8, 64})
        for (const int64_t n : {1, 9, 30})
            is_right &= is_the_same([&] { return run_attention(n, 11, page_tokens); });
    return is_right;
}

// Blocks of GGUF files, scales of any bits among them, from and to buffers of the very sizes.
bool check_repacking() {
    constexpr struct { int kind; Format format; int64_t columns, bytes; } kKinds[] = {
        {2, Format::Q4G32, 32, 18},   {8, Format::Q8G32, 32, 34},   {39, Format::Mxfp4, 32, 17},
        {12, Format::Q4KG32, 256, 144},
        {13, Format::Q5KG32, 256, 176}, {14, Format::Q6KG16, 256, 210},
        {11, Format::Q3KG16, 256, 110}, {10, Format::Q2KG16, 256, 84}};
    int done = 0;
    for (const auto& each : kKinds) {
        for (const int64_t rows : {1, 8, 13}) {
            const int64_t columns = 512, blocks = (rows + kRowBlock - 1) / kRowBlock;
            std::vector<uint8_t> stored(static_cast<size_t>(rows * columns / each.columns * each.bytes));
            for (uint8_t& byte : stored) byte = static_cast<uint8_t>((state = state * 1664525u + 1u) >> 25);
            const int64_t room = blocks * block_bytes(each.format, columns);
            std::vector<uint8_t> out(static_cast<size_t>(room));
            done += repack(each.kind, each.format, stored.data(), rows, columns, out.data());
        }
    }
    std::printf("repacked: %d\n", done);
    return done > 0;
}

}  // namespace

int main() {
    bool is_right = true;
    for (const char* name : {"portable", "avx2", "avx512"}) {
        if (!select_table(name)) continue;
        const bool is_the_same_here = check_repacking() && check_shapes();
        std::printf("%s: %s\n", name, is_the_same_here ? "the same bits" : "other bits");
        is_right &= is_the_same_here;
    }
    return is_right ? 0 : 1;
}
