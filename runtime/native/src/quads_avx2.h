// Products of 8-bit integers with AVX2: unsigned by signed bytes, pairs added into 16 bits.
#pragma once

#include "quads_x86.h"

namespace larder {
namespace {

// Keeps a sum where it is. Compilers would form all products of a group first and add them as a
// tree, for which there are not registers enough.
inline void keep(__m256i& sum) {
#if defined(__GNUC__)
    __asm__("" : "+x"(sum));
#else
    static_cast<void>(sum);
#endif
}

// Whole numbers below 64, one for each row, as sums are multiplied by them: twice in 16 bits.
using Factors = Bytes;
inline Factors load_factors(const uint8_t* p) {
    int64_t eight;
    std::memcpy(&eight, p, sizeof eight);
    const Bytes places = _mm256_setr_epi8(0, -1, 0, -1, 1, -1, 1, -1, 2, -1, 2, -1, 3, -1, 3, -1,
                                          4, -1, 4, -1, 5, -1, 5, -1, 6, -1, 6, -1, 7, -1, 7, -1);
    return _mm256_shuffle_epi8(_mm256_set1_epi64x(eight), places);
}

// The first or the second of two signed numbers of 16 bits for each row.
inline Factors first_factors(Lanes halves) {
    return _mm256_blend_epi16(halves, _mm256_slli_epi32(halves, 16), 0xaa);
}
inline Factors second_factors(Lanes halves) {
    return _mm256_blend_epi16(_mm256_srli_epi32(halves, 16), halves, 0xaa);
}

// Sums of four products for each of eight rows. Levels are unsigned and at most kMaxLevel; what
// `kAdds` vectors of them add up to stays within 16 bits: 8 * 2 * 15 * 127 < 2 ** 15.
template <int kMaxLevel>
class SmallSum {
public:
    static constexpr int kAdds = 32767 / (2 * 127 * kMaxLevel);
    void add(Bytes levels, Bytes x) {
        pairs_ = _mm256_add_epi16(pairs_, _mm256_maddubs_epi16(levels, x));
        keep(pairs_);
    }
    Lanes total() const { return _mm256_madd_epi16(pairs_, _mm256_set1_epi16(1)); }
    // Times a whole number below 2 ** 15 for each row.
    Lanes total_times(Lanes factors) const {
        return _mm256_madd_epi16(pairs_, _mm256_or_si256(factors, _mm256_slli_epi32(factors, 16)));
    }
    Lanes total_by(Factors factors) const { return _mm256_madd_epi16(pairs_, factors); }

private:
    Bytes pairs_ = _mm256_setzero_si256();
};

// The same of levels that are the upper halves of bytes.
class UpperSum : public SmallSum<15> {
public:
    static Bytes levels(Bytes pairs) { return high_nibbles(pairs); }
};

// Signed levels: their signs are moved to x, since the instruction wants one unsigned side.
struct WideLevels {
    Bytes signs, magnitudes;
};
inline WideLevels load_wide(const uint8_t* p) {
    const Bytes levels = load_bytes(p);
    return {levels, _mm256_abs_epi8(levels)};
}

class WideSum {
public:
    static constexpr int kOffset = 0;
    void add(const WideLevels& levels, Bytes x) {
        const Bytes pairs = _mm256_maddubs_epi16(levels.magnitudes, _mm256_sign_epi8(x, levels.signs));
        lanes_ = _mm256_add_epi32(lanes_, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
        keep(lanes_);
    }
    Lanes total() const { return lanes_; }

private:
    Lanes lanes_ = _mm256_setzero_si256();
};

constexpr int kTileXQuads = 6;  // rows of x in a tile
constexpr int kTileXPairs = 2;  // with so many, two groups of Q4_K go together

}  // namespace
}  // namespace larder
