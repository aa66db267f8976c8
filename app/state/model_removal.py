"""Deleting a model: what would go is told first, and goes to the trash only."""

import dataclasses
from collections.abc import Callable, Sequence

from PySide6.QtCore import QFile, QObject, Signal

from app.link.client import RuntimeClient
from app.state.folders import same_folder
from app.state.library import LibraryState
from app.state.library_search import LibrarySearch
from app.state.session import Session
from runtime.protocol.messages import ModelWeighed, Reply, WeighModel
from runtime.protocol.model import PreparedCopy
from runtime.protocol.search import FolderWeight

MoveToTrash = Callable[[str], bool]
"""Moves a folder or link to the trash; returns whether it did."""


def move_to_trash(path: str) -> bool:
    """Move to the trash of the drive that a folder or link lies on, if that has one."""
    return bool(QFile.moveToTrash(path))


@dataclasses.dataclass(frozen=True, slots=True)
class Removal:
    """What can be deleted of a model, for a person to choose from."""

    folder: str
    """The model in the list."""
    name: str
    weight: FolderWeight
    copies: tuple[PreparedCopy, ...]
    links: tuple[str, ...] = ()
    """Other paths that lead to the model, and to nothing once it is gone."""
    real_folder: str = ""
    """Where it really lies, if links lead to it by its path in the list."""


@dataclasses.dataclass(frozen=True, slots=True)
class RemovalResult:
    """What came of it."""

    name: str
    num_bytes: int
    """What is free once the trash is emptied."""
    refused: tuple[str, ...]
    """What could not be moved and is still there."""


class ModelRemoval(QObject):
    """Asks the runtime what would go, and moves what the person chose to the trash.

    The trash of a drive lies on the drive itself, so that moving is a renaming. Nothing is ever
    deleted for good. Threads: window thread.
    """

    weighed = Signal(object)
    """A ``Removal``: ask the person."""
    ended = Signal(object)
    """A ``RemovalResult``."""

    def __init__(
        self,
        client: RuntimeClient,
        session: Session,
        library: LibraryState,
        search: LibrarySearch,
        move_to_trash: MoveToTrash = move_to_trash,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._client = client
        self._session = session
        self._library = library
        self._search = search
        self._move_to_trash = move_to_trash

    def can_remove(self, folder: str) -> bool:
        """Whether a model may be deleted: neither the demo, nor loaded, nor being loaded."""
        session = self._session
        loaded = session.loaded.folder if session.loaded is not None else ""
        in_use = (self._library.demo_folder, loaded, session.loading_folder)
        return not any(self._library.is_same(folder, each) for each in in_use if each)

    def ask(self, folder: str) -> None:
        """Find out what would go; ``weighed`` tells it, unless the runtime ends before."""
        if self.can_remove(folder):
            self._client.send(
                lambda request_id: WeighModel(request_id=request_id, folder=folder),
                lambda event: self._on_reply(folder, event),
            )

    def carry_out(
        self, removal: Removal, *, is_model_wanted: bool, copies: Sequence[PreparedCopy]
    ) -> None:
        """Move the model, these copies, or both to the trash; what is in use now stays."""
        if not self.can_remove(removal.folder):
            return
        num_bytes = 0
        refused: list[str] = []
        for copy in copies:
            if self._move_to_trash(copy.folder):
                num_bytes += copy.size_bytes
            else:
                refused.append(copy.folder)
        if is_model_wanted and removal.weight.obstacle is None:
            weight = removal.weight
            files = weight.files or [weight.folder]
            kept = [each for each in files if not self._move_to_trash(each)]
            refused += kept
            if not kept:
                num_bytes += weight.num_bytes
                self._library.remove(removal.folder)
                self._close_candidate(removal.folder)
        if self._library.report_of(removal.folder) is not None:
            self._search.look_at(removal.folder)
        self.ended.emit(RemovalResult(removal.name, num_bytes, tuple(refused)))

    def _on_reply(self, folder: str, event: Reply) -> None:
        known = (model for model in self._library.models if same_folder(model.folder, folder))
        model = next(known, None)
        if isinstance(event, ModelWeighed) and model is not None:
            copies = tuple(model.report.prepared) if model.report is not None else ()
            real_folder = model.report.real_folder if model.report is not None else ""
            removal = Removal(
                folder, model.name, event.weight, copies, model.links, real_folder=real_folder
            )
            self.weighed.emit(removal)

    def _close_candidate(self, folder: str) -> None:
        """Look no more at what is gone."""
        candidate = self._session.candidate
        report = candidate.report if candidate is not None else None
        if report is not None and same_folder(report.folder, folder):
            self._session.close_candidate()
