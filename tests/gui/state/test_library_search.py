"""Which places are looked through, when, and what a lost drive or runtime does to it."""

import os
from pathlib import Path

import pytest

from app.state.folders import usual_roots
from app.state.library import LibraryState
from app.state.library_search import MAX_AGE_S, LibrarySearch
from app.state.settings import SettingsState
from runtime.protocol.messages import (
    CancelRequest,
    FindModels,
    ModelInspected,
    ModelsFound,
    ModelsSearched,
    SearchCancelled,
)
from runtime.protocol.search import RootState
from tests.support.chat_talks import Clock
from tests.support.fake_client import FakeClient
from tests.support.unnarrowed import now
from tests.support.window_values import some_report, some_searched

HUB = os.path.normpath("/cache/hub")
DRIVE = os.path.normpath("/drive")
DROPPED = os.path.normpath("/models/a")


class Searcher:
    """A search whose runtime is played: what was asked is answered by hand."""

    def __init__(self, client: FakeClient, settings: SettingsState, library: LibraryState) -> None:
        self.client = client
        self.library = library
        self.clock = Clock()
        self.search = LibrarySearch(client, settings, library, [HUB], clock=self.clock)

    def asked(self) -> list[str]:
        return self.client.last(FindModels).roots

    def found(self, root: str, *names: str) -> None:
        reports = [some_report(str(Path(root, name)), name) for name in names]
        self.client.answer(
            ModelsFound(
                request_id=self.client.last(FindModels).request_id,
                root=root,
                reports=reports,
                num_folders=7,
            )
        )

    def searched(self, root: str, state: RootState = RootState.THERE) -> None:
        request_id = self.client.last(FindModels).request_id
        place = some_searched(root, state, request_id=request_id)
        self.client.answer(place)

    def finish(self) -> None:
        self.client.answer(ModelsSearched(request_id=self.client.last(FindModels).request_id))

    def go_through(self, **states: RootState) -> None:
        """Answer everything that is asked; places named by their last part may be away."""
        for root in self.asked():
            self.searched(root, states.get(Path(root).name, RootState.THERE))
        self.finish()


@pytest.fixture
def searcher(client: FakeClient, settings: SettingsState, library: LibraryState) -> Searcher:
    client.start()
    client.open()
    return Searcher(client, settings, library)


