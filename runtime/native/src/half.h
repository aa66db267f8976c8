// Conversion of sixteen-bit floats one at a time.
#pragma once

#include <cstdint>
#include <cstring>

namespace larder {
namespace {

inline float float_of_bits(uint32_t bits) {
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

inline float float_of_bf16(const uint8_t* p) {
    uint16_t half;
    std::memcpy(&half, p, sizeof half);
    return float_of_bits(static_cast<uint32_t>(half) << 16);
}

// Exact, subnormal numbers included; infinities and NaN stay what they are.
inline float float_of_f16(const uint8_t* p) {
    uint16_t half;
    std::memcpy(&half, p, sizeof half);
    const uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16;
    const uint32_t rest = static_cast<uint32_t>(half & 0x7fffu) << 13;
    uint32_t magnitude;
    if ((half & 0x7c00u) == 0x7c00u) {
        magnitude = rest | 0x7f800000u;
    } else {
        // As a float the bits stand for the value times 2 ** -112, subnormal numbers too.
        const float scaled = float_of_bits(rest) * float_of_bits(0x77800000u);
        std::memcpy(&magnitude, &scaled, sizeof magnitude);
    }
    return float_of_bits(magnitude | sign);
}

}  // namespace
}  // namespace larder
