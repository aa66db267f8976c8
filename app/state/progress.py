"""How far a long job is: amount, rate, time left; pure, time is an argument."""

import dataclasses
import enum


class ProgressKind(enum.Enum):
    """What takes the time."""

    READ_TEXT = "read_text"
    """Amounts are tokens."""
    TRY_PARTS = "try_parts"
    """Amounts are groups of matrices."""
    TRY_FORMATS = "try_formats"
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


_WINDOW_S = 3.0


class ProgressMeter:
    """Turns amounts into ``Progress`` with a rate over the last seconds."""

    def __init__(self) -> None:
        self._kind: ProgressKind | None = None
        self._points: list[tuple[float, int]] = []

    def take(
        self,
        kind: ProgressKind,
        done_bytes: int,
        total_bytes: int,
        now_s: float,
        bytes_per_s: float | None = None,
    ) -> Progress:
        """Return the progress after a new amount; a rate that is given is taken as it is."""
        if kind is not self._kind or (self._points and done_bytes < self._points[-1][1]):
            self._kind = kind
            self._points = []
        self._points.append((now_s, done_bytes))
        while len(self._points) > 2 and self._points[1][0] <= now_s - _WINDOW_S:
            del self._points[0]
        rate = self._rate() if bytes_per_s is None else bytes_per_s
        left = (total_bytes - done_bytes) / rate if rate > 0 and total_bytes > 0 else None
        return Progress(kind, done_bytes, total_bytes, rate, left)

    def _rate(self) -> float:
        """Bytes per second between the oldest point that is kept and the newest."""
        (first_s, first_bytes), (last_s, last_bytes) = self._points[0], self._points[-1]
        return (last_bytes - first_bytes) / (last_s - first_s) if last_s > first_s else 0.0
