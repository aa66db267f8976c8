"""The model folders this PC knows."""

import contextlib
import dataclasses
from pathlib import Path

import msgspec
from PySide6.QtCore import QObject, Signal

from app.state.folders import same_folder
from app.state.json_file import pretty, set_aside, write_whole
from runtime.protocol.errors import ErrorCode
from runtime.protocol.messages import AnyEvent, ModelInspected, ModelLoaded, ModelPlanned
from runtime.protocol.model import ModelReport, TierShare
from runtime.protocol.plan import PlacementPlan

_NO_MODEL = frozenset(
    {
        ErrorCode.NOT_A_MODEL,
        ErrorCode.FOLDER_NOT_FOUND,
        ErrorCode.SEVERAL_MODELS,
        ErrorCode.COPY_WITHOUT_MODEL,
    }
)


class _Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One folder as it is kept in the file."""

    folder: str
    report: ModelReport | None = None
    tiers: list[TierShare] = []
    forecast_low: float = 0.0
    forecast_high: float = 0.0
    measured_tokens_per_s: float = 0.0


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
    """The list of known models, the demo first, then the newest.

    A list that cannot be read begins anew; one that cannot be written lasts until the end of the
    program. Neither loses more than this list. Threads: window thread.
    """

    changed = Signal()

    def __init__(self, path: Path, demo_folder: str = "", parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._path = path
        self._demo_folder = demo_folder
        self._entries = _read(path)
        if demo_folder and self._find(demo_folder) is None:
            self._entries.insert(0, _Entry(folder=demo_folder))
        self._is_missing: dict[str, bool] = {}
        self._look()

    @property
    def demo_folder(self) -> str:
        """The folder of the demo model; empty if it is not wanted."""
        return self._demo_folder

    @property
    def models(self) -> list[KnownModel]:
        """All known folders."""
        known = [self._known(entry) for entry in self._entries]
        return sorted(known, key=lambda model: not model.is_demo)

    def report_of(self, folder: str) -> ModelReport | None:
        """Return the last report on a folder; None for one that is not known or never inspected."""
        index = self._find(folder)
        return self._entries[index].report if index is not None else None

    def refresh(self) -> None:
        """Look again which folders are there."""
        before = dict(self._is_missing)
        self._look()
        if self._is_missing != before:
            self.changed.emit()

    def forget(self, folder: str) -> None:
        """Take a folder off the list; its files stay."""
        self._entries = [item for item in self._entries if not same_folder(item.folder, folder)]
        self._save()

    def note(self, event: AnyEvent) -> None:
        """Take what an event of the runtime says about a folder."""
        if isinstance(event, ModelInspected | ModelPlanned):
            self._note_report(event.report)
        elif isinstance(event, ModelLoaded):
            self._change(event.model.folder, tiers=event.model.tiers)

    def _note_report(self, report: ModelReport) -> None:
        """Take a report; what never held a model is no entry of the list."""
        is_model = all(problem.code not in _NO_MODEL for problem in report.problems)
        if is_model or self._find(report.folder) is not None:
            self._change(report.folder, report=report)

    def note_plan(self, plan: PlacementPlan) -> None:
        """Take the placement and the forecast of a plan that is carried out."""
        forecast = plan.forecast
        self._change(
            plan.model_folder,
            tiers=plan.tiers,
            forecast_low=forecast.decode_tokens_per_s_low if forecast else 0.0,
            forecast_high=forecast.decode_tokens_per_s_high if forecast else 0.0,
        )

    def note_rate(self, folder: str, decode_tokens_per_s: float) -> None:
        """Take the decode rate that an answer had."""
        if decode_tokens_per_s > 0:
            self._change(folder, measured_tokens_per_s=decode_tokens_per_s)

    def _find(self, folder: str) -> int | None:
        return next(
            (
                index
                for index, entry in enumerate(self._entries)
                if same_folder(entry.folder, folder)
            ),
            None,
        )

    def _change(self, folder: str, **changes: object) -> None:
        index = self._find(folder)
        before = _Entry(folder=folder) if index is None else self._entries[index]
        after: _Entry = msgspec.structs.replace(before, **changes)
        if index is None:
            self._entries.insert(0, after)
        elif after == before:
            return
        else:
            self._entries[index] = after
        self._save()

    def _look(self) -> None:
        self._is_missing = {
            entry.folder: not Path(entry.folder).is_dir() for entry in self._entries
        }

    def _known(self, entry: _Entry) -> KnownModel:
        report = entry.report
        return KnownModel(
            folder=entry.folder,
            name=(report.name if report else "") or Path(entry.folder).name,
            is_demo=bool(self._demo_folder) and same_folder(entry.folder, self._demo_folder),
            is_missing=self._is_missing[entry.folder],
            report=report,
            tiers=tuple(entry.tiers),
            forecast_low=entry.forecast_low,
            forecast_high=entry.forecast_high,
            measured_tokens_per_s=entry.measured_tokens_per_s,
        )

    def _save(self) -> None:
        self._look()
        # Unsaved, the folders are known until the program ends: nothing a person made is lost.
        with contextlib.suppress(OSError):
            write_whole(self._path, pretty(self._entries))
        self.changed.emit()


def _read(path: Path) -> list[_Entry]:
    """Return the kept entries; none if there is no list or it cannot be understood."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=list[_Entry])
    except OSError:
        return []
    except (msgspec.DecodeError, UnicodeDecodeError):
        with contextlib.suppress(OSError):
            set_aside(path)
        return []
