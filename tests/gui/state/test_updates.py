"""Newer versions: asked for only when allowed, put in place without losing the one that works."""

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QCoreApplication

from app.state.hub_link import HubLink
from app.state.package import (
    Package,
    PackageKind,
    Replaced,
    read_package,
    read_replaced,
    replaced_file,
)
from app.state.settings import SettingsState
from app.state.updates import Updates, UpdateStage
from runtime.protocol.errors import ErrorCode, ErrorReport, Severity
from runtime.protocol.hub_messages import DownloadPaused, DownloadProgressed, HubCancelled
from runtime.protocol.messages import CancelRequest, CommandFailed
from runtime.protocol.update_messages import (
    CheckForUpdate,
    FetchUpdate,
    ProgramUpdate,
    UpdateChecked,
    UpdateFetched,
)
from tests.support.fake_client import FakeClient

UPDATE = ProgramUpdate(
    version="0.2.0", notes="More models.", file="larder-0.2.0", size_bytes=100, sha256="0" * 64
)
ERROR = ErrorReport(code=ErrorCode.UPDATE_UNREACHABLE, severity=Severity.REQUEST)


class Stage:
    """An installed program with its updates, on a runtime that the test plays."""

    def __init__(self, folder: Path, kind: PackageKind | None, version: str = "0.1.0") -> None:
        self.client = FakeClient()
        self.settings = SettingsState(folder / "settings.json")
        self.link = HubLink(self.client)
        self.data = folder / "data"
        self.place = folder / "программа" / "larder"
        if not self.place.parent.exists():
            self.place.parent.mkdir()
            self.place.write_text("old")
        package = None
        if kind is not None:
            package = Package(
                kind=kind, place=self.place, system="linux", address="https://v.example", key="AAAA"
            )
        self.updates = Updates(self.link, self.settings, package, version, self.data)
        self.told: list[ProgramUpdate] = []
        self.updates.found.connect(self.told.append)

    def find(self) -> None:
        """Have a newer version found."""
        self.updates.look()
        self.client.open()
        asked = self.client.last(CheckForUpdate).request_id
        self.client.answer(UpdateChecked(request_id=asked, update=UPDATE))

    def fetch(self) -> int:
        """Begin to fetch it; return the request."""
        self.find()
        self.updates.fetch()
        return self.client.last(FetchUpdate).request_id

    def arrive(self) -> Path:
        """Have the file come; return where it lies."""
        request_id = self.fetch()
        folder = Path(self.client.last(FetchUpdate).folder)
        folder.mkdir(parents=True)
        path = folder / UPDATE.file
        path.write_text("new")
        self.client.answer(UpdateFetched(request_id=request_id, path=str(path)))
        return path


@pytest.fixture
def stage(tmp_path: Path, qapp: QCoreApplication) -> Iterator[Stage]:
    made = Stage(tmp_path, PackageKind.APPIMAGE)
    yield made
    made.updates.close()


def test_nothing_is_asked_at_the_start_unless_the_person_allowed_it(stage: Stage) -> None:
    stage.updates.begin()
    assert stage.client.num_starts == 0
    stage.settings.change(is_update_allowed=True)
    stage.updates.begin()
    stage.client.open()
    asked = stage.client.last(CheckForUpdate)
    assert (asked.address, asked.key, asked.version, asked.package) == (
        "https://v.example", "AAAA", "0.1.0", "linux-appimage",
    )  # fmt: skip
    stage.client.answer(UpdateChecked(request_id=asked.request_id, update=UPDATE))
    assert stage.told == [UPDATE]
    assert stage.updates.stage is UpdateStage.FOUND


def test_program_from_its_source_asks_nobody(tmp_path: Path, qapp: QCoreApplication) -> None:
    made = Stage(tmp_path, None)
    made.settings.change(is_update_allowed=True)
    made.updates.begin()
    made.updates.look()
    made.updates.fetch()
    assert made.client.num_starts == 0
    assert not made.updates.can_look
    assert made.updates.package is None


def test_what_a_person_asked_for_is_shown_and_not_announced(stage: Stage) -> None:
    stage.find()
    assert stage.told == []
    assert stage.updates.update == UPDATE


def test_newest_version_is_told(stage: Stage) -> None:
    stage.updates.look()
    stage.client.open()
    assert stage.updates.is_busy
    stage.updates.look()
    assert stage.client.count(CheckForUpdate) == 1
    asked = stage.client.last(CheckForUpdate).request_id
    stage.client.answer(UpdateChecked(request_id=asked))
    assert stage.updates.stage is UpdateStage.NEWEST


