// Products of the G32 formats with activations in 8 bits.
//
//     block of 8 rows = groups of 32 columns one after another
//     group           = [8 scales][weights]
//     8-bit weights   = 8 vectors of 32 bytes, vector q: rows 0..7 x columns 4q..4q+3, signed
//     4-bit weights   = 4 vectors of 32 bytes, vector q: low nibbles columns 4q..4q+3,
//                       high nibbles columns 16+4q..16+4q+3
//
// A row of activations is quantised once, group by group:
//
//     [32 x int8][f32 scale][int32: -8 times the sum of the 32][f32: that times the scale]
//     [2 x int16: minus the sums of columns 0..15 and 16..31]
//
// What is summed inside a group are integers and therefore exact. Groups are added from left to
// right, each with one fused product, so that a result depends on its row and column alone.
#pragma once

// A function that stays one: its loops are to have all registers.
#if defined(__GNUC__)
#define LARDER_APART __attribute__((noinline))
#else
#define LARDER_APART
#endif

namespace larder {
namespace {

constexpr int64_t kXScale = kGroup;         // offset of the scale in a group of activations
constexpr int64_t kXSum = kGroup + 4;       // offset of the sum
constexpr int64_t kXScaledSum = kGroup + 8;
constexpr int64_t kXHalves = kGroup + 12;
constexpr float kLeastLargest = 0x1p-100f;  // a group with smaller activations counts as zeros

// The largest of a group without its sign.
inline float largest_of_group(const float* x) {
    uint32_t highest = 0;  // as bits, so that a NaN is the largest
    for (int i = 0; i < kGroup; ++i) {
        uint32_t bits;
        std::memcpy(&bits, x + i, sizeof bits);
        bits &= 0x7fffffffu;
        highest = bits > highest ? bits : highest;
    }
    return float_of_bits(highest);
}

void quantise_group(const float* x, uint8_t* group) {
    const float largest = largest_of_group(x);
    const bool is_zero = largest < kLeastLargest;
    const float scale = is_zero ? 0.0f : largest / 127.0f;
    const float inverse = is_zero ? 0.0f : 127.0f / largest;
    int32_t levels[kGroup];
    for (int i = 0; i < kGroup; ++i) {
        const float shifted = x[i] * inverse + 12582912.0f;  // rounds to a whole number
        std::memcpy(&levels[i], &shifted, sizeof shifted);
        levels[i] -= 0x4b400000;
    }
    int32_t halves[2] = {};
    for (int h = 0; h < 2; ++h)
        for (int i = 16 * h; i < 16 * h + 16; ++i) {
            const int8_t level = static_cast<int8_t>(levels[i]);
            group[i] = static_cast<uint8_t>(level);
            halves[h] -= level;
        }
    const int32_t sum = 8 * (halves[0] + halves[1]);
    const int16_t both[2] = {static_cast<int16_t>(halves[0]), static_cast<int16_t>(halves[1])};
    std::memcpy(group + kXHalves, both, sizeof both);
    std::memcpy(group + kXScale, &scale, sizeof scale);
    const float scaled_sum = static_cast<float>(sum) * scale;
    std::memcpy(group + kXSum, &sum, sizeof sum);
    std::memcpy(group + kXScaledSum, &scaled_sum, sizeof scaled_sum);
}

void quantise(const float* x, int64_t columns, uint8_t* groups) {
    int64_t c = 0;
    for (; c + kGroup <= columns; c += kGroup, groups += kXGroupBytes)
        quantise_group(x + c, groups);
    if (c == columns) return;
    float padded[kGroup] = {};
    std::memcpy(padded, x + c, static_cast<size_t>(columns - c) * sizeof(float));
    quantise_group(padded, groups);
}

// Each format: bytes of a group, its scales, and the integer products with R rows of activations.

struct EightBit {
    static constexpr bool kIsAffine = false;
    static constexpr Format kFormat = Format::Q8G32;
    static constexpr int64_t kBytes = group_bytes(kFormat);
    static constexpr int64_t kScales = scale_bytes(kFormat);
    static Eight scales(const uint8_t* group) { return load_f16_scales(group); }

    template <int R>
    static void products(const uint8_t* weights, const uint8_t* const* x, Lanes* totals) {
        WideSum sums[R];
        for (int q = 0; q < 8; ++q) {
            const WideLevels levels = load_wide(weights + 32 * q);
            for (int r = 0; r < R; ++r) sums[r].add(levels, same_quad(x[r] + 4 * q));
        }
        for (int r = 0; r < R; ++r) {
            totals[r] = sums[r].total();
            if constexpr (WideSum::kOffset == 128)
                totals[r] = add_lanes(totals[r], shift_left<4>(same_lanes(x[r] + kXSum)));
        }
    }
};

// Integer products with unsigned levels of four bits, offsets left out.
template <int R>
inline void nibble_products(const uint8_t* weights, const uint8_t* const* x, Lanes* totals) {
    static_assert(SmallSum<15>::kAdds >= 8);
    SmallSum<15> sums[R];
    for (int q = 0; q < 4; ++q) {
        const Bytes pairs = load_bytes(weights + 32 * q);
        const Bytes low = low_nibbles(pairs), high = high_nibbles(pairs);
        for (int r = 0; r < R; ++r) {
            sums[r].add(low, same_quad(x[r] + 4 * q));
            sums[r].add(high, same_quad(x[r] + 16 + 4 * q));
        }
    }
    for (int r = 0; r < R; ++r) totals[r] = sums[r].total();
}

struct FourBit {
    static constexpr bool kIsAffine = false;
    static constexpr Format kFormat = Format::Q4G32;
    static constexpr int64_t kBytes = group_bytes(kFormat);
    static constexpr int64_t kScales = scale_bytes(kFormat);
    static Eight scales(const uint8_t* group) { return load_f16_scales(group); }

