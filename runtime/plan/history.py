"""What earlier runs of a model on this PC say of the next one. Pure."""

import dataclasses
import statistics
from collections.abc import Sequence

from runtime.protocol.values import WeightFormat
from runtime.spec.past import PastRun

NEAR = 0.1
"""Plans whose parts of resident experts differ by no more than this are alike."""
NUM_NEWEST = 9
"""So many of the newest answers count."""
WIDEST = 20.0
"""A ratio beyond this, or below one by it, says that something else was wrong."""
NEAR_BAND = (0.85, 1.15)
FAR_BAND = (0.75, 1.3)


@dataclasses.dataclass(frozen=True, slots=True)
class Setting:
    """Under what a model runs, as far as it decides the speed beside its costs."""

    expert_format: WeightFormat
    device: str
    kernels: str
    held_ratio: float
    """Part of all experts that RAM and device hold."""


@dataclasses.dataclass(frozen=True, slots=True)
class Experience:
    """What is known of a setting."""

    speed_ratio: float
    """Measured by modelled speed."""
    band: tuple[float, float]
    num_answers: int
    """Answers under plans like this one; 0 if only others ran."""
    measured_tokens_per_s: float
    """What they reached, the median."""
    predicted_tokens_per_s: float
    """What had been forecast for them."""


def held_ratio(num_held: int, num_all: int) -> float:
    """Return which part of all experts is held; a model without experts holds all it has."""
    return num_held / num_all if num_all else 1.0


def experience_of(runs: Sequence[PastRun], setting: Setting) -> Experience | None:
    """Return what runs, the oldest first, say; None if the model never ran in such a way."""
    same = [
        run
        for run in runs
        if (run.expert_format, run.device, run.kernels)
        == (setting.expert_format, setting.device, setting.kernels)
    ]
    if not same:
        return None
    alike = [run for run in same if abs(run.held_ratio - setting.held_ratio) <= NEAR]
    chosen = (alike or same)[-NUM_NEWEST:]
    ratio = statistics.median(
        run.measured_tokens_per_s / run.modelled_tokens_per_s for run in chosen
    )
    return Experience(
        speed_ratio=min(max(ratio, 1 / WIDEST), WIDEST),
        band=NEAR_BAND if alike else FAR_BAND,
        num_answers=len(alike),
        measured_tokens_per_s=statistics.median(run.measured_tokens_per_s for run in chosen),
        predicted_tokens_per_s=statistics.median(run.predicted_tokens_per_s for run in chosen),
    )
