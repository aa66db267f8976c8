"""How soon the next sample is due: often while the engine works, seldom while it rests."""

from runtime.protocol.telemetry import TelemetrySample

REST_INTERVAL_S = 2.0
NUM_QUIET_SAMPLES = 10
"""So many samples without work, one after the other, and the engine rests."""


class SamplingPace:
    """Counts the samples in which nothing happened.

    Threads: as its owner says, one at a time.
    """

    def __init__(self) -> None:
        self._num_quiet = 0

    @property
    def is_resting(self) -> bool:
        """Whether nothing has happened for a while."""
        return self._num_quiet >= NUM_QUIET_SAMPLES

    def note(self, sample: TelemetrySample | None, *, is_busy: bool) -> None:
        """Take note of a sample, None where there was none to take.

        An engine that is busy may stand in one layer for longer than any interval, so its samples
        are never quiet.
        """
        is_quiet = not is_busy and (sample is None or not (sample.is_working or sample.notes))
        self._num_quiet = self._num_quiet + 1 if is_quiet else 0

    def wake(self) -> None:
        """Take note that the engine is about to work."""
        self._num_quiet = 0

    def interval_s(self, wanted_s: float) -> float:
        """Return the time to the next sample where this much is wanted while the engine works."""
        return max(wanted_s, REST_INTERVAL_S) if self.is_resting else wanted_s
