"""The list of models on the Models page, with a runtime that the test plays."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QDesktopServices
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QFileDialog, QLabel, QWidget
from pytestqt.qtbot import QtBot

from app.state.library import LibraryState
from app.state.library_search import LibrarySearch
from app.state.session import Session
from app.state.settings import SettingsState
from app.text.library_words import LibraryWords
from app.text.words import ModelWords
from app.theme.palette import DARK, LIGHT
from app.views import library_view as library_view_module
from app.views.models_view import ModelsView
from runtime.protocol.errors import ErrorCode, ErrorReport, Severity
from runtime.protocol.messages import (
    CancelRequest,
    FindModels,
    InspectModel,
    ModelInspected,
    ModelsFound,
    ModelsSearched,
    RootSearched,
    SearchCancelled,
)
from runtime.protocol.model import ModelReport, PreparedCopy
from runtime.protocol.search import RootState
from runtime.protocol.values import WeightFormat
from tests.gui.text.test_units import plain
from tests.support.fake_client import FakeClient
from tests.support.unnarrowed import now
from tests.support.window_values import some_error, some_report

DRIVE = "/drive"


def shown(widget: QWidget) -> str:
    """Return the words that are on the screen."""
    labels = (each for each in widget.findChildren(QLabel) if each.isVisible())
    return plain(" | ".join(each.text() for each in labels))


class Page:
    """The Models page with the state behind it."""

    def __init__(self, qtbot: QtBot, folder: Path) -> None:
        self.client = FakeClient()
        self.settings = SettingsState(folder / "settings.json")
        self.library = LibraryState(folder / "library.json")
        self.session = Session(self.client, self.settings, self.library)
        self.search = LibrarySearch(self.client, self.settings, self.library)
        self.session.start()
        self.client.open()
        self.view = ModelsView(self.library, self.search, self.session, LIGHT)
        self.list = self.view.library_view
        qtbot.addWidget(self.view)
        self.view.resize(1276, 800)

    def found(self, *reports: ModelReport, num_folders: int = 12) -> None:
        self.client.answer(
            ModelsFound(
                request_id=self.client.last(FindModels).request_id,
                root=DRIVE,
                reports=list(reports),
                num_folders=num_folders,
            )
        )

    def searched(self, state: RootState = RootState.THERE, **counts: int) -> None:
        request_id = self.client.last(FindModels).request_id
        numbers = {"num_models": 1, "num_gguf_folders": 0, "num_unreadable": 0, **counts}
        place = RootSearched(
            request_id=request_id, root=DRIVE, state=state, is_complete=True, **numbers
        )
        self.client.answer(place)
        self.client.answer(ModelsSearched(request_id=request_id))

    def names(self) -> list[str]:
        return [card.model.name for card in self.list.cards]


@pytest.fixture
def page(qtbot: QtBot, tmp_path: Path) -> Iterator[Page]:
    page = Page(qtbot, tmp_path)
    page.settings.change(model_roots=[DRIVE])
    page.view.show()
    yield page
    page.library.close()
    page.settings.close()


def test_page_shown_looks_for_models_and_says_how_far_it_is(page: Page, qtbot: QtBot) -> None:
    assert page.client.last(FindModels).roots == [DRIVE]
    page.found(num_folders=1204)
    assert "Looking for models · 1,204 folders so far" in shown(page.list)
    page.found(some_report(f"{DRIVE}/one", "one"))
    qtbot.waitUntil(lambda: page.names() == ["one"])
    page.searched()
    assert "Looking" not in shown(page.list)
    qtbot.waitUntil(lambda: "qwen3_moe" in shown(page.list))
    assert page.list.look_button.text() == LibraryWords.LOOK_AGAIN
    page.view.hide()
    page.view.show()
    assert page.client.count(FindModels) == 1


def test_search_is_stopped_by_its_button_and_begun_again(page: Page) -> None:
    button = page.list.look_button
    assert button.text() == LibraryWords.STOP_LOOKING
    button.click()
    assert button.text() == LibraryWords.STOPPING
    assert not now(button.isEnabled())
    assert page.client.count(CancelRequest) == 1
    page.client.answer(SearchCancelled(request_id=page.client.last(FindModels).request_id))
    assert now(button.isEnabled())
    button.click()
    assert page.client.count(FindModels) == 2


def test_drive_that_comes_back_is_seen_by_itself(
    qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(library_view_module, "LOOK_INTERVAL_MS", 20)
    page = Page(qtbot, tmp_path)
    page.settings.change(model_roots=[DRIVE])
    page.view.show()
    page.found(some_report(f"{DRIVE}/one", "one"))
    page.searched()
    page.search.search()
    page.searched(RootState.MISSING)
    qtbot.waitUntil(lambda: ModelWords.MISSING in shown(page.list))
    page.list.places_button.click()
    qtbot.waitUntil(lambda: LibraryWords.AWAY in shown(page.list.roots_card))
    qtbot.waitUntil(lambda: page.client.count(FindModels) == 3)
    assert page.list.look_button.text() == LibraryWords.LOOK_AGAIN
    page.found(some_report(f"{DRIVE}/one", "one"))
    page.searched()
    qtbot.waitUntil(lambda: ModelWords.MISSING not in shown(page.list))
    page.view.hide()
    page.library.close()
    page.settings.close()


def test_places_are_shown_added_and_removed(
    page: Page, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    page.found(some_report(f"{DRIVE}/one", "one"))
    page.searched(num_gguf_folders=2, num_unreadable=1)
    card = page.list.roots_card
    assert card.isHidden()
    page.list.places_button.click()
    text = shown(card)
    assert DRIVE in text
    assert "1 model · 2 folders with GGUF files, which cannot be read yet" in text
    assert "1 folder may not be read" in text
    monkeypatch.setattr(QFileDialog, "getExistingDirectory", lambda *_: "")
    card.add_button.click()
    assert page.settings.values.model_roots == [DRIVE]
    monkeypatch.setattr(QFileDialog, "getExistingDirectory", lambda *_: "/more")
    card.add_button.click()
    assert page.settings.values.model_roots == [DRIVE, "/more"]
    assert page.client.last(FindModels).roots == ["/more"]
    qtbot.waitUntil(lambda: LibraryWords.NOT_LOOKED in shown(card))
    card.root_removed.emit(DRIVE)
    qtbot.waitUntil(lambda: page.names() == [])
    assert DRIVE not in shown(card)
    page.view.show_palette(DARK)


def test_card_tells_prepared_copies_with_their_size(page: Page, qtbot: QtBot) -> None:
    copies = [
        PreparedCopy(folder="/p/8", expert_format=WeightFormat.Q8_G32, size_bytes=31 << 30),
        PreparedCopy(folder="/p/m", expert_format=WeightFormat.MXFP4, size_bytes=1 << 30),
    ]
    page.found(msgspec.structs.replace(some_report(f"{DRIVE}/one", "one"), prepared=copies))
    qtbot.waitUntil(lambda: page.names() == ["one"])
    wanted = "prepared: 8 bits 31.0 GiB, mxfp4 1.0 GiB"
    qtbot.waitUntil(lambda: wanted in shown(page.list))


def test_card_stays_the_same_widget_while_its_model_changes(page: Page, qtbot: QtBot) -> None:
    page.found(some_report(f"{DRIVE}/one", "one"), some_report(f"{DRIVE}/two", "two"))
    qtbot.waitUntil(lambda: len(page.names()) == 2)
    one = page.list.cards[0]
    broken = some_report(f"{DRIVE}/one", "one", (some_error(ErrorCode.NOT_A_MODEL),))
    page.found(broken)
    qtbot.waitUntil(lambda: page.names() == ["two", "one"])
    assert page.list.cards[1] is one
    qtbot.waitUntil(lambda: ModelWords.NOT_COMPLETE in shown(one))
    qtbot.waitUntil(lambda: page.list.cards[0].y() < one.y())


def test_card_is_chosen_and_marked_and_taken_off(page: Page, qtbot: QtBot) -> None:
    page.found(some_report(f"{DRIVE}/one", "one"), some_report(f"{DRIVE}/two", "two"))
    qtbot.waitUntil(lambda: len(page.names()) == 2)
    QTest.mouseClick(page.list.cards[0], Qt.MouseButton.LeftButton)
    assert page.client.last(InspectModel).folder == f"{DRIVE}/one"
    qtbot.waitUntil(lambda: bool(page.list.cards[0].property("isCurrent")))
    QTest.keyClick(page.list.cards[1], Qt.Key.Key_Delete)
    qtbot.waitUntil(lambda: page.names() == ["one"])


def test_menu_of_a_card_opens_the_folder_and_takes_it_off(
    page: Page, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    monkeypatch.setattr(QDesktopServices, "openUrl", lambda url: opened.append(url.toLocalFile()))
    page.found(some_report(f"{DRIVE}/one", "one"))
    qtbot.waitUntil(lambda: page.names() == ["one"])
    card = page.list.cards[0]
    card.more_button.click()
    actions = {action.text(): action for action in card.menu().actions()}
    actions[LibraryWords.OPEN_FOLDER].trigger()
    assert opened == [f"{DRIVE}/one"]
    actions[LibraryWords.FORGET].trigger()
    qtbot.waitUntil(lambda: page.names() == [])


def test_folder_of_several_models_can_be_listed_whole(page: Page) -> None:
    page.searched()
    page.session.drop_folder("/many")
    several = ErrorReport(
        code=ErrorCode.SEVERAL_MODELS,
        severity=Severity.MODEL,
        parameters={"folder": "/many", "num_models": 2, "names": "a, b"},
    )
    request_id = page.client.last(InspectModel).request_id
    report = some_report("/many", "", (several,))
    page.client.answer(ModelInspected(request_id=request_id, report=report))
    button = page.view.candidate_view._list_all
    assert button.isVisible()
    button.click()
    assert page.settings.values.model_roots == [DRIVE, "/many"]
    assert page.client.last(FindModels).roots == ["/many"]
    assert page.session.candidate is None


def test_list_of_very_many_models_comes_in_several_goes(page: Page, qtbot: QtBot) -> None:
    for start in range(0, 300, 20):
        numbers = range(start, start + 20)
        page.found(*(some_report(f"{DRIVE}/{n:03}", f"m{n:03}") for n in numbers))
    assert len(page.names()) <= library_view_module.CARDS_AT_ONCE
    qtbot.waitUntil(lambda: len(page.names()) == 300)
    assert page.names() == sorted(page.names())
