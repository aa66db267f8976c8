// Vector operations on sixteen floats with AVX-512.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace larder {
namespace {

constexpr const char* kTableName = "avx512";
constexpr int kWidth = 16;
constexpr int kTileX = 6;          // rows of x in a tile of a plain matrix
constexpr int kTileRows = 4;       // rows of the matrix in it
constexpr int kTileRowsOfOne = 8;  // the same for a single row of x

using V = __m512;

inline __mmask16 first_lanes(int64_t count) { return static_cast<__mmask16>((1u << count) - 1); }

inline V zero() { return _mm512_setzero_ps(); }
inline V broadcast(float value) { return _mm512_set1_ps(value); }
inline V load(const float* p) { return _mm512_loadu_ps(p); }
inline V load_part(const float* p, int64_t count) {
    return _mm512_maskz_loadu_ps(first_lanes(count), p);
}
inline void store(float* p, V a) { _mm512_storeu_ps(p, a); }
inline void store_part(float* p, V a, int64_t count) {
    _mm512_mask_storeu_ps(p, first_lanes(count), a);
}
inline V add(V a, V b) { return _mm512_add_ps(a, b); }
inline V sub(V a, V b) { return _mm512_sub_ps(a, b); }
inline V mul(V a, V b) { return _mm512_mul_ps(a, b); }
inline V div(V a, V b) { return _mm512_div_ps(a, b); }
inline V fma(V a, V b, V c) { return _mm512_fmadd_ps(a, b, c); }
inline V vmin(V a, V b) { return _mm512_min_ps(a, b); }
inline V vmax(V a, V b) { return _mm512_max_ps(a, b); }

inline __m256 upper_half(V a) { return _mm512_extractf32x8_ps(a, 1); }

// Sums of the lanes of four vectors: halves first, then neighbours, then the last two.
inline void reduce_add_four(const V a[4], float* sums) {
    __m256 eight[4];
    for (int i = 0; i < 4; ++i)
        eight[i] = _mm256_add_ps(_mm512_castps512_ps256(a[i]), upper_half(a[i]));
    const __m256 pairs =
        _mm256_hadd_ps(_mm256_hadd_ps(eight[0], eight[1]), _mm256_hadd_ps(eight[2], eight[3]));
    _mm_storeu_ps(sums, _mm_add_ps(_mm256_castps256_ps128(pairs), _mm256_extractf128_ps(pairs, 1)));
}
inline float reduce_add(V a) {
    __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(a), upper_half(a));
    eight = _mm256_hadd_ps(eight, eight);
    eight = _mm256_hadd_ps(eight, eight);
    return _mm_cvtss_f32(
        _mm_add_ss(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1)));
}

inline float reduce_max(V a) {
    const __m256 eight = _mm256_max_ps(_mm512_castps512_ps256(a), upper_half(a));
    __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    four = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(four, _mm_movehdup_ps(four)));
}

// 2 ** n from the sum of n and 1.5 * 2 ** 23.
inline V power_of_two(V shifted) {
    const __m512i exponent = _mm512_slli_epi32(_mm512_castps_si512(shifted), 23);
    return _mm512_castsi512_ps(_mm512_add_epi32(exponent, _mm512_set1_epi32(127 << 23)));
}

inline V load_f16(const uint8_t* p) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}
inline V load_bf16(const uint8_t* p) {
    const __m256i halves = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16));
}

inline void prefetch(const uint8_t* p) {
    _mm_prefetch(reinterpret_cast<const char*>(p), _MM_HINT_T1);
}

}  // namespace
}  // namespace larder