def test_usual_places_follow_the_environment_as_the_hub_does(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    monkeypatch.setenv("MODELS", str(tmp_path / "named"))
    usual = tmp_path / ".cache" / "huggingface" / "hub"
    trees = [tmp_path / ".lmstudio" / "models", tmp_path / ".cache" / "lm-studio" / "models"]
    assert usual_roots({}) == [str(path) for path in (usual, *trees)]
    for environment, expected in (
        ({"HF_HOME": "~/hf"}, tmp_path / "hf" / "hub"),
        ({"XDG_CACHE_HOME": str(tmp_path / "c")}, tmp_path / "c" / "huggingface" / "hub"),
        ({"HF_HUB_CACHE": "$MODELS", "HF_HOME": "/x"}, tmp_path / "named"),
        ({"HUGGINGFACE_HUB_CACHE": str(tmp_path / "old")}, tmp_path / "old"),
    ):
        assert usual_roots(environment)[0] == str(expected)


def test_search_looks_at_dropped_folders_then_at_places(
    searcher: Searcher, settings: SettingsState
) -> None:
    searcher.library.note(ModelInspected(request_id=0, report=some_report(DROPPED, "a")))
    settings.change(model_roots=[DRIVE])
    searcher.search.search()
    assert searcher.asked() == [DROPPED, DRIVE, HUB]
    assert now(searcher.search.is_searching)
    assert [root.path for root in searcher.search.roots] == [DRIVE]
    searcher.found(HUB, "one")
    assert searcher.search.num_folders == 7
    searcher.go_through()
    assert not now(searcher.search.is_searching)
    assert [model.name for model in searcher.library.models] == ["a", "one"]
    drive, hub = searcher.search.roots
    assert (drive.path, drive.is_usual, hub.path, hub.is_usual) == (DRIVE, False, HUB, True)
    assert hub.result is not None
    assert hub.result.num_models == 1


def test_usual_place_that_this_pc_does_not_have_is_not_listed(searcher: Searcher) -> None:
    searcher.search.search()
    searcher.go_through(hub=RootState.MISSING)
    assert searcher.search.roots == []
    searcher.search.look_for_missing()
    assert searcher.client.count(FindModels) == 1


def test_usual_place_whose_models_are_away_is_listed(searcher: Searcher) -> None:
    searcher.search.search()
    searcher.found(HUB, "one")
    searcher.go_through()
    searcher.search.search()
    searcher.go_through(hub=RootState.MISSING)
    assert [root.is_away for root in searcher.search.roots] == [True]


def test_search_is_made_anew_only_when_the_list_is_old(searcher: Searcher) -> None:
    searcher.search.freshen()
    searcher.go_through()
    searcher.search.freshen()
    assert searcher.client.count(FindModels) == 1
    searcher.clock.now_s += MAX_AGE_S + 1
    searcher.search.freshen()
    assert searcher.client.count(FindModels) == 2


def test_search_wanted_during_another_comes_after_it(searcher: Searcher) -> None:
    searcher.search.search()
    searcher.search.add_root(DRIVE)
    searcher.search.look_for_missing()
    assert searcher.client.count(FindModels) == 1
    searcher.go_through()
    assert searcher.asked() == [DRIVE]
    assert searcher.search.is_searching


def test_drive_that_is_away_is_looked_for_quietly_until_it_is_back(
    searcher: Searcher, settings: SettingsState
) -> None:
    settings.change(model_roots=[DRIVE])
    searcher.library.note(ModelInspected(request_id=0, report=some_report(DROPPED, "a")))
    searcher.search.search()
    searcher.found(DRIVE, "one")
    searcher.go_through(a=RootState.MISSING)
    searcher.search.search()
    assert searcher.asked() == [DRIVE, HUB, DROPPED]
    searcher.go_through(drive=RootState.EMPTY, a=RootState.MISSING)
    assert [model.is_missing for model in searcher.library.models] == [True, True]
    searcher.search.search()
    assert searcher.asked() == [HUB, DRIVE, DROPPED]
    searcher.go_through(drive=RootState.EMPTY, a=RootState.MISSING)
    searcher.search.look_for_missing()
    assert not searcher.search.is_searching
    assert searcher.asked() == [DRIVE, DROPPED]
    searcher.found(DRIVE, "one")
    searcher.go_through()
    assert [model.is_missing for model in searcher.library.models] == [False, False]
    searcher.search.look_for_missing()
    assert searcher.client.count(FindModels) == 4


def test_search_is_cancelled_once_and_keeps_what_was_found(searcher: Searcher) -> None:
    searcher.search.cancel()
    searcher.search.search()
    searcher.found(HUB, "one")
    searcher.search.cancel()
    searcher.search.cancel()
    assert now(searcher.search.is_cancelling)
    assert searcher.client.count(CancelRequest) == 1
    request_id = searcher.client.last(FindModels).request_id
    assert searcher.client.last(CancelRequest).target_request_id == request_id
    searcher.client.answer(SearchCancelled(request_id=request_id))
    assert not now(searcher.search.is_cancelling)
    assert not searcher.search.is_searching
    assert [model.name for model in searcher.library.models] == ["one"]


def test_search_goes_on_in_the_next_runtime(searcher: Searcher) -> None:
    searcher.search.search()
    searcher.client.end()
    assert not now(searcher.search.is_searching)
    searcher.client.start()
    searcher.client.open()
    assert searcher.client.count(FindModels) == 2
    assert searcher.asked() == [HUB]
    assert now(searcher.search.is_searching)


def test_search_whose_runtime_crashed_or_was_cancelled_is_not_repeated(searcher: Searcher) -> None:
    searcher.search.search()
    searcher.client.crash()
    searcher.client.start()
    searcher.client.open()
    assert searcher.client.count(FindModels) == 1
    searcher.search.search()
    searcher.search.cancel()
    searcher.client.end()
    searcher.client.start()
    searcher.client.open()
    searcher.client.end()
    assert searcher.client.count(FindModels) == 2


def test_search_wanted_before_the_runtime_listens_begins_then(
    client: FakeClient, settings: SettingsState, library: LibraryState
) -> None:
    searcher = Searcher(client, settings, library)
    searcher.search.search()
    assert client.count(FindModels) == 0
    client.open()
    assert searcher.asked() == [HUB]


def test_place_is_added_once_and_looked_through(
    searcher: Searcher, settings: SettingsState
) -> None:
    searcher.search.add_root(DRIVE)
    assert searcher.asked() == [DRIVE]
    searcher.go_through()
    searcher.search.add_root(str(Path(DRIVE, "x", "..")))
    assert settings.values.model_roots == [DRIVE]
    settings.reset()
    assert settings.values.model_roots == [DRIVE]


def test_place_removed_takes_its_models_along_also_while_it_is_looked_through(
    searcher: Searcher, settings: SettingsState
) -> None:
    searcher.search.add_root(DRIVE)
    searcher.found(DRIVE, "one")
    searcher.search.search()
    searcher.search.remove_root(DRIVE)
    assert settings.values.model_roots == []
    assert now(searcher.library.models) == []
    searcher.found(DRIVE, "two")
    searcher.go_through()
    assert now(searcher.library.models) == []
    assert searcher.asked() == [HUB]


def test_usual_place_is_left_out_and_taken_in_again(
    searcher: Searcher, settings: SettingsState
) -> None:
    searcher.search.search()
    searcher.found(HUB, "one")
    searcher.go_through()
    searcher.search.remove_root(HUB)
    searcher.search.remove_root(HUB)
    assert settings.values.left_out_roots == [HUB]
    assert now(searcher.library.models) == []
    assert searcher.search.roots == []
    searcher.search.search()
    assert searcher.client.count(FindModels) == 1
    searcher.search.add_root(HUB)
    assert settings.values.left_out_roots == []
    assert settings.values.model_roots == []
    assert searcher.asked() == [HUB]
