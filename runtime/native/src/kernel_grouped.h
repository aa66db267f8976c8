// Dot products with the G32 formats: eight rows interleaved, one scale for 32 weights of a row.
//
//     block of 8 rows = groups of 32 columns one after another
//     group           = [8 x fp16 scale][weights]
//     Q8 weights      = 8 vectors of 32 bytes, vector q: rows 0..7 x columns 4q..4q+3, signed
//     Q4 weights      = 4 vectors of 32 bytes, vector q: low nibbles columns 4q..4q+3,
//                       high nibbles columns 16+4q..16+4q+3, level + 8
//
// A lane of an accumulator belongs to one row and one column of each quad. Products are summed
// group by group, each sum scaled once; a row's four lanes are added in one fixed tree at the end.
#pragma once

namespace larder {
namespace {

constexpr int kVectors = 32 / kWidth;  // vectors for one quad of the eight rows

struct GroupQ8 {
    static constexpr int64_t kBytes = group_bytes(Format::Q8G32);

    // sums += one group's products, not yet scaled.
    template <int R>
    static void add(const uint8_t* weights, const float* const* x, V sums[R][kVectors]) {
        for (int q = 0; q < 8; ++q) {
            V xs[R];
            for (int r = 0; r < R; ++r) xs[r] = broadcast_quad(x[r] + 4 * q);
            for (int v = 0; v < kVectors; ++v) {
                const V w = load_signed(weights + 32 * q + kWidth * v);
                for (int r = 0; r < R; ++r) sums[r][v] = fma(w, xs[r], sums[r][v]);
            }
        }
    }
};

struct GroupQ4 {
    static constexpr int64_t kBytes = group_bytes(Format::Q4G32);

    template <int R>
    static void add(const uint8_t* weights, const float* const* x, V sums[R][kVectors]) {
        for (int q = 0; q < 4; ++q) {
            for (int v = 0; v < kVectors; ++v) {
                V low, high;
                load_nibbles(weights + 32 * q + kWidth * v, low, high);
                for (int r = 0; r < R; ++r) {
                    sums[r][v] = fma(low, broadcast_quad(x[r] + 4 * q), sums[r][v]);
                    sums[r][v] = fma(high, broadcast_quad(x[r] + 16 + 4 * q), sums[r][v]);
                }
            }
        }
    }
};

// totals += scale * (sum over the group), for each of the eight rows.
template <class Group, int R>
inline void add_group(const uint8_t* group, const float* const* x, V totals[R][kVectors]) {
    V sums[R][kVectors];
    for (int r = 0; r < R; ++r)
        for (int v = 0; v < kVectors; ++v) sums[r][v] = zero();
    Group::template add<R>(group + kScaleBytes, x, sums);
    V scales[kVectors];
    load_scales(group, scales);
    for (int r = 0; r < R; ++r)
        for (int v = 0; v < kVectors; ++v)
            totals[r][v] = fma(sums[r][v], scales[v], totals[r][v]);
}

template <class Group, int R>
void grouped_tile(const uint8_t* block, int64_t num_groups, const float* const* x,
                  const float (*tails)[kGroup], bool has_tail, int64_t num_rows, float* y,
                  int64_t y_stride) {
    V totals[R][kVectors];
    const float* at[R];
    for (int r = 0; r < R; ++r) {
        at[r] = x[r];
        for (int v = 0; v < kVectors; ++v) totals[r][v] = zero();
    }
    const int64_t num_full = num_groups - (has_tail ? 1 : 0);
    for (int64_t g = 0; g < num_full; ++g) {
        add_group<Group, R>(block + g * Group::kBytes, at, totals);
        for (int r = 0; r < R; ++r) at[r] += kGroup;
    }
    if (has_tail) {
        for (int r = 0; r < R; ++r) at[r] = tails[r];
        add_group<Group, R>(block + num_full * Group::kBytes, at, totals);
    }
    for (int r = 0; r < R; ++r) {
        float* const results = y + r * y_stride;
        if (num_rows == kRowBlock) {
            row_sums(totals[r], results);
            continue;
        }
        float eight[kRowBlock];
        row_sums(totals[r], eight);
        for (int64_t j = 0; j < num_rows; ++j) results[j] = eight[j];
    }
}

template <class Group, int R>
int64_t grouped_sweep(const Weights& weights, int64_t first_row, int64_t num_rows,
                      const float* const* x, int64_t first_x, int64_t num_x, float* y,
                      int64_t y_stride) {
    const int64_t num_groups = (weights.columns + kGroup - 1) / kGroup;
    const int64_t tail = weights.columns % kGroup;
    const int64_t block_bytes = num_groups * Group::kBytes;
    const uint8_t* blocks = weights.data + first_row / kRowBlock * block_bytes;
    int64_t i = first_x;
    for (; i + R <= num_x; i += R) {
        float tails[R][kGroup];
        for (int r = 0; tail != 0 && r < R; ++r) {
            std::memset(tails[r], 0, sizeof tails[r]);
            std::memcpy(tails[r], x[i + r] + weights.columns - tail,
                        static_cast<size_t>(tail) * sizeof(float));
        }
        for (int64_t j = 0; j < num_rows; j += kRowBlock) {
            const int64_t left = num_rows - j;
            grouped_tile<Group, R>(blocks + j / kRowBlock * block_bytes, num_groups, x + i, tails,
                                   tail != 0, left < kRowBlock ? left : kRowBlock,
                                   y + i * y_stride + j, y_stride);
        }
    }
    return i;
}

template <class Group>
void dot_grouped(const Weights& weights, int64_t first_row, int64_t num_rows,
                 const float* const* x, int64_t num_x, float* y, int64_t y_stride) {
    constexpr int kWide = kTileXGrouped;
    int64_t i = grouped_sweep<Group, kWide>(weights, first_row, num_rows, x, 0, num_x, y, y_stride);
    if constexpr (kWide > 3)
        i = grouped_sweep<Group, 3>(weights, first_row, num_rows, x, i, num_x, y, y_stride);
    if constexpr (kWide > 1)
        grouped_sweep<Group, 1>(weights, first_row, num_rows, x, i, num_x, y, y_stride);
}

}  // namespace
}  // namespace larder
