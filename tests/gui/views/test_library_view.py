"""The list of models on the Models page, with a runtime that the test plays."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QAction, QDesktopServices
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QFileDialog, QLabel, QWidget
from pytestqt.qtbot import QtBot

from app.state.library import LibraryState
from app.state.library_search import LibrarySearch
from app.state.model_removal import ModelRemoval, RemovalResult
from app.state.session import Session
from app.state.settings import SettingsState
from app.text.library_words import DeleteWords, LibraryWords, removal_line, weight_line
from app.text.words import ModelWords
from app.theme.palette import DARK, LIGHT
from app.views import library_view as library_view_module
from app.views.delete_dialog import DeleteDialog
from app.views.models_view import MIN_WIDTH_OF_TWO_COLUMNS, ModelsView
from runtime.protocol.errors import ErrorCode, ErrorReport, Severity
from runtime.protocol.messages import (
    CancelRequest,
    FindModels,
    InspectModel,
    ModelInspected,
    ModelsFound,
    ModelsSearched,
    ModelWeighed,
    SearchCancelled,
    WeighModel,
)
from runtime.protocol.model import ModelReport, PreparedCopy
from runtime.protocol.search import DeletionObstacle, FolderWeight, RootState
from runtime.protocol.values import WeightFormat
from tests.gui.text.test_units import plain
from tests.support.fake_client import FakeClient
from tests.support.unnarrowed import now
from tests.support.window_values import some_error, some_report, some_searched

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
        self.trash: list[str] = []
        self.removal = ModelRemoval(
            self.client, self.session, self.library, self.search, self._move
        )
        self.session.start()
        self.client.open()
        self.view = ModelsView(self.library, self.search, self.removal, self.session, LIGHT)
        self.list = self.view.library_view
        qtbot.addWidget(self.view)
        self.view.resize(1276, 800)

    def _move(self, path: str) -> bool:
        self.trash.append(path)
        return True

    def ask_to_delete(self, weight: FolderWeight) -> DeleteDialog:
        """Choose *Delete* in the menu of the first card; return the question."""
        (action,) = self._delete_actions()
        action.trigger()
        request_id = self.client.last(WeighModel).request_id
        self.client.answer(ModelWeighed(request_id=request_id, weight=weight))
        return self.view.findChildren(DeleteDialog)[-1]

    def _delete_actions(self) -> list[QAction]:
        actions = self.list.cards[0].menu().actions()
        return [action for action in actions if action.text() == DeleteWords.DELETE]

    def found(self, *reports: ModelReport, num_folders: int = 12) -> None:
        self.client.answer(
            ModelsFound(
                request_id=self.client.last(FindModels).request_id,
                root=DRIVE,
                reports=list(reports),
                num_folders=num_folders,
            )
        )

    def searched(
        self,
        state: RootState = RootState.THERE,
        *,
        num_unreadable: int = 0,
    ) -> None:
        request_id = self.client.last(FindModels).request_id
        place = some_searched(
            DRIVE,
            state,
            request_id=request_id,
            num_unreadable=num_unreadable,
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
    page.searched(num_unreadable=1)
    card = page.list.roots_card
    assert card.isHidden()
    page.list.places_button.click()
    text = shown(card)
    assert DRIVE in text
    assert "1 model · 1 folder may not be read" in text
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
    packed = msgspec.structs.replace(
        some_report(f"{DRIVE}/in/two.gguf", "two"), gguf_kinds=["Q4_K", "F32"]
    )
    page.found(some_report(f"{DRIVE}/one", "one"), packed)
    page.view.show()
    qtbot.waitUntil(lambda: page.names() == ["one", "two"])
    qtbot.waitUntil(lambda: "GGUF Q4_K, F32" in shown(page.list.cards[1]))
    for card in page.list.cards:
        card.more_button.click()
        actions = {action.text(): action for action in card.menu().actions()}
        actions[LibraryWords.OPEN_FOLDER].trigger()
        actions[LibraryWords.FORGET].trigger()
    assert opened == [f"{DRIVE}/one", str(Path(f"{DRIVE}/in"))]
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
    assert page.view.candidate_view._title.text() == "many on this PC"
    assert button.isVisible()
    button.click()
    assert page.settings.values.model_roots == [DRIVE, "/many"]
    assert page.client.last(FindModels).roots == ["/many"]
    assert page.session.candidate is None


def test_list_of_very_many_models_comes_in_several_goes_and_can_be_filtered(
    page: Page, qtbot: QtBot
) -> None:
    for start in range(0, 300, 20):
        numbers = range(start, start + 20)
        page.found(*(some_report(f"{DRIVE}/{n:03}", f"m{n:03}") for n in numbers))
    assert len(page.names()) <= library_view_module.CARDS_AT_ONCE
    shown_at_first = library_view_module.CARDS_SHOWN
    qtbot.waitUntil(lambda: len(page.names()) == shown_at_first)
    assert page.names() == sorted(page.names())
    assert plain(page.list.more_button.text()) == "Show more (260 are not shown)"
    page.list.more_button.click()
    qtbot.waitUntil(lambda: len(page.names()) == 2 * shown_at_first)
    page.list.filter.setText("M29")
    qtbot.waitUntil(lambda: page.names() == [f"m{n}" for n in range(290, 300)])
    assert page.list.more_button.isHidden()
    page.list.filter.clear()
    qtbot.waitUntil(lambda: len(page.names()) == shown_at_first)


COPIES = [
    PreparedCopy(folder="/p/8", expert_format=WeightFormat.Q8_G32, size_bytes=31 << 30),
    PreparedCopy(folder="/p/4", expert_format=WeightFormat.Q4_G32, size_bytes=16 << 30),
]
WEIGHT = FolderWeight(folder=f"{DRIVE}/one", num_bytes=61 << 30, num_files=19)


@pytest.fixture
def prepared(page: Page, qtbot: QtBot) -> Page:
    """The page with one model that has two prepared copies."""
    page.found(msgspec.structs.replace(some_report(f"{DRIVE}/one", "one"), prepared=COPIES))
    page.searched()
    qtbot.waitUntil(lambda: page.names() == ["one"])
    return page


def test_delete_asks_what_goes_with_its_size_and_moves_it_to_the_trash(
    prepared: Page, qtbot: QtBot
) -> None:
    dialog = prepared.ask_to_delete(WEIGHT)
    qtbot.waitUntil(dialog.isVisible)
    text = shown(dialog)
    for part in ("61.0 GiB · 19 files", f"{DRIVE}/one", "31.0 GiB", "/p/8", "16.0 GiB"):
        assert part in text
    assert plain(dialog.trash.text()) == "Move 61.0 GiB to the trash"
    dialog.copy_ticks[0][0].setChecked(True)
    assert plain(dialog.trash.text()) == "Move 92.0 GiB to the trash"
    assert prepared.trash == []
    dialog.trash.click()
    assert prepared.trash == ["/p/8", f"{DRIVE}/one"]
    qtbot.waitUntil(lambda: prepared.names() == [])


@pytest.mark.parametrize("target", ["", "/real/one"])
def test_the_question_says_what_links_to_a_model_mean_for_it(
    page: Page, qtbot: QtBot, target: str
) -> None:
    for folder in ("/links/one", "/other/one"):
        report = msgspec.structs.replace(some_report(folder), real_folder="/real/one")
        page.library.note(ModelInspected(request_id=0, report=report))
    page.searched()
    qtbot.waitUntil(lambda: page.names() == ["tiny"])
    dialog = page.ask_to_delete(FolderWeight(folder="/other/one", num_bytes=9, link_target=target))

    texts = [each.text() for each in dialog.findChildren(QLabel)]
    told = "/other/one\nThe files lie in /real/one.\nThe link /links/one leads to nothing then."
    assert ("/other/one" if target else told) in texts


def test_delete_of_copies_alone_keeps_the_model(prepared: Page) -> None:
    dialog = prepared.ask_to_delete(WEIGHT)
    dialog.model_tick.setChecked(False)
    assert dialog.trash.text() == DeleteWords.CHOOSE
    assert not dialog.trash.isEnabled()
    dialog.copy_ticks[1][0].setChecked(True)
    dialog.accept()
    assert prepared.trash == ["/p/4"]
    assert prepared.names() == ["one"]


def test_delete_answered_by_enter_or_escape_keeps_everything(prepared: Page, qtbot: QtBot) -> None:
    for key in (Qt.Key.Key_Return, Qt.Key.Key_Escape):
        dialog = prepared.ask_to_delete(WEIGHT)
        qtbot.waitUntil(dialog.isVisible)
        with qtbot.waitSignal(dialog.rejected):
            QTest.keyClick(dialog, key)
    assert prepared.trash == []


def test_delete_past_an_obstacle_offers_the_copies_alone(prepared: Page, qtbot: QtBot) -> None:
    weight = msgspec.structs.replace(WEIGHT, obstacle=DeletionObstacle.NOT_A_MODEL_ALONE)
    dialog = prepared.ask_to_delete(weight)
    qtbot.waitUntil(lambda: DeleteWords.NOT_ALONE in shown(dialog))
    assert not dialog.model_tick.isEnabled()
    assert not dialog.model_tick.isChecked()
    dialog.reject()


def test_delete_is_not_offered_while_the_model_loads(prepared: Page) -> None:
    prepared.session.load_folder(f"{DRIVE}/one")
    actions = {action.text(): action for action in prepared.list.cards[0].menu().actions()}
    assert not actions[DeleteWords.UNLOAD_FIRST].isEnabled()


def test_words_of_deleting_say_what_stays_and_what_is_free_when() -> None:
    link = FolderWeight(folder="/l", num_files=1, link_target="/drive/m")
    assert weight_line(link) == "Only this link goes; the files stay in /drive/m."
    assert weight_line(msgspec.structs.replace(link, obstacle=DeletionObstacle.NOT_THERE)) == (
        DeleteWords.NOT_THERE
    )
    done = plain(removal_line(RemovalResult("one", 61 << 30, ())))
    assert done == "one lies in the trash. 61.0 GiB are free once you empty it."
    assert "/a, /b could not be moved" in removal_line(RemovalResult("one", 0, ("/a", "/b")))


def test_narrow_page_shows_the_list_and_the_model_in_turns(page: Page, qtbot: QtBot) -> None:
    view = page.view
    view.resize(MIN_WIDTH_OF_TWO_COLUMNS - 1, 500)
    view.show()
    assert page.list.isVisible()
    assert not view.back_button.isVisible()
    page.session.drop_folder(f"{DRIVE}/a")
    assert view.candidate_view.isVisible()
    assert not page.list.isVisible()
    QTest.mouseClick(view.back_button, Qt.MouseButton.LeftButton)
    assert page.list.isVisible()
    assert not view.candidate_view.isVisible()
    page.list.model_chosen.emit(f"{DRIVE}/a")
    assert view.candidate_view.isVisible(), "it was chosen again"
    view.resize(MIN_WIDTH_OF_TWO_COLUMNS, 500)
    qtbot.waitUntil(page.list.isVisible)
    assert view.candidate_view.isVisible()
    assert not view.back_button.isVisible()


def test_linked_model_is_one_card_that_tells_the_link_and_is_counted_once(
    page: Page, qtbot: QtBot
) -> None:
    link = msgspec.structs.replace(some_report("/drive/a-link", "m"), real_folder="/drive/m")
    page.found(link, some_report("/drive/m", "m"))
    page.searched()
    qtbot.waitUntil(lambda: page.names() == ["m"])
    assert page.list.cards[0].toolTip() == "/drive/m\nlinked from /drive/a-link"
    assert plain(page.list._summary.text()) == "1 model · 270 MiB"
    page.list.show_places(loaded_folder="/drive/a-link", current_folder="")
    qtbot.waitUntil(lambda: page.list.cards[0]._state.text() == ModelWords.LOADED)