def test_failure_is_told_and_looking_again_is_possible(stage: Stage) -> None:
    stage.updates.look()
    stage.client.open()
    asked = stage.client.last(CheckForUpdate).request_id
    stage.client.answer(CommandFailed(request_id=asked, error=ERROR))
    assert (stage.updates.stage, stage.updates.error) == (UpdateStage.FAILED, ERROR)
    stage.updates.look()
    assert (stage.updates.stage, stage.updates.error) == (UpdateStage.LOOKING, None)


def test_looking_that_is_stopped_changes_nothing(stage: Stage) -> None:
    stage.updates.stop()
    stage.updates.look()
    stage.updates.stop()
    assert stage.updates.stage is UpdateStage.IDLE
    stage.updates.look()
    stage.client.open()
    asked = stage.client.last(CheckForUpdate).request_id
    stage.updates.stop()
    assert stage.client.last(CancelRequest).target_request_id == asked
    stage.client.answer(HubCancelled(request_id=asked))
    assert stage.updates.stage is UpdateStage.IDLE


def test_progress_is_shown_and_a_stopped_download_can_be_taken_up(stage: Stage) -> None:
    request_id = stage.fetch()
    stage.client.answer(
        DownloadProgressed(request_id=request_id, done_bytes=7, total_bytes=100, bytes_per_s=1.0)
    )
    assert stage.updates.done_bytes == 7
    stage.updates.stop()
    stage.client.answer(DownloadPaused(request_id=request_id, kept_bytes=7))
    assert stage.updates.stage is UpdateStage.FOUND
    stage.updates.fetch()
    assert stage.client.count(FetchUpdate) == 2


def test_fetching_that_was_never_sent_is_stopped_at_once(stage: Stage) -> None:
    stage.find()
    stage.client.end_now()
    stage.updates.fetch()
    stage.updates.stop()
    assert stage.updates.stage is UpdateStage.FOUND


def test_failed_download_is_told(stage: Stage) -> None:
    request_id = stage.fetch()
    stage.client.answer(CommandFailed(request_id=request_id, error=ERROR))
    assert stage.updates.stage is UpdateStage.FAILED


def test_event_of_another_kind_ends_a_download_quietly(stage: Stage) -> None:
    request_id = stage.fetch()
    stage.client.answer(HubCancelled(request_id=request_id))
    assert stage.updates.file == ""


def test_runtime_that_ends_is_no_answer(stage: Stage) -> None:
    stage.link.lost.emit(ERROR)
    assert stage.updates.stage is UpdateStage.IDLE
    stage.updates.look()
    stage.link.lost.emit(None)
    assert stage.updates.stage is UpdateStage.IDLE
    stage.updates.look()
    stage.link.lost.emit(ERROR)
    assert stage.updates.error == ERROR


@pytest.mark.parametrize("data", [b"", b"{", b'{"a":' * 50_000], ids=["empty", "cut", "deep"])
def test_notes_of_an_update_that_cannot_be_read_are_none(tmp_path: Path, data: bytes) -> None:
    replaced_file(tmp_path).write_bytes(data)
    assert read_replaced(replaced_file(tmp_path)) is None


def test_appimage_takes_the_place_of_the_old_one_which_is_kept(stage: Stage) -> None:
    path = stage.arrive()
    assert stage.updates.stage is UpdateStage.READY
    assert stage.place.read_text() == "new"
    assert os.access(stage.place, os.X_OK)
    kept = stage.place.with_name("larder.previous")
    assert kept.read_text() == "old"
    assert read_replaced(replaced_file(stage.data)) == Replaced(version="0.2.0", previous=str(kept))
    assert not path.parent.exists()


def test_drive_without_second_names_keeps_a_copy(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EPERM, "not here")

    monkeypatch.setattr("app.state.updates.os.link", refuse)
    stage.arrive()
    assert stage.place.with_name("larder.previous").read_text() == "old"
    assert stage.place.read_text() == "new"


