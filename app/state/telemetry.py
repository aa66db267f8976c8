"""The newest measurement and a short past of them."""

from collections import deque

from PySide6.QtCore import QObject, Signal

from runtime.protocol.telemetry import TelemetrySample

MAX_SAMPLES = 600


class TelemetryState(QObject):
    """Samples of the last minute. Threads: window thread."""

    sampled = Signal()
    """``latest`` is new."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._samples: deque[TelemetrySample] = deque(maxlen=MAX_SAMPLES)

    @property
    def latest(self) -> TelemetrySample | None:
        """The newest sample; None if none came or a new runtime has not measured yet."""
        return self._samples[-1] if self._samples else None

    @property
    def samples(self) -> list[TelemetrySample]:
        """Oldest first, at most ``MAX_SAMPLES``."""
        return list(self._samples)

    def add(self, sample: TelemetrySample) -> None:
        """Take a new sample."""
        self._samples.append(sample)
        self.sampled.emit()

    def clear(self) -> None:
        """Forget all, because they belong to a runtime that is gone."""
        self._samples.clear()
        self.sampled.emit()
