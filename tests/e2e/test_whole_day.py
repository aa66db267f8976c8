"""One day with the whole product: drop, load, chat, branch, search, download, delete, undo."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLineEdit
from pytestqt.qtbot import QtBot

from app.main import StartOptions
from app.state.downloads import DownloadStage
from app.state.stages import Stage
from app.text.words import ChatWords, ModelWords, ShellWords
from app.views import edit_dialog
from app.views.delete_dialog import DeleteDialog
from app.views.models_view import ModelsView
from app.views.rail import Page
from runtime.protocol.chat import SamplingSettings
from tests.support.checkpoint_folders import TinyModel, write_checkpoint
from tests.support.fake_hub import FakeHub, fake_hub, moe_facts
from tests.support.gguf_files import write_gguf
from tests.support.gguf_models import model_tensors, model_values
from tests.support.menus import act
from tests.support.presses import press, rows_of
from tests.support.window import ANSWER_MS, START_MS, WindowDriver

pytestmark = pytest.mark.usefixtures("measured_before")

MODEL = "maker/tiny-moe"
SHARD = "model-00002-of-00002.safetensors"


def split_model(folder: Path) -> list[Path]:
    """Write a model with experts as two files; the second has most of the matrices."""
    tensors = model_tensors("qwen3_moe")
    first = {name: tensors.pop(name) for name in list(tensors)[:2]}
    count = {"split.count": 2, "split.tensors.count": len(first) + len(tensors)}
    paths = [folder / f"tiny-0000{number}-of-00002.gguf" for number in (1, 2)]
    write_gguf(paths[0], {**model_values("qwen3_moe"), "split.no": 0, **count}, first)
    write_gguf(paths[1], {"split.no": 1, **count}, tensors)
    return paths


def drag_from_another_program(window: WindowDriver, path: Path) -> None:
    """Have another program drag a file over the middle of the window and let it go."""
    middle = window.program.window.mapToGlobal(window.program.window.rect().center())
    place = [str(middle.x()), str(middle.y())]
    source = subprocess.Popen(
        [sys.executable, "-m", "tests.support.drag_source", str(path), *place]
    )
    session = window.program.session
    try:
        window.qtbot.waitUntil(
            lambda: session.candidate is not None or source.poll() is not None, timeout=START_MS
        )
        assert source.poll() is None, "the drag was not taken"
    finally:
        source.kill()
        source.wait()


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    with fake_hub(monkeypatch) as served:
        published = write_checkpoint(tmp_path / "published", TinyModel(num_shards=2))
        served.add(MODEL, published, **moe_facts(num_parameters=1000))
        yield served


@pytest.fixture
def window(qtbot: QtBot, hub: FakeHub) -> Iterator[WindowDriver]:
    # The hub is there first: what may be asked is taken from the environment of the start.
    assert hub.requests == []
    driver = WindowDriver(qtbot, StartOptions(is_demo_wanted=False))
    driver.program.settings.change(sampling=SamplingSettings(temperature=0.0, max_tokens=6))
    driver.wait_for_stage(Stage.IDLE)
    yield driver
    driver.close()


def load_dropped(window: WindowDriver, path: Path) -> ModelsView:
    """Drop a file, see its plans, start it, and return the Models page."""
    session = window.program.session
    drag_from_another_program(window, path)
    window.qtbot.waitUntil(
        lambda: session.candidate is not None and session.candidate.can_load, timeout=START_MS
    )
    models = window.program.window.page(Page.MODELS)
    assert isinstance(models, ModelsView)
    window.click(models.candidate_view, ModelWords.LOAD)
    window.wait_for_stage(Stage.READY)
    return models


def chat_and_branch(window: WindowDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask, ask again, edit, step back; begin another chat; search; delete one and undo that."""
    program = window.program
    page, chat = program.chat_view, program.chat
    messages, chats = page.messages, page.chat_list
    window.send("Bread")
    answer = window.wait_for_answer()
    assert answer
    press(messages.views()[-1], ChatWords.REGENERATE)
    window.wait_for_answer()
    assert chat.messages[-1].num_variants == 2
    press(messages.views()[-1], ChatWords.PREVIOUS_VARIANT)
    assert [each.text for each in chat.messages] == ["Bread", answer]
    monkeypatch.setattr(edit_dialog, "ask_text", lambda *_: "Rye bread")
    press(messages.views()[0], ChatWords.EDIT)
    window.wait_for_answer()
    assert chat.messages[0].text == "Rye bread"
    press(messages.views()[0], ChatWords.PREVIOUS_VARIANT)
    assert chat.messages[0].text == "Bread"
    press(chats, ChatWords.NEW_CHAT)
    window.send("Trains")
    window.wait_for_answer()
    assert rows_of(chats) == ["Trains", "Bread"]
    search = chats.findChildren(QLineEdit)[0]
    QTest.keyClicks(search, "rye")
    assert rows_of(chats) == ["Bread"]
    search.clear()
    act(chats.menu_of(1), ChatWords.DELETE)
    assert rows_of(chats) == ["Trains"]
    window.qtbot.waitUntil(page.notice.isVisible, timeout=START_MS)
    press(page.notice, ShellWords.UNDO)
    assert rows_of(chats) == ["Trains", "Bread"]


