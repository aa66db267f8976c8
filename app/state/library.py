"""The models this PC knows: those a person dropped and those a search found."""

from collections.abc import Sequence
from pathlib import Path

import msgspec
from PySide6.QtCore import QObject, Signal

from app.state.folders import same_folder
from app.state.known_model import KnownModel
from app.state.library_file import Entry, model_key, read_entries, with_report, write_entries
from app.state.linked_models import gathered, is_link, place_key
from app.timers import single_shot
from runtime.protocol.errors import ErrorCode
from runtime.protocol.messages import (
    AnyEvent,
    ModelInspected,
    ModelLoaded,
    ModelPlanned,
    RootSearched,
)
from runtime.protocol.model import ModelReport
from runtime.protocol.plan import PlacementPlan
from runtime.protocol.search import RootState

SAVE_DELAY_MS = 1000
"""What a search finds within this time is written together."""
_NO_MODEL = frozenset(
    {
        ErrorCode.NOT_A_MODEL,
        ErrorCode.FOLDER_NOT_FOUND,
        ErrorCode.SEVERAL_MODELS,
        ErrorCode.COPY_WITHOUT_MODEL,
    }
)


class LibraryState(QObject):
    """The list of known models: the demo, what was dropped, what was found, what cannot run.

    Looks at no folder itself, because a drive that hangs would stop the window. A list that cannot
    be read begins anew; one that cannot be written lasts until the end of the program. Neither
    loses more than this list. Threads: window thread.
    """

    changed = Signal()

    def __init__(self, path: Path, demo_folder: str = "", parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._path = path
        self._demo_folder = demo_folder
        self._entries = read_entries(path)
        """Oldest first."""
        if demo_folder:
            self._entries.setdefault(model_key(demo_folder), Entry(folder=demo_folder))
        self._found: set[str] = set()
        """What the search that is going on has found."""
        self._passed_over: set[str] = set()
        self._save_timer = single_shot(self, SAVE_DELAY_MS, self.save)

    @property
    def demo_folder(self) -> str:
        """The folder of the demo model; empty if it is not wanted."""
        return self._demo_folder

    @property
    def models(self) -> list[KnownModel]:
        """All models that are to be shown."""
        newest_first = reversed(self._entries.values())
        return sorted(map(self._known, gathered(newest_first)), key=_rank)

    @property
    def dropped_folders(self) -> list[str]:
        """The folders that are not found below a place, and have to be looked for themselves."""
        return [entry.folder for entry in self._entries.values() if not entry.root]

    @property
    def missing_folders(self) -> list[str]:
        """Those of the dropped folders that were not there, and may come back."""
        entries = self._entries.values()
        return [entry.folder for entry in entries if entry.is_missing and not entry.root]

    @property
    def missing_roots(self) -> set[str]:
        """The places of models that were not there, and may come back."""
        return {entry.root for entry in self._entries.values() if entry.is_missing and entry.root}

    def report_of(self, folder: str) -> ModelReport | None:
        """Return the last report on a folder; None for one that is not known or never inspected."""
        entry = self._entries.get(model_key(folder))
        return entry.report if entry is not None else None

    def is_same(self, first: str, second: str) -> bool:
        """Whether two paths lead to one model, links followed as far as they were looked at."""
        return self._place(first) == self._place(second)

    def forget(self, folder: str) -> None:
        """Take a model off the list, for searches too, by whatever path; its files stay."""
        place = self._place(folder)
        for key, entry in list(self._entries.items()):
            if place_key(entry) == place:
                if entry.root:
                    self._entries[key] = msgspec.structs.replace(entry, is_hidden=True)
                else:
                    del self._entries[key]
        self._save_and_tell()

    def remove(self, folder: str) -> None:
        """Take off the list what is no longer there; what led to a model goes with the model."""
        gone = self._entries.pop(model_key(folder), None)
        if gone is not None and not is_link(gone):
            place = place_key(gone)
            kept = {key: each for key, each in self._entries.items() if place_key(each) != place}
            self._entries = kept
        self._save_and_tell()

    def begin_search(self) -> None:
        """Take note that from now on found is what this search finds."""
        self._found = set()

    def note_found(self, root: str, reports: Sequence[ModelReport]) -> None:
        """Take what a search found below a place; what is hidden stays so."""
        before = dict(self._entries)
        for report in reports:
            key = model_key(report.folder)
            self._found.add(key)
            entry = self._entries.get(key) or Entry(folder=report.folder)
            is_own_place = same_folder(root, report.folder)
            entry = with_report(entry, report, is_missing=False)
            if not is_own_place:
                entry = msgspec.structs.replace(entry, root=root)
            if key in self._entries:
                self._entries[key] = entry
            else:
                # What a person dropped stands before it.
                self._entries = {key: entry, **self._entries}
        self._tell_later(before)

    def note_searched(self, place: RootSearched) -> None:
        """Mark or drop what is no longer below a place that was looked through.

        What has a measured speed is never dropped, and nothing is where the place itself cannot be
        looked through: its drive may be connected again.
        """
        before = dict(self._entries)
        is_there = place.state is RootState.THERE
        for key, entry in before.items():
            if key in self._found:
                continue
            if same_folder(entry.folder, place.root):
                self._entries[key] = msgspec.structs.replace(entry, is_missing=not is_there)
            elif entry.root and same_folder(entry.root, place.root):
                if is_there and place.is_complete and not entry.is_used:
                    del self._entries[key]
                elif place.is_complete:
                    self._entries[key] = msgspec.structs.replace(entry, is_missing=True)
        self._tell_later(before)

    def drop_root(self, root: str) -> None:
        """Forget what was found below a place that is looked through no more."""
        before = dict(self._entries)
        for key, entry in before.items():
            if entry.root and same_folder(entry.root, root):
                if entry.measured_tokens_per_s:
                    self._entries[key] = msgspec.structs.replace(entry, root="")
                else:
                    del self._entries[key]
        self._tell_later(before)

    def pass_over(self, folder: str) -> None:
        """Take nothing of what is said about a folder that is no model of this PC."""
        self._passed_over.add(model_key(folder))

    def note(self, event: AnyEvent) -> None:
        """Take what an event of the runtime says about a folder."""
        if isinstance(event, ModelInspected | ModelPlanned):
            if model_key(event.report.folder) in self._passed_over:
                return
            self._note_report(event.report)
            if isinstance(event, ModelPlanned):
                self._note_first_plan(event)
        elif isinstance(event, ModelLoaded):
            self._change(event.model.folder, tiers=event.model.tiers, is_missing=False)

    def _note_report(self, report: ModelReport) -> None:
        """Take a report; what never held a model is no entry of the list."""
        is_model = all(problem.code not in _NO_MODEL for problem in report.problems)
        key = model_key(report.folder)
        if not is_model and key not in self._entries:
            return
        entry = self._entries.get(key) or Entry(folder=report.folder)
        codes = {problem.code for problem in report.problems}
        entry = with_report(entry, report, is_missing=ErrorCode.FOLDER_NOT_FOUND in codes)
        self._put(msgspec.structs.replace(entry, is_hidden=False))

    def _note_first_plan(self, event: ModelPlanned) -> None:
        """Take the recommended plan as what can be expected, while nothing better is known."""
        entry = self._entries.get(model_key(event.report.folder))
        if entry is not None and not entry.tiers:
            for plan in event.plans:
                if plan.kind is event.recommended:
                    self.note_plan(plan)

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

    def save(self) -> None:
        """Write what was not written yet."""
        self._save_timer.stop()
        write_entries(self._path, self._entries)

    def close(self) -> None:
        """Write what was not written yet, at the end of the program."""
        if self._save_timer.isActive():
            self.save()

    def _change(self, folder: str, **changes: object) -> None:
        before = self._entries.get(model_key(folder)) or Entry(folder=folder)
        self._put(msgspec.structs.replace(before, **changes))

    def _put(self, entry: Entry) -> None:
        """Keep an entry; a new one is the newest."""
        key = model_key(entry.folder)
        if self._entries.get(key) != entry:
            self._entries[key] = entry
            self._save_and_tell()

    def _place(self, folder: str) -> str:
        """Return what is the same for all paths of a model."""
        entry = self._entries.get(model_key(folder))
        return place_key(entry) if entry is not None else model_key(folder)

    def _known(self, group: list[Entry]) -> KnownModel:
        """Return a model of which the first entry is shown, with what was seen of it by any."""
        entry, *links = group
        report = entry.report
        planned = next((each for each in group if each.tiers), entry)
        return KnownModel(
            folder=entry.folder,
            name=(report.name if report else "") or Path(entry.folder).name,
            is_demo=bool(self._demo_folder) and self.is_same(entry.folder, self._demo_folder),
            is_missing=entry.is_missing,
            report=report,
            links=tuple(each.folder for each in links),
            root=entry.root,
            tiers=tuple(planned.tiers),
            forecast_low=planned.forecast_low,
            forecast_high=planned.forecast_high,
            measured_tokens_per_s=max(each.measured_tokens_per_s for each in group),
        )

    def _save_and_tell(self) -> None:
        self.save()
        self.changed.emit()

    def _tell_later(self, before: dict[str, Entry]) -> None:
        if self._entries != before:
            self._save_timer.start()
            self.changed.emit()


def _rank(model: KnownModel) -> tuple[bool, bool]:
    """Sort the demo first, and last what a search found that cannot run."""
    return not model.is_demo, bool(model.root) and not model.is_runnable
