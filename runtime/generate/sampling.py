"""How the next token is chosen from logits: pure, with randomness as an argument.

The order is fixed: repetition penalty on the logits, then temperature, then top-k, then top-p, then
min-p on the probabilities of what is left, then one draw. Each filter keeps at least one token, and
among equal ones the lower id comes first, so that a seed gives the same answer everywhere.
"""

import math
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from runtime.errors import LarderError
from runtime.protocol.chat import SamplingSettings
from runtime.protocol.errors import ErrorCode

Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]
Ids = npt.NDArray[np.int64]

_FIRST_CANDIDATES = 1024
"""How many of the likeliest tokens top-p sorts before it looks at all of them."""


def check_settings(settings: SamplingSettings) -> None:
    """Raise ``SETTING_INVALID`` for the first setting that makes no sense."""
    for name, is_valid, expected in (
        ("temperature", 0 <= settings.temperature <= 100, "0 to 100"),
        ("top_k", settings.top_k >= 0, "0 or more"),
        ("top_p", 0 < settings.top_p <= 1, "above 0, at most 1"),
        ("min_p", 0 <= settings.min_p <= 1, "0 to 1"),
        ("repetition_penalty", 0 < settings.repetition_penalty <= 100, "above 0, at most 100"),
        ("max_tokens", settings.max_tokens >= 0, "0 or more"),
        ("seed", settings.seed is None or settings.seed >= 0, "0 or more"),
        ("stop", all(settings.stop), "texts that are not empty"),
    ):
        if not is_valid:
            raise LarderError(
                ErrorCode.SETTING_INVALID,
                name=name,
                found=str(getattr(settings, name)),
                expected=expected,
            )


def choose_token(logits: Floats, settings: SamplingSettings, draw: float) -> int:
    """Return the id chosen from penalised ``logits`` by ``draw``, a number in [0, 1).

    Raises ``WEIGHTS_NOT_FINITE`` if there is no likeliest token because some are not numbers.
    """
    if not math.isfinite(logits.max()):
        raise LarderError(ErrorCode.WEIGHTS_NOT_FINITE, place="What the model computed")
    if settings.temperature == 0:
        return int(logits.argmax())
    candidates, probabilities = distribution(logits, settings)
    cumulative = probabilities.cumsum()
    index = int(np.searchsorted(cumulative, draw * cumulative[-1], side="right"))
    return int(candidates[min(index, len(candidates) - 1)])


def distribution(logits: Floats, settings: SamplingSettings) -> tuple[Ids, Doubles]:
    """Return the ids that pass all filters and their probabilities, which sum to 1."""
    scaled = logits.astype(np.float64) / settings.temperature
    candidates: Ids = np.arange(len(scaled), dtype=np.int64)
    if 0 < settings.top_k < len(scaled):
        candidates = _largest(scaled, settings.top_k)
        scaled = scaled[candidates]
    weights = np.exp(scaled - scaled.max())
    probabilities = weights / weights.sum()
    if settings.top_p < 1:
        kept = _nucleus(probabilities, settings.top_p)
        candidates, probabilities = candidates[kept], probabilities[kept]
    if settings.min_p > 0:
        kept = np.flatnonzero(probabilities >= settings.min_p * probabilities.max())
        candidates, probabilities = candidates[kept], probabilities[kept]
    return candidates, probabilities / probabilities.sum()


class RepetitionPenalty:
    """The ids seen so far and what having been seen costs.

    A seen token's logit is divided by the penalty where positive and multiplied where negative.
    """

    def __init__(self, penalty: float, seen: Iterable[int]) -> None:
        self._penalty = penalty
        self._seen = set(seen) if penalty != 1 else set()

    def note(self, token_id: int) -> None:
        """Count a generated token as seen."""
        if self._penalty != 1:
            self._seen.add(token_id)

    def apply(self, logits: Floats) -> None:
        """Change ``logits`` in place."""
        if not self._seen:
            return
        ids = np.fromiter(self._seen, np.int64, len(self._seen))
        values = logits[ids]
        logits[ids] = np.where(values > 0, values / self._penalty, values * self._penalty)


def _largest(values: Doubles, count: int) -> Ids:
    """Return the positions of the ``count`` largest values in ascending order of position."""
    limit = np.partition(values, -count)[-count]
    above = np.flatnonzero(values > limit)
    equal = np.flatnonzero(values == limit)[: count - len(above)]
    return np.sort(np.concatenate((above, equal)))


def _nucleus(probabilities: Doubles, top_p: float) -> Ids:
    """Return the positions of the fewest likeliest tokens that together reach ``top_p``."""
    if len(probabilities) > _FIRST_CANDIDATES:
        first = _largest(probabilities, _FIRST_CANDIDATES)
        if probabilities[first].sum() >= top_p:
            return first[_nucleus(probabilities[first], top_p)]
    order = np.argsort(-probabilities, kind="stable")
    reached = np.searchsorted(probabilities[order].cumsum(), top_p, side="left")
    return np.sort(order[: reached + 1])
