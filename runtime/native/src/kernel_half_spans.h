// Products of blocks of Q2_K, Q3_K and Q6_K as GGUF files have them, eight rows interleaved.
//
//     block of 8 rows = spans of 256 columns one after another
//     span            = [8 x fp16 unit of scales][Q2_K: 8 x fp16 unit of leasts]
//                       [8 groups of 8 rows x two bytes][runs of eight bundles of vectors: levels]
//
// A group is 32 columns; the first of its bytes belongs to columns 0..15, the second to 16..31. Those
// of Q3_K and Q6_K are scales with a sign, those of Q2_K have a scale in their lower half and a least
// weight in the upper one. A run of bundles has the levels of kGroupsOfRun groups, bundle q of it
// columns 4q..4q+3 of each:
//
//     Q6_K, four groups   two vectors of lower bits, of groups 0 and 2, 1 and 3 in low and high
//                         nibbles; upper two bits, bits 2g and 2g + 1 those of group g
//     Q3_K, eight groups  two vectors of lower two bits, of groups 0..3 and 4..7, in bits 2g and
//                         2g + 1; upper bits, bit g that of group g
//     Q2_K, eight groups  the first two of Q3_K
//
// A level is the bits minus 32 (Q6_K) or 4 (Q3_K). Levels times scales are whole numbers, in a group
// below 32 x 32 x 127 x 128 < 2 ** 24, so that they are exact as floats too. Of a span they are added
// group by group, then multiplied by its units.
#pragma once

namespace larder {
namespace {

constexpr int64_t kVectorOfRows = 4 * kRowBlock;  // bytes of four columns of a block of rows
constexpr int64_t kScalesOfGroup = 2 * kRowBlock;

// The lower two bits of group kOfRun.
template <int kOfRun>
inline Bytes lower_twos(const uint8_t* bundle) {
    return move_bits<2 * (kOfRun % 4), 0, 2>(load_bytes(bundle + kOfRun / 4 * kVectorOfRows));
}

// Each kind: where things are, and the levels of one group of a run, offsets left in.
struct SixSpans {
    static constexpr Format kFormat = Format::Q6KG16;
    static constexpr int kMaxLevel = 63, kOffsetBits = 5, kGroupsOfRun = 4, kVectors = 3;
    static constexpr bool kHasLeasts = false;

    template <int kOfRun>
    static Bytes levels(const uint8_t* bundle) {
        const Bytes pairs = load_bytes(bundle + kOfRun % 2 * kVectorOfRows);
        const Bytes twos = load_bytes(bundle + 2 * kVectorOfRows);
        return join_bits(kOfRun < 2 ? low_nibbles(pairs) : high_nibbles(pairs),
                         move_bits<2 * kOfRun, 4, 2>(twos));
    }
};

struct ThreeSpans {
    static constexpr Format kFormat = Format::Q3KG16;
    static constexpr int kMaxLevel = 7, kOffsetBits = 2, kGroupsOfRun = 8, kVectors = 3;
    static constexpr bool kHasLeasts = false;

    template <int kOfRun>
    static Bytes levels(const uint8_t* bundle) {
        const Bytes thirds = load_bytes(bundle + 2 * kVectorOfRows);
        return join_bits(lower_twos<kOfRun>(bundle), move_bits<kOfRun, 2, 1>(thirds));
    }
};

struct TwoSpans {
    static constexpr Format kFormat = Format::Q2KG16;
    static constexpr int kMaxLevel = 3, kOffsetBits = 0, kGroupsOfRun = 8, kVectors = 2;
    static constexpr bool kHasLeasts = true;

