// Blocks of GGUF files into the grouped formats, some rows at a time, as they come from the drive.
//
// The bits are those of runtime/store/gguf_rows.py, which also says what is wrong where this
// refuses: plain loops of the same operations in the same order.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "half.h"
#include "repack.h"
#include "table.h"

namespace larder {
namespace {

constexpr int64_t kQuad = 4;          // neighbouring columns that move together
constexpr int64_t kVectorBytes = kQuad * kRowBlock;
constexpr int64_t kMostQ8 = 127;
constexpr float kLargestF16 = 65504.0f;
constexpr uint8_t kLeastExponent = 2, kMostExponent = 252;

// To the nearest, ties to even; of numbers that are not below 0 and that a half holds.
uint16_t f16_of(float value) {
    if (value == 0) return 0;
    const uint32_t bits = std::bit_cast<uint32_t>(value);
    if (bits < (113u << 23)) {
        // A sum with this constant has its last bit where that of a subnormal half is.
        constexpr uint32_t kMagic = 126u << 23;
        return static_cast<uint16_t>(
            std::bit_cast<uint32_t>(value + std::bit_cast<float>(kMagic)) - kMagic);
    }
    const uint32_t is_odd = (bits >> 13) & 1u;
    return static_cast<uint16_t>((bits - (112u << 23) + 0xfffu + is_odd) >> 13);
}

float float_of(uint16_t half) { return float_of_f16(reinterpret_cast<const uint8_t*>(&half)); }

// To the nearest whole number, ties to even; of numbers below 2 ** 22.
float rounded(float value) {
    constexpr float kMagic = 12582912.0f;
    return (value + kMagic) - kMagic;
}

bool is_finite_f16(const uint8_t* p) { return (p[1] & 0x7c) != 0x7c; }

// The bytes of one row in a group: four go to each quad, whose vector holds eight rows.
template <int kQuads>
void scatter(const uint8_t* bytes, uint8_t* vectors, int64_t row) {
    for (int quad = 0; quad < kQuads; ++quad)
        std::memcpy(vectors + quad * kVectorBytes + row * kQuad, bytes + quad * kQuad, kQuad);
}

// Of each group a scale of `scale_bytes` that lies before the levels, which are moved as they are.
template <int kScaleBytes, int kLevelBytes>
void move_groups(const uint8_t* stored, int64_t rows, int64_t groups, uint8_t* out) {
    constexpr int64_t kStored = kScaleBytes + kLevelBytes;
    constexpr int64_t kGroupBytes = kRowBlock * kStored;
    for (int64_t first = 0; first < rows; first += kRowBlock) {
        const int64_t count = std::min<int64_t>(kRowBlock, rows - first);
        for (int64_t g = 0; g < groups; ++g, out += kGroupBytes) {
            if (count < kRowBlock) std::memset(out, 0, kGroupBytes);
            for (int64_t r = 0; r < count; ++r) {
                const uint8_t* const block = stored + ((first + r) * groups + g) * kStored;
                std::memcpy(out + r * kScaleBytes, block, kScaleBytes);
                scatter<kLevelBytes / kQuad>(block + kScaleBytes, out + kRowBlock * kScaleBytes, r);
            }
        }
    }
}

bool move_halves(const uint8_t* stored, int64_t rows, int64_t groups, int64_t block_bytes,
                 uint8_t* out) {
    for (int64_t i = 0; i < rows * groups; ++i)
        if (!is_finite_f16(stored + i * block_bytes)) return false;
    if (block_bytes == 18)
        move_groups<2, 16>(stored, rows, groups, out);
    else
        move_groups<2, 32>(stored, rows, groups, out);
    return true;
}

bool move_fp4(const uint8_t* stored, int64_t rows, int64_t groups, uint8_t* out) {
    for (int64_t i = 0; i < rows * groups; ++i)
        if (stored[i * 17] > kMostExponent) return false;
    move_groups<1, 16>(stored, rows, groups, out);
    constexpr int64_t kGroupBytes = kRowBlock * 17;
    for (int64_t i = 0; i < (rows + kRowBlock - 1) / kRowBlock * groups; ++i)
        for (int64_t r = 0; r < kRowBlock; ++r)
            if (out[i * kGroupBytes + r] < kLeastExponent) out[i * kGroupBytes + r] = 0;
    return true;
}

// Eight scales and eight leasts of a block of 256 weights; false for one that is no number.
bool read_k_lines(const uint8_t* block, float* scales, float* leasts) {
    const float scale = float_of_f16(block), least = float_of_f16(block + 2);
    const uint8_t* const packed = block + 4;
    bool is_finite = true;
    for (int g = 0; g < 8; ++g) {
        const int low = g % 4;
        const int s = g < 4 ? packed[low] & 63
                            : (packed[8 + low] & 15) | ((packed[low] >> 2) & 0x30);
        const int m = g < 4 ? packed[4 + low] & 63
                            : (packed[8 + low] >> 4) | ((packed[4 + low] >> 2) & 0x30);
        scales[g] = scale * static_cast<float>(s);
        leasts[g] = least * static_cast<float>(m);
        is_finite = is_finite && std::isfinite(scales[g]) && std::isfinite(leasts[g]);
    }
    return is_finite;
}

// Blocks of Q4_K: units, then scales and leasts byte by byte, then levels, each of eight rows.
bool move_spans(const uint8_t* stored, int64_t rows, int64_t spans, uint8_t* out) {
    constexpr int64_t kStored = kSpanBytes / kRowBlock;
    for (int64_t i = 0; i < rows * spans; ++i)
        if (!is_finite_f16(stored + i * kStored) || !is_finite_f16(stored + i * kStored + 2))
            return false;
    for (int64_t first = 0; first < rows; first += kRowBlock) {
        const int64_t count = std::min<int64_t>(kRowBlock, rows - first);
        for (int64_t s = 0; s < spans; ++s, out += kSpanBytes) {
            if (count < kRowBlock) std::memset(out, 0, kSpanBytes);
            for (int64_t r = 0; r < count; ++r) {
                const uint8_t* const block = stored + ((first + r) * spans + s) * kStored;
                std::memcpy(out + 2 * r, block, 2);
                std::memcpy(out + 2 * kRowBlock + 2 * r, block + 2, 2);
                for (int64_t j = 0; j < 12; ++j)
                    out[(4 + j) * kRowBlock + r] = block[4 + j];
                scatter<32>(block + 16, out + kSpanHead, r);
            }
        }
    }
    return true;
}

// The 256 weights of a block; false for a scale that is no number.
bool weigh_q5_k(const uint8_t* block, float* weights) {
    float scales[8], leasts[8];
    if (!read_k_lines(block, scales, leasts)) return false;
    for (int g = 0; g < 8; ++g)
        for (int i = 0; i < kGroup; ++i) {
            const int low = (block[48 + g / 2 * 32 + i] >> (g % 2 * 4)) & 15;
            const int level = low | ((block[16 + i] >> g) & 1) << 4;
            weights[g * kGroup + i] = static_cast<float>(level) * scales[g] - leasts[g];
        }
    return true;
}

bool weigh_q6_k(const uint8_t* block, float* weights) {
    const float unit = float_of_f16(block + 208);
    const int8_t* const counts = reinterpret_cast<const int8_t*>(block + 192);
    bool is_finite = true;
    for (int run = 0; run < 8; ++run) {
        const uint8_t* const low = block + run / 4 * 64 + run % 2 * 32;
        const uint8_t* const high = block + 128 + run / 4 * 32;
        for (int half = 0; half < 2; ++half) {
            const float scale = unit * static_cast<float>(counts[run * 2 + half]);
            is_finite = is_finite && std::isfinite(scale);
            for (int i = half * 16; i < half * 16 + 16; ++i) {
                const int lower = (low[i] >> (run % 4 / 2 * 4)) & 15;
                const int level = (lower | ((high[i] >> (run % 4 * 2)) & 3) << 4) - 32;
                weights[run * kGroup + i] = static_cast<float>(level) * scale;
            }
        }
    }
    return is_finite;
}

// A group of 32 weights in levels of eight bits; the scale is returned. False: beyond f16.
bool round_group(const float* weights, uint16_t& scale, uint8_t* levels) {
    float largest = 0;
    for (int i = 0; i < kGroup; ++i) largest = std::max(largest, std::fabs(weights[i]));
    if (!(largest <= kMostQ8 * kLargestF16)) return false;
    scale = f16_of(largest * (1.0f / kMostQ8));
    if (float_of(scale) * (kMostQ8 + 0.25f) < largest) ++scale;
    const float used = float_of(scale);
    const float inverse = used > 0 ? 1.0f / used : 0.0f;
    for (int i = 0; i < kGroup; ++i) {
        const float level = rounded(weights[i] * inverse);
        const float clipped = std::max(-127.0f, std::min(level, 127.0f));
        levels[i] = static_cast<uint8_t>(static_cast<int8_t>(clipped));
    }
    return true;
}

using Weigh = bool (*)(const uint8_t*, float*);

bool round_rows(Weigh weigh, int64_t block_bytes, const uint8_t* stored, int64_t rows,
                int64_t columns, uint8_t* out) {
    const int64_t blocks = columns / 256;
    constexpr int64_t kGroupBytes = kRowBlock * 2 + 8 * kVectorBytes;
    for (int64_t first = 0; first < rows; first += kRowBlock) {
        const int64_t count = std::min<int64_t>(kRowBlock, rows - first);
        if (count < kRowBlock)
            std::memset(out, 0, static_cast<size_t>(columns / kGroup * kGroupBytes));
        for (int64_t r = 0; r < count; ++r) {
            uint8_t* group = out;
            for (int64_t b = 0; b < blocks; ++b) {
                float weights[256];
                if (!weigh(stored + ((first + r) * blocks + b) * block_bytes, weights))
                    return false;
                for (int g = 0; g < 8; ++g, group += kGroupBytes) {
                    uint16_t scale;
                    uint8_t levels[kGroup];
                    if (!round_group(weights + g * kGroup, scale, levels)) return false;
                    std::memcpy(group + 2 * r, &scale, 2);
                    scatter<8>(levels, group + 2 * kRowBlock, r);
                }
            }
        }
        out += columns / kGroup * kGroupBytes;
    }
    return true;
}

}  // namespace

bool repack(int kind, Format format, const uint8_t* stored, int64_t rows, int64_t columns,
            uint8_t* out) {
    const int64_t groups = columns / kGroup;
    switch (kind) {
        case 2:
            return format == Format::Q4G32 && move_halves(stored, rows, groups, 18, out);
        case 8:
            return format == Format::Q8G32 && move_halves(stored, rows, groups, 34, out);
        case 39:
            return format == Format::Mxfp4 && move_fp4(stored, rows, groups, out);
        case 12:
            return format == Format::Q4KG32 && move_spans(stored, rows, columns / kSpan, out);
        case 13:
            return format == Format::Q8G32 &&
                   round_rows(weigh_q5_k, 176, stored, rows, columns, out);
        case 14:
            return format == Format::Q8G32 &&
                   round_rows(weigh_q6_k, 210, stored, rows, columns, out);
    }
    return false;
}

}  // namespace larder
