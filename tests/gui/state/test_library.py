"""The list of known models."""

from pathlib import Path

import msgspec
import pytest
from pytestqt.qtbot import QtBot

from app.state import library_file
from app.state.library import LibraryState
from app.state.library_file import model_key
from runtime.protocol.errors import ErrorCode
from runtime.protocol.messages import (
    HeartbeatSent,
    ModelInspected,
    ModelLoaded,
    ModelPlanned,
)
from runtime.protocol.model import ModelReport
from runtime.protocol.plan import PlanKind
from runtime.protocol.search import RootState
from tests.support.unnarrowed import now
from tests.support.window_values import (
    some_error,
    some_forecast,
    some_loaded,
    some_plan,
    some_report,
    some_searched,
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
    assert not c.is_missing


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


def test_forgotten_folder_stays_forgotten(path: Path, qtbot: QtBot) -> None:
    library = LibraryState(path)
    library.note(ModelInspected(request_id=1, report=some_report()))
    library.forget(some_report().folder)
    assert library.models == []
    assert LibraryState(path).models == []


@pytest.mark.parametrize("text", ['[{"folder": 5}]', '[{"a":' * 50_000], ids=["wrong", "deep"])
def test_damaged_list_begins_anew_and_is_kept(
    path: Path, tmp_path: Path, qtbot: QtBot, text: str
) -> None:
    path.write_text(text)
    assert LibraryState(path).models == []
    assert len(list(tmp_path.glob("library.damaged-*.json"))) == 1


def test_list_that_cannot_be_written_lasts_until_the_end(
    tmp_path: Path, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(30, "Read-only file system")

    path = tmp_path / "library.json"
    path.write_text("[{]")
    monkeypatch.setattr(library_file, "set_aside", refuse)
    monkeypatch.setattr(library_file, "write_whole", refuse)
    library = LibraryState(path)
    library.note(ModelInspected(request_id=1, report=some_report()))
    assert len(library.models) == 1


def names(library: LibraryState) -> list[str]:
    return [model.name for model in library.models]


@pytest.fixture
def searching(path: Path, qtbot: QtBot) -> LibraryState:
    """A library with a dropped folder and two models found below ``/drive``, one of them used."""
    library = LibraryState(path)
    library.note(ModelInspected(request_id=1, report=some_report("/models/a", "dropped")))
    library.begin_search()
    found = [some_report("/drive/one", "one"), some_report("/drive/two", "two")]
    library.note_found("/drive", found)
    library.note_searched(some_searched("/drive"))
    library.note_rate("/drive/two", 7.0)
    return library


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("/hub/models--org--name/snapshots/aaaa", "/hub/models--org--name/snapshots/bbbb/"),
        ("/models/a", "/models/x/../a/"),
        ("/hub/models--org--name/snapshots/aaaa", "/hub/models--org--name"),
    ],
)
def test_paths_of_one_model_have_one_key(first: str, second: str) -> None:
    assert model_key(first) == model_key(second)


def test_files_of_the_next_snapshot_are_the_same_and_others_are_not() -> None:
    files = [f"/models--o--n/snapshots/{name}" for name in ("a/q/m.GGUF", "b/q/m.GGUF", "b/m.gguf")]
    first, same, other = map(model_key, files)
    assert first == same
    assert other not in (first, model_key("/models--o--n/snapshots/b"))


def test_folders_below_a_snapshot_are_others() -> None:
    assert model_key("/models--o--n/snapshots/a/inner") != model_key("/models--o--n/snapshots/a")


def test_found_models_stand_after_dropped_ones_and_are_kept(
    searching: LibraryState, path: Path
) -> None:
    assert names(searching) == ["dropped", "one", "two"]
    assert searching.dropped_folders == ["/models/a"]
    searching.close()
    searching.close()
    assert LibraryState(path).models == searching.models


