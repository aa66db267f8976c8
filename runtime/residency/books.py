"""Where an expert cache writes down what it does."""

import dataclasses
from collections.abc import Callable

from runtime.residency.watch import Stalled, log_stall
from runtime.telemetry.expert_tally import ExpertTally
from runtime.telemetry.recorder import Counters

FillEnded = Callable[[int, float], None]
"""Called by any thread with the experts that were read, and the seconds since the first was
wanted, when no more are on their way."""
FillProgress = Callable[[int, int], None]
"""Called with bytes done and bytes in total; may raise to stop."""


def _ignore_end(num_experts: int, seconds: float) -> None:
    """Take the end of a filling and do nothing with it."""
    del num_experts, seconds


@dataclasses.dataclass(frozen=True, slots=True)
class Books:
    """Counters of the hot loop, the tally of experts, and who is told of ends and stalls."""

    counters: Counters
    tally: ExpertTally
    fill_ended: FillEnded = _ignore_end
    stalled: Stalled = log_stall
