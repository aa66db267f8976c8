"""*Discover* on the screen, with both runtimes played by the test."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QFileDialog, QLabel, QRadioButton, QWidget
from pytestqt.qtbot import QtBot

from app.state.curated import CURATED
from app.state.discover import Discover
from app.state.downloads import DownloadItem, Downloads, DownloadStage
from app.state.hub_link import HubLink
from app.state.library import LibraryState
from app.state.session import Session
from app.state.settings import SettingsState
from app.text.discover_words import DiscoverWords, card_lines, download_line, model_facts
from app.theme.palette import DARK, LIGHT
from app.views.discover_view import DiscoverView
from app.views.hub_settings import HubSettings
from runtime.protocol.errors import ErrorCode, ErrorReport, Severity
from runtime.protocol.hub import HubCard, HubFit, HubModel, HubOutlook
from runtime.protocol.hub_messages import (
    DescribeHubModel,
    DiscardDownload,
    DownloadModel,
    DownloadPaused,
    DownloadProgressed,
    HubConfigsRead,
    HubModelDescribed,
    HubSearched,
    ModelDownloaded,
    ReadHubConfigs,
    SearchHub,
)
from runtime.protocol.messages import (
    CommandFailed,
    ForecastModels,
    ModelPlanned,
    ModelsForecast,
    PlanModel,
)
from runtime.protocol.plan import PlanKind
from tests.gui.text.test_units import plain
from tests.support.fake_client import FakeClient
from tests.support.window_values import some_forecast, some_plan, some_report

GIB = 1 << 30
MODEL = CURATED[0].model_id
CARD = HubCard(
    model_id=MODEL,
    revision="0" * 40,
    licence="mit",
    is_gated=True,
    base_model="a/base",
    languages=["en", "de"],
    last_modified="2026-05-31",
    num_files=9,
    size_bytes=60 * GIB,
    left_out_bytes=40 * GIB,
    kept_bytes=10 * GIB,
    free_bytes=100 * GIB,
    folder="/models/a/b",
    outline_folder="/cache/o/b",
)
UNREACHABLE = ErrorReport(
    code=ErrorCode.HUB_UNREACHABLE,
    severity=Severity.REQUEST,
    parameters={"host": "hub.example", "reason": "no route"},
)


def shown(widget: QWidget) -> str:
    """Return the words that are on the screen."""
    labels = (each for each in widget.findChildren(QLabel) if each.isVisible())
    return plain(" | ".join(each.text() for each in labels))


class Page:
    """The page with the state behind it."""

    def __init__(self, qtbot: QtBot, folder: Path) -> None:
        self.client, self.hub = FakeClient(), FakeClient()
        self.settings = SettingsState(folder / "settings.json")
        library = LibraryState(folder / "library.json")
        session = Session(self.client, self.settings, library)
        session.start()
        self.client.open()
        link = HubLink(self.hub)
        self.link = link
        self.discover = Discover(
            link, self.client, session, self.settings, library, folder / "models"
        )
        self.downloads = Downloads(folder / "downloads.json", link, self.settings)
        self.view = DiscoverView(self.discover, self.downloads, LIGHT)
        qtbot.addWidget(self.view)
        self.view.resize(1276, 800)
        self.view.show()

    def allow(self) -> None:
        self.view.allow.acted.emit()
        self.hub.open()

    def look_at(self, card: HubCard = CARD) -> None:
        """Click the first model and answer what is asked for it."""
        QTest.mouseClick(self.view.model_cards[0], Qt.MouseButton.LeftButton)
        request_id = self.hub.last(DescribeHubModel).request_id
        self.hub.answer(HubModelDescribed(request_id=request_id, card=card))
        if card.outline_folder:
            self.client.answer(
                ModelPlanned(
                    request_id=self.client.last(PlanModel).request_id,
                    report=some_report(card.outline_folder),
                    plans=[some_plan(forecast=some_forecast()), some_plan(PlanKind.EIGHT_BIT)],
                    recommended=PlanKind.EXACT,
                )
            )

    @property
    def running(self) -> int:
        return self.hub.last(DownloadModel).request_id


@pytest.fixture
def page(qtbot: QtBot, tmp_path: Path) -> Iterator[Page]:
    page = Page(qtbot, tmp_path)
    yield page
    page.settings.close()
    page.link.deleteLater()


def test_nothing_is_asked_before_a_person_allows_it(page: Page) -> None:
    assert DiscoverWords.ALLOW_TITLE in shown(page.view)
    assert len(page.view.model_cards) == len(CURATED)
    assert not page.view.search.isEnabled()
    QTest.mouseClick(page.view.model_cards[0], Qt.MouseButton.LeftButton)
    assert page.hub.num_starts == 0
    page.allow()
    assert page.view.search.isEnabled()
    assert DiscoverWords.CHOOSE_TITLE in shown(page.view)


def test_listed_models_tell_how_fast_they_would_answer_before_they_are_pressed(
    page: Page,
) -> None:
    page.allow()
    assert page.hub.last(ReadHubConfigs).model_ids == [each.model_id for each in CURATED]
    configs = ["{}"] * 3 + [""] * (len(CURATED) - 3)
    request_id = page.hub.last(ReadHubConfigs).request_id
    page.hub.answer(HubConfigsRead(request_id=request_id, configs=configs))
    assert "about" not in shown(page.view)
    request_id = page.client.last(ForecastModels).request_id
    forecasts = [
        HubOutlook(forecast=some_forecast()),
        HubOutlook(is_too_large=True),
        HubOutlook(),
    ]
    page.client.answer(ModelsForecast(request_id=request_id, forecasts=forecasts))
    first, large, second = page.view.model_cards[:3]
    assert "needs more memory than this PC has" in shown(large)
    assert "about 19–24 tokens/s on this PC" in shown(first)
    assert "19–24" in first.accessibleName()
    assert "tokens/s" not in shown(second) + second.accessibleName()
    assert page.hub.count(DescribeHubModel) == 0
    page.view.hide()
    page.view.show()
    assert page.client.count(ForecastModels) == 2


def test_search_lists_what_the_hub_has(page: Page, qtbot: QtBot) -> None:
    page.allow()
    page.view.search.setText("moe")
    QTest.keyClick(page.view.search, Qt.Key.Key_Return)
    assert DiscoverWords.SEARCHING in shown(page.view)
    model = HubModel(
        model_id="some/moe",
        fit=HubFit.NO_ROOM,
        licence="mit",
        is_gated=True,
        num_parameters=30_000_000_000,
        size_bytes=61 * GIB,
        num_downloads=1234,
    )
    request_id = page.hub.last(SearchHub).request_id
    page.hub.answer(HubSearched(request_id=request_id, models=[model]))
    assert [card.model for card in page.view.model_cards] == [model]
    qtbot.waitUntil(lambda: "needs more room than its drive has" in shown(page.view))
    text = shown(page.view)
    assert "30 billion weights · 61.0 GiB · mit · its owner wants to be asked · 1,234 dow" in text
    QTest.keyClick(page.view.search, Qt.Key.Key_Return)
    assert page.hub.count(SearchHub) == 1
    page.view.search.setText("no such")
    QTest.keyClick(page.view.search, Qt.Key.Key_Return)
    page.hub.answer(HubSearched(request_id=page.hub.last(SearchHub).request_id, models=[]))
    assert DiscoverWords.NOTHING in shown(page.view)


def test_search_that_fails_says_why_and_can_be_repeated(page: Page) -> None:
    page.allow()
    page.view.search.setText("moe")
    QTest.keyClick(page.view.search, Qt.Key.Key_Return)
    request_id = page.hub.last(SearchHub).request_id
    page.hub.answer(CommandFailed(request_id=request_id, error=UNREACHABLE))
    assert "hub.example cannot be reached: no route." in shown(page.view)
    QTest.keyClick(page.view.search, Qt.Key.Key_Return)
    assert page.hub.count(SearchHub) == 2
    assert "cannot be reached" not in shown(page.view)


def test_model_is_shown_with_what_would_come_and_how_fast(page: Page, qtbot: QtBot) -> None:
    page.allow()
    page.look_at()
    qtbot.waitUntil(lambda: "tokens/s" in shown(page.view.model_view))
    text = shown(page.view.model_view)
    assert "licence: mit · its owner wants to be asked · changed 2026-05-31" in text
    assert "60.0 GiB in 9 files · 40.0 GiB of other formats stay there" in text
    assert "10.0 GiB are here already" in text
    assert "where 100 GiB are free" in text or "where 100.0 GiB are free" in text
    assert plain(page.view.model_view.download.text()) == "Download 50.0 GiB"
    radios = page.view.model_view.findChildren(QRadioButton)
    assert len(radios) == 2
    assert not any(radio.isEnabled() for radio in radios)
    page.view.show_palette(DARK)
    qtbot.waitUntil(lambda: "tokens/s" in shown(page.view.model_view))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"free_bytes": GIB}, DiscoverWords.NO_ROOM),
        ({"outline_folder": "", "problem": UNREACHABLE}, "cannot be reached"),
        ({"outline_folder": ""}, DiscoverWords.NO_OUTLINE),
    ],
)
def test_model_that_cannot_be_downloaded_or_planned_says_why(
    page: Page, changes: dict[str, object], words: str
) -> None:
    page.allow()
    page.look_at(msgspec.structs.replace(CARD, **changes))
    assert words in shown(page.view.model_view)
    button = page.view.model_view.download
    can_load = "problem" not in changes and "free_bytes" not in changes
    assert (button.isVisible() and button.isEnabled()) is can_load


def test_download_is_watched_paused_resumed_and_looked_at(page: Page, qtbot: QtBot) -> None:
    page.allow()
    page.look_at()
    view = page.view.model_view
    QTest.mouseClick(view.download, Qt.MouseButton.LeftButton)
    progress = DownloadProgressed(
        request_id=page.running, done_bytes=15 * GIB, total_bytes=60 * GIB, bytes_per_s=50 << 20
    )
    page.hub.answer(progress)
    card = page.view.download_cards[MODEL]
    assert plain(card.text()) == "15.0 GiB of 60.0 GiB · 50 MiB/s · 15 min 22 s left"
    assert not view.download.isVisible()
    page.hub.answer(msgspec.structs.replace(progress, bytes_per_s=0.0, num_retries=2))
    assert "the line broke, trying again" in card.text()
    QTest.mouseClick(view.pause, Qt.MouseButton.LeftButton)
    assert "pausing" in card.text()
    page.hub.answer(DownloadPaused(request_id=page.running, kept_bytes=16 * GIB))
    assert "paused, what came is kept" in card.text()
    QTest.mouseClick(card.resume, Qt.MouseButton.LeftButton)
    page.hub.answer(CommandFailed(request_id=page.running, error=UNREACHABLE))
    assert "It is tried again by itself." in card.text()
    QTest.mouseClick(view.resume, Qt.MouseButton.LeftButton)
    page.hub.answer(
        ModelDownloaded(request_id=page.running, folder="/models/a/b", size_bytes=60 * GIB)
    )
    assert plain(card.text()) == "complete and verified, 60.0 GiB"
    with qtbot.waitSignal(page.view.folder_chosen) as chosen:
        QTest.mouseClick(view.look_at, Qt.MouseButton.LeftButton)
    assert chosen.args == ["/models/a/b"]
    QTest.mouseClick(card.remove, Qt.MouseButton.LeftButton)
    assert page.view.download_cards == {}
    assert page.hub.count(DiscardDownload) == 0


def test_download_cancelled_deletes_what_came(page: Page) -> None:
    page.allow()
    page.look_at()
    page.view.model_view.download.click()
    page.view.download_cards[MODEL].pause.click()
    page.view.download_cards[MODEL].remove.click()
    assert page.hub.last(DiscardDownload).model_id == MODEL
    assert page.view.model_view.download.isVisible()


def test_model_that_is_here_is_looked_at_where_it_lies(page: Page, qtbot: QtBot) -> None:
    page.allow()
    page.look_at(msgspec.structs.replace(CARD, is_here=True, kept_bytes=60 * GIB))
    assert not page.view.model_view.download.isVisible()
    with qtbot.waitSignal(page.view.folder_chosen) as chosen:
        page.view.model_view.look_at.click()
    assert chosen.args == ["/models/a/b"]


def test_models_are_chosen_by_keys_too(page: Page) -> None:
    page.allow()
    card = page.view.model_cards[1]
    QTest.keyClick(card, Qt.Key.Key_A)
    assert page.discover.choice is None
    QTest.keyClick(card, Qt.Key.Key_Return)
    assert page.discover.choice is not None
    assert page.discover.choice.model_id == CURATED[1].model_id
    QTest.mouseClick(card, Qt.MouseButton.RightButton)
    assert page.hub.count(DescribeHubModel) == 1


def test_lines_leave_out_what_is_not_known() -> None:
    assert card_lines(HubCard(model_id="a/b", revision="0")) == "licence: not stated"
    assert model_facts(HubModel(model_id="a/b", fit=HubFit.UNKNOWN)) == ""
    item = DownloadItem(model_id="a/b", revision="0", root="/", stage=DownloadStage.WAITING)
    assert download_line(item) == "waits for its turn"


def test_settings_take_a_hub_and_a_place(
    page: Page, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    card = HubSettings(page.settings, "/usual")
    qtbot.addWidget(card)
    card.show()
    assert card.folder_text() == "/usual"
    card.allowed.click()
    assert page.settings.values.is_hub_allowed
    card.address.setText("hub.example")
    card.address.editingFinished.emit()
    assert page.settings.values.hub_address == ""
    assert DiscoverWords.HUB_ADDRESS_WRONG in shown(card)
    card.address.setText(" https://hub.example ")
    card.address.editingFinished.emit()
    assert page.settings.values.hub_address == "https://hub.example"
    assert DiscoverWords.HUB_ADDRESS_WRONG not in shown(card)
    for answer, place in (("", "/usual"), ("/big", "/big")):
        monkeypatch.setattr(QFileDialog, "getExistingDirectory", lambda *_, to=answer: to)
        card.choose.click()
        assert card.folder_text() == place
    card.usual.click()
    assert page.settings.values.download_folder == ""
