"""A window that stands still holds up no answer, and loses none."""

from __future__ import annotations

import contextlib
import json
import signal
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import psutil

from runtime.protocol.chat import GenerationStats
from tests.support.window_process import running_window

NUM_WORDS = 4000
RATE = 1000.0
STOPPED_S = 12.0
"""The answer alone takes a third of it; what it sends is some times what a pipe holds."""


def saved_answers(home: Path, ending: str) -> list[tuple[str, bytes]]:
    """Text and packed figures of the answers that the window has saved so far."""
    chats = next(home.rglob("chats.db"), None)
    if chats is None:
        return []
    with contextlib.closing(sqlite3.connect(f"{chats.as_uri()}?mode=ro", uri=True)) as connection:
        wanted = "SELECT text, stats FROM messages WHERE role = 'assistant' AND ending = ?"
        return connection.execute(wanted, (ending,)).fetchall()


def test_stopped_window_slows_no_answer_and_shows_it_whole_afterwards(
    tmp_home: Path, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    answer = " ".join(f"word{number}" for number in range(NUM_WORDS))
    script = tmp_path / "script.json"
    script.write_text(json.dumps({"answers": [answer]}), encoding="utf-8")
    folder = tmp_path / "a model"
    folder.mkdir()
    arguments = ("--engine", "scripted", "--script", str(script), "--rate", str(RATE))
    with running_window(tmp_home, folder, *arguments, is_obedient=True) as window:
        window.wait_until_loaded()
        window.tell("ask Say many words")
        window.wait_until(lambda: bool(saved_answers(tmp_home, "growing")))
        window.process.send_signal(signal.SIGSTOP)
        time.sleep(STOPPED_S)
        assert psutil.Process(window.process.pid).status() == psutil.STATUS_STOPPED
        assert saved_answers(tmp_home, "finished") == []
        window.process.send_signal(signal.SIGCONT)
        window.wait_until(lambda: bool(saved_answers(tmp_home, "finished")))
        ((text, packed),) = saved_answers(tmp_home, "finished")
        stats = msgspec.msgpack.decode(packed, type=GenerationStats)
        record_property("decode_s", str(round(stats.decode_s, 2)))
        assert text == answer
        assert stats.decode_s < STOPPED_S / 2
        window.tell("close")
        assert window.process.wait(15.0) == 0
