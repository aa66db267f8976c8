"""One model of the list, as pages show it."""

import dataclasses
from pathlib import Path

from runtime.protocol.model import ModelReport, TierShare


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class KnownModel:
    """One folder, or file in GGUF, with what was last found in it."""

    folder: str
    """The folder, or of a model in GGUF its first file."""
    name: str
    is_demo: bool
    is_missing: bool
    """The folder was not there when it was last looked for."""
    report: ModelReport | None
    """The last report; None if it was never inspected."""
    links: tuple[str, ...] = ()
    """Other paths that lead to it."""
    root: str = ""
    """The place below which a search found it; empty if the person dropped it."""
    tiers: tuple[TierShare, ...] = ()
    """Placement of the last plan or load; empty if never planned."""
    forecast_low: float = 0.0
    """Forecast decode tokens per second of the last plan; both 0 if unknown."""
    forecast_high: float = 0.0
    measured_tokens_per_s: float = 0.0
    """Decode rate of the last answer; 0 if it never answered."""

    @property
    def is_runnable(self) -> bool:
        """Whether nothing that was found prevents it from running."""
        return self.report is None or self.report.is_runnable

    @property
    def place(self) -> str:
        """The folder to show to a person who wants to see its files."""
        is_file = self.folder.lower().endswith(".gguf")
        return str(Path(self.folder).parent) if is_file else self.folder
