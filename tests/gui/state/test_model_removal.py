"""Deleting a model: only after being told what goes, only to the trash, never what is in use."""

from pathlib import Path

import msgspec
import pytest
from pytestqt.qtbot import QtBot

from app.state.library import LibraryState
from app.state.library_search import LibrarySearch
from app.state.model_removal import ModelRemoval, Removal, RemovalResult, move_to_trash
from app.state.session import Session
from app.state.settings import SettingsState
from runtime.protocol.errors import ErrorCode
from runtime.protocol.messages import (
    CommandFailed,
    FindModels,
    ModelInspected,
    ModelWeighed,
    WeighModel,
)
from runtime.protocol.model import PreparedCopy
from runtime.protocol.search import DeletionObstacle, FolderWeight
from runtime.protocol.values import WeightFormat
from tests.support.fake_client import FakeClient
from tests.support.unnarrowed import now
from tests.support.window_values import FOLDER, some_error, some_report

COPY = PreparedCopy(folder="/prepared/8", expert_format=WeightFormat.Q8_G32, size_bytes=500)
WEIGHT = FolderWeight(folder="/models/other", num_bytes=1000, num_files=7)


class Remover:
    """A removal with a runtime that is played, and a trash that only remembers."""

    def __init__(self, client: FakeClient, settings: SettingsState, session: Session) -> None:
        self.client = client
        self.session = session
        self.library = session._library
        self.trash: list[str] = []
        self.is_trash_there = True
        self.stuck: set[str] = set()
        search = LibrarySearch(client, settings, self.library)
        self.removal = ModelRemoval(client, session, self.library, search, self.move)
        self.asked: list[Removal] = []
        self.results: list[RemovalResult] = []
        self.removal.weighed.connect(self.asked.append)
        self.removal.ended.connect(self.results.append)
        report = msgspec.structs.replace(some_report("/models/other", "other"), prepared=[COPY])
        self.library.note(ModelInspected(request_id=0, report=report))

    def move(self, path: str) -> bool:
        is_moved = self.is_trash_there and path not in self.stuck
        if is_moved:
            self.trash.append(path)
        return is_moved

    def ask(self, weight: FolderWeight = WEIGHT) -> Removal:
        self.removal.ask("/models/other")
        request_id = self.client.last(WeighModel).request_id
        self.client.answer(ModelWeighed(request_id=request_id, weight=weight))
        return self.asked[-1]


@pytest.fixture
def remover(client: FakeClient, settings: SettingsState, ready_session: Session) -> Remover:
    return Remover(client, settings, ready_session)


def test_removal_tells_what_would_go_and_moves_nothing_before(remover: Remover) -> None:
    assert remover.ask() == Removal("/models/other", "other", WEIGHT, (COPY,))
    assert remover.trash == []


def test_removal_moves_the_whole_and_forgets_it(remover: Remover) -> None:
    removal = remover.ask()
    remover.session.drop_folder("/models/other")
    report = some_report("/models/other", "other")
    request_id = remover.client.sent[-1].request_id
    remover.client.answer(ModelInspected(request_id=request_id, report=report))
    remover.removal.carry_out(removal, is_model_wanted=True, copies=removal.copies)
    assert remover.trash == ["/prepared/8", "/models/other"]
    assert remover.results == [RemovalResult("other", 1500, ())]
    assert [model.folder for model in remover.library.models] == [FOLDER]
    assert remover.session.candidate is None
    assert remover.client.count(FindModels) == 0


def test_removal_of_a_copy_alone_keeps_the_model_and_looks_at_it_anew(remover: Remover) -> None:
    removal = remover.ask()
    remover.session.drop_folder(FOLDER)
    remover.removal.carry_out(removal, is_model_wanted=False, copies=removal.copies)
    assert remover.trash == ["/prepared/8"]
    assert remover.client.last(FindModels).roots == ["/models/other"]
    assert remover.session.candidate is not None


def test_removal_that_the_trash_refuses_says_what_is_still_there(remover: Remover) -> None:
    removal = remover.ask()
    remover.is_trash_there = False
    remover.removal.carry_out(removal, is_model_wanted=True, copies=removal.copies)
    assert remover.results == [RemovalResult("other", 0, ("/prepared/8", "/models/other"))]
    assert len(remover.library.models) == 2


