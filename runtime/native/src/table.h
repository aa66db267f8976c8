// What one instruction set offers to the rest of the extension.
#pragma once

#include <cstdint>

namespace larder {

enum class Format : int { F32 = 0, F16 = 1, BF16 = 2, Q8G32 = 3, Q4G32 = 4, Mxfp4 = 5, Q4AG32 = 6,
                          Q6G32 = 7, Q3G16 = 8, Q2G16 = 9, Q4KG32 = 10, Q6KG16 = 11,
                          Q5KG32 = 12, Q3KG16 = 13, Q2KG16 = 14 };
constexpr int kNumFormats = 15;

constexpr int64_t kGroup = 32;     // weights of a row that share a scale
constexpr int64_t kRowBlock = 8;   // rows interleaved in the G32 formats
constexpr int64_t kXGroupBytes = kGroup + 16;  // of activations: levels, scale, sums
constexpr int64_t kPad = 16;       // floats that buffers are rounded up to, the widest vector

constexpr int64_t round_up(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

constexpr bool is_grouped(Format format) { return format >= Format::Q8G32; }

// Bytes of the scales of one group of one block of rows in the G32 formats, and of the whole group.
constexpr int64_t scale_bytes(Format format) {
    return kRowBlock * (format == Format::Mxfp4 ? 1 : 2);
}
constexpr int64_t level_bits(Format format) {
    switch (format) {
        case Format::Q8G32: return 8;
        case Format::Q6G32: return 6;
        case Format::Q3G16: return 3;
        case Format::Q2G16: return 2;
        default: return 4;
    }
}
constexpr int64_t group_bytes(Format format) {
    return scale_bytes(format) + kRowBlock * kGroup * level_bits(format) / 8;
}

// Bytes before the groups of a block of rows.
constexpr int64_t head_bytes(Format format) {
    return format >= Format::Q4AG32 ? 4 * kRowBlock : 0;
}

// Blocks of Q4_K: the columns that share units, and bytes of so many columns of a block of rows.
constexpr int64_t kSpan = 256;
constexpr int64_t kSpanBytes = kRowBlock * 144;
constexpr int64_t kSpanHead = kRowBlock * 16;  // of them, before the levels

constexpr int64_t kFiveSpanBytes = kRowBlock * 176;  // the same of blocks of Q5_K, head as of Q4_K

// The same of blocks of Q2_K, Q3_K (whose scales take eight bits here) and Q6_K.
constexpr int64_t kTwoSpanBytes = kRowBlock * 84;
constexpr int64_t kThreeSpanBytes = kRowBlock * 114;
constexpr int64_t kSixSpanBytes = kRowBlock * 210;

// Bytes of a block of rows in the interleaved formats.
constexpr int64_t block_bytes(Format format, int64_t columns) {
    const int64_t spans = (columns + kSpan - 1) / kSpan;
    if (format == Format::Q4KG32) return spans * kSpanBytes;
    if (format == Format::Q5KG32) return spans * kFiveSpanBytes;
    if (format == Format::Q6KG16) return spans * kSixSpanBytes;
    if (format == Format::Q3KG16) return spans * kThreeSpanBytes;
    if (format == Format::Q2KG16) return spans * kTwoSpanBytes;
    return head_bytes(format) + (columns + kGroup - 1) / kGroup * group_bytes(format);
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

// What stands between the first and the last matrix of a feed-forward block.
enum class ActivationKind : int {
    SiluGlu = 0,      // silu(gate) * up
    GeluGlu = 1,      // gelu(gate) * up, the form with tanh
    ClampedGlu = 2,   // gate * sigmoid(alpha * gate) * (up + 1), gate below and up within a limit
    SquaredRelu = 3,  // max(gate, 0) ** 2, without up
};
constexpr int kNumActivations = 4;

struct Activation {
    ActivationKind kind = ActivationKind::SiluGlu;
    float alpha = 1.0f;
    float limit = 0.0f;
};

// Kernels of one instruction set. Every sum is formed in an order that depends on the lengths of
// one row alone, never on how many rows a call has.
struct KernelTable {
    const char* name;

    // y[i * y_stride + j] = x[i] . row (first_row + j); first_row is a multiple of kRowBlock.
    // A row of x is f32, for the grouped formats what quantise made of it.
    using Dot = void (*)(const Weights& weights, int64_t first_row, int64_t num_rows,
                         const uint8_t* const* x, int64_t num_x, float* y, int64_t y_stride);
    Dot dot[kNumFormats];

    // A row of activations in 8 bits: kXGroupBytes for each kGroup columns, begun ones included.
    void (*quantise)(const float* x, int64_t columns, uint8_t* groups);

    // gate[i] = what the activation makes of gate[i] and up[i]; count is a multiple of kPad.
    void (*activate)(const Activation& activation, float* gate, const float* up, int64_t count);

    // scores[i] = exp((scores[i] - max) * scale), returns their sum. The buffer has room up to a
    // multiple of kPad beyond count, which is overwritten.
    float (*exponentials)(float* scores, int64_t count, float scale);

    // out[i][c] += sum over t of weights[i][t] * values[t * stride + c], t ascending.
    void (*accumulate)(const float* const* weights, int64_t num_x, const float* values,
                       int64_t stride, int64_t num_tokens, int64_t width, float* const* out);

    // Plainly read at least 32 bytes, all of them if they are a multiple of 128.
    uint8_t (*read_through)(const uint8_t* data, int64_t num_bytes);

    // What repack.h says; the bits are the same in all tables.
    bool (*repack)(int kind, Format format, const uint8_t* stored, int64_t rows, int64_t columns,
                   uint8_t* out);
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
