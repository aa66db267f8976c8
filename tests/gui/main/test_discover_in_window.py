"""Searching, looking at, downloading and pausing in the real window, with a hub on this machine."""

import threading
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from app.state.downloads import DownloadStage
from app.views.models_view import ModelsView
from app.views.rail import Page
from tests.gui.main.conftest import StartWindow
from tests.support.checkpoint_folders import TinyModel, write_checkpoint
from tests.support.fake_hub import fake_hub, gguf_facts, moe_facts
from tests.support.gguf_models import write_model

WAIT_MS = 60_000
MODEL = "maker/tiny-moe"
SHARD = "model-00002-of-00002.safetensors"


def test_model_is_found_downloaded_with_a_pause_and_listed(
    qtbot: QtBot, start_window: StartWindow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    published = write_checkpoint(tmp_path / "published", TinyModel(num_shards=2))
    with fake_hub(monkeypatch) as hub:
        hub.add(MODEL, published, **moe_facts(num_parameters=1000))
        program = start_window(is_loading=False).program
        program.settings.change(hub_address=hub.address)
        program.window.show_page(Page.MODELS)
        models = program.window.page(Page.MODELS)
        assert isinstance(models, ModelsView)
        models.show_discover()
        view = models.discover_view
        assert view is not None
        assert hub.requests == []
        assert not program.hub_link._client.is_open
        view.allow.acted.emit()
        QTest.keyClicks(view.search, "tiny")
        qtbot.waitUntil(
            lambda: [card.model.model_id for card in view.model_cards] == [MODEL], timeout=WAIT_MS
        )
        QTest.mouseClick(view.model_cards[0], Qt.MouseButton.LeftButton)
        choice = program.discover
        qtbot.waitUntil(
            lambda: choice.choice is not None and bool(choice.choice.plans), timeout=WAIT_MS
        )
        hub.pause_after[SHARD] = threading.Event()
        qtbot.waitUntil(view.model_view.download.isVisible, timeout=WAIT_MS)
        QTest.mouseClick(view.model_view.download, Qt.MouseButton.LeftButton)

        def kept() -> int:
            parts = list((tmp_path / "home").rglob(f"{SHARD}.part"))
            return len(parts)

        qtbot.waitUntil(lambda: kept() == 1, timeout=WAIT_MS)
        QTest.mouseClick(view.model_view.pause, Qt.MouseButton.LeftButton)
        item = program.downloads.items
        qtbot.waitUntil(
            lambda: program.downloads.items[0].stage is DownloadStage.PAUSED, timeout=WAIT_MS
        )
        assert item[0].total_bytes == 0 or item[0].total_bytes > item[0].done_bytes
        hub.pause_after.pop(SHARD).set()
        QTest.mouseClick(view.model_view.resume, Qt.MouseButton.LeftButton)
        qtbot.waitUntil(
            lambda: program.downloads.items[0].stage is DownloadStage.DONE, timeout=WAIT_MS
        )
        folder = Path(program.downloads.items[0].folder)
        for name in (SHARD, "config.json", "tokenizer.json"):
            assert (folder / name).read_bytes() == (published / name).read_bytes()
        assert "complete and verified" in program.window.notice.text()
        qtbot.waitUntil(
            lambda: str(folder) in [model.folder for model in program.library.models],
            timeout=WAIT_MS,
        )
        assert [model.folder for model in program.library.models] == [str(folder)]
        QTest.mouseClick(view.model_view.look_at, Qt.MouseButton.LeftButton)
        assert program.session.candidate is not None
        assert program.session.candidate.folder == str(folder)
        assert models.here_tab.isChecked()


def test_one_of_several_sizes_in_gguf_is_compared_downloaded_and_listed_as_one_model(
    qtbot: QtBot, start_window: StartWindow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page, name = tmp_path / "page", "maker/tiny-GGUF"
    for kind in ("BF16", "Q8_0"):
        write_model(page / kind / f"tiny-{kind}.gguf", "qwen3_moe", kind)
    (page / "mmproj-F16.gguf").write_bytes(b"GGUF")
    with fake_hub(monkeypatch) as hub:
        hub.add(name, page, **gguf_facts())
        program = start_window(is_loading=False).program
        program.settings.change(hub_address=hub.address, is_hub_allowed=True)
        program.window.show_page(Page.MODELS)
        models = program.window.page(Page.MODELS)
        assert isinstance(models, ModelsView)
        models.show_discover()
        view = models.discover_view
        assert view is not None
        QTest.keyClicks(view.search, "tiny")
        qtbot.waitUntil(
            lambda: [card.model.model_id for card in view.model_cards] == [name], timeout=WAIT_MS
        )
        QTest.mouseClick(view.model_cards[0], Qt.MouseButton.LeftButton)
        qtbot.waitUntil(
            lambda: set(view.model_view.variants.choices) == {"BF16", "Q8_0"}, timeout=WAIT_MS
        )
        choices = view.model_view.variants.choices
        qtbot.waitUntil(lambda: "tokens/s" in choices["BF16"].text(), timeout=WAIT_MS)
        choices["BF16"].radio.click()
        discover = program.discover
        qtbot.waitUntil(
            lambda: discover.choice is not None and bool(discover.choice.plans), timeout=WAIT_MS
        )
        assert discover.shown_variant == "BF16"
        qtbot.waitUntil(view.model_view.download.isVisible, timeout=WAIT_MS)
        QTest.mouseClick(view.model_view.download, Qt.MouseButton.LeftButton)
        qtbot.waitUntil(
            lambda: [each.stage for each in program.downloads.items] == [DownloadStage.DONE],
            timeout=WAIT_MS,
        )
        (item,) = program.downloads.items
        file = Path(item.folder) / "tiny-BF16.gguf"
        assert file.read_bytes() == (page / "BF16" / file.name).read_bytes()
        qtbot.waitUntil(lambda: bool(program.library.models), timeout=WAIT_MS)
        assert [model.folder for model in program.library.models] == [str(file)]
        QTest.mouseClick(view.model_view.look_at, Qt.MouseButton.LeftButton)
        assert program.session.candidate is not None
        assert program.session.candidate.folder == item.folder