    template <int R>
    static void products(const uint8_t* weights, const uint8_t* const* x, Lanes* totals) {
        nibble_products<R>(weights, x, totals);
        for (int r = 0; r < R; ++r) totals[r] = add_lanes(totals[r], same_lanes(x[r] + kXSum));
    }
};

// Levels with a scale and a least weight, both whole numbers in units of the row:
//
//     block = [8 x fp16 unit of scales][8 x fp16 unit of leasts] groups
//     group = [8 x u8 scale][8 x u8 least][weights as in FourBit]
struct Affine {
    static constexpr bool kIsAffine = true;
    static constexpr Format kFormat = Format::Q4AG32;
    static constexpr int64_t kBytes = group_bytes(kFormat);
    static constexpr int64_t kScales = scale_bytes(kFormat);
    static Eight scales(const uint8_t* group) { return load_whole_scales(group); }
    static Eight leasts(const uint8_t* group) { return load_whole_scales(group + kRowBlock); }

    template <int R>
    static void products(const uint8_t* weights, const uint8_t* const* x, Lanes* totals) {
        nibble_products<R>(weights, x, totals);
    }
};

// Levels of e2m1 doubled, plus 12.
alignas(16) constexpr uint8_t kFp4Levels[16] = {12, 13, 14, 15, 16, 18, 20, 24,
                                                12, 11, 10, 9,  8,  6,  4,  0};

struct Fp4 {
    static constexpr bool kIsAffine = false;
    static constexpr Format kFormat = Format::Mxfp4;
    static constexpr int64_t kBytes = group_bytes(kFormat);
    static constexpr int64_t kScales = scale_bytes(kFormat);
    static Eight scales(const uint8_t* group) { return load_half_e8m0_scales(group); }

