"""How true forecasts were: the newest answers with what was expected of each, in a file."""

import dataclasses
import datetime as dt
from collections.abc import Callable
from pathlib import Path

import msgspec

from app.state.json_file import pretty, write_whole
from runtime.protocol.chat import GenerationStats
from runtime.protocol.comparison import notes_of
from runtime.protocol.plan import PlacementPlan

MAX_RECORDS = 200

Now = Callable[[], dt.datetime]


class ForecastRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One answer; rates are tokens per second while it was written."""

    at: str
    model: str
    plan: str
    """The kind of the plan in force."""
    ram_bytes: int
    vram_bytes: int
    num_tokens: int
    measured: float
    predicted: float
    """The likeliest; 0 where nothing was."""
    predicted_low: float
    predicted_high: float
    usual: float
    """Of earlier answers under such a plan; 0 before there were any."""
    notes: list[str] = []
    """What a person was told of it: more than 15 % apart, slower than usual."""


@dataclasses.dataclass(slots=True, eq=False)
class ForecastBook:
    """The newest answers, for the report and for whoever mends forecasts; no text of any.

    A file that is missing or damaged counts as empty; where it cannot be written, records last as
    long as the window.
    """

    path: Path
    now: Now = dt.datetime.now
    records: list[ForecastRecord] = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        try:
            self.records = msgspec.json.decode(self.path.read_bytes(), type=list[ForecastRecord])
        except (OSError, ValueError, RecursionError):
            self.records = []

    def take_answer(
        self, stats: GenerationStats | None, plan: PlacementPlan | None, model: str
    ) -> bool:
        """Keep an answer that has ended; return whether that was written."""
        if stats is None or plan is None or stats.decode_tokens_per_s <= 0:
            return False
        predicted = stats.predicted
        record = ForecastRecord(
            at=self.now().isoformat(timespec="seconds"),
            model=model,
            plan=plan.kind.value,
            ram_bytes=plan.ram_bytes,
            vram_bytes=plan.vram_bytes,
            num_tokens=stats.generated_tokens,
            measured=round(stats.decode_tokens_per_s, 3),
            predicted=round(predicted.decode_tokens_per_s, 3) if predicted else 0.0,
            predicted_low=round(predicted.decode_tokens_per_s_low, 3) if predicted else 0.0,
            predicted_high=round(predicted.decode_tokens_per_s_high, 3) if predicted else 0.0,
            usual=round(stats.usual_tokens_per_s, 3),
            notes=[note.code.value for note in notes_of(stats)],
        )
        self.records = [*self.records, record][-MAX_RECORDS:]
        try:
            write_whole(self.path, pretty(self.records))
        except OSError:
            return False
        return True
