// Levels of a few bits as plain loops.
#pragma once

#include "quads_portable.h"

namespace larder {
namespace {

// Of every byte the kCount bits from kFrom on, moved to where kTo is.
template <int kFrom, int kTo, int kCount>
inline Bytes move_bits(const Bytes& a) {
    constexpr int kMask = (1 << kCount) - 1;
    return fill<Bytes>(
        [&a](int i) { return static_cast<uint8_t>((a.lane[i] >> kFrom & kMask) << kTo); });
}
inline Bytes join_bits(const Bytes& a, const Bytes& b) {
    return fill<Bytes>([&](int i) { return static_cast<uint8_t>(a.lane[i] | b.lane[i]); });
}

// Eight bytes, one for each row: the lower half belongs to columns 0..15, the upper to 16..31.
inline Lanes load_halves(const uint8_t* p) {
    return fill<Lanes>([p](int i) { return static_cast<int32_t>(p[i]); });
}
inline Lanes first_halves(const Lanes& bytes) {
    return fill<Lanes>([&bytes](int i) { return bytes.lane[i] & 15; });
}
inline Lanes second_halves(const Lanes& bytes) { return shift_right<4>(bytes); }

// Both halves of a row times the two int16 at x, added.
inline Lanes multiply_halves(const Lanes& bytes, const uint8_t* x) {
    int16_t both[2];
    std::memcpy(both, x, sizeof both);
    return fill<Lanes>(
        [&](int i) { return (bytes.lane[i] & 15) * both[0] + (bytes.lane[i] >> 4) * both[1]; });
}

// Two signed bytes for each of eight rows; their products with the two int16 at x, added.
struct SignedHalves {
    Lanes first, second;
};
inline SignedHalves load_signed_halves(const uint8_t* p) {
    return {fill<Lanes>([p](int i) { return static_cast<int32_t>(static_cast<int8_t>(p[2 * i])); }),
            fill<Lanes>(
                [p](int i) { return static_cast<int32_t>(static_cast<int8_t>(p[2 * i + 1])); })};
}
// The lower and the upper half of each byte, without a sign.
inline SignedHalves lower_halves(const SignedHalves& halves) {
    return {fill<Lanes>([&](int i) { return halves.first.lane[i] & 15; }),
            fill<Lanes>([&](int i) { return halves.second.lane[i] & 15; })};
}
inline SignedHalves upper_halves(const SignedHalves& halves) {
    return lower_halves({shift_right<4>(halves.first), shift_right<4>(halves.second)});
}
inline Lanes multiply_signed_halves(const SignedHalves& halves, const uint8_t* x) {
    int16_t both[2];
    std::memcpy(both, x, sizeof both);
    return fill<Lanes>([&](int i) {
        return halves.first.lane[i] * both[0] + halves.second.lane[i] * both[1];
    });
}
inline Factors first_factors(const SignedHalves& halves) { return halves.first; }
inline Factors second_factors(const SignedHalves& halves) { return halves.second; }

}  // namespace
}  // namespace larder
