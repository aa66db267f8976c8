// Products of blocks of Q6_K as GGUF files have them, eight rows interleaved.
//
//     block of 8 rows = spans of 256 columns one after another
//     span            = [8 x fp16 unit][8 groups of 8 x two scales, signed bytes]
//                       [16 threes of vectors of 32 bytes: levels]
//
// A group is 32 columns; the first of its scales belongs to columns 0..15, the second to 16..31. The
// groups 4n to 4n+3 share the threes 8n to 8n+7, of which number q has columns 4q..4q+3: lower four
// bits of the groups 4n (low nibbles) and 4n+2 (high ones), those of 4n+1 and 4n+3, and their upper
// two bits, bits 0 and 1 of group 4n to 6 and 7 of 4n+3. A level is the six bits minus 32.
//
// Levels times scales are whole numbers: in a group below 32 x 32 x 127 x 128 < 2 ** 24, so that they
// are exact as floats too. Of a span they are added group by group, then multiplied by its unit.
#pragma once

namespace larder {
namespace {

constexpr int64_t kVectorOfRows = 4 * kRowBlock;  // bytes of four columns of a block of rows
constexpr int64_t kThree = 3 * kVectorOfRows;
constexpr int64_t kScalesOfGroup = 2 * kRowBlock;
constexpr int kTogether = SmallSum<63>::kAdds < 4 ? 2 : 4;  // as many as a small sum bears

// The levels, 32 too large, of one of four groups in a three.
template <int kGroupOfFour>
inline Bytes six_levels(Bytes pairs, Bytes twos) {
    const Bytes fours = kGroupOfFour < 2 ? low_nibbles(pairs) : high_nibbles(pairs);
    return join_bits(fours, move_bits<2 * kGroupOfFour, 4, 2>(twos));
}

// What levels that are 32 too large add to a group, taken off.
inline Lanes without_offsets(const SignedHalves& halves, const uint8_t* x) {
    return shift_left<5>(multiply_signed_halves(halves, x + kXHalves));
}

// Products of one of four groups with R rows of activations: added to `sums`.
template <int R, int kGroupOfFour>
inline void add_six(const uint8_t* threes, const uint8_t* scales, const uint8_t* const* x,
                    Eight* sums) {
    const SignedHalves halves = load_signed_halves(scales);
    Lanes totals[R];
    for (int r = 0; r < R; ++r) totals[r] = without_offsets(halves, x[r]);
    for (int first = 0; first < 8; first += kTogether) {
        SmallSum<63> products[R];
        for (int q = first; q < first + kTogether; ++q) {
            const uint8_t* const three = threes + kThree * q;
            const Bytes levels =
                six_levels<kGroupOfFour>(load_bytes(three + kGroupOfFour % 2 * kVectorOfRows),
                                         load_bytes(three + 2 * kVectorOfRows));
            for (int r = 0; r < R; ++r) products[r].add(levels, same_quad(x[r] + 4 * q));
        }
        const Factors factors = first < 4 ? first_factors(halves) : second_factors(halves);
        for (int r = 0; r < R; ++r)
            totals[r] = add_lanes(totals[r], products[r].total_by(factors));
    }
    for (int r = 0; r < R; ++r)
        sums[r] = fma_eight(eight_of(totals[r]), same_eight(x[r] + kXScale), sums[r]);
}

// The same of four groups with one row: every vector is loaded once, in the order of memory.
inline void add_four_sixes(const uint8_t* threes, const uint8_t* scales, const uint8_t* x,
                           Eight& sum) {
    Lanes totals[4];
    for (int g = 0; g < 4; ++g)
        totals[g] = without_offsets(load_signed_halves(scales + g * kScalesOfGroup),
                                    x + g * kXGroupBytes);
    for (int first = 0; first < 8; first += kTogether) {
        SmallSum<63> products[4];
        for (int q = first; q < first + kTogether; ++q) {
            const uint8_t* const three = threes + kThree * q;
            const Bytes even = load_bytes(three), odd = load_bytes(three + kVectorOfRows);
            const Bytes twos = load_bytes(three + 2 * kVectorOfRows);
            const uint8_t* const four = x + 4 * q;
            products[0].add(six_levels<0>(even, twos), same_quad(four));
            products[1].add(six_levels<1>(odd, twos), same_quad(four + kXGroupBytes));
            products[2].add(six_levels<2>(even, twos), same_quad(four + 2 * kXGroupBytes));
            products[3].add(six_levels<3>(odd, twos), same_quad(four + 3 * kXGroupBytes));
        }
        for (int g = 0; g < 4; ++g) {
            const SignedHalves halves = load_signed_halves(scales + g * kScalesOfGroup);
            const Factors factors = first < 4 ? first_factors(halves) : second_factors(halves);
            totals[g] = add_lanes(totals[g], products[g].total_by(factors));
        }
    }
    for (int g = 0; g < 4; ++g)
        sum = fma_eight(eight_of(totals[g]), same_eight(x + g * kXGroupBytes + kXScale), sum);
}

// A span of `count` groups: added to `totals`, and `at` moved behind it.
template <int R>
inline void add_six_span(const uint8_t* span, int64_t count, const uint8_t** at, Eight* totals) {
    const uint8_t* scales = span + 2 * kRowBlock;
    const uint8_t* threes = span + kSixSpanHead;
    Eight sums[R];
    for (int r = 0; r < R; ++r) sums[r] = no_eight();
    const auto next = [&] {
        scales += kScalesOfGroup;
        for (int r = 0; r < R; ++r) at[r] += kXGroupBytes;
    };
    for (int64_t g = 0; g < count; g += 4, threes += 8 * kThree) {
        if constexpr (R == 1) {
            if (g + 4 <= count) {
                add_four_sixes(threes, scales, at[0], sums[0]);
                scales += 4 * kScalesOfGroup;
                at[0] += 4 * kXGroupBytes;
                continue;
            }
        }
        add_six<R, 0>(threes, scales, at, sums);
        next();
        if (g + 1 < count) {
            add_six<R, 1>(threes, scales, at, sums);
            next();
        }
        if (g + 2 < count) {
            add_six<R, 2>(threes, scales, at, sums);
            next();
        }
        if (g + 3 < count) {
            add_six<R, 3>(threes, scales, at, sums);
            next();
        }
    }
    const Eight units = load_f16_scales(span);
    for (int r = 0; r < R; ++r) totals[r] = fma_eight(sums[r], units, totals[r]);
}

template <int R>
LARDER_APART void add_six_spans(const uint8_t* block, int64_t num_groups, const uint8_t* const* x,
                                Eight totals[R]) {
    const uint8_t* at[R];
    for (int r = 0; r < R; ++r) {
        at[r] = x[r];
        totals[r] = no_eight();
    }
    constexpr int64_t kSpanGroups = kSpan / kGroup;
    for (int64_t left = num_groups; left > 0; left -= kSpanGroups, block += kSixSpanBytes)
        add_six_span<R>(block, left < kSpanGroups ? left : kSpanGroups, at, totals);
}

}  // namespace
}  // namespace larder