def test_removal_of_a_model_in_files_moves_each_and_tells_what_stays(remover: Remover) -> None:
    files = ["/models/other-1.gguf", "/models/other-2.gguf"]
    weight = FolderWeight(folder=files[0], files=files, num_bytes=1000, num_files=2)
    removal = remover.ask(weight)
    remover.stuck = {files[1]}
    remover.removal.carry_out(removal, is_model_wanted=True, copies=())
    assert remover.results == [RemovalResult("other", 0, (files[1],))]
    assert len(remover.library.models) == 2
    remover.stuck = set()
    remover.removal.carry_out(removal, is_model_wanted=True, copies=())
    assert remover.trash == [files[0], *files]
    assert remover.results[-1] == RemovalResult("other", 1000, ())
    assert len(remover.library.models) == 1


def test_removal_past_an_obstacle_takes_the_copies_alone(remover: Remover) -> None:
    weight = msgspec.structs.replace(WEIGHT, obstacle=DeletionObstacle.NOT_A_MODEL_ALONE)
    removal = remover.ask(weight)
    remover.removal.carry_out(removal, is_model_wanted=True, copies=removal.copies)
    assert remover.trash == ["/prepared/8"]


def test_removal_leaves_what_is_loaded_or_being_loaded(remover: Remover) -> None:
    assert not remover.removal.can_remove(FOLDER)
    remover.removal.ask(FOLDER)
    assert remover.client.count(WeighModel) == 0
    removal = remover.ask()
    remover.session.load_folder("/models/other")
    assert not now(remover.removal.can_remove("/models/other"))
    remover.removal.carry_out(removal, is_model_wanted=True, copies=removal.copies)
    assert remover.trash == []
    assert remover.results == []


def test_removal_leaves_the_demo(
    client: FakeClient, settings: SettingsState, tmp_path: Path
) -> None:
    library = LibraryState(tmp_path / "library.json", "/demo")
    session = Session(client, settings, library)
    search = LibrarySearch(client, settings, library)
    removal = ModelRemoval(client, session, library, search)
    assert not removal.can_remove("/demo")
    assert removal.can_remove("/models/other")


def test_removal_that_cannot_be_weighed_asks_nothing(remover: Remover) -> None:
    remover.removal.ask("/models/other")
    request_id = remover.client.last(WeighModel).request_id
    error = some_error(ErrorCode.INTERNAL)
    remover.client.answer(CommandFailed(request_id=request_id, error=error))
    remover.removal.ask("/models/gone")
    request_id = remover.client.last(WeighModel).request_id
    remover.client.answer(ModelWeighed(request_id=request_id, weight=WEIGHT))
    assert remover.asked == []


def test_removal_of_a_model_never_inspected_has_no_copies(remover: Remover) -> None:
    remover.library.note_rate("/models/fresh", 1.0)
    remover.removal.ask("/models/fresh")
    request_id = remover.client.last(WeighModel).request_id
    remover.client.answer(ModelWeighed(request_id=request_id, weight=WEIGHT))
    assert remover.asked[-1].copies == ()
    remover.removal.carry_out(remover.asked[-1], is_model_wanted=True, copies=())
    assert remover.results[-1].num_bytes == 1000


def test_trash_of_the_system_takes_a_whole_folder(
    tmp_path: Path, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tmp_path / "data"
    data.mkdir()
    monkeypatch.setenv("XDG_DATA_HOME", str(data))
    folder = tmp_path / "models" / "m"
    folder.mkdir(parents=True)
    (folder / "model.safetensors").write_text("x")
    assert move_to_trash(str(folder))
    assert not folder.exists()
    assert folder.parent.exists()


def test_model_that_is_loaded_by_a_link_cannot_be_deleted_where_it_lies(remover: Remover) -> None:
    report = msgspec.structs.replace(some_report(FOLDER), real_folder="/models/other")
    remover.library.note(ModelInspected(request_id=0, report=report))
    assert not remover.removal.can_remove("/models/other")
