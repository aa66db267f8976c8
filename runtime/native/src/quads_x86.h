// Vectors of 32 bytes, of eight integers and of eight floats, as AVX2 and AVX-512 VL have them.
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <cstring>

namespace larder {
namespace {

using Bytes = __m256i;  // four columns of each of eight rows
using Lanes = __m256i;  // one integer for each row
using Eight = __m256;   // one float for each row

inline Bytes load_bytes(const uint8_t* p) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
}
inline void store_bytes(uint8_t* p, Bytes a) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), a);
}
// The same four columns of x for all rows.
inline Bytes same_quad(const uint8_t* p) {
    int32_t four;
    std::memcpy(&four, p, sizeof four);
    return _mm256_set1_epi32(four);
}
// Sixteen bytes of each of eight rows, four by four: those of all rows side by side.
inline void spread_quads(const uint8_t* rows, int64_t stride, uint8_t* out) {
    Bytes pairs[4];  // of row r below, of row r + 4 above
    for (int r = 0; r < 4; ++r) {
        const auto* const low = reinterpret_cast<const __m128i*>(rows + r * stride);
        const auto* const high = reinterpret_cast<const __m128i*>(rows + (r + 4) * stride);
        pairs[r] = _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128(low)),
                                           _mm_loadu_si128(high), 1);
    }
    const Bytes first = _mm256_unpacklo_epi32(pairs[0], pairs[1]);
    const Bytes second = _mm256_unpackhi_epi32(pairs[0], pairs[1]);
    const Bytes third = _mm256_unpacklo_epi32(pairs[2], pairs[3]);
    const Bytes fourth = _mm256_unpackhi_epi32(pairs[2], pairs[3]);
    store_bytes(out, _mm256_unpacklo_epi64(first, third));
    store_bytes(out + 32, _mm256_unpackhi_epi64(first, third));
    store_bytes(out + 64, _mm256_unpacklo_epi64(second, fourth));
    store_bytes(out + 96, _mm256_unpackhi_epi64(second, fourth));
}
// Twelve of sixteen bytes of each of eight rows, one by one: those of all rows side by side.
inline void spread_twelve(const uint8_t* rows, int64_t stride, uint8_t* out) {
    __m128i row[8];
    for (int r = 0; r < 8; ++r)
        row[r] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(rows + r * stride));
    __m128i low[4], high[4];  // of rows r and r + 4 in turn
    for (int r = 0; r < 4; ++r) {
        low[r] = _mm_unpacklo_epi8(row[r], row[r + 4]);
        high[r] = _mm_unpackhi_epi8(row[r], row[r + 4]);
    }
    const auto put = [out](int at, __m128i even, __m128i odd) {
        auto* const place = reinterpret_cast<__m128i*>(out + at);
        _mm_storeu_si128(place, _mm_unpacklo_epi8(even, odd));
        _mm_storeu_si128(place + 1, _mm_unpackhi_epi8(even, odd));
    };
    put(0, _mm_unpacklo_epi8(low[0], low[2]), _mm_unpacklo_epi8(low[1], low[3]));
    put(32, _mm_unpackhi_epi8(low[0], low[2]), _mm_unpackhi_epi8(low[1], low[3]));
    put(64, _mm_unpacklo_epi8(high[0], high[2]), _mm_unpacklo_epi8(high[1], high[3]));
}
inline Bytes mix_bytes(Bytes a, Bytes b) { return _mm256_xor_si256(a, b); }
inline uint8_t first_byte(Bytes a) { return static_cast<uint8_t>(_mm256_extract_epi8(a, 0)); }
inline Bytes low_nibbles(Bytes pairs) { return _mm256_and_si256(pairs, _mm256_set1_epi8(15)); }
inline Bytes high_nibbles(Bytes pairs) {
    return _mm256_and_si256(_mm256_srli_epi16(pairs, 4), _mm256_set1_epi8(15));
}
inline Bytes load_codebook(const uint8_t* levels) {
    return _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(levels)));
}
inline Bytes look_up(Bytes codebook, Bytes nibbles) { return _mm256_shuffle_epi8(codebook, nibbles); }

inline Lanes same_lanes(const uint8_t* p) { return same_quad(p); }
inline Lanes no_lanes() { return _mm256_setzero_si256(); }
inline Lanes add_lanes(Lanes a, Lanes b) { return _mm256_add_epi32(a, b); }
template <int kBits>
inline Lanes shift_left(Lanes a) { return _mm256_slli_epi32(a, kBits); }
template <int kBits>
inline Lanes shift_right(Lanes a) { return _mm256_srai_epi32(a, kBits); }

inline Eight no_eight() { return _mm256_setzero_ps(); }
inline Eight same_eight(const uint8_t* p) {
    float value;
    std::memcpy(&value, p, sizeof value);
    return _mm256_set1_ps(value);
}
inline Eight eight_of(Lanes a) { return _mm256_cvtepi32_ps(a); }
inline Eight mul_eight(Eight a, Eight b) { return _mm256_mul_ps(a, b); }
inline Eight fma_eight(Eight a, Eight b, Eight c) { return _mm256_fmadd_ps(a, b, c); }
inline void store_eight(float* p, Eight a) { _mm256_storeu_ps(p, a); }
inline Eight load_f16_scales(const uint8_t* p) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}
inline Eight load_whole_scales(const uint8_t* p) {
    const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p));
    return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes));
}
inline Eight every_eight(float value) { return _mm256_set1_ps(value); }
// 2 ** (e - 128), half of what the byte stands for, since levels are stored doubled; 0 for 0 and 1.
inline Eight load_half_e8m0_scales(const uint8_t* p) {
    const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p));
    const __m128i exponents = _mm_subs_epu8(bytes, _mm_set1_epi8(1));
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu8_epi32(exponents), 23));
}

}  // namespace
}  // namespace larder
