"""Which part of look-ups find their expert in memory, by the number of slots: never uniform.

A model's own routing comes first, then that of its family, then what models have in common.
"""

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from runtime.protocol.values import HitsBasis
from runtime.spec.model import ModelSpec
from runtime.spec.past import ReuseCounts

MIN_OWN_TOKENS = 200
"""Generated tokens from which on a model's own routing counts."""
SMALL_CACHE_POWER = 0.65
"""How hits fall below one token's worth of slots, nobody having to enter."""
POLICY_GAIN = ((0.0, 0.93), (0.07, 0.87), (0.2, 0.83), (0.5, 0.74), (1.0, 0.71))
"""Misses of the engine's policy by those of plain recency, over the part of the experts beyond
top-k that have a slot. Own counts are of plain recency; the curves below are not."""


@dataclasses.dataclass(frozen=True, slots=True)
class Habit:
    """How models of a kind reuse experts, independent of how many experts they have."""

    recent_reuse: float
    """Part of a token's experts, beyond chance, that the token before used too."""
    avoided: Sequence[tuple[float, float]]
    """Part of the misses left then that further slots avoid, over the part of the experts beyond
    top-k that have a slot."""
    spread: float
    """How far the misses of a model may lie from the curve, as part of them."""


PRIOR = Habit(
    0.30,
    (
        (0.0, 0.0),
        (0.07, 0.26),
        (0.15, 0.45),
        (0.20, 0.55),
        (0.45, 0.83),
        (0.72, 0.97),
        (1.0, 1.0),
    ),
    0.5,
)
"""Between all recorded models by intention."""
_QWEN3 = Habit(
    0.43, ((0.0, 0.0), (0.07, 0.35), (0.2, 0.67), (0.47, 0.93), (0.73, 0.985), (1.0, 1.0)), 0.35
)
_GPT_OSS = Habit(0.41, ((0.0, 0.0), (0.14, 0.45), (0.43, 0.86), (0.71, 0.977), (1.0, 1.0)), 0.35)
_DEEPSEEK = Habit(
    0.29, ((0.0, 0.0), (0.034, 0.105), (0.17, 0.395), (0.45, 0.72), (0.72, 0.90), (1.0, 1.0)), 0.4
)
FAMILIES: Mapping[str, Habit] = MappingProxyType(
    {
        "qwen3_moe": _QWEN3,
        "qwen3_vl_moe": _QWEN3,
        "gpt_oss": _GPT_OSS,
        "deepseek_v2": _DEEPSEEK,
        "deepseek_v3": _DEEPSEEK,
    }
)
"""By ``model_type``: fitted to recorded routing of a member (docs/decisions/0180-hits.md)."""
OWN_SPREAD = 0.25
"""As ``Habit.spread``, for a model's own counts: another topic, another curve."""


@dataclasses.dataclass(frozen=True, slots=True)
class HitCurve:
    """Hits of one model by the slots of a layer, each layer having as many."""

    hits: tuple[float, ...]
    """With 0, 1, ... slots, up to one for every expert."""
    num_layers: int
    basis: HitsBasis
    spread: float
    """How far the misses may lie from it, as part of them."""

    def ratio(self, num_slots: int) -> float:
        """Return the part of look-ups that find their expert with so many slots of all layers."""
        if not self.num_layers or num_slots >= self.num_layers * (len(self.hits) - 1):
            return 1.0
        low, part = divmod(num_slots, self.num_layers)
        here, above = self.hits[low], self.hits[low + 1]
        return here + (above - here) * part / self.num_layers


def curve_of(spec: ModelSpec, reuse: ReuseCounts | None = None) -> HitCurve:
    """Return the curve of a model; ``reuse`` is what was counted while it answered here."""
    if reuse is not None and reuse.num_tokens >= MIN_OWN_TOKENS:
        beyond = _own(spec, reuse)
        if beyond:
            return _curve(spec, beyond, HitsBasis.OWN, OWN_SPREAD)
    habit = FAMILIES.get(spec.model_type)
    basis = HitsBasis.ASSUMED if habit is None else HitsBasis.FAMILY
    habit = habit or PRIOR
    return _curve(spec, _of_habit(spec, habit), basis, habit.spread)


def _curve(spec: ModelSpec, beyond: Sequence[float], basis: HitsBasis, spread: float) -> HitCurve:
    """Return a curve from its values at ``top_k`` slots and more.

    With fewer the policy keeps those that are used most, and no more can be found than lie there.
    """
    reuse = beyond[0]
    parts = [slots / spec.top_k for slots in range(spec.top_k)]
    below = [min(part, reuse * part**SMALL_CACHE_POWER) for part in parts]
    return HitCurve((*below, *beyond), len(spec.moe_layers), basis, spread)


def _of_habit(spec: ModelSpec, habit: Habit) -> list[float]:
    num_beyond = spec.num_experts - spec.top_k
    chance = spec.top_k / max(1, spec.num_experts)
    reuse = chance + (1 - chance) * habit.recent_reuse
    shares = [number / num_beyond for number in range(num_beyond)]
    return [*(reuse + (1 - reuse) * _at(habit.avoided, share) for share in shares), 1.0]


def _own(spec: ModelSpec, reuse: ReuseCounts) -> list[float]:
    """Return hits at ``top_k`` slots and more; nothing if the counts are of another model."""
    num_needs = sum(reuse.found)
    if len(reuse.found) != spec.num_experts or not num_needs:
        return []
    num_beyond = max(1, spec.num_experts - spec.top_k)
    found = list(itertools.accumulate(reuse.found))[max(0, spec.top_k - 1) :]
    return [
        1 - (1 - hits / num_needs) * _at(POLICY_GAIN, min(1.0, number / num_beyond))
        for number, hits in enumerate(found)
    ]


def _at(points: Sequence[tuple[float, float]], x: float) -> float:
    """Return the value at ``x`` of straight lines between points."""
    (last_x, last_y), (next_x, next_y) = next(
        pair for pair in itertools.pairwise(points) if x <= pair[1][0]
    )
    return last_y + (next_y - last_y) * (x - last_x) / (next_x - last_x)
