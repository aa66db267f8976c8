// Vector operations on four floats with the vector types of GCC and Clang, which map them to what
// the processor has (SSE2, NEON and others).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#ifdef __aarch64__
#include <arm_neon.h>
#endif

#include "half.h"

namespace larder {
namespace {

constexpr const char* kTableName = "portable";
constexpr int kWidth = 4;
constexpr int kTileX = 2;          // rows of x in a tile of a plain matrix
constexpr int kTileRows = 4;       // rows of the matrix in it
constexpr int kTileRowsOfOne = 8;  // the same for a single row of x

using V = float __attribute__((vector_size(16)));
using Bits = uint32_t __attribute__((vector_size(16)));
using Integers = int32_t __attribute__((vector_size(16)));
using Halves = uint16_t __attribute__((vector_size(8)));

// Reads any vector type from any address.
template <class Type>
inline Type read(const void* p) {
    Type value;
    std::memcpy(&value, p, sizeof value);
    return value;
}

inline V broadcast(float value) { return V{value, value, value, value}; }
inline V zero() { return broadcast(0.0f); }
inline V load(const float* p) { return read<V>(p); }
inline V load_part(const float* p, int64_t count) {
    V a = zero();
    std::memcpy(&a, p, static_cast<size_t>(count) * sizeof(float));
    return a;
}
inline void store(float* p, V a) { std::memcpy(p, &a, sizeof a); }
inline void store_part(float* p, V a, int64_t count) {
    std::memcpy(p, &a, static_cast<size_t>(count) * sizeof(float));
}
inline V add(V a, V b) { return a + b; }
inline V sub(V a, V b) { return a - b; }
inline V mul(V a, V b) { return a * b; }
inline V div(V a, V b) { return a / b; }
inline V fma(V a, V b, V c) { return a * b + c; }  // not fused: contraction is off
inline V select(Integers mask, V yes, V no) {
    return reinterpret_cast<V>((mask & reinterpret_cast<Integers>(yes)) |
                               (~mask & reinterpret_cast<Integers>(no)));
}
inline V vmin(V a, V b) { return select(a < b, a, b); }
inline V vmax(V a, V b) { return select(a > b, a, b); }

inline float reduce_add(V a) { return (a[0] + a[1]) + (a[2] + a[3]); }
inline void reduce_add_four(const V a[4], float* sums) {
    for (int i = 0; i < 4; ++i) sums[i] = reduce_add(a[i]);
}
inline float reduce_max(V a) {
    float highest = a[0];
    for (int i = 1; i < 4; ++i) highest = a[i] > highest ? a[i] : highest;
    return highest;
}

// 2 ** n from the sum of n and 1.5 * 2 ** 23.
inline V power_of_two(V shifted) {
    return reinterpret_cast<V>((reinterpret_cast<Bits>(shifted) << 23) + (127u << 23));
}

inline V load_f16(const uint8_t* p) {
#ifdef __aarch64__
    return reinterpret_cast<V>(vcvt_f32_f16(read<float16x4_t>(p)));
#else
    // As a float the bits stand for the value times 2 ** -112; infinities are put back.
    const Bits halves = __builtin_convertvector(read<Halves>(p), Bits);
    const V scaled = reinterpret_cast<V>((halves & 0x7fffu) << 13) * float_of_bits(0x77800000u);
    const Bits endless = reinterpret_cast<Bits>(scaled >= 65536.0f) & 0x7f800000u;
    const Bits sign = (halves & 0x8000u) << 16;
    return reinterpret_cast<V>(reinterpret_cast<Bits>(scaled) | endless | sign);
#endif
}
inline V load_bf16(const uint8_t* p) {
    return reinterpret_cast<V>(__builtin_convertvector(read<Halves>(p), Bits) << 16);
}

inline void prefetch(const uint8_t* p) { __builtin_prefetch(p); }

}  // namespace
}  // namespace larder
