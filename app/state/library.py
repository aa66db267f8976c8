"""The model folders this PC knows."""

import dataclasses

from PySide6.QtCore import QObject, Signal

from runtime.protocol.model import ModelReport, TierShare


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class KnownModel:
    """One folder with what was last found in it."""

    folder: str
    name: str
    is_demo: bool
    is_missing: bool
    """The folder is not there now."""
    report: ModelReport | None
    """The last report; None if it was never inspected."""
    tiers: tuple[TierShare, ...] = ()
    """Placement of the last plan or load; empty if never planned."""
    forecast_low: float = 0.0
    """Forecast decode tokens per second of the last plan; both 0 if unknown."""
    forecast_high: float = 0.0
    measured_tokens_per_s: float = 0.0
    """Decode rate of the last answer; 0 if it never answered."""


class LibraryState(QObject):
    """The list of known models, the demo first. Threads: window thread."""

    changed = Signal()

    models: list[KnownModel]

    def refresh(self) -> None:
        """Look again which folders are there."""

    def forget(self, folder: str) -> None:
        """Take a folder off the list; its files stay."""