def test_place_that_cannot_be_changed_keeps_the_old_version(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr("app.state.updates._replace_file", refuse)
    stage.arrive()
    assert stage.updates.error is not None
    assert stage.updates.error.code is ErrorCode.DISK_NOT_WRITABLE
    assert stage.updates.error.parameters["reason"] == "Read-only file system"
    assert stage.place.read_text() == "old"


@pytest.mark.parametrize("kind", [PackageKind.DEB, PackageKind.SETUP])
def test_systems_own_packages_are_fetched_and_left_to_it(
    tmp_path: Path, qapp: QCoreApplication, kind: PackageKind
) -> None:
    made = Stage(tmp_path, kind)
    path = made.arrive()
    assert made.updates.stage is UpdateStage.FETCHED
    assert made.updates.file == str(path)
    assert path.parent == made.data / "updates"
    assert made.place.read_text() == "old"


@pytest.mark.parametrize("kind", [PackageKind.DEB, PackageKind.SETUP])
def test_fetched_package_goes_once_its_version_has_started(
    tmp_path: Path, qapp: QCoreApplication, kind: PackageKind
) -> None:
    path = Stage(tmp_path, kind).arrive()
    chats = tmp_path / "data" / "chats.db"
    chats.write_text("mine")
    old = Stage(tmp_path, kind)
    old.updates.begin()
    old.updates.close()
    assert path.exists()
    new = Stage(tmp_path, kind, version="0.2.0")
    new.updates.begin()
    new.updates.close()
    assert not path.exists()
    assert not replaced_file(new.data).exists()
    assert new.place.read_text() == "old"
    assert chats.read_text() == "mine"


def test_folder_is_unpacked_beside_and_changed_when_the_program_closes(
    tmp_path: Path, qapp: QCoreApplication
) -> None:
    made = Stage(tmp_path, PackageKind.FOLDER)
    made.arrive()
    assert made.client.last(FetchUpdate).unpack_beside == str(made.place)
    assert made.updates.stage is UpdateStage.READY
    assert made.place.read_text() == "old"
    assert replaced_file(made.data).exists()


@pytest.mark.parametrize("is_folder", [False, True])
def test_version_before_goes_once_the_new_one_has_started_and_nothing_else_does(
    tmp_path: Path, qapp: QCoreApplication, is_folder: bool
) -> None:
    Stage(tmp_path, PackageKind.APPIMAGE).arrive()
    kept = tmp_path / "программа" / "larder.previous"
    if is_folder:
        kept.unlink()
        (kept / "python").mkdir(parents=True)
    own = {tmp_path / "data" / name: name for name in ("chats.db", "library.json")}
    own |= {tmp_path / "data" / "models" / "a.gguf": "weights", tmp_path / "settings.json": "{}"}
    for path, text in own.items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    old = Stage(tmp_path, PackageKind.APPIMAGE)
    old.updates.begin()
    old.updates.close()
    assert kept.exists()
    new = Stage(tmp_path, PackageKind.APPIMAGE, version="0.2.0")
    new.updates.begin()
    new.updates.close()
    assert not kept.exists()
    assert not replaced_file(new.data).exists()
    assert {path: path.read_text() for path in own} == own


def test_version_that_windows_installer_put_aside_goes_at_the_first_start(
    tmp_path: Path, qapp: QCoreApplication
) -> None:
    made = Stage(tmp_path, PackageKind.SETUP)
    made.place.unlink()
    aside = made.place / "previous"
    (aside / "python").mkdir(parents=True)
    made.updates.begin()
    made.updates.close()
    assert not aside.exists()
    assert made.place.exists()


def test_record_that_names_another_place_deletes_nothing(
    tmp_path: Path, qapp: QCoreApplication
) -> None:
    made = Stage(tmp_path, PackageKind.APPIMAGE, version="0.2.0")
    treasure = tmp_path / "treasure"
    treasure.write_text("mine")
    made.data.mkdir()
    replaced_file(made.data).write_text(
        f'{{"version": "0.2.0", "previous": "{treasure.as_posix()}"}}'
    )
    made.updates.begin()
    made.updates.close()
    assert treasure.read_text() == "mine"


MARKER = '{"system": "%s", "root": "..", "address": "https://v.example", "key": "AAAA"}'


def test_package_is_known_by_what_its_recipe_wrote(tmp_path: Path) -> None:
    marker = tmp_path / "resources" / "package.json"
    assert read_package({}, marker) is None
    marker.parent.mkdir()
    marker.write_text(MARKER % "linux")
    folder = read_package({}, marker)
    assert folder is not None
    assert (folder.kind, folder.place, folder.name) == (
        PackageKind.FOLDER, tmp_path, "linux-folder",
    )  # fmt: skip
    file = tmp_path / "larder.AppImage"
    mounted = {"APPIMAGE": str(file), "APPDIR": str(tmp_path)}
    image = read_package(mounted, marker)
    assert image is not None
    assert (image.kind, image.place) == (PackageKind.APPIMAGE, file)
    assert image.is_replaced_by_us
    # Started by another program that is an AppImage itself.
    other = read_package({**mounted, "APPDIR": "/tmp/other"}, marker)
    assert other is not None
    assert other.kind is PackageKind.FOLDER
    marker.write_text(MARKER % "windows")
    windows = read_package({}, marker)
    assert windows is not None
    assert windows.kind is PackageKind.SETUP
    assert not windows.is_replaced_by_us
    assert windows.keeps_previous


def test_package_below_usr_is_the_systems(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    marker = tmp_path / "package.json"
    marker.write_text((MARKER % "linux").replace("..", "/usr/lib/larder"))
    found = read_package({}, marker)
    assert found is not None
    assert found.kind is PackageKind.DEB
    assert not found.keeps_previous
    assert found.previous == Path("/usr/lib/larder.previous")
