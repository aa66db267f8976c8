"""What answers took in energy, reads and writes: of this session, and of each month in a file."""

import dataclasses
import datetime as dt
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import msgspec

from app.state.json_file import pretty, write_whole
from runtime.protocol.chat import GenerationStats

MAX_MONTHS = 36
_J_PER_KWH = 3.6e6
_NotNegative = msgspec.Meta(ge=0)

Today = Callable[[], dt.date]


class EnergySum(msgspec.Struct, frozen=True, kw_only=True):
    """Answers added up."""

    num_answers: Annotated[int, _NotNegative] = 0
    num_tokens: Annotated[int, _NotNegative] = 0
    joules: Annotated[float, _NotNegative] = 0.0
    drive_bytes_read: Annotated[int, _NotNegative] = 0
    drive_bytes_written: Annotated[int, _NotNegative] = 0
    """Copies of models and downloads included."""

    def plus(self, stats: GenerationStats) -> "EnergySum":
        """Return the sum with another answer."""
        return EnergySum(
            num_answers=self.num_answers + 1,
            num_tokens=self.num_tokens + stats.generated_tokens,
            joules=self.joules + (stats.energy.total_j or 0.0),
            drive_bytes_read=self.drive_bytes_read + stats.drive_bytes_read,
            drive_bytes_written=self.drive_bytes_written + (stats.drive_bytes_written or 0),
        )

    def plus_written(self, num_bytes: int) -> "EnergySum":
        """Return the sum with something that was written beside answers."""
        written = self.drive_bytes_written + num_bytes
        return msgspec.structs.replace(self, drive_bytes_written=written)

    def cost(self, price_per_kwh: float) -> float:
        """Return what that costs at a tariff."""
        return self.joules / _J_PER_KWH * price_per_kwh


@dataclasses.dataclass(slots=True, eq=False, weakref_slot=True)
class EnergyBook:
    """Sums of this session and of months, the newest kept on the drive after each answer.

    Signals can be connected to it, which takes a weak reference.
    A file that is missing or damaged counts as empty; where it cannot be written, the sums last as
    long as the window.
    """

    path: Path
    today: Today = dt.date.today
    session: EnergySum = dataclasses.field(default_factory=EnergySum)
    _months: dict[str, EnergySum] = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        try:
            self._months = msgspec.json.decode(self.path.read_bytes(), type=dict[str, EnergySum])
        except (OSError, ValueError, RecursionError):
            self._months = {}

    @property
    def month(self) -> EnergySum:
        """The sum of the calendar's month."""
        return self._months.get(self._key(), EnergySum())

    def take_answer(self, stats: GenerationStats | None) -> bool:
        """Add an answer that has ended; return whether that was kept."""
        if stats is None:
            return False
        return self._take(lambda before: before.plus(stats))

    def take_written(self, num_bytes: int) -> bool:
        """Add a copy of a model, or a download, that is complete; return whether that was kept."""
        return self._take(lambda before: before.plus_written(num_bytes))

    def _take(self, add: Callable[[EnergySum], EnergySum]) -> bool:
        self.session = add(self.session)
        self._months[self._key()] = add(self.month)
        newest = sorted(self._months)[-MAX_MONTHS:]
        self._months = {key: self._months[key] for key in newest}
        try:
            write_whole(self.path, pretty(self._months))
        except OSError:
            return False
        return True

    def _key(self) -> str:
        return self.today().strftime("%Y-%m")
