"""The engine for graphics cards: offered where a card is left alone, and used from a start on."""

import errno
from pathlib import Path

import pytest
from PySide6.QtCore import QCoreApplication, QObject, Signal

from app.state.engine_folder import (
    EngineList,
    engine_folder,
    give_back,
    is_there,
    read_engine_list,
    take_engine,
)
from app.state.engine_parts import EngineParts, EngineStage, undriven_card
from app.state.hub_link import HubLink
from runtime.protocol.engine_messages import EngineFetched, EnginePart, FetchEngine
from runtime.protocol.errors import ErrorCode, ErrorReport, Severity
from runtime.protocol.hub_messages import DownloadPaused, DownloadProgressed, HubCancelled
from runtime.protocol.machine import DeviceReport, MachineReport
from runtime.protocol.messages import CommandFailed
from tests.support.fake_client import FakeClient
from tests.support.home_machines import HOMES

PART = EnginePart(file="torch.whl", url="https://w.example/t", size_bytes=70, sha256="0" * 64)
LISTED = EngineList(
    name="torch-2.13.0-cu130",
    source="w.example",
    parts=[PART, EnginePart(file="b.whl", url="https://w.example/b", size_bytes=30, sha256="1")],
)
ERROR = ErrorReport(code=ErrorCode.ENGINE_PARTS_UNREACHABLE, severity=Severity.REQUEST)
CARD = DeviceReport(device="cuda:0", name="A card", total_bytes=8 << 30, free_bytes=7 << 30)


def machine(*cards: DeviceReport) -> MachineReport:
    """A PC with these cards."""
    import msgspec

    return msgspec.structs.replace(HOMES["laptop-8"].machine(), devices=list(cards))


class Talk(QObject):
    """As much of a session as is listened to."""

    changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.machine: MachineReport | None = None

    def describe(self, found: MachineReport) -> None:
        self.machine = found
        self.changed.emit()


class Stage:
    """The engine of a packaged program, on a runtime that the test plays."""

    def __init__(self, data: Path, listed: EngineList | None = LISTED) -> None:
        self.client = FakeClient()
        self.session = Talk()
        self.link = HubLink(self.client)
        self.parts = EngineParts(self.link, self.session, listed, data)  # type: ignore[arg-type]
        self.told: list[str] = []
        self.parts.offered.connect(self.told.append)

    def offer(self) -> None:
        self.session.changed.emit()
        self.session.describe(machine(CARD))

    def fetch(self) -> int:
        self.offer()
        self.parts.fetch()
        self.client.open()
        return self.client.last(FetchEngine).request_id


@pytest.fixture
def stage(tmp_path: Path, qapp: QCoreApplication) -> Stage:
    return Stage(tmp_path)


def test_card_that_is_left_alone_has_the_engine_offered_once(stage: Stage) -> None:
    stage.offer()
    stage.offer()
    assert stage.told == ["A card"]
    assert stage.parts.stage is EngineStage.OFFERED
    assert stage.parts.listed is LISTED
    assert LISTED.size_bytes == 100


@pytest.mark.parametrize(
    "cards",
    [
        (),
        (DeviceReport(device="amd:0", name="Other", total_bytes=1, free_bytes=1),),
        (DeviceReport(device="cuda:0", name="Used", total_bytes=1, free_bytes=1, is_used=True),),
        (
            CARD,
            DeviceReport(device="cuda:1", name="Used", total_bytes=1, free_bytes=1, is_used=True),
        ),
        (
            DeviceReport(
                device="cuda:0", name="Simulated", total_bytes=1, free_bytes=1, is_simulated=True
            ),
        ),
    ],
)
def test_nothing_is_offered_where_it_would_change_nothing(
    stage: Stage, cards: tuple[DeviceReport, ...]
) -> None:
    stage.session.describe(machine(*cards))
    assert undriven_card(machine(*cards)) == ""
    assert stage.told == []
    assert stage.parts.stage is EngineStage.NOT_NEEDED


def test_program_without_a_list_offers_nothing(tmp_path: Path, qapp: QCoreApplication) -> None:
    made = Stage(tmp_path, None)
    made.offer()
    made.parts.fetch()
    assert made.told == []
    assert made.client.num_starts == 0


