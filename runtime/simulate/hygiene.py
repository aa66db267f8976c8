"""What every trace of real routing shows; one that does not was recorded wrongly."""

import numpy as np

from runtime.simulate.trace import Trace

MIN_TOKENS = 200
"""Below this, nothing can be said of counts."""


def complaints(trace: Trace) -> list[str]:
    """Return what is wrong with a trace; empty if it can be trusted."""
    found = []
    repeated = repeated_rows(trace)
    if repeated:
        found.append(f"{repeated} rows name an expert twice")
    if trace.num_tokens < MIN_TOKENS:
        found.append(f"{trace.num_tokens} tokens are too few to judge")
        return found
    spread = count_spread(trace)
    if spread < 1.5:
        found.append(f"counts are as even as chance or more even (spread {spread:.2f})")
    chance = reuse_by_chance(trace)
    reuse = reuse_share(trace, 1)
    if reuse <= 1.05 * chance:
        found.append(f"reuse from token to token is chance: {reuse:.3f}, by chance {chance:.3f}")
    return found


def repeated_rows(trace: Trace) -> int:
    """Return how many tokens name an expert of a layer more than once, summed over layers."""
    ordered = np.sort(trace.ids, axis=2)
    return int((ordered[:, :, 1:] == ordered[:, :, :-1]).any(axis=2).sum())


def uses(trace: Trace) -> np.ndarray:
    """Return how often each expert was chosen, as [layers, experts]."""
    counts = np.empty((trace.num_layers, trace.num_experts), np.int64)
    for layer in range(trace.num_layers):
        counts[layer] = np.bincount(trace.ids[:, layer].ravel(), minlength=trace.num_experts)
    return counts


def count_spread(trace: Trace) -> float:
    """Return the variance of counts by that of fair draws; about 1 is uniform, 0 a stuck router."""
    counts = uses(trace)
    share = trace.top_k / trace.num_experts
    fair = trace.num_tokens * share * (1 - share)
    return float(counts.var(axis=1).mean() / fair) if fair else 0.0


def reuse_share(trace: Trace, lag_tokens: int) -> float:
    """Return the share of needs that the token ``lag_tokens`` before had too."""
    if trace.num_tokens <= lag_tokens:
        return 0.0
    chosen = np.zeros((trace.num_tokens, trace.num_experts), bool)
    tokens = np.arange(trace.num_tokens)[:, None]
    total = 0
    for layer in range(trace.num_layers):
        chosen[:] = False
        chosen[tokens, trace.ids[:, layer]] = True
        total += int((chosen[lag_tokens:] & chosen[:-lag_tokens]).sum())
    return total / ((trace.num_tokens - lag_tokens) * trace.num_layers * trace.top_k)


def reuse_by_chance(trace: Trace) -> float:
    """Return the reuse of tokens that choose independently, with the counts of the trace."""
    shares = uses(trace) / trace.num_tokens
    return float((shares**2).sum() / (trace.num_layers * trace.top_k))
