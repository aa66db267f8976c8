// Blocks of GGUF files into the grouped formats, some rows at a time, as they come from the drive.
//
// Bytes are moved, and scales of six bits taken apart; the result is that of runtime/store/gguf_rows.py, which also
// says what is wrong where this refuses.
#pragma once

namespace larder {
namespace {

constexpr int64_t kQuadColumns = 4;  // neighbouring columns that move together
constexpr int64_t kVectorBytes = kQuadColumns * kRowBlock;
constexpr int64_t kMoved = 4 * kQuadColumns;  // bytes of a row that `spread_quads` takes
constexpr uint8_t kLeastExponent = 2, kMostExponent = 252;

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

// Runs of 32 bytes of a row become one of the vectors of `together` that belong to eight quads.
template <int64_t kTogether>
inline void scatter_run(const uint8_t* blocks, int64_t stride, int64_t count, uint8_t* place) {
    constexpr int64_t kRun = 8 * kQuadColumns;
    uint8_t vectors[8 * kVectorBytes] = {};
    if (count == kRowBlock)
        scatter_all<kRun>(blocks, stride, vectors);
    else
        for (int64_t r = 0; r < count; ++r) scatter(blocks + r * stride, kRun, vectors, r);
    for (int64_t q = 0; q < 8; ++q)
        std::memcpy(place + q * kTogether * kVectorBytes, vectors + q * kVectorBytes, kVectorBytes);
}

// Blocks of Q4_K and Q5_K: units, then scales and leasts byte by byte, then levels, of eight rows.
template <bool kHasFifths>
inline bool move_spans(const uint8_t* stored, int64_t rows, int64_t spans, uint8_t* out) {
    constexpr int64_t kBytes = kHasFifths ? kFiveSpanBytes : kSpanBytes;
    constexpr int64_t kStored = kBytes / kRowBlock;
    const int64_t stride = spans * kStored;
    for (int64_t i = 0; i < rows * spans; ++i)
        if (!is_finite_f16(stored + i * kStored) || !is_finite_f16(stored + i * kStored + 2))
            return false;
    for (int64_t first = 0; first < rows; first += kRowBlock) {
        const int64_t count = rows - first < kRowBlock ? rows - first : kRowBlock;
        for (int64_t s = 0; s < spans; ++s, out += kBytes) {
            const uint8_t* const blocks = stored + first * stride + s * kStored;
            if (count < kRowBlock) std::memset(out, 0, kBytes);
            for (int64_t r = 0; r < count; ++r) {
                std::memcpy(out + 2 * r, blocks + r * stride, 2);
                std::memcpy(out + 2 * kRowBlock + 2 * r, blocks + r * stride + 2, 2);
            }
            if (count == kRowBlock)
                spread_twelve(blocks + 4, stride, out + 4 * kRowBlock);
            else
                for (int64_t r = 0; r < count; ++r)
                    for (int64_t j = 4; j < 16; ++j)
                        out[j * kRowBlock + r] = blocks[r * stride + j];
            uint8_t* const levels = out + kSpanHead;
            if constexpr (kHasFifths) {
                // The fifth bits stand before the others in a file.
                for (int64_t part = 0; part < 5; ++part)
                    scatter_run<5>(blocks + 16 + (part + 1) % 5 * 32, stride, count,
                                   levels + part * kVectorBytes);
            } else if (count == kRowBlock) {
                scatter_all<128>(blocks + 16, stride, levels);
            } else {
                for (int64_t r = 0; r < count; ++r)
                    scatter(blocks + r * stride + 16, 128, levels, r);
            }
        }
    }
    return true;
}

// The 16 scales of a block of Q3_K, of six bits minus 32 in 12 bytes, one byte each.
inline void take_three_scales(const uint8_t* packed, uint8_t* scales) {
    for (int i = 0; i < 16; ++i) {
        const int pair = packed[i % 8], four = i < 8 ? pair & 15 : pair >> 4;
        scales[i] = static_cast<uint8_t>((four | (packed[8 + i % 4] >> 2 * (i / 4) & 3) << 4) - 32);
    }
}

// Where the parts of a block of 256 weights are. A run of 32 bytes becomes one vector of each of
// eight bundles of kVectors.
struct SixBlock {
    static constexpr int64_t kBytes = kSixSpanBytes, kVectors = 3, kNumRuns = 6;
    static constexpr int64_t kUnits[] = {208};
    static constexpr int64_t kRuns[] = {0, 32, 128, 64, 96, 160};
    static void take_scales(const uint8_t* block, uint8_t* scales) {
        std::memcpy(scales, block + 192, 16);
    }
};
struct ThreeBlock {
    static constexpr int64_t kBytes = kThreeSpanBytes, kVectors = 3, kNumRuns = 3;
    static constexpr int64_t kUnits[] = {108};
    static constexpr int64_t kRuns[] = {32, 64, 0};
    static void take_scales(const uint8_t* block, uint8_t* scales) {
        take_three_scales(block + 96, scales);
    }
};
struct TwoBlock {
    static constexpr int64_t kBytes = kTwoSpanBytes, kVectors = 2, kNumRuns = 2;
    static constexpr int64_t kUnits[] = {80, 82};
    static constexpr int64_t kRuns[] = {16, 48};
    static void take_scales(const uint8_t* block, uint8_t* scales) {
        std::memcpy(scales, block, 16);
    }
};

// Blocks of Q2_K, Q3_K and Q6_K: units, then scales two by two, then bundles of vectors.
template <class Block, int64_t kStored>
inline bool move_half_spans(const uint8_t* stored, int64_t rows, int64_t spans, uint8_t* out) {
    constexpr int64_t kNumUnits = sizeof(Block::kUnits) / sizeof(int64_t);
    const int64_t stride = spans * kStored;
    for (int64_t i = 0; i < rows * spans; ++i)
        for (const int64_t unit : Block::kUnits)
            if (!is_finite_f16(stored + i * kStored + unit)) return false;
    for (int64_t first = 0; first < rows; first += kRowBlock) {
        const int64_t count = rows - first < kRowBlock ? rows - first : kRowBlock;
        for (int64_t s = 0; s < spans; ++s, out += Block::kBytes) {
            const uint8_t* const blocks = stored + first * stride + s * kStored;
            uint8_t* const scales = out + 2 * kNumUnits * kRowBlock;
            uint8_t* const vectors = scales + 2 * kSpan / kGroup * kRowBlock;
            if (count < kRowBlock) std::memset(out, 0, Block::kBytes);
            for (int64_t r = 0; r < count; ++r) {
                const uint8_t* const block = blocks + r * stride;
                for (int64_t u = 0; u < kNumUnits; ++u)
                    std::memcpy(out + 2 * (u * kRowBlock + r), block + Block::kUnits[u], 2);
                uint8_t own[16];
                Block::take_scales(block, own);
                for (int64_t g = 0; g < kSpan / kGroup; ++g)
                    std::memcpy(scales + 2 * (g * kRowBlock + r), own + 2 * g, 2);
            }
            for (int64_t i = 0; i < Block::kNumRuns; ++i) {
                const int64_t bundle = i / Block::kVectors * 8, place = i % Block::kVectors;
                scatter_run<Block::kVectors>(
                    blocks + Block::kRuns[i], stride, count,
                    vectors + (bundle * Block::kVectors + place) * kVectorBytes);
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
            return format == Format::Q4KG32 && move_spans<false>(stored, rows, columns / kSpan, out);
        case 13:
            return format == Format::Q5KG32 && move_spans<true>(stored, rows, columns / kSpan, out);
        case 14:
            return format == Format::Q6KG16 &&
                   move_half_spans<SixBlock, 210>(stored, rows, columns / kSpan, out);
        case 11:
            return format == Format::Q3KG16 &&
                   move_half_spans<ThreeBlock, 110>(stored, rows, columns / kSpan, out);
        case 10:
            return format == Format::Q2KG16 &&
                   move_half_spans<TwoBlock, 84>(stored, rows, columns / kSpan, out);
    }
    return false;
}

}  // namespace
}  // namespace larder
