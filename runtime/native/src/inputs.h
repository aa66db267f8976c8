// Rows of activations in the form that the kernels of a weight format take.
#pragma once

#include <cstdint>
#include <vector>

#include "table.h"

namespace larder {

// Bytes of a row of activations for matrices of a format.
constexpr int64_t input_bytes(Format format, int64_t columns) {
    return is_grouped(format) ? (columns + kGroup - 1) / kGroup * kXGroupBytes : columns * 4;
}

// Points at rows [n, columns]: at x itself for the plain formats, else at a quantised copy.
//
// The copy is kept until the next call of prepare on the same object.
class Inputs {
public:
    void prepare(Format format, const float* x, int64_t n, int64_t columns);
    const uint8_t* row(int64_t index) const { return first_ + index * row_bytes_; }

private:
    std::vector<uint8_t> copy_;
    const uint8_t* first_ = nullptr;
    int64_t row_bytes_ = 0;
};

}  // namespace larder
