// Products of the formats whose levels take six, three or two bits, all with least weights.
//
//     block         = [8 x fp16 unit of scales][8 x fp16 unit of leasts] groups
//     group, 6 bits = [8 x u8 scale][8 x u8 least][4 vectors: lower four bits, as in FourBit]
//                     [2 vectors: upper two bits]
//     3 and 2 bits  = [8 bytes: two scales][8 bytes: two leasts][2 vectors: lower two bits]
//                     [3 bits: a vector of third bits]
//
// A vector of two bits is four quads: bits 2k and 2k+1 of vector v are quad 4v+k. Of third bits, bit
// j is quad j. A byte of two scales has that of columns 0..15 in its lower half.
#pragma once

namespace larder {
namespace {

struct SixBit {
    static constexpr bool kIsAffine = true;
    static constexpr Format kFormat = Format::Q6G32;
    static constexpr int64_t kBytes = group_bytes(kFormat);
    static constexpr int64_t kScales = scale_bytes(kFormat);
    static Eight scales(const uint8_t* group) { return load_whole_scales(group); }
    static Eight leasts(const uint8_t* group) { return load_whole_scales(group + kRowBlock); }

    template <int R>
    static void products(const uint8_t* weights, const uint8_t* const* x, Lanes* totals) {
        const Bytes upper[2] = {load_bytes(weights + 32 * 4), load_bytes(weights + 32 * 5)};
        add_pair<R, 0>(weights, upper, x, totals);
        add_pair<R, 1>(weights, upper, x, totals);
        add_pair<R, 2>(weights, upper, x, totals);
        add_pair<R, 3>(weights, upper, x, totals);
    }

private:
    // Quads kQuad and kQuad + 4.
    template <int R, int kQuad>
    static void add_pair(const uint8_t* weights, const Bytes* upper, const uint8_t* const* x,
                         Lanes* totals) {
        static_assert(SmallSum<63>::kAdds >= 2);
        const Bytes pairs = load_bytes(weights + 32 * kQuad);
        const Bytes low = join_bits(low_nibbles(pairs), move_bits<2 * kQuad, 4, 2>(upper[0]));
        const Bytes high = join_bits(high_nibbles(pairs), move_bits<2 * kQuad, 4, 2>(upper[1]));
        for (int r = 0; r < R; ++r) {
            SmallSum<63> sum;
            sum.add(low, same_quad(x[r] + 4 * kQuad));
            sum.add(high, same_quad(x[r] + 16 + 4 * kQuad));
            totals[r] = kQuad == 0 ? sum.total() : add_lanes(totals[r], sum.total());
        }
    }
};

template <int kBits>
struct SmallBits {
    static constexpr bool kIsAffine = true;
    static constexpr int kLevelBits = kBits;
    static constexpr Format kFormat = kBits == 3 ? Format::Q3G16 : Format::Q2G16;
    static constexpr int64_t kBytes = group_bytes(kFormat);
    static constexpr int64_t kScales = scale_bytes(kFormat);
    static constexpr int kHighest = (1 << kBits) - 1;

    // Sums of levels times activations times scales of a group; all are whole numbers.
    template <int R>
    static void products(const uint8_t* group, const uint8_t* const* x, Lanes* totals) {
        const Lanes scales = load_halves(group);
        const uint8_t* const weights = group + kScales;
        const Bytes thirds = kBits == 3 ? load_bytes(weights + 64) : load_bytes(weights);
        half<R, 0>(load_bytes(weights), thirds, first_halves(scales), x, totals);
        half<R, 1>(load_bytes(weights + 32), thirds, second_halves(scales), x, totals);
    }

private:
    template <int R, int kHalf>
    static void half(Bytes twos, Bytes thirds, Lanes scales, const uint8_t* const* x,
                     Lanes* totals) {
        static_assert(SmallSum<kHighest>::kAdds >= 4);
        SmallSum<kHighest> sums[R];
        add_quad<R, kHalf, 0>(twos, thirds, x, sums);
        add_quad<R, kHalf, 1>(twos, thirds, x, sums);
        add_quad<R, kHalf, 2>(twos, thirds, x, sums);
        add_quad<R, kHalf, 3>(twos, thirds, x, sums);
        for (int r = 0; r < R; ++r) {
            const Lanes total = sums[r].total_times(scales);
            totals[r] = kHalf == 0 ? total : add_lanes(totals[r], total);
        }
    }

    template <int R, int kHalf, int kQuad>
    static void add_quad(Bytes twos, Bytes thirds, const uint8_t* const* x,
                         SmallSum<kHighest>* sums) {
        Bytes levels = move_bits<2 * kQuad, 0, 2>(twos);
        if constexpr (kBits == 3)
            levels = join_bits(levels, move_bits<4 * kHalf + kQuad, 2, 1>(thirds));
        for (int r = 0; r < R; ++r) sums[r].add(levels, same_quad(x[r] + 16 * kHalf + 4 * kQuad));
    }
};

template <class Weight, int R>
inline void add_half_groups(const uint8_t* block, int64_t num_groups, const uint8_t* const* x,
                            Eight totals[R]) {
    const uint8_t* const head = block;
    const uint8_t* const first = block + head_bytes(Weight::kFormat);
    const uint8_t* at[R];
    for (int r = 0; r < R; ++r) {
        at[r] = x[r];
        totals[r] = no_eight();
    }
    block = first;
    for (int64_t g = 0; g < num_groups; ++g, block += Weight::kBytes) {
        Lanes products[R];
        Weight::template products<R>(block, at, products);
        for (int r = 0; r < R; ++r) {
            totals[r] = fma_eight(eight_of(products[r]), same_eight(at[r] + kXScale), totals[r]);
            at[r] += kXGroupBytes;
        }
    }
    // By themselves, so that the loop above has registers enough.
    Eight offsets[R];  // minus the sums of activations times least weights
    for (int r = 0; r < R; ++r) offsets[r] = no_eight();
    block = first;
    for (int64_t g = 0; g < num_groups; ++g, block += Weight::kBytes) {
        const Lanes leasts = load_halves(block + kRowBlock);
        for (int r = 0; r < R; ++r) {
            const uint8_t* const group = x[r] + g * kXGroupBytes;
            const Eight sum = eight_of(multiply_halves(leasts, group + kXHalves));
            offsets[r] = fma_eight(sum, same_eight(group + kXScale), offsets[r]);
        }
    }
    const Eight units = load_f16_scales(head);
    const Eight least_units = load_f16_scales(head + 2 * kRowBlock);
    for (int r = 0; r < R; ++r)
        totals[r] = fma_eight(offsets[r], least_units, mul_eight(totals[r], units));
}

}  // namespace
}  // namespace larder
