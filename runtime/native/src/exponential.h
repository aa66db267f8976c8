// The exponential function one value at a time, the same bits in every build.
#pragma once

#include "half.h"

namespace larder {
namespace {

// e ** x within 2 units in the last place on [-87, 88]; x is held in that range.
inline float exponential(float x) {
    x = x < -87.0f ? -87.0f : x > 88.0f ? 88.0f : x;
    const float shifted = x * 1.44269504f + 12582912.0f;  // rounds to a whole number
    const float whole = shifted - 12582912.0f;
    const float rest = (x - whole * 0.693359375f) + whole * 2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * rest + 1.3981999507e-3f;
    p = p * rest + 8.3334519073e-3f;
    p = p * rest + 4.1665795894e-2f;
    p = p * rest + 1.6666665459e-1f;
    p = p * rest + 5.0000001201e-1f;
    p = (p * (rest * rest) + rest) + 1.0f;
    uint32_t bits;
    std::memcpy(&bits, &shifted, sizeof bits);
    return p * float_of_bits((bits << 23) + (127u << 23));
}

}  // namespace
}  // namespace larder
