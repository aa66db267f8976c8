// What stands between the first and the last matrix of a feed-forward block.
#pragma once

namespace larder {
namespace {

inline V times_sigmoid(V a, V of) {
    return div(a, add(broadcast(1.0f), exp_of(sub(zero(), of))));
}

template <class Function>
inline void each_vector(float* gate, const float* up, int64_t count, Function function) {
    for (int64_t i = 0; i < count; i += kWidth) store(gate + i, function(load(gate + i), up + i));
}

void activate(const Activation& activation, float* gate, const float* up, int64_t count) {
    const V alpha = broadcast(activation.alpha);
    const V limit = broadcast(activation.limit), lowest = broadcast(-activation.limit);
    switch (activation.kind) {
        case ActivationKind::SiluGlu:
            return each_vector(gate, up, count, [](V g, const float* u) {
                return mul(times_sigmoid(g, g), load(u));
            });
        case ActivationKind::GeluGlu:
            // 0.5 * (1 + tanh(z)) is the sigmoid of 2 * z.
            return each_vector(gate, up, count, [](V g, const float* u) {
                const V cubic = fma(mul(mul(g, g), broadcast(0.044715f)), g, g);
                return mul(times_sigmoid(g, mul(cubic, broadcast(1.59576912f))), load(u));
            });
        case ActivationKind::ClampedGlu:
            return each_vector(gate, up, count, [=](V g, const float* u) {
                g = vmin(g, limit);
                const V held = vmax(lowest, vmin(load(u), limit));
                return mul(times_sigmoid(g, mul(g, alpha)), add(held, broadcast(1.0f)));
            });
        case ActivationKind::SquaredRelu:
            return each_vector(gate, up, count, [](V g, const float*) {
                g = vmax(g, zero());
                return mul(g, g);
            });
    }
}

}  // namespace
}  // namespace larder
