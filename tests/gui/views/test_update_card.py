"""The card about newer versions: what it says and offers in each stage."""

from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from app.state.hub_link import HubLink
from app.state.package import Package, PackageKind
from app.state.settings import SettingsState
from app.state.updates import Updates, UpdateStage
from app.text import units
from app.views.update_card import UpdateCard
from runtime.protocol.errors import ErrorCode, ErrorReport, Severity
from runtime.protocol.update_messages import FetchUpdate, ProgramUpdate, UpdateChecked
from tests.support.fake_client import FakeClient

UPDATE = ProgramUpdate(
    version="0.2.0", notes="<b>More</b> models.", file="larder.deb", size_bytes=3 << 30,
    sha256="0" * 64,
)  # fmt: skip


class Shown:
    """The card of an installed program."""

    def __init__(self, qtbot: QtBot, folder: Path) -> None:
        self.client = FakeClient()
        settings = SettingsState(folder / "settings.json")
        package = Package(
            kind=PackageKind.DEB, place=folder, system="linux", address="https://v.example",
            key="AAAA",
        )  # fmt: skip
        self.updates = Updates(HubLink(self.client), settings, package, "0.1.0", folder)
        self.card = UpdateCard(self.updates)
        qtbot.addWidget(self.card)

    def actions(self) -> set[str]:
        card = self.card
        buttons = (card.look, card.fetch, card.stop, card.open)
        return {one.text() for one in buttons if not one.isHidden() and one.isEnabled()}

    def show(self, stage: UpdateStage) -> None:
        self.updates.stage = stage
        self.updates.changed.emit()


@pytest.fixture
def shown(qtbot: QtBot, tmp_path: Path) -> Shown:
    return Shown(qtbot, tmp_path)


def test_card_offers_to_look_and_says_what_is_asked(shown: Shown) -> None:
    assert shown.actions() == {"Look now"}
    assert shown.card.told() == "Nobody looked since the start."
    assert shown.card.notes() == ""


def test_version_that_is_found_is_shown_with_its_notes_as_plain_text(shown: Shown) -> None:
    shown.card.look.click()
    shown.client.open()
    assert shown.actions() == {"Stop"}
    assert shown.card.told() == "Looking…"
    shown.client.answer(UpdateChecked(request_id=1, update=UPDATE))
    assert (
        shown.card.told() == f"Larder 0.2.0 is there, {units.size(UPDATE.size_bytes)} to download."
    )
    assert shown.card.notes() == "<b>More</b> models."
    assert shown.actions() == {"Look now", "Download"}
    shown.card.fetch.click()
    assert shown.client.count(FetchUpdate) == 1
    assert shown.actions() == {"Stop"}


@pytest.mark.parametrize(
    ("stage", "words", "actions"),
    [
        (UpdateStage.FETCHING, "Downloading: ", {"Stop"}),
        (UpdateStage.FETCHED, "Open the installer", {"Look now", "Open the installer"}),
        (UpdateStage.READY, "runs from the next start on", set[str]()),
        (UpdateStage.NEWEST, "This is the newest version.", {"Look now"}),
    ],
)
def test_each_stage_says_what_is_and_what_can_be_done(
    shown: Shown, stage: UpdateStage, words: str, actions: set[str]
) -> None:
    shown.updates.update = UPDATE
    shown.show(stage)
    assert words in shown.card.told()
    assert shown.actions() == actions


def test_unpacking_is_told_once_all_bytes_are_here(shown: Shown) -> None:
    shown.updates.update = UPDATE
    shown.updates.done_bytes = UPDATE.size_bytes
    shown.show(UpdateStage.FETCHING)
    assert shown.card.told() == "Unpacking and checking…"


def test_failure_is_told_in_a_sentence_and_can_be_tried_again(shown: Shown) -> None:
    shown.updates.update = UPDATE
    shown.updates.error = ErrorReport(
        code=ErrorCode.UPDATE_UNREACHABLE,
        severity=Severity.REQUEST,
        parameters={"host": "v.example", "reason": "no network"},
    )
    shown.show(UpdateStage.FAILED)
    assert shown.card.told().startswith("v.example cannot be reached: no network.")
    assert shown.actions() == {"Look now", "Download"}


def test_fetched_file_is_opened_by_the_systems_own_program(
    shown: Shown, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    opened: list[str] = []
    monkeypatch.setattr(
        "app.views.update_card.QDesktopServices.openUrl",
        lambda url: opened.append(url.toLocalFile()),
    )
    shown.updates.file = str(tmp_path / "larder.deb")
    shown.card.open.click()
    assert opened == [str(tmp_path / "larder.deb")]
