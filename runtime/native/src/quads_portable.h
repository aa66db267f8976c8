// The same as plain loops, which compilers turn into what the processor has.
#pragma once

#include <cstdint>
#include <cstring>

#include "half.h"

namespace larder {
namespace {

struct Bytes {
    uint8_t lane[32];
};
struct Lanes {
    int32_t lane[8];
};
struct Eight {
    float lane[8];
};

template <class Vector, class Function>
inline Vector fill(Function function) {
    Vector result;
    constexpr int kLanes = static_cast<int>(sizeof result.lane / sizeof result.lane[0]);
    for (int i = 0; i < kLanes; ++i) result.lane[i] = function(i);
    return result;
}

inline Bytes load_bytes(const uint8_t* p) {
    Bytes a;
    std::memcpy(a.lane, p, sizeof a.lane);
    return a;
}
inline void store_bytes(uint8_t* p, const Bytes& a) { std::memcpy(p, a.lane, sizeof a.lane); }
// Sixteen bytes of each of eight rows, four by four: those of all rows side by side.
inline void spread_quads(const uint8_t* rows, int64_t stride, uint8_t* out) {
    for (int quad = 0; quad < 4; ++quad)
        for (int r = 0; r < 8; ++r, out += 4) std::memcpy(out, rows + r * stride + quad * 4, 4);
}
// Twelve of sixteen bytes of each of eight rows, one by one: those of all rows side by side.
inline void spread_twelve(const uint8_t* rows, int64_t stride, uint8_t* out) {
    for (int i = 0; i < 12; ++i)
        for (int r = 0; r < 8; ++r) *out++ = rows[r * stride + i];
}
inline Bytes same_quad(const uint8_t* p) {
    return fill<Bytes>([p](int i) { return p[i % 4]; });
}
inline Bytes mix_bytes(const Bytes& a, const Bytes& b) {
    return fill<Bytes>([&](int i) { return static_cast<uint8_t>(a.lane[i] ^ b.lane[i]); });
}
inline uint8_t first_byte(const Bytes& a) { return a.lane[0]; }
inline Bytes low_nibbles(const Bytes& a) {
    return fill<Bytes>([&a](int i) { return static_cast<uint8_t>(a.lane[i] & 15); });
}
inline Bytes high_nibbles(const Bytes& a) {
    return fill<Bytes>([&a](int i) { return static_cast<uint8_t>(a.lane[i] >> 4); });
}
struct Codebook {
    const uint8_t* levels;
};
inline Codebook load_codebook(const uint8_t* levels) { return {levels}; }
inline Bytes look_up(Codebook codebook, const Bytes& a) {
    return fill<Bytes>([&](int i) { return codebook.levels[a.lane[i]]; });
}

inline Lanes same_lanes(const uint8_t* p) {
    int32_t value;
    std::memcpy(&value, p, sizeof value);
    return fill<Lanes>([value](int) { return value; });
}
inline Lanes no_lanes() { return {}; }
inline Lanes add_lanes(const Lanes& a, const Lanes& b) {
    return fill<Lanes>([&](int i) { return a.lane[i] + b.lane[i]; });
}
template <int kBits>
inline Lanes shift_left(const Lanes& a) {
    return fill<Lanes>([&a](int i) { return a.lane[i] * (1 << kBits); });
}
template <int kBits>
inline Lanes shift_right(const Lanes& a) {
    return fill<Lanes>([&a](int i) { return a.lane[i] >> kBits; });
}

inline Eight no_eight() { return {}; }
inline Eight same_eight(const uint8_t* p) {
    float value;
    std::memcpy(&value, p, sizeof value);
    return fill<Eight>([value](int) { return value; });
}
inline Eight eight_of(const Lanes& a) {
    return fill<Eight>([&a](int i) { return static_cast<float>(a.lane[i]); });
}
inline Eight mul_eight(const Eight& a, const Eight& b) {
    return fill<Eight>([&](int i) { return a.lane[i] * b.lane[i]; });
}
inline Eight fma_eight(const Eight& a, const Eight& b, const Eight& c) {
    return fill<Eight>([&](int i) { return a.lane[i] * b.lane[i] + c.lane[i]; });
}
inline void store_eight(float* p, const Eight& a) { std::memcpy(p, a.lane, sizeof a.lane); }
inline Eight load_f16_scales(const uint8_t* p) {
    return fill<Eight>([p](int i) { return float_of_f16(p + 2 * i); });
}
inline Eight load_whole_scales(const uint8_t* p) {
    return fill<Eight>([p](int i) { return static_cast<float>(p[i]); });
}
inline Eight every_eight(float value) {
    return fill<Eight>([value](int) { return value; });
}
// 2 ** (e - 128), half of what the byte stands for, since levels are stored doubled; 0 for 0 and 1.
inline Eight load_half_e8m0_scales(const uint8_t* p) {
    return fill<Eight>([p](int i) { return float_of_bits((p[i] > 0 ? p[i] - 1u : 0u) << 23); });
}

inline int32_t sum_of_quad(const int32_t* products) {
    return (products[0] + products[1]) + (products[2] + products[3]);
}

// Whole numbers below 64, one for each row, as sums are multiplied by them.
using Factors = Lanes;
inline Factors load_factors(const uint8_t* p) {
    return fill<Lanes>([p](int i) { return static_cast<int32_t>(p[i]); });
}

// Sums of four products for each of eight rows, of unsigned levels.
template <int kMaxLevel>
class SmallSum {
public:
    static constexpr int kAdds = 8;  // any number
    void add(const Bytes& levels, const Bytes& x) {
        for (int i = 0; i < 32; ++i)
            products_[i] += static_cast<int32_t>(levels.lane[i]) * static_cast<int8_t>(x.lane[i]);
    }
    Lanes total() const {
        return fill<Lanes>([this](int i) { return sum_of_quad(products_ + 4 * i); });
    }
    Lanes total_times(const Lanes& factors) const {
        return fill<Lanes>(
            [&](int i) { return sum_of_quad(products_ + 4 * i) * factors.lane[i]; });
    }
    Lanes total_by(const Factors& factors) const { return total_times(factors); }

private:
    int32_t products_[32] = {};
};

// The same of levels that are the upper halves of bytes.
class UpperSum : public SmallSum<15> {
public:
    static Bytes levels(const Bytes& pairs) { return high_nibbles(pairs); }
};

using WideLevels = Bytes;
inline WideLevels load_wide(const uint8_t* p) { return load_bytes(p); }

// The same of signed levels.
class WideSum {
public:
    static constexpr int kOffset = 0;
    void add(const WideLevels& levels, const Bytes& x) {
        for (int i = 0; i < 32; ++i)
            products_[i] += static_cast<int32_t>(static_cast<int8_t>(levels.lane[i])) *
                            static_cast<int8_t>(x.lane[i]);
    }
    Lanes total() const {
        return fill<Lanes>([this](int i) { return sum_of_quad(products_ + 4 * i); });
    }

private:
    int32_t products_[32] = {};
};

constexpr int kTileXQuads = 2;  // rows of x in a tile
constexpr int kTileXPairs = 2;  // with so many, two groups of Q4_K go together

}  // namespace
}  // namespace larder
