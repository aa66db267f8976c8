"""The downloads: a queue that outlasts the program, one running at a time."""

import dataclasses
import enum
from pathlib import Path

import msgspec
from PySide6.QtCore import QObject, Signal

from app.state.answer_flow import ignore
from app.state.hub_link import Asked, HubLink
from app.state.json_file import pretty, write_whole
from app.state.settings import SettingsState
from app.timers import single_shot
from runtime.protocol.errors import ErrorCode, ErrorReport
from runtime.protocol.hub import HubCard
from runtime.protocol.hub_messages import (
    DiscardDownload,
    DownloadModel,
    DownloadPaused,
    DownloadProgressed,
    ModelDownloaded,
)
from runtime.protocol.messages import CommandFailed, Reply

RETRY_MS = 30_000
"""After this time a download whose hub could not be reached is tried again."""
STALL_MS = 3000
"""When nothing was told for so long, no rate is shown."""
MAX_RETRIES = 20
"""In a row; after them a person has to ask for it."""
_PASSING = (ErrorCode.HUB_UNREACHABLE, ErrorCode.RUNTIME_ENDED)


def download_key(model_id: str, variant: str) -> str:
    """Return what tells a download from others; no model's name has that sign in it."""
    return f"{model_id}@{variant}" if variant else model_id


class DownloadStage(enum.StrEnum):
    """Where one download is."""

    WAITING = "waiting"
    RUNNING = "running"
    PAUSING = "pausing"
    PAUSED = "paused"
    FAILED = "failed"
    DONE = "done"


_GOING_ON = (DownloadStage.WAITING, DownloadStage.RUNNING)


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """What the file of downloads has of each."""

    model_id: str
    revision: str
    root: str
    total_bytes: int = 0
    done_bytes: int = 0
    is_paused: bool = False
    variant: str = ""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class DownloadItem:
    """One download as it is shown."""

    model_id: str
    revision: str
    root: str
    """The place below which it goes."""
    stage: DownloadStage = DownloadStage.WAITING
    done_bytes: int = 0
    total_bytes: int = 0
    bytes_per_s: float = 0.0
    num_retries: int = 0
    """Failures in a row of the line, without a new byte."""
    error: ErrorReport | None = None
    folder: str = ""
    """Where it lies, once it is done."""
    variant: str = ""
    """Which of the models in GGUF of its page; empty for the one in safetensors."""

    @property
    def key(self) -> str:
        """What tells it from the other downloads."""
        return download_key(self.model_id, self.variant)

    @property
    def is_passing(self) -> bool:
        """Whether it failed for a reason that may be gone a while later."""
        return self.error is not None and self.error.code in _PASSING

    @property
    def seconds_left(self) -> float | None:
        """None while no rate is known."""
        if self.bytes_per_s <= 0:
            return None
        return max(self.total_bytes - self.done_bytes, 0) / self.bytes_per_s


