// Operations on each row alone that are too small for threads: norm, rotary turn, gather, gate.
//
// Written as plain loops: without contraction every element has the same bits however the compiler
// groups them, and sums go over a fixed number of partial sums.
#include <cmath>
#include <cstring>

#include "exponential.h"
#include "half.h"
#include "ops.h"

namespace larder {

void rms_norm(const float* x, int64_t n, int64_t width, const float* weight, float eps,
              float* out) {
    for (int64_t i = 0; i < n; ++i) {
        const float* const row = x + i * width;
        float sums[kPad] = {};
        int64_t c = 0;
        for (; c + kPad <= width; c += kPad)
            for (int64_t l = 0; l < kPad; ++l) sums[l] += row[c + l] * row[c + l];
        for (int64_t l = 0; c + l < width; ++l) sums[l] += row[c + l] * row[c + l];
        for (int64_t half = kPad / 2; half > 0; half /= 2)
            for (int64_t l = 0; l < half; ++l) sums[l] += sums[l + half];
        const float factor = 1.0f / std::sqrt(sums[0] / static_cast<float>(width) + eps);
        float* const result = out + i * width;
        for (int64_t k = 0; k < width; ++k) result[k] = (row[k] * factor) * weight[k];
    }
}

void rope(float* x, int64_t n, int64_t heads, int64_t head_dim, int64_t num_angles,
          const float* cosines, const float* sines) {
    for (int64_t i = 0; i < n; ++i) {
        const float* const cosine = cosines + i * num_angles;
        const float* const sine = sines + i * num_angles;
        for (int64_t h = 0; h < heads; ++h) {
            float* const low = x + (i * heads + h) * head_dim;
            float* const high = low + num_angles;
            for (int64_t a = 0; a < num_angles; ++a) {
                const float turned = low[a] * cosine[a] - high[a] * sine[a];
                high[a] = high[a] * cosine[a] + low[a] * sine[a];
                low[a] = turned;
            }
        }
    }
}

namespace {

// A level of e2m1 times 2 ** (exponent - 127), which is 0 for the exponents 0 and 1.
float fp4_value(int nibble, unsigned exponent) {
    constexpr float kDoubled[8] = {0, 1, 2, 3, 4, 6, 8, 12};
    const float half_scale = float_of_bits((exponent > 0 ? exponent - 1 : 0) << 23);
    const float magnitude = kDoubled[nibble & 7] * half_scale;
    return nibble & 8 ? -magnitude : magnitude;
}

// Where the levels of a row and column of a group lie: `first` is at its byte of the first vector.
int small_level(Format format, const uint8_t* first, int64_t quad) {
    const int shift = static_cast<int>(quad % 4 * 2);
    if (format == Format::Q6G32) {
        const int pair = first[quad % 4 * 32];
        return (quad < 4 ? pair & 15 : pair >> 4) | (first[(4 + quad / 4) * 32] >> shift & 3) << 4;
    }
    const int lower = first[quad / 4 * 32] >> shift & 3;
    return format == Format::Q3G16 ? lower | (first[2 * 32] >> quad & 1) << 2 : lower;
}

// A level times the scale of its group minus its least weight, both in units of the row.
float affine_value(const Weights& weights, const uint8_t* block, const uint8_t* group, int64_t lane,
                   int64_t quad, int level) {
    const int64_t row = lane / 4;
    int scale = group[row], least = group[kRowBlock + row];
    if (weights.format == Format::Q3G16 || weights.format == Format::Q2G16) {
        const int shift = quad < 4 ? 0 : 4;
        scale = scale >> shift & 15;
        least = least >> shift & 15;
    }
    const uint8_t* const units = block + 2 * row;
    const float step = float_of_f16(units) * static_cast<float>(scale);
    const float lowest = float_of_f16(units + 2 * kRowBlock) * static_cast<float>(least);
    return static_cast<float>(level) * step - lowest;
}

// A weight of the blocks of Q4_K or Q5_K; see kernel_spans.h for the drawing.
float span_value(const Weights& weights, int64_t row, int64_t column) {
    const int64_t lane = row % kRowBlock, group = column % kSpan / kGroup, j = group % 4;
    const uint8_t* const span = weights.data +
                                row / kRowBlock * block_bytes(weights.format, weights.columns) +
                                column / kSpan * block_bytes(weights.format, kSpan);
    const uint8_t* const packed = span + 4 * kRowBlock + lane;
    int scale = packed[j * kRowBlock], least = packed[(4 + j) * kRowBlock];
    if (group < 4) {
        scale &= 63;
        least &= 63;
    } else {
        const int nibbles = packed[(8 + j) * kRowBlock];
        scale = (nibbles & 15) | (scale >> 2 & 0x30);
        least = nibbles >> 4 | (least >> 2 & 0x30);
    }
    const bool has_fifths = weights.format == Format::Q5KG32;
    const int64_t quad = column % kGroup / 4;
    const int64_t vector = has_fifths ? quad * 5 + group / 2 : group / 2 * 8 + quad;
    const uint8_t* const levels = span + kSpanHead + lane * 4 + column % 4;
    const int pair = levels[vector * 32];
    int level = group % 2 == 0 ? pair & 15 : pair >> 4;
    if (has_fifths) level |= (levels[(quad * 5 + 4) * 32] >> group & 1) << 4;
    const float step = float_of_f16(span + 2 * lane) * static_cast<float>(scale);
    const float lowest = float_of_f16(span + 2 * kRowBlock + 2 * lane) * static_cast<float>(least);
    return static_cast<float>(level) * step - lowest;
}

// A weight of the blocks of Q2_K, Q3_K or Q6_K; see kernel_half_spans.h for the drawing.
float half_span_value(const Weights& weights, int64_t row, int64_t column) {
    const int64_t lane = row % kRowBlock, group = column % kSpan / kGroup;
    const int64_t half = column % kGroup / 16, quad = column % kGroup / 4;
    const uint8_t* const span = weights.data +
                                row / kRowBlock * block_bytes(weights.format, weights.columns) +
                                column / kSpan * block_bytes(weights.format, kSpan);
    const bool has_leasts = weights.format == Format::Q2KG16;
    const uint8_t* const scales = span + (has_leasts ? 4 : 2) * kRowBlock;
    const uint8_t scale = scales[2 * (group * kRowBlock + lane) + half];
    const uint8_t* const vectors = scales + 2 * kSpan / kGroup * kRowBlock + lane * 4 + column % 4;
    const float unit = float_of_f16(span + 2 * lane);
    if (weights.format == Format::Q6KG16) {
        const int64_t of_run = group % 4;
        const uint8_t* const bundle = vectors + (group / 4 * 8 + quad) * 96;
        const int pair = bundle[of_run % 2 * 32];
        const int lower = of_run < 2 ? pair & 15 : pair >> 4;
        const int level = lower | (bundle[64] >> 2 * of_run & 3) << 4;
        return static_cast<float>(level - 32) * (unit * static_cast<float>(static_cast<int8_t>(scale)));
    }
    const uint8_t* const bundle = vectors + quad * (has_leasts ? 64 : 96);
    const int level = bundle[group / 4 * 32] >> 2 * (group % 4) & 3;
    if (has_leasts)
        return static_cast<float>(level) * (unit * static_cast<float>(scale & 15)) -
               float_of_f16(span + 2 * kRowBlock + 2 * lane) * static_cast<float>(scale >> 4);
    const int upper = (bundle[64] >> group & 1) << 2;
    return static_cast<float>((level | upper) - 4) *
           (unit * static_cast<float>(static_cast<int8_t>(scale)));
}

float weight_at(const Weights& weights, int64_t row, int64_t column) {
    const uint8_t* const plain = weights.data + row * weights.row_bytes;
    switch (weights.format) {
        case Format::F32: {
            float value;
            std::memcpy(&value, plain + 4 * column, sizeof value);
            return value;
        }
        case Format::F16:
            return float_of_f16(plain + 2 * column);
        case Format::BF16:
            return float_of_bf16(plain + 2 * column);
        case Format::Q4KG32:
        case Format::Q5KG32:
            return span_value(weights, row, column);
        case Format::Q6KG16:
        case Format::Q3KG16:
        case Format::Q2KG16:
            return half_span_value(weights, row, column);
        default:
            break;
    }
    const int64_t num_groups = (weights.columns + kGroup - 1) / kGroup;
    const int64_t head = head_bytes(weights.format), size = group_bytes(weights.format);
    const uint8_t* const block = weights.data + row / kRowBlock * (head + num_groups * size);
    const uint8_t* const group = block + head + column / kGroup * size;
    const int64_t quad = column % kGroup / 4;
    const int64_t lane = row % kRowBlock * 4 + column % 4;
    const uint8_t* const levels = group + scale_bytes(weights.format) + lane;
    const float scale = float_of_f16(group + 2 * (row % kRowBlock));
    if (weights.format == Format::Q8G32)
        return static_cast<float>(static_cast<int8_t>(levels[quad * 32])) * scale;
    if (weights.format > Format::Q4AG32)
        return affine_value(weights, block, group, lane, quad,
                            small_level(weights.format, levels, quad));
    const int pair = levels[quad % 4 * 32];
    const int nibble = quad < 4 ? pair & 15 : pair >> 4;
    if (weights.format == Format::Q4G32) return static_cast<float>(nibble - 8) * scale;
    if (weights.format == Format::Q4AG32)
        return affine_value(weights, block, group, lane, quad, nibble);
    return fp4_value(nibble, group[row % kRowBlock]);
}

}  // namespace

void embed(const Weights& weights, const int64_t* ids, int64_t n, float* out) {
    for (int64_t i = 0; i < n; ++i)
        for (int64_t c = 0; c < weights.columns; ++c)
            out[i * weights.columns + c] = weight_at(weights, ids[i], c);
}

void add_gated(float* out, const float* x, const float* logits, int64_t n, int64_t width) {
    for (int64_t i = 0; i < n; ++i) {
        const float gate = 1.0f / (1.0f + exponential(-logits[i]));
        for (int64_t c = 0; c < width; ++c) out[i * width + c] += gate * x[i * width + c];
    }
}

}  // namespace larder