    template <int kOfRun>
    static Bytes levels(const uint8_t* bundle) { return lower_twos<kOfRun>(bundle); }
};

template <class Kind>
constexpr int kTogether = SmallSum<Kind::kMaxLevel>::kAdds < 4 ? 2 : 4;  // as many as a sum bears

template <class Kind>
inline SignedHalves half_scales(const uint8_t* p) {
    const SignedHalves halves = load_signed_halves(p);
    if constexpr (Kind::kHasLeasts) return lower_halves(halves);
    return halves;
}

// What a group of one row begins with: offsets of levels taken off.
template <class Kind>
inline Lanes half_start(const uint8_t* scales, const uint8_t* x) {
    if constexpr (Kind::kOffsetBits == 0) return no_lanes();
    return shift_left<Kind::kOffsetBits>(
        multiply_signed_halves(load_signed_halves(scales), x + kXHalves));
}

template <class Kind>
inline Factors half_factors(const uint8_t* scales, bool is_first) {
    const SignedHalves halves = half_scales<Kind>(scales);
    return is_first ? first_factors(halves) : second_factors(halves);
}

// A group of one row: added to the sum of its span, and to what its least weights take off.
template <class Kind>
inline void add_half_total(Lanes total, const uint8_t* scales, const uint8_t* x, Eight& sum,
                           Eight& offset) {
    const Eight scale = same_eight(x + kXScale);
    sum = fma_eight(eight_of(total), scale, sum);
    if constexpr (Kind::kHasLeasts) {
        const SignedHalves leasts = upper_halves(load_signed_halves(scales));
        offset = fma_eight(eight_of(multiply_signed_halves(leasts, x + kXHalves)), scale, offset);
    }
}

// Groups of a run from kOfRun on, as far as there are `count`, with R rows of activations.
template <class Kind, int R, int kOfRun = 0>
inline void add_half_run(const uint8_t* run, const uint8_t* scales, int64_t count,
                         const uint8_t* const* x, Eight* sums, Eight* offsets) {
    constexpr int64_t kPlace = kOfRun * kXGroupBytes;
    const uint8_t* const own = scales + kOfRun * kScalesOfGroup;
    Lanes totals[R];
    for (int r = 0; r < R; ++r) totals[r] = half_start<Kind>(own, x[r] + kPlace);
    for (int first = 0; first < 8; first += kTogether<Kind>) {
        SmallSum<Kind::kMaxLevel> products[R];
        for (int q = first; q < first + kTogether<Kind>; ++q) {
            const Bytes levels =
                Kind::template levels<kOfRun>(run + q * Kind::kVectors * kVectorOfRows);
            for (int r = 0; r < R; ++r) products[r].add(levels, same_quad(x[r] + kPlace + 4 * q));
        }
        const Factors factors = half_factors<Kind>(own, first < 4);
        for (int r = 0; r < R; ++r)
            totals[r] = add_lanes(totals[r], products[r].total_by(factors));
    }
    for (int r = 0; r < R; ++r)
        add_half_total<Kind>(totals[r], own, x[r] + kPlace, sums[r], offsets[r]);
    if constexpr (kOfRun + 1 < Kind::kGroupsOfRun)
        if (kOfRun + 1 < count)
            add_half_run<Kind, R, kOfRun + 1>(run, scales, count, x, sums, offsets);
}

// One bundle times four columns of one row, of all groups of a run.
template <class Kind, int kOfRun = 0>
inline void add_bundle(const uint8_t* bundle, const uint8_t* four,
                       SmallSum<Kind::kMaxLevel>* products) {
    products[kOfRun].add(Kind::template levels<kOfRun>(bundle),
                         same_quad(four + kOfRun * kXGroupBytes));
    if constexpr (kOfRun + 1 < Kind::kGroupsOfRun)
        add_bundle<Kind, kOfRun + 1>(bundle, four, products);
}

// A whole run with one row: every vector is loaded once, in the order of memory.
template <class Kind>
inline void add_whole_run(const uint8_t* run, const uint8_t* scales, const uint8_t* x, Eight& sum,
                          Eight& offset) {
    constexpr int kGroups = Kind::kGroupsOfRun;
    Lanes totals[kGroups];
    for (int g = 0; g < kGroups; ++g)
        totals[g] = half_start<Kind>(scales + g * kScalesOfGroup, x + g * kXGroupBytes);
    for (int first = 0; first < 8; first += kTogether<Kind>) {
        SmallSum<Kind::kMaxLevel> products[kGroups];
        for (int q = first; q < first + kTogether<Kind>; ++q)
            add_bundle<Kind>(run + q * Kind::kVectors * kVectorOfRows, x + 4 * q, products);
        for (int g = 0; g < kGroups; ++g)
            totals[g] = add_lanes(totals[g], products[g].total_by(half_factors<Kind>(
                                                 scales + g * kScalesOfGroup, first < 4)));
    }
    for (int g = 0; g < kGroups; ++g)
        add_half_total<Kind>(totals[g], scales + g * kScalesOfGroup, x + g * kXGroupBytes, sum,
                             offset);
}

// A span of `count` groups: added to `totals`, and `at` moved behind it.
template <class Kind, int R>
inline void add_half_span(const uint8_t* span, int64_t count, const uint8_t** at, Eight* totals) {
    constexpr int64_t kRun = 8 * Kind::kVectors * kVectorOfRows, kUnitBytes = 2 * kRowBlock;
    const uint8_t* scales = span + (Kind::kHasLeasts ? 2 : 1) * kUnitBytes;
    const uint8_t* run = scales + kSpan / kGroup * kScalesOfGroup;
    Eight sums[R], offsets[R];
    for (int r = 0; r < R; ++r) sums[r] = offsets[r] = no_eight();
    for (; count > 0; count -= Kind::kGroupsOfRun, run += kRun) {
        const int64_t here = count < Kind::kGroupsOfRun ? count : Kind::kGroupsOfRun;
        if (R == 1 && here == Kind::kGroupsOfRun)
            add_whole_run<Kind>(run, scales, at[0], sums[0], offsets[0]);
        else
            add_half_run<Kind, R>(run, scales, here, at, sums, offsets);
        scales += here * kScalesOfGroup;
        for (int r = 0; r < R; ++r) at[r] += here * kXGroupBytes;
    }
    const Eight units = load_f16_scales(span);
    for (int r = 0; r < R; ++r) totals[r] = fma_eight(sums[r], units, totals[r]);
    if constexpr (Kind::kHasLeasts) {
        const Eight least_units = load_f16_scales(span + kUnitBytes);
        for (int r = 0; r < R; ++r) totals[r] = fma_eight(offsets[r], least_units, totals[r]);
    }
}

template <class Kind, int R>
LARDER_APART void add_half_spans(const uint8_t* block, int64_t num_groups,
                                 const uint8_t* const* x, Eight totals[R]) {
    const uint8_t* at[R];
    for (int r = 0; r < R; ++r) {
        at[r] = x[r];
        totals[r] = no_eight();
    }
    constexpr int64_t kGroups = kSpan / kGroup, kBytes = block_bytes(Kind::kFormat, kSpan);
    for (int64_t left = num_groups; left > 0; left -= kGroups, block += kBytes)
        add_half_span<Kind, R>(block, left < kGroups ? left : kGroups, at, totals);
}

}  // namespace
}  // namespace larder
