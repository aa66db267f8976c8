"""What the service asks of whatever writes prepared copies."""

from collections.abc import Callable

from runtime.engine.base import CancelToken
from runtime.errors import CancelledError
from runtime.protocol.messages import PrepareModel, PreparePhase
from runtime.protocol.model import PreparedCopy

PrepareReport = Callable[[int, int, float, PreparePhase], None]
"""Called with bytes done, bytes in total, bytes per second, and what is being done.

While a text is read, tokens stand for bytes.
"""
Preparer = Callable[[PrepareModel, PrepareReport, CancelToken], PreparedCopy]
"""Writes a prepared copy; raises ``PrepareStoppedError`` when cancelled."""


class PrepareStoppedError(CancelledError):
    """A preparation that a person stopped; ``kept_bytes`` are written and will be used again."""

    def __init__(self, kept_bytes: int) -> None:
        super().__init__()
        self.kept_bytes = kept_bytes
