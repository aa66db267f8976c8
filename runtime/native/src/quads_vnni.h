// Products of 8-bit integers with AVX-512 VNNI on vectors of 32 bytes: four products added into 32
// bits by one instruction.
#pragma once

#include "quads_x86.h"

namespace larder {
namespace {

// Whole numbers below 64, one for each row, as sums are multiplied by them.
using Factors = Lanes;
inline Factors load_factors(const uint8_t* p) {
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
}

// The first or the second of two signed numbers of 16 bits for each row.
inline Factors first_factors(Lanes halves) {
    return _mm256_srai_epi32(_mm256_slli_epi32(halves, 16), 16);
}
inline Factors second_factors(Lanes halves) { return _mm256_srai_epi32(halves, 16); }

// Sums of four products for each of eight rows, of unsigned levels.
template <int kMaxLevel>
class SmallSum {
public:
    static constexpr int kAdds = 8;  // any number
    void add(Bytes levels, Bytes x) { lanes_ = _mm256_dpbusd_epi32(lanes_, levels, x); }
    Lanes total() const { return lanes_; }
    Lanes total_times(Lanes factors) const { return _mm256_mullo_epi32(lanes_, factors); }
    Lanes total_by(Factors factors) const { return total_times(factors); }

private:
    Lanes lanes_ = _mm256_setzero_si256();
};

// The same of levels that are the upper halves of bytes: left there, sixteen times as large.
class UpperSum {
public:
    static Bytes levels(Bytes pairs) {
        return _mm256_and_si256(pairs, _mm256_set1_epi8(static_cast<char>(0xf0)));
    }
    void add(Bytes levels, Bytes x) { lanes_ = _mm256_dpbusd_epi32(lanes_, levels, x); }
    Lanes total_by(Factors factors) const {
        return _mm256_mullo_epi32(shift_right<4>(lanes_), factors);
    }

private:
    Lanes lanes_ = _mm256_setzero_si256();
};

// Signed levels: taken as level + 128.
using WideLevels = Bytes;
inline WideLevels load_wide(const uint8_t* p) {
    return _mm256_xor_si256(load_bytes(p), _mm256_set1_epi8(static_cast<char>(0x80)));
}

class WideSum {
public:
    static constexpr int kOffset = 128;
    void add(WideLevels levels, Bytes x) { lanes_ = _mm256_dpbusd_epi32(lanes_, levels, x); }
    Lanes total() const { return lanes_; }

private:
    Lanes lanes_ = _mm256_setzero_si256();
};

constexpr int kTileXQuads = 8;  // rows of x in a tile
constexpr int kTileXPairs = 2;  // with so many, two groups of Q4_K go together

}  // namespace
}  // namespace larder
