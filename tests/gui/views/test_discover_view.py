"""*Discover* on the screen, with both runtimes played by the test."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QFileDialog, QLabel, QRadioButton, QScrollArea, QWidget
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
from runtime.protocol.hub import HubCard, HubFit, HubModel, HubOutlook, HubVariant
from runtime.protocol.hub_messages import (
    DescribeHubModel,
    DiscardDownload,
    DownloadModel,
    DownloadPaused,
    DownloadProgressed,
    ForecastModels,
    HubConfigsRead,
    HubModelDescribed,
    HubSearched,
    ModelDownloaded,
    ModelsForecast,
    ReadHubConfigs,
    SearchHub,
)
from runtime.protocol.messages import (
    CommandFailed,
    ModelPlanned,
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
    asked = page.client.last(ForecastModels)
    assert [each.gguf_label for each in asked.models] == [each.gguf_label for each in CURATED]
    assert all(each.config for each in asked.models)
    forecasts = [HubOutlook() for _ in CURATED]
    forecasts[:2] = [HubOutlook(forecast=some_forecast()), HubOutlook(is_too_large=True)]
    request_id = asked.request_id
    page.client.answer(ModelsForecast(request_id=request_id, forecasts=forecasts))
    first, large, second = page.view.model_cards[:3]
    assert "needs more memory than this PC has" in shown(large)
    assert "about 19–24 tokens/s on this PC" in shown(first)
    assert "19–24" in first.accessibleName()
    assert "tokens/s" not in shown(second) + second.accessibleName()
    assert page.hub.num_starts == 0, "no network is needed for that"
    page.view.hide()
    page.view.show()
    assert page.client.count(ForecastModels) == 2


def test_found_models_tell_how_fast_they_would_answer_by_their_configs(
    page: Page, qtbot: QtBot
) -> None:
    page.allow()
    page.view.search.setText("moe")
    QTest.keyClick(page.view.search, Qt.Key.Key_Return)
    models = [
        HubModel(model_id="a/moe", fit=HubFit.FITS),
        HubModel(
            model_id="b/moe-GGUF",
            fit=HubFit.FITS,
            gguf_label="Q4_K_M",
            base_model="a/moe",
            size_bytes=17 * GIB,
        ),
    ]
    page.hub.answer(HubSearched(request_id=page.hub.last(SearchHub).request_id, models=models))
    read = page.hub.last(ReadHubConfigs)
    assert read.model_ids == ["a/moe"], "both have the same shape"
    page.hub.answer(HubConfigsRead(request_id=read.request_id, configs=["{1}"]))
    asked = page.client.last(ForecastModels)
    assert [(each.config, each.gguf_label) for each in asked.models] == [
        ("{1}", ""),
        ("{1}", "Q4_K_M"),
    ]
    outlooks = [HubOutlook(), HubOutlook(forecast=some_forecast())]
    page.client.answer(ModelsForecast(request_id=asked.request_id, forecasts=outlooks))
    card = page.view.model_cards[1]
    qtbot.waitUntil(lambda: "GGUF, about 17.0 GiB as Q4_K_M" in shown(card))
    text = shown(card)
    assert "about 19–24 tokens/s on this PC" in text


VARIANTS = [
    HubVariant(name="BF16", label="BF16", size_bytes=57 * GIB, num_files=2),
    HubVariant(name="Q8_0", label="Q8_0", size_bytes=31 * GIB, is_here=True),
    HubVariant(name="Q4_K_M", label="Q4_K_M", size_bytes=17 * GIB),
    HubVariant(name="IQ2_M", label="IQ2_M", size_bytes=9 * GIB, fit=HubFit.NOT_RUNNABLE),
]


def test_sizes_of_a_page_are_compared_and_the_one_that_suits_is_looked_at(
    page: Page, qtbot: QtBot
) -> None:
    page.allow()
    outline = "/cache/o/a-Q4_K_M.gguf"
    card = msgspec.structs.replace(
        CARD, variant="Q4_K_M", variants=VARIANTS, outline_folder=outline, kept_bytes=0
    )
    page.look_at(card)
    asked = page.client.last(ForecastModels)
    assert [(each.outline, each.gguf_label) for each in asked.models] == [
        (outline, label) for label in ("BF16", "Q8_0", "Q4_K_M")
    ]
    assert asked.models[2].size_bytes == 17 * GIB
    outlooks = [
        HubOutlook(is_too_large=True),
        HubOutlook(forecast=some_forecast()),
        HubOutlook(forecast=some_forecast(), is_on_drive=True),
    ]
    reply = ModelsForecast(request_id=asked.request_id, forecasts=outlooks, advised=1)
    page.client.answer(reply)
    view = page.view.model_view
    lines = [plain(row.text()) for row in view.variants.choices.values()]
    assert lines == [
        "BF16 · 57.0 GiB · 2 files · needs more memory than this PC has",
        "Q8_0 · 31.0 GiB · is here · about 19–24 tokens/s on this PC · fits into memory · "
        + DiscoverWords.ADVISED,
        "Q4_K_M · 17.0 GiB · about 19–24 tokens/s on this PC · runs from the drive",
    ]
    assert "Their numbers cannot be read yet: IQ2_M" in shown(view)
    assert "of other sizes and files stay there" in card_lines(card)
    assert page.hub.last(DescribeHubModel).variant == "Q8_0"
    assert not view.download.isVisible()
    page.hub.answer(
        HubModelDescribed(
            request_id=page.hub.last(DescribeHubModel).request_id,
            card=msgspec.structs.replace(card, variant="Q8_0", outline_folder="/cache/o/b.gguf"),
        )
    )
    assert view.variants.choices["Q8_0"].radio.isChecked()
    page.client.answer(reply)
    view.variants.choices["Q4_K_M"].radio.click()
    assert page.hub.last(DescribeHubModel).variant == "Q4_K_M"
    num_asked = page.hub.count(DescribeHubModel)
    view.variants.choices["Q4_K_M"].radio.click()
    assert page.hub.count(DescribeHubModel) == num_asked
    page.hub.answer(
        HubModelDescribed(request_id=page.hub.last(DescribeHubModel).request_id, card=card)
    )
    page.client.answer(
        ModelPlanned(
            request_id=page.client.last(PlanModel).request_id,
            report=some_report(outline),
            plans=[some_plan(forecast=some_forecast())],
            recommended=PlanKind.EXACT,
        )
    )
    asked_for = [each for each in page.client.sent if isinstance(each, ForecastModels)]
    assert [each.models[0].outline for each in asked_for].count(outline) == 1
    view.download.click()
    assert page.hub.last(DownloadModel).variant == "Q4_K_M"
    assert list(page.view.download_cards) == [f"{MODEL}@Q4_K_M"]
    view.pause.click()
    page.hub.answer(DownloadPaused(request_id=page.running, kept_bytes=GIB))
    qtbot.waitUntil(lambda: f"{MODEL} · Q4_K_M" in shown(page.view))
    assert "is here" not in view.variants.choices["Q4_K_M"].text()
    view.resume.click()
    done = ModelDownloaded(request_id=page.running, folder="/models/a", size_bytes=17 * GIB)
    page.hub.answer(done)
    assert "is here" in view.variants.choices["Q4_K_M"].text()
    assert view.look_at.isVisible()
    page.view.download_cards[f"{MODEL}@Q4_K_M"].remove.click()
    view.download.click()
    page.view.download_cards[f"{MODEL}@Q4_K_M"].remove.click()
    assert page.hub.last(DiscardDownload).variant == "Q4_K_M"


def test_sizes_fit_into_a_narrow_page_and_are_chosen_by_their_words(
    page: Page, qtbot: QtBot
) -> None:
    page.allow()
    long = msgspec.structs.replace(VARIANTS[0], name="folder-of-the-maker-" * 6 + "tiny")
    card = msgspec.structs.replace(CARD, variant="Q4_K_M", variants=[long, *VARIANTS[1:]])
    page.look_at(card)
    asked = page.client.last(ForecastModels)
    outlooks = [HubOutlook(forecast=some_forecast()) for _ in asked.models]
    page.client.answer(ModelsForecast(request_id=asked.request_id, forecasts=outlooks, advised=2))
    page.view.resize(676, 480)
    view = page.view.model_view
    (area,) = view.findChildren(QScrollArea)
    sizes = view.variants
    qtbot.waitUntil(lambda: 0 < sizes.width() <= area.viewport().width())
    row = view.variants.choices["Q8_0"]
    QTest.mouseClick(row, Qt.MouseButton.RightButton, pos=row.rect().center())
    assert not row.radio.isChecked()
    QTest.mouseClick(row, Qt.MouseButton.LeftButton, pos=row.rect().center())
    assert row.radio.isChecked()
    assert page.hub.last(DescribeHubModel).variant == "Q8_0"
    assert row.radio.accessibleName() == row.text()


def test_page_without_a_size_that_runs_advises_none(page: Page) -> None:
    page.allow()
    variants = [msgspec.structs.replace(VARIANTS[2], fit=HubFit.NO_ROOM)]
    page.look_at(msgspec.structs.replace(CARD, variant="Q4_K_M", variants=variants))
    asked = page.client.last(ForecastModels)
    page.client.answer(
        ModelsForecast(request_id=asked.request_id, forecasts=[HubOutlook(is_too_large=True)])
    )
    assert page.hub.count(DescribeHubModel) == 1
    line = page.view.model_view.variants.choices["Q4_K_M"].text()
    assert "needs more room than its drive has" in line
    assert "needs more memory" in line
    assert model_facts(HubModel(model_id="a/b", fit=HubFit.UNKNOWN, gguf_label="GGUF")) == "GGUF"


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
