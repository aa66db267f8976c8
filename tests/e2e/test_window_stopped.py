"""A window that stands still holds up no answer, and loses none."""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import fcntl
import functools
import json
import os
import signal
import sqlite3
import stat
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import psutil
import pytest

from app.state.folders import app_folders
from runtime.protocol.chat import GenerationStats
from tests.support.window_process import WindowProcess, running_window

NUM_WORDS = 4000
RATE = 1000.0
STOPPED_S = 12.0
"""The answer alone takes a third of it; what it sends is some times what a pipe holds."""
STORY = "Write a long story about a cook and a cellar."
NUM_TOKENS = 150
PIPE_BYTES = 4096
"""The least that a pipe may hold; an answer is a multiple of it."""
LEAST_RATE = 0.9
"""Of the rate of an answer with the window awake."""
IDLE_S = 1.0
IDLE_PERCENT = 5.0
NUM_TRIES = 3
"""Other programs take their time from either answer."""
Record = Callable[[str, object], None]


def saved_answers(home: Path, ending: str) -> list[tuple[str, bytes]]:
    """Text and packed figures of the answers that the window has saved so far."""
    chats = next(home.rglob("chats.db"), None)
    if chats is None:
        return []
    with contextlib.closing(sqlite3.connect(f"{chats.as_uri()}?mode=ro", uri=True)) as connection:
        wanted = "SELECT text, stats FROM messages WHERE role = 'assistant' AND ending = ?"
        return connection.execute(wanted, (ending,)).fetchall()


def test_stopped_windows_lose_nothing_with_their_worker_awake_or_asleep_too(
    tmp_home: Path, tmp_path: Path, record_property: Record
) -> None:
    """Stopped alone it slows no answer; stopped with its worker, as in suspend, both go on."""
    answer = " ".join(f"word{number}" for number in range(NUM_WORDS))
    script = tmp_path / "script.json"
    script.write_text(json.dumps({"answers": [answer]}), encoding="utf-8")
    folder, other_home = tmp_path / "a model", tmp_path / "other home"
    folder.mkdir()
    other_home.mkdir()
    arguments = ("--engine", "scripted", "--script", str(script), "--rate", str(RATE))
    with contextlib.ExitStack() as stack:
        homes = (tmp_home, other_home)
        alone, suspended = (
            stack.enter_context(running_window(home, folder, *arguments, is_obedient=True))
            for home in homes
        )
        sleepers = [psutil.Process(alone.process.pid), psutil.Process(suspended.process.pid)]
        alone.wait_until_loaded()
        sleepers.append(psutil.Process(suspended.wait_until_loaded()))
        for window, home in ((alone, tmp_home), (suspended, other_home)):
            window.tell("ask Say many words")
            window.wait_until(functools.partial(has_answers, home, "growing"))
            for process in sleepers[:1] if window is alone else sleepers[1:]:
                process.suspend()
        time.sleep(STOPPED_S)
        assert {process.status() for process in sleepers} == {psutil.STATUS_STOPPED}
        for process in sleepers:
            process.resume()
        for window, home in ((alone, tmp_home), (suspended, other_home)):
            window.wait_until(functools.partial(has_answers, home, "finished"))
            ((text, packed),) = saved_answers(home, "finished")
            assert text == answer
            if window is alone:
                stats = msgspec.msgpack.decode(packed, type=GenerationStats)
                record_property("decode_s", str(round(stats.decode_s, 2)))
                assert stats.decode_s < STOPPED_S - 1.0, "it waited for the window"
            window.tell("close")
            assert window.process.wait(15.0) == 0


def has_answers(home: Path, ending: str) -> bool:
    """Whether the window has saved an answer that ends so, or grows."""
    return bool(saved_answers(home, ending))


@dataclasses.dataclass(frozen=True, slots=True)
class Answer:
    """An answer as the window saved it, and how long it could take."""

    text: str
    stats: GenerationStats
    within_s: float
    """From before the question was asked until the runtime had nothing more to do."""