class Downloads(QObject):
    """The queue; its changes are written at once. Threads: window thread."""

    changed = Signal()
    finished = Signal(object)
    """The ``DownloadItem`` that is done."""

    def __init__(self, path: Path, link: HubLink, settings: SettingsState) -> None:
        super().__init__(link)
        self._path = path
        self._link = link
        self._settings = settings
        self._items = {item.key: item for item in _read(path)}
        self._asked: Asked | None = None
        self._running = ""
        self._num_again = 0
        self._again = single_shot(self, RETRY_MS, self._on_retry_due)
        self._stall = single_shot(self, STALL_MS, self._on_stalled)
        link.lost.connect(self._on_lost)
        settings.changed.connect(self._on_settings_changed)

    @property
    def items(self) -> list[DownloadItem]:
        """All downloads, oldest first."""
        return list(self._items.values())

    def of(self, model_id: str, variant: str = "") -> DownloadItem | None:
        """Return the download of a model, if there is one."""
        return self._items.get(download_key(model_id, variant))

    def start(self) -> None:
        """Go on with what was not finished when the program ended."""
        self._begin()

    def close(self) -> None:
        """Write what is to go on at the next start, before the runtime for hubs is ended."""
        self._link.lost.disconnect(self._on_lost)
        self._again.stop()
        self._stall.stop()
        _write(self._path, self.items)

    def add(self, card: HubCard, root: str) -> None:
        """Download what a person looked at; what is there of it is used."""
        item = DownloadItem(
            model_id=card.model_id,
            revision=card.revision,
            root=root,
            done_bytes=card.kept_bytes,
            total_bytes=card.size_bytes,
            variant=card.variant,
        )
        self._items[item.key] = item
        self._changed_queue()

    def pause(self, key: str) -> None:
        """Stop for now; what came is kept."""
        item = self._items[key]
        if key == self._running:
            self._stop_running(item)
        else:
            self._replace(item, stage=DownloadStage.PAUSED)
        self._changed_queue()

    def resume(self, key: str) -> None:
        """Go on."""
        self._num_again = 0
        self._replace(self._items[key], stage=DownloadStage.WAITING, error=None)
        self._changed_queue()

    def remove(self, key: str) -> None:
        """Take off the list; of what is not done, delete what came."""
        item = self._items[key]
        if key == self._running:
            self._stop_running(item)
        del self._items[key]
        if item.stage is not DownloadStage.DONE:
            self._link.ask(
                lambda request_id: DiscardDownload(
                    request_id=request_id,
                    model_id=item.model_id,
                    folder=item.root,
                    variant=item.variant,
                ),
                # What came is gone, or stays hidden until the next download of that model.
                ignore,
            )
        self._changed_queue()

    def _on_settings_changed(self) -> None:
        """Begin what waits once hubs may be asked, and stop when they may not."""
        item = self._items.get(self._running)
        if item is None:
            self._begin()
        elif item.stage is DownloadStage.RUNNING and not self._settings.values.is_hub_allowed:
            self.pause(item.key)

    def _stop_running(self, item: DownloadItem) -> None:
        if self._asked is not None and self._link.cancel(self._asked):
            self._replace(item, stage=DownloadStage.PAUSING, bytes_per_s=0.0)
        else:
            self._end()
            self._replace(item, stage=DownloadStage.PAUSED)

    def _begin(self) -> None:
        """Start the next that waits, unless one runs or the person does not allow it."""
        waiting = [item for item in self.items if item.stage is DownloadStage.WAITING]
        if self._running or not waiting or not self._settings.values.is_hub_allowed:
            return
        item = waiting[0]
        endpoint = self._settings.values.hub_address
        self._running = item.key
        self._replace(item, stage=DownloadStage.RUNNING)
        self._asked = self._link.ask(
            lambda request_id: DownloadModel(
                request_id=request_id,
                model_id=item.model_id,
                revision=item.revision,
                endpoint=endpoint,
                folder=item.root,
                variant=item.variant,
            ),
            self._on_reply,
        )
        self.changed.emit()

    def _on_reply(self, event: Reply) -> None:
        item = self._items.get(self._running)
        if isinstance(event, DownloadProgressed):
            if item is not None and item.stage is DownloadStage.RUNNING:
                self._on_progress(item, event)
            return
        self._end()
        if item is not None:
            self._on_closed(item, event)
        self._changed_queue()

    def _on_progress(self, item: DownloadItem, event: DownloadProgressed) -> None:
        if event.done_bytes > item.done_bytes:
            self._num_again = 0
        self._replace(
            item,
            done_bytes=event.done_bytes,
            total_bytes=event.total_bytes,
            bytes_per_s=event.bytes_per_s,
            num_retries=event.num_retries,
        )
        self._stall.start()
        self.changed.emit()

    def _on_stalled(self) -> None:
        """Show no rate while nothing comes."""
        item = self._items.get(self._running)
        if item is not None:
            self._replace(item, bytes_per_s=0.0)
            self.changed.emit()

    def _on_closed(self, item: DownloadItem, event: Reply) -> None:
        item = dataclasses.replace(item, bytes_per_s=0.0, num_retries=0)
        if isinstance(event, ModelDownloaded):
            done = self._replace(
                item,
                stage=DownloadStage.DONE,
                folder=event.folder,
                done_bytes=event.size_bytes,
                total_bytes=event.size_bytes,
            )
            self.finished.emit(done)
        elif isinstance(event, DownloadPaused):
            # One that was resumed meanwhile waits for its turn.
            is_waiting = item.stage is DownloadStage.WAITING
            stage = DownloadStage.WAITING if is_waiting else DownloadStage.PAUSED
            self._replace(item, stage=stage, done_bytes=event.kept_bytes)
        elif isinstance(event, CommandFailed):
            self._fail(item, event.error)

    def _fail(self, item: DownloadItem, error: ErrorReport) -> None:
        failed = self._replace(item, stage=DownloadStage.FAILED, error=error)
        if failed.is_passing and self._num_again < MAX_RETRIES:
            self._num_again += 1
            self._again.start()

    def _on_retry_due(self) -> None:
        """Try again what failed for a reason that passes."""
        for item in self.items:
            if item.is_passing:
                self._replace(item, stage=DownloadStage.WAITING, error=None)
        self._changed_queue()

    def _on_lost(self, error: ErrorReport | None) -> None:
        item = self._items.get(self._running)
        self._end()
        if item is None:
            return
        if item.stage is DownloadStage.PAUSING or error is None:
            self._replace(item, stage=DownloadStage.PAUSED, bytes_per_s=0.0)
        else:
            self._fail(dataclasses.replace(item, bytes_per_s=0.0), error)
        self._changed_queue()

    def _end(self) -> None:
        self._stall.stop()
        self._running, self._asked = "", None

    def _replace(self, item: DownloadItem, **changes: object) -> DownloadItem:
        changed: DownloadItem = dataclasses.replace(item, **changes)  # type: ignore[arg-type]
        self._items[item.key] = changed
        return changed

    def _changed_queue(self) -> None:
        """Begin the next, write the list, tell."""
        self._begin()
        _write(self._path, self.items)
        self.changed.emit()


def _read(path: Path) -> list[DownloadItem]:
    """Return the downloads that were not finished; of a file that cannot be read, none."""
    try:
        kept = msgspec.json.decode(path.read_bytes(), type=list[Kept])
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return []
    return [
        DownloadItem(
            model_id=each.model_id,
            revision=each.revision,
            root=each.root,
            total_bytes=each.total_bytes,
            done_bytes=each.done_bytes,
            variant=each.variant,
            stage=DownloadStage.PAUSED if each.is_paused else DownloadStage.WAITING,
        )
        for each in kept
    ]


def _write(path: Path, items: list[DownloadItem]) -> None:
    """Write what is not done; a list that cannot be written lasts as long as the program."""
    kept = [
        Kept(
            model_id=item.model_id,
            revision=item.revision,
            root=item.root,
            total_bytes=item.total_bytes,
            done_bytes=item.done_bytes,
            variant=item.variant,
            is_paused=not (item.stage in _GOING_ON or item.is_passing),
        )
        for item in items
        if item.stage is not DownloadStage.DONE
    ]
    try:
        write_whole(path, pretty(kept))
    except OSError:
        return
