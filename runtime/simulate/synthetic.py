"""Traces that are made up to be like a recorded one: its favourites, its topics, its haste."""

import dataclasses
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from runtime.simulate.hygiene import reuse_by_chance, reuse_share, uses
from runtime.simulate.trace import Trace, TraceOrigin

_Floats = npt.NDArray[np.float64]
LAGS = (1, 2, 4, 8, 16, 32)
"""Distances in tokens at which reuse is compared."""
_MAX_STRENGTH = 4.0
_SAMPLE_TOKENS = 1500
_SAMPLE_LAYERS = 4


@dataclasses.dataclass(frozen=True, slots=True)
class Mood:
    """A part of every expert's score that wanders: how strong it is, how much of it stays."""

    strength: float
    stays: float
    """Part that is left after one token; 0 is new for each token."""


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Likeness:
    """What a made-up trace takes from a recorded one.

    A token's score of an expert is the expert's level in its layer plus wandering moods: a topic
    that stays for many tokens, a phrase that stays for some, an echo, and noise of strength 1. The
    ``top_k`` highest scores are chosen.
    """

    model: str
    num_experts: int
    top_k: int
    layers: tuple[int, ...]
    levels: _Floats
    """[layers, experts]."""
    moods: tuple[Mood, ...]


def likeness_of(trace: Trace, seed: int = 0, num_tries: int = 150) -> Likeness:
    """Fit a likeness to a trace: to its reuse at all lags, and to how uneven its counts are.

    Levels are the logarithms of the odds of being chosen, all scaled alike. Scale and moods are
    searched on a part of the trace, in ``num_tries`` steps that go on from the best.
    """
    part = trace.part(_SAMPLE_TOKENS)
    every = max(1, part.num_layers // _SAMPLE_LAYERS)
    sample = part.only_layers(range(0, part.num_layers, every))
    wanted = _marks(sample)
    odds = _log_odds(sample)
    draw = np.random.default_rng(seed)
    best = _Guess(0.6, (Mood(0.8, 0.995), Mood(0.5, 0.9), Mood(0.8, 0.3)))
    least = np.inf
    for number in range(num_tries):
        reach = 0.4 * (1 - number / num_tries) + 0.02
        tried = best if not number else best.changed(draw, reach)
        ids = _choose(tried.scale * odds, tried.moods, trace.top_k, sample.num_tokens, seed)
        made = dataclasses.replace(
            sample, ids=ids, sequence_tokens=(len(ids),), scores=None, hints=None
        )
        distance = float(((_marks(made) - wanted) ** 2).sum())
        if distance < least:
            best, least = tried, distance
    return Likeness(
        model=trace.origin.model,
        num_experts=trace.num_experts,
        top_k=trace.top_k,
        layers=trace.layers,
        levels=best.scale * _log_odds(trace),
        moods=best.moods,
    )


def synthesize(likeness: Likeness, num_tokens: int, seed: int) -> Trace:
    """Make a trace up; the same seed gives the same one."""
    return Trace(
        name=f"like-{likeness.model}",
        origin=TraceOrigin(likeness.model, "text", f"made up from seed {seed}", "CC0-1.0"),
        num_experts=likeness.num_experts,
        layers=likeness.layers,
        sequence_tokens=(num_tokens,),
        ids=_choose(likeness.levels, likeness.moods, likeness.top_k, num_tokens, seed),
    )


def _choose(
    levels: _Floats, moods: Sequence[Mood], top_k: int, num_tokens: int, seed: int
) -> npt.NDArray[np.uint16]:
    draw = np.random.default_rng(seed)
    states = [mood.strength * draw.standard_normal(levels.shape) for mood in moods]
    ids = np.empty((num_tokens, levels.shape[0], top_k), np.uint16)
    for token in range(num_tokens):
        scores = levels + draw.standard_normal(levels.shape)
        for index, mood in enumerate(moods):
            fresh = mood.strength * np.sqrt(1 - mood.stays**2)
            states[index] = mood.stays * states[index] + fresh * draw.standard_normal(levels.shape)
            scores += states[index]
        chosen = np.argpartition(-scores, top_k - 1, axis=1)[:, :top_k]
        order = np.argsort(-np.take_along_axis(scores, chosen, axis=1), axis=1)
        ids[token] = np.take_along_axis(chosen, order, axis=1)
    return ids


def _log_odds(trace: Trace) -> _Floats:
    """Return the logarithm of the odds that each expert is chosen, by layer."""
    shares = (uses(trace) + 0.5) / (trace.num_tokens + 1)
    odds: _Floats = np.log(shares / (1 - shares))
    odds -= odds.mean(axis=1, keepdims=True)
    return odds


def _marks(trace: Trace) -> _Floats:
    """Return what is compared: reuse at all lags, and what independent tokens would reuse."""
    return np.array([*(reuse_share(trace, lag) for lag in LAGS), reuse_by_chance(trace)])


@dataclasses.dataclass(frozen=True, slots=True)
class _Guess:
    """What the search tries: the scale of levels, and the moods."""

    scale: float
    moods: tuple[Mood, ...]

    def changed(self, draw: np.random.Generator, reach: float) -> "_Guess":
        """Return a guess near this one; what stays is moved in terms of what fades."""
        scale = self.scale * float(np.exp(reach * draw.standard_normal()))
        moods = []
        for mood in self.moods:
            strength = mood.strength * float(np.exp(reach * draw.standard_normal()))
            fades = (1 - mood.stays) * float(np.exp(2 * reach * draw.standard_normal()))
            stays = 1 - min(0.9, max(0.0005, fades))
            moods.append(Mood(min(_MAX_STRENGTH, strength), stays))
        return _Guess(scale, tuple(moods))
