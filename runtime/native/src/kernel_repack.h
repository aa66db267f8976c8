// Blocks of GGUF files into the grouped formats, some rows at a time, as they come from the drive.
//
// The bits are those of runtime/store/gguf_rows.py, which also says what is wrong where this
// refuses: the same operations on each number in the same order.
#pragma once

namespace larder {
namespace {

constexpr int64_t kQuadColumns = 4;  // neighbouring columns that move together
constexpr int64_t kVectorBytes = kQuadColumns * kRowBlock;
constexpr int64_t kMoved = 4 * kQuadColumns;  // bytes of a row that `spread_quads` takes
constexpr float kMostQ8 = 127.0f;
constexpr int32_t kMostLevel = 127;
constexpr float kLargestF16 = 65504.0f;
constexpr uint8_t kLeastExponent = 2, kMostExponent = 252;

inline uint32_t bits_of(float value) {
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    return bits;
}
inline bool is_finite(float value) { return (bits_of(value) & 0x7f800000u) != 0x7f800000u; }

// To the nearest, ties to even; of numbers that are not below 0 and that a half holds.
inline uint16_t f16_of(float value) {
    if (value == 0) return 0;
    const uint32_t bits = bits_of(value);
    if (bits < (113u << 23)) {
        // A sum with this constant has its last bit where that of a subnormal half is.
        constexpr uint32_t kMagic = 126u << 23;
        return static_cast<uint16_t>(bits_of(value + float_of_bits(kMagic)) - kMagic);
    }
    const uint32_t is_odd = (bits >> 13) & 1u;
    return static_cast<uint16_t>((bits - (112u << 23) + 0xfffu + is_odd) >> 13);
}

inline bool is_finite_f16(const uint8_t* p) { return (p[1] & 0x7c) != 0x7c; }

// The bytes of one row in a group: four go to each quad, whose vector holds eight rows.
inline void scatter(const uint8_t* bytes, int64_t num_bytes, uint8_t* vectors, int64_t row) {
    for (int64_t at = 0; at < num_bytes; at += kQuadColumns)
        std::memcpy(vectors + at * kRowBlock + row * kQuadColumns, bytes + at, kQuadColumns);
}

// The same of eight rows that lie `stride` apart; a multiple of kMoved bytes each.
template <int64_t kNumBytes>
inline void scatter_all(const uint8_t* rows, int64_t stride, uint8_t* vectors) {
    static_assert(kNumBytes % kMoved == 0);
    for (int64_t at = 0; at < kNumBytes; at += kMoved)
        spread_quads(rows + at, stride, vectors + at * kRowBlock);
}

// Of each group a scale of `kScaleBytes` that lies before the levels, which are moved as they are.
template <int kScaleBytes, int kLevelBytes>
void move_groups(const uint8_t* stored, int64_t rows, int64_t groups, uint8_t* out) {
    constexpr int64_t kStored = kScaleBytes + kLevelBytes;
    constexpr int64_t kGroupBytes = kRowBlock * kStored;
    const int64_t stride = groups * kStored;
    for (int64_t first = 0; first < rows; first += kRowBlock) {
        const int64_t count = rows - first < kRowBlock ? rows - first : kRowBlock;
        for (int64_t g = 0; g < groups; ++g, out += kGroupBytes) {
            const uint8_t* const blocks = stored + first * stride + g * kStored;
            uint8_t* const vectors = out + kRowBlock * kScaleBytes;
            if (count < kRowBlock) std::memset(out, 0, kGroupBytes);
            for (int64_t r = 0; r < count; ++r)
                std::memcpy(out + r * kScaleBytes, blocks + r * stride, kScaleBytes);
            if (count == kRowBlock) {
                scatter_all<kLevelBytes>(blocks + kScaleBytes, stride, vectors);
                continue;
            }
            for (int64_t r = 0; r < count; ++r)
                scatter(blocks + r * stride + kScaleBytes, kLevelBytes, vectors, r);
        }
    }
}

inline bool move_halves(const uint8_t* stored, int64_t rows, int64_t groups, int64_t block_bytes,
                        uint8_t* out) {
    for (int64_t i = 0; i < rows * groups; ++i)
        if (!is_finite_f16(stored + i * block_bytes)) return false;
    if (block_bytes == 18)
        move_groups<2, 16>(stored, rows, groups, out);
    else
        move_groups<2, 32>(stored, rows, groups, out);
    return true;
}

inline bool move_fp4(const uint8_t* stored, int64_t rows, int64_t groups, uint8_t* out) {
    for (int64_t i = 0; i < rows * groups; ++i)
        if (stored[i * 17] > kMostExponent) return false;
    move_groups<1, 16>(stored, rows, groups, out);
    constexpr int64_t kGroupBytes = kRowBlock * 17;
    for (int64_t i = 0; i < (rows + kRowBlock - 1) / kRowBlock * groups; ++i)
        for (int64_t r = 0; r < kRowBlock; ++r)
            if (out[i * kGroupBytes + r] < kLeastExponent) out[i * kGroupBytes + r] = 0;
    return true;
}

// Blocks of Q4_K: units, then scales and leasts byte by byte, then levels, each of eight rows.
inline bool move_spans(const uint8_t* stored, int64_t rows, int64_t spans, uint8_t* out) {
    constexpr int64_t kStored = kSpanBytes / kRowBlock;
    const int64_t stride = spans * kStored;
    for (int64_t i = 0; i < rows * spans; ++i)
        if (!is_finite_f16(stored + i * kStored) || !is_finite_f16(stored + i * kStored + 2))
            return false;
    for (int64_t first = 0; first < rows; first += kRowBlock) {
        const int64_t count = rows - first < kRowBlock ? rows - first : kRowBlock;
        for (int64_t s = 0; s < spans; ++s, out += kSpanBytes) {
            const uint8_t* const blocks = stored + first * stride + s * kStored;
            if (count < kRowBlock) std::memset(out, 0, kSpanBytes);
            for (int64_t r = 0; r < count; ++r) {
                std::memcpy(out + 2 * r, blocks + r * stride, 2);
                std::memcpy(out + 2 * kRowBlock + 2 * r, blocks + r * stride + 2, 2);
            }
            if (count == kRowBlock) {
                spread_twelve(blocks + 4, stride, out + 4 * kRowBlock);
                scatter_all<128>(blocks + 16, stride, out + kSpanHead);
                continue;
            }
            for (int64_t r = 0; r < count; ++r) {
                const uint8_t* const block = blocks + r * stride;
                for (int64_t j = 4; j < 16; ++j) out[j * kRowBlock + r] = block[j];
                scatter(block + 16, 128, out + kSpanHead, r);
            }
        }
    }
    return true;
}

// Blocks of Q6_K: units, then scales two by two, then lower and upper bits in threes of vectors.
inline bool move_six_spans(const uint8_t* stored, int64_t rows, int64_t spans, uint8_t* out) {
    constexpr int64_t kStored = kSixSpanBytes / kRowBlock, kUnit = 208, kScales = 192, kUpper = 128;
    constexpr int64_t kThreeBytes = 3 * kVectorBytes, kRun = 8 * kQuadColumns;
    const int64_t stride = spans * kStored;
    for (int64_t i = 0; i < rows * spans; ++i)
        if (!is_finite_f16(stored + i * kStored + kUnit)) return false;
    for (int64_t first = 0; first < rows; first += kRowBlock) {
        const int64_t count = rows - first < kRowBlock ? rows - first : kRowBlock;
        for (int64_t s = 0; s < spans; ++s, out += kSixSpanBytes) {
            const uint8_t* const blocks = stored + first * stride + s * kStored;
            uint8_t* const scales = out + 2 * kRowBlock;
            if (count < kRowBlock) std::memset(out, 0, kSixSpanBytes);
            for (int64_t r = 0; r < count; ++r) {
                const uint8_t* const block = blocks + r * stride;
                std::memcpy(out + 2 * r, block + kUnit, 2);
                for (int64_t g = 0; g < kSpan / kGroup; ++g)
                    std::memcpy(scales + 2 * (g * kRowBlock + r), block + kScales + 2 * g, 2);
            }
            // Runs of 32 bytes of a row, which become the first, second or third of eight threes.
            for (int64_t run = 0; run < 6; ++run) {
                const int64_t part = run % 3, half = run / 3;
                const int64_t from = part == 2 ? kUpper + half * kRun : half * 2 * kRun + part * kRun;
                uint8_t* const place =
                    out + kSixSpanHead + half * 8 * kThreeBytes + part * kVectorBytes;
                uint8_t vectors[8 * kVectorBytes] = {};
                if (count == kRowBlock)
                    scatter_all<kRun>(blocks + from, stride, vectors);
                else
                    for (int64_t r = 0; r < count; ++r)
                        scatter(blocks + r * stride + from, kRun, vectors, r);
                for (int64_t q = 0; q < 8; ++q)
                    std::memcpy(place + q * kThreeBytes, vectors + q * kVectorBytes, kVectorBytes);
            }
        }
    }
    return true;
}

// Eight scales and eight leasts of a block of 256 weights; false for one that is no number.
inline bool read_k_lines(const uint8_t* block, float* scales, float* leasts) {
    const float scale = float_of_f16(block), least = float_of_f16(block + 2);
    const uint8_t* const packed = block + 4;
    bool is_right = true;
    for (int g = 0; g < 8; ++g) {
        const int low = g % 4;
        const int s = g < 4 ? packed[low] & 63
                            : (packed[8 + low] & 15) | ((packed[low] >> 2) & 0x30);
        const int m = g < 4 ? packed[4 + low] & 63
                            : (packed[8 + low] >> 4) | ((packed[4 + low] >> 2) & 0x30);
        scales[g] = scale * static_cast<float>(s);
        leasts[g] = least * static_cast<float>(m);
        is_right = is_right && is_finite(scales[g]) && is_finite(leasts[g]);
    }
    return is_right;
}

// level * scale - least of a group: two roundings.
inline void weigh_levels(const uint8_t* levels, float scale, float least, float* weights) {
    for (int64_t i = 0; i < kGroup; i += kRowBlock) {
        const Eight weight = mul_eight(load_whole_scales(levels + i), every_eight(scale));
        store_eight(weights + i, fma_eight(weight, every_eight(1), every_eight(-least)));
    }
}

// The 256 weights of a block; false for a scale that is no number.
inline bool weigh_q5_k(const uint8_t* block, float* weights) {
    float scales[8], leasts[8];
    if (!read_k_lines(block, scales, leasts)) return false;
    for (int g = 0; g < 8; ++g) {
        const uint8_t* const low = block + 48 + g / 2 * 32;
        const int shift = g % 2 * 4;
        uint8_t levels[kGroup];
        for (int i = 0; i < kGroup; ++i)
            levels[i] = static_cast<uint8_t>(((low[i] >> shift) & 15) |
                                             ((block[16 + i] >> g) & 1) << 4);
        weigh_levels(levels, scales[g], leasts[g], weights + g * kGroup);
    }
    return true;
}

// A group of 32 weights in levels of eight bits; the scale is returned. False: beyond f16.
inline bool round_group(const float* weights, uint16_t& scale, uint8_t* levels) {
    const float largest = largest_of_group(weights);
    if (!(largest <= kMostQ8 * kLargestF16)) return false;
    scale = f16_of(largest * (1.0f / kMostQ8));
    if (float_of_f16(reinterpret_cast<const uint8_t*>(&scale)) * (kMostQ8 + 0.25f) < largest)
        ++scale;
    const float used = float_of_f16(reinterpret_cast<const uint8_t*>(&scale));
    const float inverse = used > 0 ? 1.0f / used : 0.0f;
    int32_t whole[kGroup];
    for (int i = 0; i < kGroup; ++i) {
        const float shifted = weights[i] * inverse + 12582912.0f;  // rounds to a whole number
        std::memcpy(&whole[i], &shifted, sizeof shifted);
        whole[i] -= 0x4b400000;
        whole[i] = whole[i] > kMostLevel ? kMostLevel : whole[i];
        whole[i] = whole[i] < -kMostLevel ? -kMostLevel : whole[i];
    }
    for (int i = 0; i < kGroup; ++i)
        levels[i] = static_cast<uint8_t>(static_cast<int8_t>(whole[i]));
    return true;
}

using Weigh = bool (*)(const uint8_t*, float*);

template <Weigh weigh>
bool round_rows(int64_t block_bytes, const uint8_t* stored, int64_t rows, int64_t columns,
                uint8_t* out) {
    const int64_t blocks = columns / kSpan;
    constexpr int64_t kGroupBytes = kRowBlock * 2 + 8 * kVectorBytes;
    for (int64_t first = 0; first < rows; first += kRowBlock) {
        const int64_t count = rows - first < kRowBlock ? rows - first : kRowBlock;
        for (int64_t b = 0; b < blocks; ++b) {
            uint8_t levels[kRowBlock * kSpan] = {};
            uint16_t scales[8 * kRowBlock] = {};
            for (int64_t r = 0; r < count; ++r) {
                float weights[kSpan];
                if (!weigh(stored + ((first + r) * blocks + b) * block_bytes, weights))
                    return false;
                for (int g = 0; g < 8; ++g)
                    if (!round_group(weights + g * kGroup, scales[g * kRowBlock + r],
                                     levels + r * kSpan + g * kGroup))
                        return false;
            }
            for (int g = 0; g < 8; ++g, out += kGroupBytes) {
                std::memcpy(out, scales + g * kRowBlock, 2 * kRowBlock);
                scatter_all<kGroup>(levels + g * kGroup, kSpan, out + 2 * kRowBlock);
            }
        }
    }
    return true;
}

inline bool repack_rows(int kind, Format format, const uint8_t* stored, int64_t rows,
                        int64_t columns, uint8_t* out) {
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
                   round_rows<weigh_q5_k>(176, stored, rows, columns, out);
        case 14:
            return format == Format::Q6KG16 &&
                   move_six_spans(stored, rows, columns / kSpan, out);
    }
    return false;
}

}  // namespace
}  // namespace larder