def download(window: WindowDriver, models: ModelsView, hub: FakeHub) -> Path:
    """Find a model, see how fast it would be, download it with a pause, return its folder."""
    qtbot, program = window.qtbot, window.program
    program.settings.change(hub_address=hub.address)
    models.show_discover()
    view = models.discover_view
    assert view is not None
    assert hub.requests == []
    view.allow.acted.emit()
    QTest.keyClicks(view.search, "tiny")
    qtbot.waitUntil(
        lambda: [card.model.model_id for card in view.model_cards] == [MODEL], timeout=ANSWER_MS
    )
    qtbot.waitUntil(lambda: "tokens/s" in view.model_cards[0].accessibleName(), timeout=ANSWER_MS)
    QTest.mouseClick(view.model_cards[0], Qt.MouseButton.LeftButton)
    qtbot.waitUntil(view.model_view.download.isVisible, timeout=ANSWER_MS)
    hub.pause_after[SHARD] = threading.Event()
    QTest.mouseClick(view.model_view.download, Qt.MouseButton.LeftButton)
    home = Path(program.discover.folder)
    qtbot.waitUntil(lambda: len(list(home.rglob(f"{SHARD}.part"))) == 1, timeout=ANSWER_MS)
    QTest.mouseClick(view.model_view.pause, Qt.MouseButton.LeftButton)

    def has(stage: DownloadStage) -> bool:
        return program.downloads.items[0].stage is stage

    qtbot.waitUntil(lambda: has(DownloadStage.PAUSED), timeout=ANSWER_MS)
    hub.pause_after.pop(SHARD).set()
    QTest.mouseClick(view.model_view.resume, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: has(DownloadStage.DONE), timeout=ANSWER_MS)
    folder = Path(program.downloads.items[0].folder)
    published = hub.models[MODEL].folder
    for name in (SHARD, "config.json", "tokenizer.json"):
        assert (folder / name).read_bytes() == (published / name).read_bytes()
    assert "complete and verified" in program.window.notice.text()
    QTest.mouseClick(view.model_view.look_at, Qt.MouseButton.LeftButton)
    assert models.here_tab.isChecked()
    return folder


def test_day_from_a_dropped_model_to_deleting_one(
    window: WindowDriver, hub: FakeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    qtbot, program = window.qtbot, window.program
    parts = split_model(tmp_path / "publisher" / "tiny")
    models = load_dropped(window, parts[1])
    assert program.session.loaded is not None
    assert program.session.loaded.folder == str(parts[0])
    chat_and_branch(window, monkeypatch)
    program.window.show_page(Page.MODELS)
    folder = download(window, models, hub)

    def listed() -> set[str]:
        return {card.model.folder for card in models.library_view.cards}

    qtbot.waitUntil(lambda: listed() == {str(parts[0]), str(folder)}, timeout=ANSWER_MS)
    assert not program.removal.can_remove(str(parts[0]))
    card = next(each for each in models.library_view.cards if each.model.folder == str(folder))
    card.delete_wanted.emit(str(folder))
    qtbot.waitUntil(lambda: bool(models.findChildren(DeleteDialog)), timeout=START_MS)
    models.findChildren(DeleteDialog)[0].trash.click()
    qtbot.waitUntil(lambda: listed() == {str(parts[0])}, timeout=START_MS)
    assert not folder.exists()
    assert all(path.exists() for path in parts)
    assert "trash" in program.window.notice.text()
