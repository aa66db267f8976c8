"""Looking for models: what is told, how it is cancelled, and that nothing else waits for it."""

import threading
from pathlib import Path

import pytest

from runtime.protocol.messages import (
    CancelAccepted,
    CancelRequest,
    FindModels,
    InspectModel,
    ModelInspected,
    ModelsFound,
    ModelsSearched,
    ModelWeighed,
    RootSearched,
    SearchCancelled,
    WeighModel,
)
from runtime.protocol.model import ModelReport
from runtime.protocol.search import RootState
from runtime.service import search_room
from runtime.service.scripted import ScriptedPlanning
from tests.support.checkpoint_folders import write_json
from tests.support.scripted import FAST, TIMEOUT_S, ScriptedService


def some_models(root: Path, num_models: int) -> list[str]:
    """Make folders that look like models from outside."""
    folders = [root / f"m{index:02}" for index in range(num_models)]
    for folder in folders:
        folder.mkdir(parents=True)
        write_json(folder / "config.json", {})
        (folder / "model.safetensors").touch()
    return [str(folder) for folder in folders]


class SlowPlanning(ScriptedPlanning):
    """Planning that looks at models below ``slow`` only when it is let."""

    def __init__(self) -> None:
        super().__init__(FAST)
        self.is_reached = threading.Event()
        self.may_go_on = threading.Event()

    def inspect(self, folder: str) -> ModelReport:
        if "slow" in folder:
            self.is_reached.set()
            assert self.may_go_on.wait(TIMEOUT_S)
        return super().inspect(folder)


def test_search_tells_models_in_pieces_and_each_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search_room, "MAX_TOGETHER", 4)
    monkeypatch.setattr(search_room, "TELL_INTERVAL_S", 1e9)
    wanted = some_models(tmp_path / "models", 10)
    scripted = ScriptedService()
    roots = [str(tmp_path / "gone"), str(tmp_path / "models")]
    scripted.service.handle(FindModels(request_id=1, roots=roots))
    assert scripted.wait_until_closed(1) == ModelsSearched(request_id=1)
    events = scripted.drain()
    found = [event for event in events if isinstance(event, ModelsFound)]
    assert [report.folder for event in found for report in event.reports] == wanted
    assert [(event.root, len(event.reports), event.num_folders) for event in found] == [
        (roots[0], 0, 0),
        (roots[1], 4, 5),
        (roots[1], 4, 9),
        (roots[1], 2, 11),
    ]
    places = [event for event in events if isinstance(event, RootSearched)]
    assert [(place.root, place.state, place.num_models) for place in places] == [
        (roots[0], RootState.MISSING, 0),
        (roots[1], RootState.THERE, 10),
    ]
    assert scripted.service.close()


def test_search_tells_how_far_it_is_where_nothing_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search_room, "TELL_INTERVAL_S", 0.0)
    (tmp_path / "root" / "a" / "b").mkdir(parents=True)
    scripted = ScriptedService()
    scripted.service.handle(FindModels(request_id=1, roots=[str(tmp_path / "root")]))
    scripted.wait_until_closed(1)
    counts = [event.num_folders for event in scripted.events if isinstance(event, ModelsFound)]
    assert counts == [1, 2, 3, 3]
    assert scripted.service.close()


def test_search_that_waits_holds_up_nothing_and_can_be_cancelled(tmp_path: Path) -> None:
    some_models(tmp_path / "slow", 2)
    planning = SlowPlanning()
    scripted = ScriptedService(planning=planning)
    scripted.service.handle(FindModels(request_id=1, roots=[str(tmp_path)]))
    assert planning.is_reached.wait(TIMEOUT_S)
    scripted.service.handle(InspectModel(request_id=2, folder=str(tmp_path)))
    assert isinstance(scripted.wait_until_closed(2), ModelInspected)
    scripted.service.handle(CancelRequest(request_id=3, target_request_id=1))
    assert scripted.wait_until_closed(3) == CancelAccepted(request_id=3, was_running=True)
    planning.may_go_on.set()
    assert scripted.wait_until_closed(1) == SearchCancelled(request_id=1)
    assert not [event for event in scripted.drain() if isinstance(event, RootSearched)]
    assert scripted.service.close()


def test_search_cancelled_at_the_end_of_a_place_looks_at_no_other(tmp_path: Path) -> None:
    folder = some_models(tmp_path / "slow", 1)[0]
    planning = SlowPlanning()
    scripted = ScriptedService(planning=planning)
    scripted.service.handle(FindModels(request_id=1, roots=[folder, str(tmp_path)]))
    assert planning.is_reached.wait(TIMEOUT_S)
    scripted.service.handle(CancelRequest(request_id=2, target_request_id=1))
    scripted.wait_until_closed(2)
    planning.may_go_on.set()
    assert isinstance(scripted.wait_until_closed(1), SearchCancelled)
    places = [event.root for event in scripted.drain() if isinstance(event, RootSearched)]
    assert places == [folder]
    assert scripted.service.close()


def test_desk_tells_what_deleting_a_model_would_take_away(tmp_path: Path) -> None:
    (folder,) = some_models(tmp_path, 1)
    scripted = ScriptedService()
    scripted.service.handle(WeighModel(request_id=1, folder=folder))
    weighed = scripted.wait_until_closed(1)
    assert isinstance(weighed, ModelWeighed)
    assert (weighed.weight.folder, weighed.weight.num_files) == (folder, 2)
    assert scripted.service.close()
