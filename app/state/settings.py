"""What a person chose, kept in one JSON file."""

import enum

import msgspec
from PySide6.QtCore import QObject, Signal

from runtime.protocol.chat import SamplingSettings
from runtime.protocol.plan import PlanKind


class ThemeChoice(enum.StrEnum):
    """Which colours the window has."""

    SYSTEM = "system"
    LIGHT = "light"
    DARK = "dark"


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """All settings with their defaults; immutable, replaced as a whole."""

    theme: ThemeChoice = ThemeChoice.SYSTEM
    reduce_motion: bool = False
    last_folder: str = ""
    """The model that was loaded last; empty before the first."""
    last_plan: PlanKind | None = None
    load_last_model: bool = True
    """Load ``last_folder`` when the program starts."""
    ram_budget_bytes: int | None = None
    """None lets the planner choose."""
    context_tokens: int = 0
    """0 lets the planner choose."""
    sampling: SamplingSettings = SamplingSettings()
    system_prompt: str = ""
    energy_price_per_kwh: float = 0.30
    currency: str = "€"
    window_geometry: str = ""
    """Base64 of what Qt saved; empty before the first time."""


class SettingsState(QObject):
    """The settings in force. Threads: window thread."""

    changed = Signal()
    noticed = Signal(str)
    """A sentence about a setting that was refused or a file that could not be written."""

    values: Settings

    def change(self, **changes: object) -> None:
        """Replace some settings and save; raises ``ValueError`` for a value that is not allowed."""
