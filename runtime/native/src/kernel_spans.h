// Products of blocks of Q4_K as GGUF files have them, eight rows interleaved.
//
//     block of 8 rows = spans of 256 columns one after another
//     span            = [8 x fp16 unit of scales][8 x fp16 unit of leasts]
//                       [12 vectors of 8 bytes: scales and leasts][32 vectors of 32 bytes: levels]
//
// The vectors of levels 8p to 8p+7 belong to the groups 2p, in their low nibbles, and 2p+1, in
// their high ones; vector 8p+q has columns 4q..4q+3 of both. Scales and leasts have six bits: those
// of the groups 0 to 3 are the lower bits of vectors 0..3 and 4..7; those of group 4+j are the low
// and the high nibbles of vector 8+j, with the upper two bits of vectors j and 4+j on top.
//
// Levels times scales are whole numbers and exact. Of a span they are added group by group, then
// multiplied by its units.
#pragma once

namespace larder {
namespace {

constexpr int64_t kSpanGroups = kSpan / kGroup;
constexpr int64_t kPairBytes = 2 * kRowBlock * kGroup / 2;  // levels of two groups

// Room for what 12 vectors hold: scales of the groups 0 to 7, eight rows each, then leasts.
struct Lines {
    alignas(32) uint8_t scales[8 * kRowBlock];
    alignas(32) uint8_t leasts[8 * kRowBlock];
};

inline void take_lines(const uint8_t* packed, Lines& lines) {
    const Bytes scales = load_bytes(packed), leasts = load_bytes(packed + 32);
    const Bytes nibbles = load_bytes(packed + 64);
    store_bytes(lines.scales, move_bits<0, 0, 6>(scales));
    store_bytes(lines.scales + 32, join_bits(low_nibbles(nibbles), move_bits<6, 4, 2>(scales)));
    store_bytes(lines.leasts, move_bits<0, 0, 6>(leasts));
    store_bytes(lines.leasts + 32, join_bits(high_nibbles(nibbles), move_bits<6, 4, 2>(leasts)));
}

// Products of one group, the low or the high nibbles of eight vectors: added to `sums`.
template <int R, bool kIsHigh>
inline void add_nibbles(const uint8_t* levels, const uint8_t* scales, const uint8_t* const* x,
                        Eight* sums) {
    static_assert(SmallSum<15>::kAdds >= 8);
    constexpr int64_t kPlace = kIsHigh ? kXGroupBytes : 0;
    SmallSum<15> products[R];
    for (int q = 0; q < 8; ++q) {
        const Bytes pairs = load_bytes(levels + 32 * q);
        const Bytes nibbles = kIsHigh ? high_nibbles(pairs) : low_nibbles(pairs);
        for (int r = 0; r < R; ++r) products[r].add(nibbles, same_quad(x[r] + kPlace + 4 * q));
    }
    const Factors factors = load_factors(scales);
    for (int r = 0; r < R; ++r)
        sums[r] = fma_eight(eight_of(products[r].total_by(factors)),
                            same_eight(x[r] + kPlace + kXScale), sums[r]);
}

// The same of both groups; where there are registers enough every vector is loaded once.
template <int R>
inline void add_both(const uint8_t* levels, const uint8_t* scales, const uint8_t* const* x,
                     Eight* sums) {
    if constexpr (R > kTileXPairs) {
        add_nibbles<R, false>(levels, scales, x, sums);
        add_nibbles<R, true>(levels, scales + kRowBlock, x, sums);
        return;
    }
    SmallSum<15> low_products[R];
    UpperSum high_products[R];
    for (int q = 0; q < 8; ++q) {
        const Bytes pairs = load_bytes(levels + 32 * q);
        const Bytes low = low_nibbles(pairs), high = UpperSum::levels(pairs);
        for (int r = 0; r < R; ++r) {
            low_products[r].add(low, same_quad(x[r] + 4 * q));
            high_products[r].add(high, same_quad(x[r] + kXGroupBytes + 4 * q));
        }
    }
    const Factors low = load_factors(scales), high = load_factors(scales + kRowBlock);
    for (int r = 0; r < R; ++r) {
        sums[r] = fma_eight(eight_of(low_products[r].total_by(low)), same_eight(x[r] + kXScale),
                            sums[r]);
        sums[r] = fma_eight(eight_of(high_products[r].total_by(high)),
                            same_eight(x[r] + kXGroupBytes + kXScale), sums[r]);
    }
}

// A span of `count` groups, eight if it is whole: added to `totals`, and `at` moved behind it.
template <int R, bool kIsWhole>
inline void add_span(const uint8_t* span, int64_t count, const uint8_t** at, Eight* totals) {
    if constexpr (kIsWhole) count = kSpanGroups;
    Lines lines;
    take_lines(span + 4 * kRowBlock, lines);
    const uint8_t* levels = span + kSpanHead;
    const uint8_t* first[R];
    Eight sums[R], offsets[R];  // offsets: of activations times least weights, times -8
    for (int r = 0; r < R; ++r) {
        first[r] = at[r];
        sums[r] = offsets[r] = no_eight();
    }
    const auto add_leasts = [&](int64_t group) {
        const Eight leasts = load_whole_scales(lines.leasts + group * kRowBlock);
        const int64_t place = group * kXGroupBytes + kXScaledSum;
        for (int r = 0; r < R; ++r)
            offsets[r] = fma_eight(same_eight(first[r] + place), leasts, offsets[r]);
    };
    // One row leaves registers for the least weights too.
    constexpr bool kIsAtOnce = R == 1 && kIsWhole;
    int64_t g = 0;
    for (; g + 2 <= count; g += 2, levels += kPairBytes) {
        add_both<R>(levels, lines.scales + g * kRowBlock, at, sums);
        if constexpr (kIsAtOnce) {
            add_leasts(g);
            add_leasts(g + 1);
        }
        for (int r = 0; r < R; ++r) at[r] += 2 * kXGroupBytes;
    }
    if (!kIsWhole && g < count)
        add_nibbles<R, false>(levels, lines.scales + g * kRowBlock, at, sums);
    const Eight units = load_f16_scales(span);
    for (int r = 0; r < R; ++r) totals[r] = fma_eight(sums[r], units, totals[r]);
    if constexpr (!kIsAtOnce)
        for (g = 0; g < count; ++g) add_leasts(g);
    const Eight eighths = mul_eight(load_f16_scales(span + 2 * kRowBlock), every_eight(0.125f));
    for (int r = 0; r < R; ++r) totals[r] = fma_eight(offsets[r], eighths, totals[r]);
}

template <int R>
LARDER_APART void add_spans(const uint8_t* block, int64_t num_groups, const uint8_t* const* x,
                            Eight totals[R]) {
    const uint8_t* at[R];
    for (int r = 0; r < R; ++r) {
        at[r] = x[r];
        totals[r] = no_eight();
    }
    int64_t left = num_groups;
    for (; left >= kSpanGroups; left -= kSpanGroups, block += kSpanBytes)
        add_span<R, true>(block, kSpanGroups, at, totals);
    if (left > 0) add_span<R, false>(block, left, at, totals);
}

}  // namespace
}  // namespace larder
