// Products of blocks of Q4_K and Q5_K as GGUF files have them, eight rows interleaved.
//
//     block of 8 rows = spans of 256 columns one after another
//     span            = [8 x fp16 unit of scales][8 x fp16 unit of leasts]
//                       [12 vectors of 8 bytes: scales and leasts][vectors of 32 bytes: levels]
//
// Q4_K has 32 vectors of levels: 8p to 8p+7 belong to the groups 2p, in their low nibbles, and 2p+1,
// in their high ones; vector 8p+q has columns 4q..4q+3 of both. Q5_K has eight fives of vectors: of
// five q vector p has the lower bits of what is in vector 8p+q there, and the last the fifth bits of
// columns 4q..4q+3 of all groups, bit g those of group g. Scales and leasts have six bits: those
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
constexpr int64_t kFive = 5 * 4 * kRowBlock;

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

// The levels of the two groups of pair kPair in one of the fives.
template <int kPair>
inline Bytes low_fives(Bytes pairs, Bytes fifths) {
    return join_bits(low_nibbles(pairs), move_bits<2 * kPair, 4, 1>(fifths));
}
template <int kPair>
inline Bytes high_fives(Bytes pairs, Bytes fifths) {
    return join_bits(high_nibbles(pairs), move_bits<2 * kPair + 1, 4, 1>(fifths));
}

constexpr int kFivesTogether = SmallSum<31>::kAdds < 8 ? 4 : 8;  // as many as a small sum bears

// Products of the pairs from kPair on, as far as there are `count` groups: added to `sums`.
template <int R, int kPair = 0>
inline void add_fives(const uint8_t* levels, const uint8_t* scales, int64_t count,
                      const uint8_t* const* x, Eight* sums) {
    for (int h = 0; h < 2 && 2 * kPair + h < count; ++h) {
        const int64_t group = 2 * kPair + h, place = group * kXGroupBytes;
        Lanes totals[R] = {};
        for (int first = 0; first < 8; first += kFivesTogether) {
            SmallSum<31> products[R];
            for (int q = first; q < first + kFivesTogether; ++q) {
                const uint8_t* const five = levels + kFive * q;
                const Bytes pairs = load_bytes(five + 32 * kPair), fifths = load_bytes(five + 128);
                const Bytes fives =
                    h == 0 ? low_fives<kPair>(pairs, fifths) : high_fives<kPair>(pairs, fifths);
                for (int r = 0; r < R; ++r) products[r].add(fives, same_quad(x[r] + place + 4 * q));
            }
            const Factors factors = load_factors(scales + group * kRowBlock);
            for (int r = 0; r < R; ++r) {
                const Lanes some = products[r].total_by(factors);
                totals[r] = first == 0 ? some : add_lanes(totals[r], some);
            }
        }
        for (int r = 0; r < R; ++r)
            sums[r] = fma_eight(eight_of(totals[r]), same_eight(x[r] + place + kXScale), sums[r]);
    }
    if constexpr (kPair < 3) add_fives<R, kPair + 1>(levels, scales, count, x, sums);
}

// Both groups of a pair times four columns of one row.
template <int kPair>
inline void add_pair_of_fives(const uint8_t* five, Bytes fifths, const uint8_t* four,
                              SmallSum<31>* products) {
    const Bytes pairs = load_bytes(five + 32 * kPair);
    const uint8_t* const low = four + 2 * kPair * kXGroupBytes;
    products[2 * kPair].add(low_fives<kPair>(pairs, fifths), same_quad(low));
    products[2 * kPair + 1].add(high_fives<kPair>(pairs, fifths), same_quad(low + kXGroupBytes));
}

// A whole span with one row: every vector is loaded once, in the order of memory.
inline void add_all_fives(const uint8_t* levels, const uint8_t* scales, const uint8_t* x,
                          Eight& sum) {
    Lanes totals[kSpanGroups] = {};
    for (int first = 0; first < 8; first += kFivesTogether) {
        SmallSum<31> products[kSpanGroups];
        for (int q = first; q < first + kFivesTogether; ++q) {
            const uint8_t* const five = levels + kFive * q;
            const Bytes fifths = load_bytes(five + 128);
            add_pair_of_fives<0>(five, fifths, x + 4 * q, products);
            add_pair_of_fives<1>(five, fifths, x + 4 * q, products);
            add_pair_of_fives<2>(five, fifths, x + 4 * q, products);
            add_pair_of_fives<3>(five, fifths, x + 4 * q, products);
        }
        for (int g = 0; g < kSpanGroups; ++g) {
            const Lanes some = products[g].total_by(load_factors(scales + g * kRowBlock));
            totals[g] = first == 0 ? some : add_lanes(totals[g], some);
        }
    }
    for (int g = 0; g < kSpanGroups; ++g)
        sum = fma_eight(eight_of(totals[g]), same_eight(x + g * kXGroupBytes + kXScale), sum);
}

// A span of `count` groups, eight if it is whole: added to `totals`, and `at` moved behind it.
template <Format kFormat, int R, bool kIsWhole>
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
    constexpr bool kIsAtOnce = R == 1 && kIsWhole && kFormat == Format::Q4KG32;
    int64_t g = 0;
    if constexpr (kFormat == Format::Q5KG32) {
        if constexpr (R == 1 && kIsWhole)
            add_all_fives(levels, lines.scales, at[0], sums[0]);
        else
            add_fives<R>(levels, lines.scales, count, at, sums);
        for (int r = 0; r < R; ++r) at[r] += count * kXGroupBytes;
    } else {
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
    }
    const Eight units = load_f16_scales(span);
    for (int r = 0; r < R; ++r) totals[r] = fma_eight(sums[r], units, totals[r]);
    if constexpr (!kIsAtOnce)
        for (g = 0; g < count; ++g) add_leasts(g);
    const Eight eighths = mul_eight(load_f16_scales(span + 2 * kRowBlock), every_eight(0.125f));
    for (int r = 0; r < R; ++r) totals[r] = fma_eight(offsets[r], eighths, totals[r]);
}

template <Format kFormat, int R>
LARDER_APART void add_spans(const uint8_t* block, int64_t num_groups, const uint8_t* const* x,
                            Eight totals[R]) {
    const uint8_t* at[R];
    for (int r = 0; r < R; ++r) {
        at[r] = x[r];
        totals[r] = no_eight();
    }
    int64_t left = num_groups;
    constexpr int64_t kBytes = block_bytes(kFormat, kSpan);
    for (; left >= kSpanGroups; left -= kSpanGroups, block += kBytes)
        add_span<kFormat, R, true>(block, kSpanGroups, at, totals);
    if (left > 0) add_span<kFormat, R, false>(block, left, at, totals);
}

}  // namespace
}  // namespace larder
