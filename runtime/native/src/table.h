// What one instruction set offers to the rest of the extension.
#pragma once

#include <cstdint>

namespace larder {

enum class Format : int { F32 = 0, F16 = 1, BF16 = 2, Q8G32 = 3, Q4G32 = 4 };
constexpr int kNumFormats = 5;

constexpr int64_t kGroup = 32;     // weights of a row that share a scale
constexpr int64_t kRowBlock = 8;   // rows interleaved in the G32 formats
constexpr int64_t kScaleBytes = 2 * kRowBlock;
constexpr int64_t kPad = 16;       // floats that buffers are rounded up to, the widest vector

constexpr int64_t round_up(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

// Bytes of one group of one block of rows in the G32 formats.
constexpr int64_t group_bytes(Format format) {
    return kScaleBytes + kRowBlock * kGroup / (format == Format::Q8G32 ? 1 : 2);
}

// A weight matrix where it lies. `row_bytes` is the distance of rows in the plain formats.
struct Weights {
    Format format;
    const uint8_t* data;
    int64_t rows;
    int64_t columns;
    int64_t row_bytes;
};

inline int64_t plain_row_bytes(Format format, int64_t columns) {
    return columns * (format == Format::F32 ? 4 : 2);
}

// Kernels of one instruction set. Every sum is formed in an order that depends on the lengths of
// one row alone, never on how many rows a call has.
struct KernelTable {
    const char* name;

    // y[i * y_stride + j] = x[i] . row (first_row + j); first_row is a multiple of kRowBlock.
    using Dot = void (*)(const Weights& weights, int64_t first_row, int64_t num_rows,
                         const float* const* x, int64_t num_x, float* y, int64_t y_stride);
    Dot dot[kNumFormats];

    // gate[i] = silu(gate[i]) * up[i]; count is a multiple of kPad.
    void (*activate)(float* gate, const float* up, int64_t count);

    // scores[i] = exp((scores[i] - max) * scale), returns their sum. The buffer has room up to a
    // multiple of kPad beyond count, which is overwritten.
    float (*exponentials)(float* scores, int64_t count, float scale);

    // out[i][c] += sum over t of weights[i][t] * values[t * stride + c], t ascending.
    void (*accumulate)(const float* const* weights, int64_t num_x, const float* values,
                       int64_t stride, int64_t num_tokens, int64_t width, float* const* out);
};

const KernelTable& portable_table();
#ifdef LARDER_X86
const KernelTable& avx2_table();
const KernelTable& avx512_table();
#endif

// The table in use: the widest that this processor has, unless another was selected.
const KernelTable& table();
// Use the named instruction set from now on; false if this processor lacks it.
bool select_table(const char* name);

}  // namespace larder