def test_engine_is_asked_for_with_its_parts_and_used_from_the_next_start_on(
    stage: Stage, tmp_path: Path
) -> None:
    request_id = stage.fetch()
    stage.parts.fetch()
    assert stage.client.count(FetchEngine) == 1
    asked = stage.client.last(FetchEngine)
    assert (asked.parts, asked.folder) == (LISTED.parts, str(engine_folder(tmp_path, LISTED)))
    stage.client.answer(
        DownloadProgressed(request_id=request_id, done_bytes=7, total_bytes=100, bytes_per_s=0)
    )
    assert stage.parts.done_bytes == 7
    stage.client.answer(
        EngineFetched(request_id=request_id, folder=asked.folder, version="2", card="Its name")
    )
    assert (stage.parts.stage, stage.parts.card) == (EngineStage.READY, "Its name")


def test_stopped_download_is_offered_again(stage: Stage) -> None:
    stage.parts.stop()
    request_id = stage.fetch()
    stage.parts.stop()
    stage.client.answer(DownloadPaused(request_id=request_id, kept_bytes=7))
    assert stage.parts.stage is EngineStage.OFFERED
    stage.client.end_now()
    stage.parts.fetch()
    stage.parts.stop()
    assert stage.parts.stage is EngineStage.OFFERED


def test_failures_are_told_and_can_be_tried_again(stage: Stage) -> None:
    request_id = stage.fetch()
    stage.client.answer(CommandFailed(request_id=request_id, error=ERROR))
    assert (stage.parts.stage, stage.parts.error) == (EngineStage.FAILED, ERROR)
    stage.parts.fetch()
    assert stage.parts.error is None
    stage.link.lost.emit(ERROR)
    assert stage.parts.stage is EngineStage.FAILED
    stage.link.lost.emit(ERROR)
    stage.parts.fetch()
    stage.link.lost.emit(None)
    assert stage.parts.stage is EngineStage.OFFERED


def test_event_of_another_kind_changes_nothing(stage: Stage) -> None:
    request_id = stage.fetch()
    stage.client.answer(HubCancelled(request_id=request_id))
    assert stage.parts.stage is EngineStage.FETCHING


def put_engine(data: Path, name: str = LISTED.name) -> Path:
    """An engine that was fetched."""
    folder = data / "engine" / name
    folder.mkdir(parents=True)
    (folder / ".ready").touch()
    return folder


def test_engine_is_found_by_every_process_of_the_next_start(
    tmp_path: Path, qapp: QCoreApplication
) -> None:
    environment: dict[str, str] = {}
    assert take_engine(tmp_path, LISTED, environment) == ""
    folder = put_engine(tmp_path)
    assert take_engine(tmp_path, LISTED, environment) == str(folder)
    assert environment == {"PYTHONPATH": str(folder)}
    assert Stage(tmp_path).parts.stage is EngineStage.READY


def test_engine_that_was_given_back_goes_at_the_next_start(
    tmp_path: Path, qapp: QCoreApplication
) -> None:
    folder = put_engine(tmp_path)
    made = Stage(tmp_path)
    made.parts.give_back()
    assert made.parts.stage is EngineStage.GIVEN_BACK
    assert folder.exists()
    assert not is_there(folder)
    environment: dict[str, str] = {}
    assert take_engine(tmp_path, LISTED, environment) == ""
    assert environment == {}
    assert not folder.exists()


def test_engine_that_cannot_be_given_back_is_told(
    tmp_path: Path, qapp: QCoreApplication, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_folder: Path) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    put_engine(tmp_path)
    monkeypatch.setattr("app.state.engine_parts.give_back", refuse)
    made = Stage(tmp_path)
    made.parts.give_back()
    assert made.parts.error is not None
    assert made.parts.error.parameters["reason"] == "Read-only file system"


def test_engine_of_another_version_goes_and_what_is_half_fetched_stays(tmp_path: Path) -> None:
    old = put_engine(tmp_path, "torch-2.12.0-cu130")
    half = tmp_path / "engine" / f"{LISTED.name}.parts"
    half.mkdir()
    assert take_engine(tmp_path, LISTED, {}) == ""
    assert not old.exists()
    assert half.exists()
    assert take_engine(tmp_path, None, {}) == ""
    assert not half.exists()


def test_list_is_read_as_the_recipe_wrote_it(tmp_path: Path) -> None:
    import msgspec

    path = tmp_path / "engine.json"
    assert read_engine_list(path) is None
    path.write_bytes(msgspec.json.encode(LISTED))
    assert read_engine_list(path) == LISTED
    path.write_bytes(msgspec.json.encode(msgspec.structs.replace(LISTED, name="../x")))
    assert read_engine_list(path) is None
    give_back(tmp_path)
    assert (tmp_path / ".unwanted").exists()
