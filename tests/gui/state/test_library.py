"""The list of known models."""

from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from app.state import library as library_module
from app.state.library import LibraryState
from runtime.protocol.errors import ErrorCode
from runtime.protocol.messages import HeartbeatSent, ModelInspected, ModelLoaded, ModelPlanned
from tests.support.unnarrowed import now
from tests.support.window_values import (
    some_error,
    some_forecast,
    some_loaded,
    some_plan,
    some_report,
    some_tiers,
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "library.json"


def test_library_begins_with_the_demo(path: Path, tmp_path: Path, qtbot: QtBot) -> None:
    demo = tmp_path / "larder-demo"
    demo.mkdir()
    library = LibraryState(path, str(demo))
    (model,) = library.models
    assert library.demo_folder == str(demo)
    assert (model.name, model.is_demo, model.is_missing) == ("larder-demo", True, False)
    assert model.report is None
    assert LibraryState(path).models == []


def test_library_keeps_report_plan_rate_and_placement(path: Path, qtbot: QtBot) -> None:
    library = LibraryState(path, "/demo")
    library.note(ModelInspected(request_id=1, report=some_report("/models/a", "A")))
    library.note(
        ModelPlanned(request_id=2, report=some_report("/models/b", "B"), plans=[], recommended=None)
    )
    library.note_plan(some_plan(folder="/models/b", forecast=some_forecast(3.0, 4.0)))
    library.note_plan(some_plan(folder="/models/a"))
    library.note(ModelLoaded(request_id=3, model=some_loaded("/models/c")))
    library.note(HeartbeatSent(uptime_s=1.0))
    library.note_rate("/models/b/", 21.0)
    library.note_rate("/models/a", 0.0)
    again = LibraryState(path, "/demo")
    assert again.models == library.models
    demo, c, b, a = again.models
    assert [item.name for item in (demo, c, b, a)] == ["demo", "c", "B", "A"]
    assert (b.forecast_low, b.forecast_high, b.measured_tokens_per_s) == (3.0, 4.0, 21.0)
    assert a.measured_tokens_per_s == a.forecast_low == 0.0
    assert c.tiers == tuple(some_tiers())
    assert c.is_missing


@pytest.mark.parametrize(
    "code", [ErrorCode.NOT_A_MODEL, ErrorCode.FOLDER_NOT_FOUND, ErrorCode.SEVERAL_MODELS]
)
def test_folder_that_holds_no_model_is_not_listed_unless_it_was(
    path: Path, qtbot: QtBot, code: ErrorCode
) -> None:
    library = LibraryState(path)
    nothing = some_report("/notes.txt", "", (some_error(code),))
    library.note(ModelInspected(request_id=1, report=nothing))
    assert now(library.models) == []
    library.note(ModelInspected(request_id=2, report=some_report("/models/a", "A")))
    gone = some_report("/models/a", "", (some_error(code),))
    library.note(ModelInspected(request_id=3, report=gone))
    (model,) = now(library.models)
    assert model.report == gone


def test_library_told_the_same_again_does_not_change(path: Path, qtbot: QtBot) -> None:
    library = LibraryState(path)
    event = ModelInspected(request_id=1, report=some_report())
    library.note(event)
    with qtbot.assertNotEmitted(library.changed):
        library.note(event)


def test_library_refresh_sees_folders_come_and_go(path: Path, tmp_path: Path, qtbot: QtBot) -> None:
    folder = tmp_path / "model"
    library = LibraryState(path)
    library.note(ModelInspected(request_id=1, report=some_report(str(folder))))
    assert now(library.models[0].is_missing)
    folder.mkdir()
    with qtbot.waitSignal(library.changed):
        library.refresh()
    assert not now(library.models[0].is_missing)
    with qtbot.assertNotEmitted(library.changed):
        library.refresh()


def test_forgotten_folder_stays_forgotten(path: Path, qtbot: QtBot) -> None:
    library = LibraryState(path)
    library.note(ModelInspected(request_id=1, report=some_report()))
    library.forget(some_report().folder)
    assert library.models == []
    assert LibraryState(path).models == []


def test_damaged_list_begins_anew_and_is_kept(path: Path, tmp_path: Path, qtbot: QtBot) -> None:
    path.write_text('[{"folder": 5}]')
    assert LibraryState(path).models == []
    assert len(list(tmp_path.glob("library.damaged-*.json"))) == 1


def test_list_that_cannot_be_written_lasts_until_the_end(
    tmp_path: Path, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(30, "Read-only file system")

    path = tmp_path / "library.json"
    path.write_text("[{]")
    monkeypatch.setattr(library_module, "set_aside", refuse)
    monkeypatch.setattr(library_module, "write_whole", refuse)
    library = LibraryState(path)
    library.note(ModelInspected(request_id=1, report=some_report()))
    assert len(library.models) == 1
