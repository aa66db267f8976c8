"""How true a forecast was, and whether an answer was as fast as the model usually is."""

from runtime.protocol.chat import GenerationStats
from runtime.protocol.plan import Reason, ReasonCode

MAX_APART = 0.15
"""Part of the expected rate; what lies further apart is told."""
MIN_TOKENS = 16
"""A shorter answer says little of a rate."""


def notes_of(stats: GenerationStats) -> list[Reason]:
    """Return what a person is told of an answer that was not as expected; usually nothing."""
    if stats.generated_tokens < MIN_TOKENS or stats.decode_tokens_per_s <= 0:
        return []
    notes = []
    predicted = stats.predicted.decode_tokens_per_s if stats.predicted is not None else 0.0
    apart = _apart(stats.decode_tokens_per_s, predicted)
    if abs(apart) > MAX_APART:
        code = ReasonCode.FASTER_THAN_FORECAST if apart > 0 else ReasonCode.SLOWER_THAN_FORECAST
        notes.append(_note(code, apart, predicted))
    apart = _apart(stats.decode_tokens_per_s, stats.usual_tokens_per_s)
    if apart < -MAX_APART:
        notes.append(_note(ReasonCode.SLOWER_THAN_USUAL, apart, stats.usual_tokens_per_s))
    return notes


def _apart(measured: float, expected: float) -> float:
    """Return how far a rate lies above what was expected, as part of that; 0 if unknown."""
    return measured / expected - 1 if expected > 0 else 0.0


def _note(code: ReasonCode, apart: float, expected: float) -> Reason:
    percent = round(100 * abs(apart))
    return Reason(code=code, parameters={"percent": percent, "tokens_per_s": round(expected, 2)})
