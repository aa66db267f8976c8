"""Keeping the list of models true: which places are looked through, when, and what came of it."""

import dataclasses
import time
from collections.abc import Callable, Iterable

from PySide6.QtCore import QObject, Signal

from app.link.client import RuntimeClient, RuntimeEnd
from app.state.answer_flow import ignore
from app.state.folders import plain_path, same_folder
from app.state.library import LibraryState
from app.state.settings import SettingsState
from runtime.protocol.messages import (
    CancelRequest,
    FindModels,
    ModelsFound,
    Reply,
    RootSearched,
)
from runtime.protocol.search import RootState

MAX_AGE_S = 60.0
"""A list that is older is looked through again when a person looks at it."""


@dataclasses.dataclass(frozen=True, slots=True)
class SearchRoot:
    """A place below which models are looked for."""

    path: str
    is_usual: bool
    """Another program's place, which the person did not have to add."""
    result: RootSearched | None
    """What the last search said of it; None before the first."""

    @property
    def is_away(self) -> bool:
        """Whether it could not be looked through: its drive may be connected again."""
        return self.result is not None and self.result.state is not RootState.THERE


class LibrarySearch(QObject):
    """Has the runtime look through the places, one search at a time.

    A search goes on in the next runtime if its own is replaced; one whose runtime failed does not,
    because it may be the cause. Threads: window thread.
    """

    changed = Signal()

    def __init__(
        self,
        client: RuntimeClient,
        settings: SettingsState,
        library: LibraryState,
        usual_roots: Iterable[str] = (),
        parent: QObject | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(parent)
        self._client = client
        self._settings = settings
        self._library = library
        self._usual_roots = list(usual_roots)
        self._clock = clock
        self._results: dict[str, RootSearched] = {}
        self._waiting: list[str] = []
        """What the next search is for."""
        self._going_on: list[str] = []
        """What the search that is going on is for."""
        self._request_id: int | None = None
        self._is_cancelling = False
        self._is_quiet = False
        self._num_folders = 0
        self._searched_s: float | None = None
        client.opened.connect(self._begin)
        client.ended.connect(self._on_ended)

    @property
    def roots(self) -> list[SearchRoot]:
        """The person's own places, then the usual ones that there are on this PC."""
        missing = self._library.missing_roots
        return [
            root
            for root in self._all_roots()
            if not root.is_usual
            or (root.result is not None and root.result.state is not RootState.MISSING)
            or _holds(missing, root.path)
        ]

    @property
    def is_searching(self) -> bool:
        """Whether a search goes on that a person should see."""
        is_wanted = bool(self._going_on or (self._waiting and self._client.is_open))
        return is_wanted and not self._is_quiet

    @property
    def is_cancelling(self) -> bool:
        """Whether the search was asked to stop and has not yet."""
        return self._is_cancelling

    @property
    def num_folders(self) -> int:
        """How many folders the search has looked at."""
        return self._num_folders

    def search(self) -> None:
        """Look through all places and at all dropped folders; those that were away come last."""
        self._searched_s = self._clock()
        self._is_quiet = False
        roots = sorted(self._all_roots(), key=lambda root: root.is_away)
        missing = self._library.missing_folders
        there = [path for path in self._library.dropped_folders if path not in missing]
        self._want([*there, *(root.path for root in roots), *missing])

    def freshen(self) -> None:
        """Look through everything if that was long ago."""
        if self._searched_s is None or self._clock() - self._searched_s > MAX_AGE_S:
            self.search()

    def look_for_missing(self) -> None:
        """Look, without a word, whether what was away has come back."""
        if self._waiting or self._going_on:
            return
        missing_roots = self._library.missing_roots
        away = [
            root.path
            for root in self._all_roots()
            if (root.is_away and not root.is_usual) or _holds(missing_roots, root.path)
        ]
        if away or self._library.missing_folders:
            self._is_quiet = True
            self._want([*away, *self._library.missing_folders])

    def look_at(self, folder: str) -> None:
        """Look at one model anew, because something about it changed."""
        self._want([*self._waiting, folder])

    def cancel(self) -> None:
        """Stop looking; what was found stays."""
        self._waiting.clear()
        request_id = self._request_id
        if request_id is not None and not self._is_cancelling:
            self._is_cancelling = True
            self._client.send(
                lambda own_id: CancelRequest(request_id=own_id, target_request_id=request_id),
                ignore,
            )
        self.changed.emit()

    def add_root(self, path: str) -> None:
        """Look for models below a place from now on."""
        values = self._settings.values
        if _holds(self._usual_roots, path):
            left_out = [root for root in values.left_out_roots if not same_folder(root, path)]
            self._settings.change(left_out_roots=left_out)
        elif not _holds(values.model_roots, path):
            self._settings.change(model_roots=[*values.model_roots, path])
        self._is_quiet = False
        self._want([*self._waiting, path])

    def remove_root(self, path: str) -> None:
        """Look there no more, and forget what was found there."""
        values = self._settings.values
        own = [root for root in values.model_roots if not same_folder(root, path)]
        left_out = values.left_out_roots
        if _holds(self._usual_roots, path) and not _holds(left_out, path):
            left_out = [*left_out, path]
        self._settings.change(model_roots=own, left_out_roots=left_out)
        self._waiting = [root for root in self._waiting if not same_folder(root, path)]
        self._library.drop_root(path)
        self.changed.emit()

    def _all_roots(self) -> list[SearchRoot]:
        values = self._settings.values
        own = [self._root(path, is_usual=False) for path in values.model_roots]
        usual = [
            self._root(path, is_usual=True)
            for path in self._usual_roots
            if not _holds(values.left_out_roots, path) and not _holds(values.model_roots, path)
        ]
        return [*own, *usual]

    def _root(self, path: str, *, is_usual: bool) -> SearchRoot:
        return SearchRoot(path, is_usual, self._results.get(plain_path(path)))

    def _want(self, paths: list[str]) -> None:
        self._waiting = list({plain_path(path): path for path in paths}.values())
        self._begin()
        self.changed.emit()

    def _begin(self) -> None:
        """Ask for what is wanted, unless a search goes on."""
        if self._request_id is not None or not self._waiting:
            return
        roots = self._waiting
        request_id = self._client.send(
            lambda request_id: FindModels(request_id=request_id, roots=roots), self._on_reply
        )
        if request_id is not None:
            self._request_id = request_id
            self._going_on, self._waiting = roots, []
            self._num_folders = 0
            self._library.begin_search()

    def _on_reply(self, event: Reply) -> None:
        if isinstance(event, ModelsFound):
            self._num_folders = event.num_folders
            if self._is_wanted(event.root):
                self._library.note_found(event.root, event.reports)
        elif isinstance(event, RootSearched):
            self._results[plain_path(event.root)] = event
            self._library.note_searched(event)
        else:
            self._end()
            self._begin()
        self.changed.emit()

    def _is_wanted(self, path: str) -> bool:
        """Whether a place was not removed while it was looked through."""
        roots = [root.path for root in self._all_roots()]
        return _holds(roots, path) or _holds(self._library.dropped_folders, path)

    def _end(self) -> None:
        self._request_id = None
        self._going_on = []
        self._is_cancelling = False

    def _on_ended(self, end: RuntimeEnd) -> None:
        """Want what was not answered again, unless it may have been the cause of the end."""
        if self._request_id is not None:
            again = [] if self._is_cancelling or end.error is not None else self._going_on
            self._waiting = [*again, *self._waiting]
            self._end()
            self.changed.emit()


def _holds(paths: Iterable[str], path: str) -> bool:
    return any(same_folder(each, path) for each in paths)
