// Vector operations on eight floats with AVX2, FMA and F16C.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace larder {
namespace {

constexpr const char* kTableName = "avx2";
constexpr int kWidth = 8;
constexpr int kTileX = 3;          // rows of x in a tile of a plain matrix
constexpr int kTileRows = 4;       // rows of the matrix in it
constexpr int kTileRowsOfOne = 8;  // the same for a single row of x

using V = __m256;

inline __m256i first_lanes(int64_t count) {
    const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(count)), lanes);
}

inline V zero() { return _mm256_setzero_ps(); }
inline V broadcast(float value) { return _mm256_set1_ps(value); }
inline V load(const float* p) { return _mm256_loadu_ps(p); }
inline V load_part(const float* p, int64_t count) {
    return _mm256_maskload_ps(p, first_lanes(count));
}
inline void store(float* p, V a) { _mm256_storeu_ps(p, a); }
inline void store_part(float* p, V a, int64_t count) {
    _mm256_maskstore_ps(p, first_lanes(count), a);
}
inline V add(V a, V b) { return _mm256_add_ps(a, b); }
inline V sub(V a, V b) { return _mm256_sub_ps(a, b); }
inline V mul(V a, V b) { return _mm256_mul_ps(a, b); }
inline V div(V a, V b) { return _mm256_div_ps(a, b); }
inline V fma(V a, V b, V c) { return _mm256_fmadd_ps(a, b, c); }
inline V vmin(V a, V b) { return _mm256_min_ps(a, b); }
inline V vmax(V a, V b) { return _mm256_max_ps(a, b); }

// Sums of the lanes of four vectors: neighbours first, then the last two.
inline void reduce_add_four(const V a[4], float* sums) {
    const __m256 pairs = _mm256_hadd_ps(_mm256_hadd_ps(a[0], a[1]), _mm256_hadd_ps(a[2], a[3]));
    _mm_storeu_ps(sums, _mm_add_ps(_mm256_castps256_ps128(pairs), _mm256_extractf128_ps(pairs, 1)));
}
inline float reduce_add(V a) {
    a = _mm256_hadd_ps(a, a);
    a = _mm256_hadd_ps(a, a);
    return _mm_cvtss_f32(_mm_add_ss(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1)));
}

inline float reduce_max(V a) {
    __m128 four = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    four = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(four, _mm_movehdup_ps(four)));
}

// 2 ** n from the sum of n and 1.5 * 2 ** 23.
inline V power_of_two(V shifted) {
    const __m256i exponent = _mm256_slli_epi32(_mm256_castps_si256(shifted), 23);
    return _mm256_castsi256_ps(_mm256_add_epi32(exponent, _mm256_set1_epi32(127 << 23)));
}

inline V load_f16(const uint8_t* p) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}
inline V load_bf16(const uint8_t* p) {
    const __m128i halves = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(halves), 16));
}

inline void prefetch(const uint8_t* p) {
    _mm_prefetch(reinterpret_cast<const char*>(p), _MM_HINT_T1);
}

}  // namespace
}  // namespace larder
