// Dot products with row-major F32, F16 and BF16 matrices.
//
// Lane l of one accumulator sums columns l, l + width, ...; the lanes are added in one fixed tree.
// A tile has its own accumulator for each (row of x, row of the matrix), so that its shape does
// not touch a result's bits.
#pragma once

namespace larder {
namespace {

struct LoadF32 {
    static constexpr int64_t kBytes = 4;
    static V full(const uint8_t* p) { return load(reinterpret_cast<const float*>(p)); }
    static V part(const uint8_t* p, int64_t count) {
        return load_part(reinterpret_cast<const float*>(p), count);
    }
};

struct LoadF16 {
    static constexpr int64_t kBytes = 2;
    static V full(const uint8_t* p) { return load_f16(p); }
    static V part(const uint8_t* p, int64_t count) {
        uint8_t padded[kWidth * 2] = {};
        std::memcpy(padded, p, static_cast<size_t>(count) * 2);
        return load_f16(padded);
    }
};

struct LoadBf16 {
    static constexpr int64_t kBytes = 2;
    static V full(const uint8_t* p) { return load_bf16(p); }
    static V part(const uint8_t* p, int64_t count) {
        uint8_t padded[kWidth * 2] = {};
        std::memcpy(padded, p, static_cast<size_t>(count) * 2);
        return load_bf16(padded);
    }
};

template <class Load, int C, int R>
void plain_tile(const uint8_t* rows, int64_t row_bytes, int64_t columns, const float* const* x,
                float* y, int64_t y_stride) {
    V sums[R][C];
    for (int r = 0; r < R; ++r)
        for (int c = 0; c < C; ++c) sums[r][c] = zero();
    int64_t k = 0;
    for (; k + kWidth <= columns; k += kWidth) {
        V xs[R];
        for (int r = 0; r < R; ++r) xs[r] = load(x[r] + k);
        for (int c = 0; c < C; ++c) {
            const uint8_t* const at = rows + c * row_bytes + k * Load::kBytes;
            // With one row of x, memory is what counts: the next tile is asked for meanwhile.
            if constexpr (R == 1) prefetch(at + C * row_bytes);
            const V w = Load::full(at);
            for (int r = 0; r < R; ++r) sums[r][c] = fma(w, xs[r], sums[r][c]);
        }
    }
    if (k < columns) {
        V xs[R];
        for (int r = 0; r < R; ++r) xs[r] = load_part(x[r] + k, columns - k);
        for (int c = 0; c < C; ++c) {
            const V w = Load::part(rows + c * row_bytes + k * Load::kBytes, columns - k);
            for (int r = 0; r < R; ++r) sums[r][c] = fma(w, xs[r], sums[r][c]);
        }
    }
    for (int r = 0; r < R; ++r) {
        if constexpr (C == 1) {
            y[r * y_stride] = reduce_add(sums[r][0]);
        } else {
            for (int c = 0; c < C; c += 4) reduce_add_four(&sums[r][c], y + r * y_stride + c);
        }
    }
}

template <class Load, int R>
void plain_rows(const Weights& weights, const uint8_t* rows, int64_t num_rows,
                const float* const* x, float* y, int64_t y_stride) {
    constexpr int kTile = R == 1 ? kTileRowsOfOne : kTileRows;
    const int64_t row_bytes = weights.row_bytes;
    int64_t j = 0;
    for (; j + kTile <= num_rows; j += kTile)
        plain_tile<Load, kTile, R>(rows + j * row_bytes, row_bytes, weights.columns, x, y + j,
                                   y_stride);
    for (; j < num_rows; ++j)
        plain_tile<Load, 1, R>(rows + j * row_bytes, row_bytes, weights.columns, x, y + j,
                               y_stride);
}

template <class Load, int R>
int64_t plain_sweep(const Weights& weights, const uint8_t* rows, int64_t num_rows,
                    const float* const* x, int64_t first_x, int64_t num_x, float* y,
                    int64_t y_stride) {
    int64_t i = first_x;
    for (; i + R <= num_x; i += R)
        plain_rows<Load, R>(weights, rows, num_rows, x + i, y + i * y_stride, y_stride);
    return i;
}

template <class Load>
void dot_plain(const Weights& weights, int64_t first_row, int64_t num_rows,
               const uint8_t* const* x_rows, int64_t num_x, float* y, int64_t y_stride) {
    const auto x = reinterpret_cast<const float* const*>(x_rows);
    const uint8_t* rows = weights.data + first_row * weights.row_bytes;
    int64_t i = plain_sweep<Load, kTileX>(weights, rows, num_rows, x, 0, num_x, y, y_stride);
    if constexpr (kTileX > 3)
        i = plain_sweep<Load, 3>(weights, rows, num_rows, x, i, num_x, y, y_stride);
    if constexpr (kTileX > 2)
        i = plain_sweep<Load, 2>(weights, rows, num_rows, x, i, num_x, y, y_stride);
    plain_sweep<Load, 1>(weights, rows, num_rows, x, i, num_x, y, y_stride);
}

}  // namespace
}  // namespace larder