    template <int R>
    static void products(const uint8_t* weights, const uint8_t* const* x, Lanes* totals) {
        static_assert(SmallSum<24>::kAdds >= 4);
        const auto codebook = load_codebook(kFp4Levels);
        SmallSum<24> low_sums[R], high_sums[R];
        for (int q = 0; q < 4; ++q) {
            const Bytes pairs = load_bytes(weights + 32 * q);
            const Bytes low = look_up(codebook, low_nibbles(pairs));
            const Bytes high = look_up(codebook, high_nibbles(pairs));
            for (int r = 0; r < R; ++r) {
                low_sums[r].add(low, same_quad(x[r] + 4 * q));
                high_sums[r].add(high, same_quad(x[r] + 16 + 4 * q));
            }
        }
        for (int r = 0; r < R; ++r) {
            const Lanes eights = same_lanes(x[r] + kXSum);
            const Lanes twelves = add_lanes(eights, shift_right<1>(eights));
            totals[r] = add_lanes(add_lanes(low_sums[r].total(), high_sums[r].total()), twelves);
        }
    }
};

template <class Weight, int R>
inline void add_groups(const uint8_t* block, int64_t num_groups, const uint8_t* const* x,
                       Eight totals[R]) {
    const uint8_t* const head = block;
    const uint8_t* at[R];
    Eight offsets[R];  // sums of activations times least weights, times -8
    for (int r = 0; r < R; ++r) {
        at[r] = x[r];
        totals[r] = offsets[r] = no_eight();
    }
    // One row leaves registers for the least weights too, and the weights are read in one go.
    constexpr bool kIsAtOnce = Weight::kIsAffine && R == 1;
    if constexpr (Weight::kIsAffine) block += head_bytes(Format::Q4AG32);
    for (int64_t g = 0; g < num_groups; ++g) {
        Lanes products[R];
        Weight::template products<R>(block + Weight::kScales, at, products);
        const Eight scales = Weight::scales(block);
        if constexpr (kIsAtOnce)
            offsets[0] =
                fma_eight(same_eight(at[0] + kXScaledSum), Weight::leasts(block), offsets[0]);
        for (int r = 0; r < R; ++r) {
            const Eight factors = mul_eight(scales, same_eight(at[r] + kXScale));
            totals[r] = fma_eight(eight_of(products[r]), factors, totals[r]);
            at[r] += kXGroupBytes;
        }
        block += Weight::kBytes;
    }
    if constexpr (Weight::kIsAffine && !kIsAtOnce) {
        // By themselves, so that the loop above has registers enough.
        block = head + head_bytes(Format::Q4AG32);
        for (int64_t g = 0; g < num_groups; ++g, block += Weight::kBytes) {
            const Eight leasts = Weight::leasts(block);
            for (int r = 0; r < R; ++r)
                offsets[r] =
                    fma_eight(same_eight(x[r] + g * kXGroupBytes + kXScaledSum), leasts, offsets[r]);
        }
    }
    if constexpr (Weight::kIsAffine) {
        const Eight units = load_f16_scales(head);
        const Eight eighths = mul_eight(load_f16_scales(head + 2 * kRowBlock), every_eight(0.125f));
        for (int r = 0; r < R; ++r)
            totals[r] = fma_eight(offsets[r], eighths, mul_eight(totals[r], units));
    }
}

// The same where 16 weights share a scale, in kernel_bits.h.
template <class Weight, int R>
inline void add_half_groups(const uint8_t* block, int64_t num_groups, const uint8_t* const* x,
                            Eight totals[R]);

// The same of blocks of Q4_K and Q5_K, in kernel_spans.h.
struct Spans {
    static constexpr Format kFormat = Format::Q4KG32;
};
struct FiveSpans {
    static constexpr Format kFormat = Format::Q5KG32;
};
template <Format kFormat, int R>
LARDER_APART void add_spans(const uint8_t* block, int64_t num_groups, const uint8_t* const* x,
                      Eight totals[R]);

// The same of blocks of Q2_K, Q3_K and Q6_K, in kernel_half_spans.h.
template <class Kind, int R>
LARDER_APART void add_half_spans(const uint8_t* block, int64_t num_groups,
                                 const uint8_t* const* x, Eight totals[R]);

template <class Weight, int R>
int64_t quads_sweep(const Weights& weights, const uint8_t* block, int64_t num_rows,
                    const uint8_t* const* x, int64_t first_x, int64_t num_x, float* y,
                    int64_t y_stride) {
    const int64_t num_groups = (weights.columns + kGroup - 1) / kGroup;
    int64_t i = first_x;
    for (; i + R <= num_x; i += R) {
        Eight totals[R];
        if constexpr (requires { Weight::kLevelBits; })
            add_half_groups<Weight, R>(block, num_groups, x + i, totals);
        else if constexpr (Weight::kFormat == Format::Q4KG32 || Weight::kFormat == Format::Q5KG32)
            add_spans<Weight::kFormat, R>(block, num_groups, x + i, totals);
        else if constexpr (requires { Weight::kGroupsOfRun; })
            add_half_spans<Weight, R>(block, num_groups, x + i, totals);
        else
            add_groups<Weight, R>(block, num_groups, x + i, totals);
        for (int r = 0; r < R; ++r) {
            float* const results = y + (i + r) * y_stride;
            if (num_rows == kRowBlock) {
                store_eight(results, totals[r]);
                continue;
            }
            float eight[kRowBlock];
            store_eight(eight, totals[r]);
            for (int64_t j = 0; j < num_rows; ++j) results[j] = eight[j];
        }
    }
    return i;
}

// A block of rows goes through all rows of x before the next, so that it stays in the first cache.
template <class Weight>
void dot_quads(const Weights& weights, int64_t first_row, int64_t num_rows,
               const uint8_t* const* x, int64_t num_x, float* y, int64_t y_stride) {
    const int64_t size = block_bytes(Weight::kFormat, weights.columns);
    const uint8_t* block = weights.data + first_row / kRowBlock * size;
    for (int64_t j = 0; j < num_rows; j += kRowBlock, block += size) {
        const int64_t left = num_rows - j < kRowBlock ? num_rows - j : kRowBlock;
        float* const results = y + j;
        int64_t i = 0;
        i = quads_sweep<Weight, kTileXQuads>(weights, block, left, x, i, num_x, results, y_stride);
        if constexpr (kTileXQuads > 4)
            i = quads_sweep<Weight, 4>(weights, block, left, x, i, num_x, results, y_stride);
        if constexpr (kTileXQuads > 2)
            i = quads_sweep<Weight, 2>(weights, block, left, x, i, num_x, results, y_stride);
        quads_sweep<Weight, 1>(weights, block, left, x, i, num_x, results, y_stride);
    }
}

// Read a run of memory and make a byte of it, so that no load can be left out.
uint8_t read_through(const uint8_t* data, int64_t num_bytes) {
    constexpr int kChains = 4;
    Bytes chains[kChains];
    for (int c = 0; c < kChains; ++c) chains[c] = load_bytes(data);
    for (int64_t i = 0; i + 32 * kChains <= num_bytes; i += 32 * kChains)
        for (int c = 0; c < kChains; ++c)
            chains[c] = mix_bytes(chains[c], load_bytes(data + i + 32 * c));
    for (int c = 1; c < kChains; ++c) chains[0] = mix_bytes(chains[0], chains[c]);
    return first_byte(chains[0]);
}

}  // namespace
}  // namespace larder