def test_found_models_are_written_after_a_while(
    path: Path, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.state.library.SAVE_DELAY_MS", 1)
    library = LibraryState(path)
    library.note_found("/drive", [some_report("/drive/one", "one")])
    assert not path.exists()
    qtbot.waitUntil(path.exists)
    assert names(LibraryState(path)) == ["one"]


def test_found_model_that_cannot_run_stands_last(searching: LibraryState) -> None:
    broken = some_report("/drive/one", "one", (some_error(ErrorCode.SHARD_MISSING),))
    searching.note_found("/drive", [broken])
    assert names(searching) == ["dropped", "two", "one"]


def test_found_model_that_was_dropped_stays_dropped(searching: LibraryState) -> None:
    searching.note_found("/models/a", [some_report("/models/a", "dropped")])
    assert searching.dropped_folders == ["/models/a"]


def test_model_no_longer_found_goes_unless_its_speed_was_measured(
    searching: LibraryState, qtbot: QtBot
) -> None:
    searching.begin_search()
    searching.note_searched(some_searched("/drive"))
    dropped, two = searching.models
    assert (two.name, two.is_missing, two.measured_tokens_per_s) == ("two", True, 7.0)
    assert not dropped.is_missing
    assert searching.missing_roots == {"/drive"}
    with qtbot.assertNotEmitted(searching.changed):
        searching.note_searched(some_searched("/drive"))
    searching.note_found("/drive", [some_report("/drive/two", "two")])
    searching.note_searched(some_searched("/drive"))
    assert [model.is_missing for model in searching.models] == [False, False]


@pytest.mark.parametrize("state", [RootState.EMPTY, RootState.MISSING, RootState.UNREADABLE])
def test_drive_that_is_away_marks_its_models_and_brings_them_back(
    searching: LibraryState, path: Path, state: RootState
) -> None:
    searching.begin_search()
    searching.note_searched(some_searched("/drive", state))
    assert [model.is_missing for model in searching.models] == [False, True, True]
    searching.close()
    again = LibraryState(path)
    assert [model.is_missing for model in again.models] == [False, True, True]
    again.note_found("/drive", [some_report("/drive/one", "one"), some_report("/drive/two", "two")])
    again.note_searched(some_searched("/drive"))
    assert [model.is_missing for model in again.models] == [False, False, False]


def test_place_that_is_too_large_takes_nothing_off_the_list(searching: LibraryState) -> None:
    before = searching.models
    searching.begin_search()
    searching.note_searched(some_searched("/drive", is_complete=False))
    assert searching.models == before


def test_dropped_folder_that_is_away_is_marked_until_it_is_back(searching: LibraryState) -> None:
    searching.begin_search()
    searching.note_searched(some_searched("/models/a", RootState.MISSING))
    assert searching.missing_folders == ["/models/a"]
    searching.note_searched(some_searched("/models/a"))
    assert searching.missing_folders == []


def test_dropped_folder_that_is_not_found_is_marked(searching: LibraryState) -> None:
    gone = some_report("/models/a", "", (some_error(ErrorCode.FOLDER_NOT_FOUND),))
    searching.note(ModelInspected(request_id=3, report=gone))
    assert searching.missing_folders == ["/models/a"]


def test_found_model_taken_off_the_list_stays_off_until_it_is_dropped(
    searching: LibraryState, path: Path
) -> None:
    report = some_report("/drive/one", "one")
    searching.forget("/drive/one")
    assert names(searching) == ["dropped", "two"]
    again = LibraryState(path)
    again.note_found("/drive", [report])
    again.note_searched(some_searched("/drive"))
    again.begin_search()
    again.note_searched(some_searched("/drive"))
    assert names(again) == ["dropped", "two"]
    again.note(ModelInspected(request_id=1, report=report))
    assert "one" in names(again)


def test_place_looked_through_no_more_leaves_what_was_measured(searching: LibraryState) -> None:
    searching.drop_root("/drive/")
    assert names(searching) == ["dropped", "two"]
    assert searching.dropped_folders == ["/drive/two", "/models/a"]


def test_next_snapshot_takes_the_place_of_the_last_without_its_figures(
    path: Path, qtbot: QtBot
) -> None:
    hub = "/hub/models--org--name/snapshots"
    library = LibraryState(path)
    library.note(ModelInspected(request_id=1, report=some_report(f"{hub}/aaaa", "name")))
    library.note_rate(f"{hub}/aaaa", 5.0)
    library.note_found("/hub", [some_report(f"{hub}/bbbb", "name")])
    (model,) = library.models
    assert (model.folder, model.root, model.measured_tokens_per_s) == (f"{hub}/bbbb", "/hub", 5.0)
    other = msgspec.structs.replace(some_report(f"{hub}/cccc", "name"), fingerprint="g")
    library.note_found("/hub", [other])
    (model,) = library.models
    assert (model.folder, model.root, model.measured_tokens_per_s) == (f"{hub}/cccc", "/hub", 0.0)


def test_first_plans_say_what_to_expect_until_something_is_loaded(path: Path, qtbot: QtBot) -> None:
    library = LibraryState(path)
    plans = [
        some_plan(PlanKind.EIGHT_BIT, forecast=some_forecast(5.0, 6.0)),
        some_plan(forecast=some_forecast(1.0, 2.0)),
    ]
    event = ModelPlanned(
        request_id=1, report=some_report(), plans=plans, recommended=PlanKind.EXACT
    )
    library.note(event)
    (model,) = library.models
    assert (model.forecast_low, model.forecast_high) == (1.0, 2.0)
    assert model.is_runnable
    other = msgspec.structs.replace(event, recommended=PlanKind.EIGHT_BIT)
    library.note(other)
    assert library.models == [model]


REAL, LINK = "/drive/real", "/models/link"


def linked(folder: str = LINK, real: str = REAL) -> ModelReport:
    """Return the report of a model to which a link leads."""
    report: ModelReport = msgspec.structs.replace(some_report(folder, "m"), real_folder=real)
    return report


@pytest.fixture
def twice(path: Path, qtbot: QtBot) -> LibraryState:
    """A library with a model that was dropped by a link, loaded by it, and found where it lies."""
    library = LibraryState(path)
    library.note(ModelInspected(request_id=1, report=linked()))
    library.note(ModelLoaded(request_id=2, model=some_loaded(LINK)))
    library.note_rate(LINK, 7.0)
    library.begin_search()
    library.note_found("/drive", [some_report(REAL, "m"), some_report("/drive/other", "other")])
    library.note_searched(some_searched("/drive"))
    return library


def test_model_and_links_to_it_are_one_model_with_what_was_seen_of_either(
    twice: LibraryState,
) -> None:
    model, other = twice.models
    assert (model.folder, model.links) == (REAL, (LINK,))
    assert (model.measured_tokens_per_s, model.tiers) == (7.0, tuple(some_tiers()))
    assert sum(each.report.file_bytes for each in twice.models if each.report) == 2 * (270 << 20)
    assert (other.folder, other.links) == ("/drive/other", ())
    assert twice.is_same(REAL, LINK)
    assert not twice.is_same("/drive/other", LINK)
    assert not twice.is_same("/nowhere", LINK)


def test_links_to_a_model_that_is_not_listed_are_one_model_by_the_first(
    path: Path, qtbot: QtBot
) -> None:
    library = LibraryState(path)
    for name in ("/models/a", "/models/b"):
        library.note(ModelInspected(request_id=1, report=linked(name, "/elsewhere/m")))
    (model,) = library.models
    assert (model.folder, model.links) == ("/models/b", ("/models/a",))
    library.remove("/models/b")
    assert [each.folder for each in library.models] == ["/models/a"]


def test_link_to_a_snapshot_of_the_hub_is_the_cached_model(path: Path, qtbot: QtBot) -> None:
    library = LibraryState(path)
    snapshot = "/hub/models--o--n/snapshots/aaaa"
    library.note(ModelInspected(request_id=1, report=some_report(snapshot, "n")))
    library.note(ModelInspected(request_id=2, report=linked(real=snapshot)))
    (model,) = library.models
    assert (model.folder, model.links) == (snapshot, (LINK,))


def test_model_that_is_gone_shows_by_a_link_that_still_leads_to_one(twice: LibraryState) -> None:
    twice.note_rate(REAL, 5.0)
    twice.begin_search()
    twice.note_found(LINK, [linked()])
    twice.note_searched(some_searched("/drive"))
    assert [each.folder for each in twice.models] == [LINK]


def test_model_taken_off_the_list_is_off_by_every_path_until_it_is_dropped_again(
    twice: LibraryState,
) -> None:
    twice.forget(REAL)
    assert names(twice) == ["other"]
    twice.note_found("/models", [linked()])
    assert names(twice) == ["other"], "found by a search only"
    twice.note(ModelInspected(request_id=3, report=linked("/else/link")))
    assert [each.folder for each in twice.models] == ["/else/link", "/drive/other"]


def test_model_that_was_deleted_takes_the_links_to_it_along(twice: LibraryState) -> None:
    twice.remove(REAL)
    assert names(twice) == ["other"]
    twice.remove("/nowhere")
    assert names(twice) == ["other"]
