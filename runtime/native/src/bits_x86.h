// Levels of a few bits in vectors of 32 bytes, as AVX2 and AVX-512 VL take them apart.
#pragma once

#include "quads_x86.h"

namespace larder {
namespace {

// Of every byte the kCount bits from kFrom on, moved to where kTo is.
template <int kFrom, int kTo, int kCount>
inline Bytes move_bits(Bytes a) {
    Bytes moved = a;
    if constexpr (kFrom > kTo) moved = _mm256_srli_epi16(a, kFrom - kTo);
    if constexpr (kFrom < kTo) moved = _mm256_slli_epi16(a, kTo - kFrom);
    constexpr int kMask = ((1 << kCount) - 1) << kTo;
    return _mm256_and_si256(moved, _mm256_set1_epi8(kMask));
}
inline Bytes join_bits(Bytes a, Bytes b) { return _mm256_or_si256(a, b); }

// Eight bytes, one for each row: the lower half belongs to columns 0..15, the upper to 16..31.
inline Lanes load_halves(const uint8_t* p) {
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
}
inline Lanes first_halves(Lanes bytes) { return _mm256_and_si256(bytes, _mm256_set1_epi32(15)); }
inline Lanes second_halves(Lanes bytes) { return _mm256_srli_epi32(bytes, 4); }

// Both halves of a row times the two int16 at x, added.
inline Lanes multiply_halves(Lanes bytes, const uint8_t* x) {
    const Lanes second = _mm256_slli_epi32(second_halves(bytes), 16);
    return _mm256_madd_epi16(_mm256_or_si256(first_halves(bytes), second), same_quad(x));
}

// Two signed bytes for each of eight rows, as pairs of 16 bits; their products with the two int16 at
// x, added.
using SignedHalves = Lanes;
inline SignedHalves load_signed_halves(const uint8_t* p) {
    return _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}
// The lower and the upper half of each byte, without a sign.
inline SignedHalves lower_halves(SignedHalves halves) {
    return _mm256_and_si256(halves, _mm256_set1_epi16(15));
}
inline SignedHalves upper_halves(SignedHalves halves) {
    return lower_halves(_mm256_srli_epi16(halves, 4));
}
inline Lanes multiply_signed_halves(SignedHalves halves, const uint8_t* x) {
    return _mm256_madd_epi16(halves, same_quad(x));
}

}  // namespace
}  // namespace larder
