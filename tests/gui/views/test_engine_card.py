"""The card about the engine for graphics cards, and both cards of upkeep on the Settings page."""

from pathlib import Path

import pytest
from PySide6.QtCore import QObject, Signal
from pytestqt.qtbot import QtBot

from app.state.engine_folder import READY, EngineList
from app.state.engine_parts import EngineParts, EngineStage
from app.state.hub_link import HubLink
from app.text import units
from app.views.engine_card import EngineCard
from runtime.protocol.engine_messages import EngineFetched, EnginePart, FetchEngine
from runtime.protocol.errors import ErrorCode, ErrorReport, Severity
from tests.support.fake_client import FakeClient

LISTED = EngineList(
    name="torch-2.13.0-cu130",
    source="w.example",
    parts=[EnginePart(file="t.whl", url="https://w.example/t", size_bytes=3 << 30, sha256="0")],
)


class Talk(QObject):
    """As much of a session as is listened to."""

    changed = Signal()
    machine = None


class Shown:
    """The card of a packaged program."""

    def __init__(self, qtbot: QtBot, folder: Path) -> None:
        self.client = FakeClient()
        self.session = Talk()
        link = HubLink(self.client)
        self.parts = EngineParts(link, self.session, LISTED, folder)  # type: ignore[arg-type]
        self.card = EngineCard(self.parts)
        qtbot.addWidget(self.card)

    def actions(self) -> set[str]:
        card = self.card
        return {one.text() for one in (card.fetch, card.stop, card.give_back) if not one.isHidden()}

    def show(self, stage: EngineStage) -> None:
        self.parts.card = "A card"
        self.parts.stage = stage
        self.parts.changed.emit()


@pytest.fixture
def shown(qtbot: QtBot, tmp_path: Path) -> Shown:
    return Shown(qtbot, tmp_path)


def test_card_is_hidden_while_no_graphics_card_is_left_alone(shown: Shown) -> None:
    assert shown.card.isHidden()
    shown.show(EngineStage.OFFERED)
    assert not shown.card.isHidden()


def test_offer_names_size_and_source_before_anything_is_fetched(shown: Shown) -> None:
    shown.show(EngineStage.OFFERED)
    assert f"{units.size(3 << 30)} from w.example" in shown.card.told()
    assert "A card is not used yet" in shown.card.told()
    assert shown.actions() == {"Download the engine for the card"}
    assert shown.client.num_starts == 0


def test_fetching_can_be_stopped_and_what_is_there_given_back(shown: Shown, tmp_path: Path) -> None:
    shown.show(EngineStage.OFFERED)
    shown.card.fetch.click()
    shown.client.open()
    assert shown.card.told().startswith("Downloading: ")
    assert shown.actions() == {"Stop"}
    asked = shown.client.last(FetchEngine)
    shown.parts.done_bytes = 3 << 30
    shown.parts.changed.emit()
    assert "trying it on the card" in shown.card.told()
    Path(asked.folder).mkdir(parents=True)
    shown.client.answer(
        EngineFetched(request_id=asked.request_id, folder=asked.folder, version="2", card="A card")
    )
    assert "from the next start" in shown.card.told()
    assert shown.actions() == {"Remove it again"}
    shown.card.give_back.click()
    assert "removed at the next start" in shown.card.told()
    assert shown.actions() == set()


def test_engine_that_could_not_be_removed_is_not_offered_for_download(shown: Shown) -> None:
    shown.show(EngineStage.READY)
    shown.parts.folder.parent.mkdir(parents=True)
    shown.parts.folder.write_text("no folder, so that nothing can be noted in it")
    shown.card.give_back.click()
    assert shown.parts.stage is EngineStage.FAILED
    shown.parts.folder.unlink()
    shown.parts.folder.mkdir()
    (shown.parts.folder / READY).touch()
    shown.parts.changed.emit()
    assert shown.actions() == {"Remove it again"}
    shown.card.give_back.click()
    assert "removed at the next start" in shown.card.told()


def test_failure_is_told_in_a_sentence_and_can_be_tried_again(shown: Shown) -> None:
    shown.parts.error = ErrorReport(
        code=ErrorCode.ENGINE_PARTS_UNUSABLE,
        severity=Severity.REQUEST,
        parameters={"reason": "the driver is old"},
    )
    shown.show(EngineStage.FAILED)
    assert "does not work here: the driver is old." in shown.card.told()
    assert shown.actions() == {"Download the engine for the card"}
