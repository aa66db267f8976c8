// Vector operations on four floats for compilers without vector types.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "half.h"

namespace larder {
namespace {

constexpr const char* kTableName = "portable";
constexpr int kWidth = 4;
constexpr int kTileX = 2;          // rows of x in a tile of a plain matrix
constexpr int kTileRows = 4;       // rows of the matrix in it
constexpr int kTileRowsOfOne = 8;  // the same for a single row of x

struct V {
    float lane[4];
};

template <class Function>
inline V each(Function function) {
    V result;
    for (int i = 0; i < 4; ++i) result.lane[i] = function(i);
    return result;
}

inline V broadcast(float value) { return {{value, value, value, value}}; }
inline V zero() { return broadcast(0.0f); }
inline V load(const float* p) {
    V a;
    std::memcpy(a.lane, p, sizeof a.lane);
    return a;
}
inline V load_part(const float* p, int64_t count) {
    V a = zero();
    std::memcpy(a.lane, p, static_cast<size_t>(count) * sizeof(float));
    return a;
}
inline void store(float* p, V a) { std::memcpy(p, a.lane, sizeof a.lane); }
inline void store_part(float* p, V a, int64_t count) {
    std::memcpy(p, a.lane, static_cast<size_t>(count) * sizeof(float));
}
inline V add(V a, V b) {
    return each([&](int i) { return a.lane[i] + b.lane[i]; });
}
inline V sub(V a, V b) {
    return each([&](int i) { return a.lane[i] - b.lane[i]; });
}
inline V mul(V a, V b) {
    return each([&](int i) { return a.lane[i] * b.lane[i]; });
}
inline V div(V a, V b) {
    return each([&](int i) { return a.lane[i] / b.lane[i]; });
}
inline V fma(V a, V b, V c) { return add(mul(a, b), c); }
inline V vmin(V a, V b) {
    return each([&](int i) { return a.lane[i] < b.lane[i] ? a.lane[i] : b.lane[i]; });
}
inline V vmax(V a, V b) {
    return each([&](int i) { return a.lane[i] > b.lane[i] ? a.lane[i] : b.lane[i]; });
}

inline float reduce_add(V a) { return (a.lane[0] + a.lane[1]) + (a.lane[2] + a.lane[3]); }
inline void reduce_add_four(const V a[4], float* sums) {
    for (int i = 0; i < 4; ++i) sums[i] = reduce_add(a[i]);
}
inline float reduce_max(V a) {
    float highest = a.lane[0];
    for (int i = 1; i < 4; ++i) highest = a.lane[i] > highest ? a.lane[i] : highest;
    return highest;
}

// 2 ** n from the sum of n and 1.5 * 2 ** 23.
inline V power_of_two(V shifted) {
    return each([&](int i) {
        uint32_t bits;
        std::memcpy(&bits, &shifted.lane[i], sizeof bits);
        return float_of_bits((bits << 23) + (127u << 23));
    });
}

inline V load_f16(const uint8_t* p) {
    return each([&](int i) { return float_of_f16(p + 2 * i); });
}
inline V load_bf16(const uint8_t* p) {
    return each([&](int i) { return float_of_bf16(p + 2 * i); });
}

inline void prefetch(const uint8_t*) {}

}  // namespace
}  // namespace larder
