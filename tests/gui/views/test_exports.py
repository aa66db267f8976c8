"""What a person exports, where nothing can be written or the drive is full: told, and nothing lost.

The system itself refuses: files may not grow beyond a limit, as on a full drive, and the folders of
``/sys`` take no files from anybody.
"""

import contextlib
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtWidgets import QFileDialog, QLabel
from pytestqt.qtbot import QtBot

from app.state.json_file import export_whole
from app.state.presets import PresetState
from app.state.settings_file import Preset
from app.views.chat_view import ChatView
from app.views.preset_dialog import PresetDialog
from app.views.saving import save
from runtime.protocol.chat import Role

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits and /sys are of Linux")
LIMIT_BYTES = 64 * 1024
LONG = "bread and salt " * (LIMIT_BYTES // 8)
Way = Callable[[Path], str]
"""Exports to a file and returns what a person is told."""


@contextlib.contextmanager
def full_drive() -> Iterator[None]:
    """Let no file grow beyond a limit for a while."""
    import resource

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (LIMIT_BYTES, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


@pytest.fixture(params=["page", "markdown", "json", "preset"])
def way(
    request: pytest.FixtureRequest, page: ChatView, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> Way:
    """Tables, pictures and reports of a page; a chat; a preset."""
    kind = request.param
    if kind == "page":
        told = QLabel()
        qtbot.addWidget(told)

        def save_page(path: Path) -> str:
            save(str(path), LONG.encode(), told)
            return told.text()

        return save_page
    if kind == "preset":
        settings = page._chat._settings
        presets = PresetState(settings)
        presets.add(Preset(name="long", system_prompt=LONG))
        return lambda path: _export_preset(presets, path, qtbot, monkeypatch)
    store = page._chat._store
    chat_id = store.new_chat("Why?")
    store.add_message(chat_id, None, Role.USER, LONG)

    def save_chat(path: Path) -> str:
        page.files.save(chat_id, path, is_json=kind == "json")
        return page.notice.text()

    return save_chat


def _export_preset(
    presets: PresetState, path: Path, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> str:
    dialog = PresetDialog(presets)
    qtbot.addWidget(dialog)
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(path), ""))
    dialog._on_export()
    return dialog.problem.text()


def test_export_to_a_full_drive_is_told_and_keeps_the_file_that_was_there(
    way: Way, tmp_path: Path
) -> None:
    path = tmp_path / "out.txt"
    path.write_text("before", encoding="utf-8")
    with full_drive():
        told = way(path)
    assert str(path) in told
    assert "File too large" in told
    assert path.read_text(encoding="utf-8") == "before"
    assert [each.name for each in tmp_path.glob("out*")] == ["out.txt"]
    way(path)
    assert len(path.read_bytes()) > LIMIT_BYTES


def test_export_where_nothing_can_be_written_is_told(way: Way) -> None:
    told = way(Path("/sys/out.txt"))
    assert "/sys/out.txt" in told
    assert any(reason in told for reason in ("denied", "permitted", "Read-only"))


def test_export_through_a_link_keeps_the_link_and_the_usual_rights(tmp_path: Path) -> None:
    kept, link = tmp_path / "kept.txt", tmp_path / "link.txt"
    kept.write_text("before", encoding="utf-8")
    link.symlink_to(kept)
    export_whole(link, b"after")
    assert link.is_symlink()
    assert kept.read_bytes() == b"after"
    mask = os.umask(0)
    os.umask(mask)
    assert kept.stat().st_mode & 0o777 == 0o666 & ~mask


def test_h08_chat_and_export_may_have_any_name(page: ChatView, tmp_path: Path) -> None:
    name = "Модель 日本語\u3000🦙 Übung."
    store = page._chat._store
    chat_id = store.new_chat(name)
    store.add_message(chat_id, None, Role.USER, "何？")
    for ending in ("md", "json"):
        path = tmp_path / name / f"{name}{'long' * 20}.{ending}"
        path.parent.mkdir(exist_ok=True)
        page.files.save(chat_id, path, is_json=ending == "json")
        assert name in path.read_text(encoding="utf-8")
    assert page.notice.text() == ""
