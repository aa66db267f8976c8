"""Newer versions of the program: looked for when that is allowed, fetched and put in place."""

import contextlib
import enum
import os
import shutil
import threading
from pathlib import Path

from PySide6.QtCore import Signal

from app.state.hub_link import HubLink
from app.state.hub_work import HubWork
from app.state.json_file import pretty, write_whole
from app.state.package import (
    Package,
    PackageKind,
    Replaced,
    read_replaced,
    replaced_file,
)
from app.state.settings import SettingsState
from runtime.protocol.errors import ErrorCode, ErrorReport, Severity
from runtime.protocol.messages import CommandFailed, Reply
from runtime.protocol.update_messages import (
    CheckForUpdate,
    FetchUpdate,
    ProgramUpdate,
    UpdateChecked,
    UpdateFetched,
)

BESIDE = ".larder-update"
"""The folder beside an AppImage into which a newer one is fetched."""


class UpdateStage(enum.StrEnum):
    """Where a newer version is."""

    IDLE = "idle"
    """Nobody looked yet."""
    LOOKING = "looking"
    NEWEST = "newest"
    """There is none."""
    FOUND = "found"
    FETCHING = "fetching"
    FETCHED = "fetched"
    """The file is here; the system's own program installs it."""
    READY = "ready"
    """In place: it runs from the next start on."""
    FAILED = "failed"


class Updates(HubWork[UpdateStage]):
    """The newer version, if there is one. Threads: window thread."""

    found = Signal(object)
    """A ``ProgramUpdate`` that nobody had asked for just now."""

    def __init__(
        self,
        link: HubLink,
        settings: SettingsState,
        package: Package | None,
        version: str,
        data: Path,
    ) -> None:
        super().__init__(link, UpdateStage.IDLE, UpdateStage.FAILED)
        self._settings = settings
        self._package = package
        self._version = version
        self._record = replaced_file(data)
        self._downloads = data / "updates"
        self._is_wanted = False
        self._removing: threading.Thread | None = None
        self.update: ProgramUpdate | None = None
        self.file = ""
        """Where the fetched file lies."""

    @property
    def package(self) -> Package | None:
        """What is installed; None where the program runs from its source."""
        return self._package

    @property
    def can_look(self) -> bool:
        """Whether there is a place to look at."""
        return self._package is not None and self._package.can_look

    @property
    def is_busy(self) -> bool:
        """Whether something is being asked or fetched."""
        return self.stage in (UpdateStage.LOOKING, UpdateStage.FETCHING)

    def begin(self) -> None:
        """Once the window is on the screen: let go of the version before, and look if allowed."""
        self._let_go()
        if self._settings.values.is_update_allowed and self.can_look:
            self._look()

    def look(self) -> None:
        """Look because a person asks for it."""
        self._is_wanted = True
        self._look()

    def fetch(self) -> None:
        """Bring the version that was found."""
        package, update = self._package, self.update
        if package is None or update is None or self.is_busy:
            return
        self._set(UpdateStage.FETCHING)
        self.done_bytes = 0
        folder = self._downloads
        if package.kind is PackageKind.APPIMAGE:
            # Beside the old one, so that it can take its place in one step.
            folder = package.place.parent / BESIDE
        unpack_to = str(package.place) if package.kind is PackageKind.FOLDER else ""
        self._asked = self._link.ask(
            lambda request_id: FetchUpdate(
                request_id=request_id,
                address=package.address,
                update=update,
                folder=str(folder),
                unpack_beside=unpack_to,
            ),
            self._on_fetch_reply,
        )

    def close(self) -> None:
        """Wait until the version before is gone, at the end of the program."""
        if self._removing is not None:
            self._removing.join()

    def _look(self) -> None:
        package = self._package
        if package is None or not package.can_look or self.is_busy:
            return
        self._set(UpdateStage.LOOKING)
        self._asked = self._link.ask(
            lambda request_id: CheckForUpdate(
                request_id=request_id,
                address=package.address,
                key=package.key,
                version=self._version,
                package=package.name,
            ),
            self._on_look_reply,
        )

    def _on_look_reply(self, event: Reply) -> None:
        self._asked = None
        if isinstance(event, CommandFailed):
            self._fail(event.error)
            return
        if not isinstance(event, UpdateChecked):
            self._set(UpdateStage.IDLE)
            return
        self.update = event.update
        self._set(UpdateStage.NEWEST if event.update is None else UpdateStage.FOUND)
        if event.update is not None and not self._is_wanted:
            self.found.emit(event.update)
        self._is_wanted = False

    @property
    def _resting(self) -> UpdateStage:
        return UpdateStage.FOUND if self.update is not None else UpdateStage.IDLE

    @property
    def _lost(self) -> UpdateStage:
        return UpdateStage.IDLE

    def _on_fetched(self, event: Reply) -> None:
        if isinstance(event, UpdateFetched):
            self._put_in_place(event.path)

    def _put_in_place(self, path: str) -> None:
        """Have the next start be of the new version, where that is ours to do."""
        package, update = self._package, self.update
        assert package is not None
        assert update is not None
        self.file = path
        previous = str(package.previous) if package.keeps_previous else ""
        record = Replaced(version=update.version, previous=previous)
        try:
            # Told first: what is kept for nobody would never go, nor what was fetched.
            write_whole(self._record, pretty(record))
            if package.kind is PackageKind.APPIMAGE:
                _replace_file(Path(path), package)
        except OSError as error:
            self._fail(_not_replaced(package, error))
            return
        self._set(UpdateStage.READY if package.is_replaced_by_us else UpdateStage.FETCHED)

    def _let_go(self) -> None:
        """Delete what was fetched and the version before, now that the new one has started."""
        package = self._package
        if package is None:
            return
        # Beside Windows' installer this very start is that of the new version: the one before would
        # run from its folder.
        is_over = package.kind is PackageKind.SETUP and package.previous.exists()
        record = read_replaced(self._record)
        if record is not None and record.version == self._version:
            self._record.unlink(missing_ok=True)
            shutil.rmtree(self._downloads, ignore_errors=True)
            is_over = is_over or record.previous == str(package.previous)
        if is_over:
            self._start_removing(package.previous)

    def _start_removing(self, path: Path) -> None:
        """Delete without holding the window up."""
        self._removing = threading.Thread(target=_remove, args=(path,))
        self._removing.start()

    def _fail(self, error: ErrorReport) -> None:
        self._is_wanted = False
        super()._fail(error)


def _replace_file(fresh: Path, package: Package) -> None:
    """Put a file in the place of the old one, which is kept; raises ``OSError``."""
    fresh.chmod(0o755)
    package.previous.unlink(missing_ok=True)
    try:
        os.link(package.place, package.previous)
    except OSError:
        # Not every drive knows a second name for a file.
        shutil.copy2(package.place, package.previous)
    fresh.replace(package.place)
    shutil.rmtree(fresh.parent, ignore_errors=True)


def _remove(path: Path) -> None:
    """Delete a file or folder as far as that can be done."""
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with contextlib.suppress(OSError):
            path.unlink()


def _not_replaced(package: Package, error: OSError) -> ErrorReport:
    """Tell that the new version could not be put in place; the old one still runs."""
    return ErrorReport(
        code=ErrorCode.DISK_NOT_WRITABLE,
        severity=Severity.REQUEST,
        parameters={
            "folder": str(package.place.parent),
            "reason": error.strerror or str(error),
        },
    )