class DemoWindow:
    """The window of a first start with the demo, which writes the same story each time."""

    def __init__(self, home: Path, window: WindowProcess) -> None:
        self._home = home
        self._window = window
        self._worker = psutil.Process(window.wait_until_loaded())
        self._window.wait_until(lambda: are_narrow(self._worker.pid))

    def story(self, *, is_stopped: bool) -> Answer:
        """Ask in a new chat; stopped, the window stands still from the first word to the last."""
        num_before = len(saved_answers(self._home, "length"))
        self._window.tell("new")
        started_s = time.monotonic()
        self._window.tell(f"ask {STORY}")
        if is_stopped:
            self._window.wait_until(
                lambda: any(text for text, _ in saved_answers(self._home, "growing"))
            )
            self._window.process.send_signal(signal.SIGSTOP)
            num_written = self._num_written()
            self._window.wait_until(self._is_idle)
            assert self._num_written() - num_written < 4 * PIPE_BYTES, "the pipe was full"
            assert len(saved_answers(self._home, "length")) == num_before
        within_s = time.monotonic() - started_s
        self._window.process.send_signal(signal.SIGCONT)
        self._window.wait_until(lambda: len(saved_answers(self._home, "length")) > num_before)
        text, packed = saved_answers(self._home, "length")[-1]
        return Answer(text, msgspec.msgpack.decode(packed, type=GenerationStats), within_s)

    def _is_idle(self) -> bool:
        """Whether the worker computes nothing for a while."""
        return self._worker.cpu_percent(interval=IDLE_S) < IDLE_PERCENT

    def _num_written(self) -> int:
        return int(self._worker.io_counters().write_chars)


def are_narrow(process_id: int) -> bool:
    """Let the pipes that a process writes to hold so little that a reader has to be awake.

    False while one holds more than that, which its reader is about to take.
    """
    for entry in Path(f"/proc/{process_id}/fd").iterdir():
        try:
            is_written = str(entry.readlink()).startswith("pipe:")
            is_written = is_written and bool(entry.lstat().st_mode & stat.S_IWUSR)
            descriptor = os.open(entry, os.O_WRONLY | os.O_NONBLOCK) if is_written else None
        except FileNotFoundError:
            # Closed since it was listed.
            continue
        if descriptor is None:
            continue
        try:
            fcntl.fcntl(descriptor, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        except OSError as error:
            if error.errno != errno.EBUSY:
                raise
            return False
        finally:
            os.close(descriptor)
    return True


@pytest.mark.timeout(300)
def test_stopped_window_slows_no_answer_of_the_demo_from_a_first_start(
    tmp_home: Path, demo_folder: Path, monkeypatch: pytest.MonkeyPatch, record_property: Record
) -> None:
    monkeypatch.setenv("LARDER_DEMO_DIR", str(demo_folder))
    settings = app_folders({"LARDER_HOME": str(tmp_home)}).settings_file
    settings.parent.mkdir(parents=True)
    sampling = {"temperature": 0, "max_tokens": NUM_TOKENS}
    settings.write_text(json.dumps({"is_sampling_of_model": False, "sampling": sampling}))
    with running_window(tmp_home, None, is_obedient=True) as window:
        demo = DemoWindow(tmp_home, window)
        for _ in range(NUM_TRIES):
            awake = demo.story(is_stopped=False)
            stopped = demo.story(is_stopped=True)
            assert stopped.text == awake.text
            assert stopped.stats.generated_tokens == NUM_TOKENS
            # Had it waited for the window, it would have ended after this.
            was_apart = stopped.stats.ttft_s + stopped.stats.decode_s < stopped.within_s
            ratio = stopped.stats.decode_tokens_per_s / awake.stats.decode_tokens_per_s
            if was_apart and ratio >= LEAST_RATE:
                break
        record_property("rate_awake", str(round(awake.stats.decode_tokens_per_s, 2)))
        record_property("rate_stopped", str(round(stopped.stats.decode_tokens_per_s, 2)))
        assert was_apart
        assert ratio >= LEAST_RATE
        window.tell("close")
        assert window.process.wait(15.0) == 0
