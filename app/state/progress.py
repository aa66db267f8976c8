"""How far a long job is: amount, rate, time left; pure, time is an argument."""

import dataclasses
import enum


class ProgressKind(enum.Enum):
    """What takes the time."""

    PREPARE = "prepare"
    START = "start"
    """The engine itself is starting; no amount is known."""
    DENSE = "dense"
    EXPERTS = "experts"


@dataclasses.dataclass(frozen=True, slots=True)
class Progress:
    """One moment of a long job; ``total_bytes`` 0 means that no amount is known."""

    kind: ProgressKind
    done_bytes: int
    total_bytes: int
    bytes_per_s: float
    seconds_left: float | None
    """None until a rate is known."""

    @property
    def ratio(self) -> float | None:
        """The part that is done, 0 to 1; None if no amount is known."""
        return min(1.0, self.done_bytes / self.total_bytes) if self.total_bytes > 0 else None
