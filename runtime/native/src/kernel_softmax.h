// Exponentials, and the weighted sum of attention values.
#pragma once

namespace larder {
namespace {

// e ** x within 2 units in the last place on [-87, 88]; x is held in that range.
inline V exp_of(V x) {
    x = vmin(broadcast(88.0f), vmax(broadcast(-87.0f), x));
    const V magic = broadcast(12582912.0f);  // 1.5 * 2 ** 23: adding it rounds to whole numbers
    const V shifted = fma(x, broadcast(1.44269504f), magic);
    const V whole = sub(shifted, magic);
    V rest = fma(whole, broadcast(-0.693359375f), x);
    rest = fma(whole, broadcast(2.12194440e-4f), rest);
    V p = broadcast(1.9875691500e-4f);
    p = fma(p, rest, broadcast(1.3981999507e-3f));
    p = fma(p, rest, broadcast(8.3334519073e-3f));
    p = fma(p, rest, broadcast(4.1665795894e-2f));
    p = fma(p, rest, broadcast(1.6666665459e-1f));
    p = fma(p, rest, broadcast(5.0000001201e-1f));
    p = add(fma(p, mul(rest, rest), rest), broadcast(1.0f));
    return mul(p, power_of_two(shifted));
}

float exponentials(float* scores, int64_t count, float scale) {
    const int64_t padded = round_up(count, kWidth);
    for (int64_t i = count; i < padded; ++i) scores[i] = -3.0e38f;
    V highest = load(scores);
    for (int64_t i = kWidth; i < padded; i += kWidth) highest = vmax(highest, load(scores + i));
    const V top = broadcast(reduce_max(highest));
    const V factor = broadcast(scale);
    V sum = zero();
    for (int64_t i = 0; i < padded; i += kWidth) {
        const V e = exp_of(mul(sub(load(scores + i), top), factor));
        store(scores + i, e);
        if (i + kWidth <= count) sum = add(sum, e);
    }
    if (count % kWidth) {
        const int64_t start = padded - kWidth;
        sum = add(sum, load_part(scores + start, count - start));
    }
    return reduce_add(sum);
}

template <int R, int C>
void accumulate_tile(const float* const* weights, const float* values, int64_t stride,
                     int64_t num_tokens, int64_t column, float* const* out) {
    V sums[R][C];
    for (int r = 0; r < R; ++r)
        for (int c = 0; c < C; ++c) sums[r][c] = load(out[r] + column + c * kWidth);
    for (int64_t t = 0; t < num_tokens; ++t) {
        for (int c = 0; c < C; ++c) {
            const V v = load(values + t * stride + column + c * kWidth);
            for (int r = 0; r < R; ++r) sums[r][c] = fma(broadcast(weights[r][t]), v, sums[r][c]);
        }
    }
    for (int r = 0; r < R; ++r)
        for (int c = 0; c < C; ++c) store(out[r] + column + c * kWidth, sums[r][c]);
}

template <int R>
void accumulate_tail(const float* const* weights, const float* values, int64_t stride,
                     int64_t num_tokens, int64_t column, int64_t count, float* const* out) {
    for (int r = 0; r < R; ++r) {
        V sum = load_part(out[r] + column, count);
        for (int64_t t = 0; t < num_tokens; ++t)
            sum = fma(broadcast(weights[r][t]), load_part(values + t * stride + column, count),
                      sum);
        store_part(out[r] + column, sum, count);
    }
}

template <int R>
int64_t accumulate_sweep(const float* const* weights, int64_t first_x, int64_t num_x,
                         const float* values, int64_t stride, int64_t num_tokens, int64_t width,
                         float* const* out) {
    int64_t i = first_x;
    for (; i + R <= num_x; i += R) {
        int64_t column = 0;
        for (; column + 4 * kWidth <= width; column += 4 * kWidth)
            accumulate_tile<R, 4>(weights + i, values, stride, num_tokens, column, out + i);
        for (; column + kWidth <= width; column += kWidth)
            accumulate_tile<R, 1>(weights + i, values, stride, num_tokens, column, out + i);
        if (column < width)
            accumulate_tail<R>(weights + i, values, stride, num_tokens, column, width - column,
                               out + i);
    }
    return i;
}

void accumulate(const float* const* weights, int64_t num_x, const float* values, int64_t stride,
                int64_t num_tokens, int64_t width, float* const* out) {
    int64_t i = accumulate_sweep<kTileX>(weights, 0, num_x, values, stride, num_tokens, width, out);
    if constexpr (kTileX > 3)
        i = accumulate_sweep<3>(weights, i, num_x, values, stride, num_tokens, width, out);
    accumulate_sweep<1>(weights, i, num_x, values, stride, num_tokens, width, out);
}

}  // namespace
}  // namespace larder
