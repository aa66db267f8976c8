"""The state over a real child with the scripted engine: the whole way, crashes, the end."""

import contextlib
import json
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from pytestqt.qtbot import QtBot

from app.link.client import RuntimeClient
from app.link.process import RuntimeCommand, RuntimeProcess
from app.state.chat import ChatState
from app.state.chat_values import AnswerEnd
from app.state.library import LibraryState
from app.state.session import Session
from app.state.settings import SettingsState
from app.state.stages import Stage
from runtime.protocol.errors import ErrorCode
from runtime.protocol.plan import PlanKind
from tests.support.unnarrowed import now

WAIT_MS = 30_000
ROOT = Path(__file__).resolve().parents[3]
FAST: dict[str, object] = {
    "answers": ["one two three", "four five"],
    "load_s": 0,
    "prepare_s": 0,
    "decode_tokens_per_s": 0,
    "prompt_tokens_per_s": 0,
}


class Window:
    """Everything of a window but its widgets."""

    def __init__(self, folder: Path, script: dict[str, object]) -> None:
        self.folder = folder / "model"
        self.folder.mkdir()
        (folder / "script.json").write_text(json.dumps(script))
        log = folder / "runtime.log"
        arguments = ("--engine", "scripted", "--script", str(folder / "script.json"))
        command = RuntimeCommand((*arguments, "--log", str(log)), str(log))
        self.process = RuntimeProcess(command)
        self.settings = SettingsState(folder / "settings.json")
        self.library = LibraryState(folder / "library.json")
        self.session = Session(RuntimeClient(self.process), self.settings, self.library)
        self.chat = ChatState(folder / "chats.db", self.session, self.settings)

    def load(self, qtbot: QtBot, kind: PlanKind | None = None) -> None:
        """Load the model and wait for it."""
        with qtbot.waitSignal(self.session.model_loaded, timeout=WAIT_MS):
            self.session.load_folder(str(self.folder), kind)

    def ask(self, qtbot: QtBot, text: str) -> str:
        """Ask and return the answer."""
        with qtbot.waitSignal(self.chat.answer_ended, timeout=WAIT_MS):
            assert self.chat.ask(text)
        return self.chat.messages[-1].text

    def close(self) -> None:
        """End it as the program does."""
        self.chat.close()
        self.session.shutdown()
        self.settings.close()


MakeWindow = Callable[..., Window]


@pytest.fixture
def make_window(tmp_path: Path, qtbot: QtBot) -> Iterator[MakeWindow]:
    made: list[Window] = []

    def make(**changes: object) -> Window:
        made.append(Window(tmp_path, {**FAST, **changes}))
        made[-1].session.start()
        return made[-1]

    yield make
    for window in made:
        window.close()
        assert window.process.process_id == 0


def test_folder_is_dropped_planned_prepared_loaded_and_asked(
    make_window: MakeWindow, qtbot: QtBot
) -> None:
    window = make_window()
    session = window.session
    session.drop_folder(str(window.folder))
    qtbot.waitUntil(lambda: session.stage is Stage.PLANNED, timeout=WAIT_MS)
    session.choose_plan(PlanKind.EIGHT_BIT)
    with qtbot.waitSignal(session.model_loaded, timeout=WAIT_MS):
        session.prepare_and_load()
    assert session.loaded_plan is not None
    assert session.loaded_plan.kind is PlanKind.EIGHT_BIT
    assert window.ask(qtbot, "one?") == "one two three"
    assert window.ask(qtbot, "two?") == "four five"
    assert window.chat.messages[-1].stats is not None
    assert window.library.models[0].measured_tokens_per_s > 0
    qtbot.waitUntil(lambda: session.machine is not None, timeout=WAIT_MS)


def test_draft_is_counted_by_the_loaded_model_as_its_prompt_is(
    make_window: MakeWindow, qtbot: QtBot
) -> None:
    window = make_window()
    window.load(qtbot)
    window.ask(qtbot, "one?")
    count = window.chat.prompt_count
    with qtbot.waitSignal(count.changed, timeout=WAIT_MS):
        window.chat.set_draft("and what of two and three?")
    counted = count.num_tokens
    window.ask(qtbot, "and what of two and three?")
    stats = window.chat.messages[-1].stats
    assert stats is not None
    assert counted == stats.prompt_tokens > 0


def test_unload_and_load_again_use_a_new_process(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = make_window()
    window.load(qtbot)
    first = window.process.process_id
    window.session.unload()
    qtbot.waitUntil(lambda: window.session.stage in (Stage.IDLE, Stage.PLANNED), timeout=WAIT_MS)
    second = window.process.process_id
    assert second not in (0, first)
    window.load(qtbot)
    assert window.process.process_id == second
    window.load(qtbot)
    assert window.process.process_id not in (0, first, second)


def test_answer_is_stopped_and_kept(make_window: MakeWindow, qtbot: QtBot) -> None:
    window = make_window(answers=["word " * 100_000], decode_tokens_per_s=200, context_tokens=10**6)
    window.load(qtbot)
    with qtbot.waitSignal(window.chat.answer_grew, timeout=WAIT_MS):
        window.chat.ask("go on")
    with qtbot.waitSignal(window.chat.answer_ended, timeout=WAIT_MS):
        window.chat.stop()
    last = window.chat.messages[-1]
    assert last.end is AnswerEnd.STOPPED
    assert last.text.startswith("word")
    assert last.token_ids


def test_crash_in_an_answer_keeps_it_and_a_restart_answers_again(
    make_window: MakeWindow, qtbot: QtBot
) -> None:
    window = make_window(answers=["word " * 100_000], decode_tokens_per_s=200, context_tokens=10**6)
    window.load(qtbot)
    with qtbot.waitSignal(window.chat.answer_grew, timeout=WAIT_MS):
        window.chat.ask("go on")
    with qtbot.waitSignal(window.session.failed, timeout=WAIT_MS):
        psutil.Process(window.process.process_id).kill()
    assert window.chat.messages[-1].end is AnswerEnd.CUT_OFF
    assert window.chat.messages[-1].text.startswith("word")
    error = window.session.error
    assert error is not None
    assert error.code is ErrorCode.RUNTIME_ENDED
    assert now(window.session.stage) is Stage.FAILED
    with qtbot.waitSignal(window.session.model_loaded, timeout=WAIT_MS):
        window.session.restart_runtime()
    assert window.chat.regenerate()
    qtbot.waitUntil(lambda: window.chat.messages[-1].text != "", timeout=WAIT_MS)
    assert window.chat.messages[-1].num_variants == 2


def test_crash_while_loading_is_told_and_not_repeated(
    make_window: MakeWindow, qtbot: QtBot
) -> None:
    window = make_window(fault={"kind": "crash", "place": "load"})
    with qtbot.waitSignal(window.session.failed, timeout=WAIT_MS):
        window.session.load_folder(str(window.folder))
    window.session.restart_runtime()
    qtbot.waitUntil(lambda: window.session.machine is not None, timeout=WAIT_MS)
    assert window.session.loaded is None
    assert window.session.loading_folder == ""


def test_hanging_load_that_is_cancelled_is_ended_by_force(
    make_window: MakeWindow, qtbot: QtBot
) -> None:
    window = make_window(fault={"kind": "hang", "place": "load", "after": 2})
    session = window.session
    session.load_folder(str(window.folder))
    qtbot.waitUntil(lambda: session.progress is not None, timeout=WAIT_MS)
    hanging = window.process.process_id
    session.cancel()
    assert session.stage is Stage.STOPPING
    qtbot.waitUntil(lambda: now(session.stage) is Stage.PLANNED, timeout=WAIT_MS)
    assert window.process.process_id not in (0, hanging)
    assert session.error is None


def test_folder_that_is_not_there_is_told_with_its_code(
    make_window: MakeWindow, qtbot: QtBot
) -> None:
    window = make_window()
    with qtbot.waitSignal(window.session.failed, timeout=WAIT_MS):
        window.session.load_folder(str(window.folder / "none"))
    assert window.session.error is not None
    assert window.session.error.code is ErrorCode.FOLDER_NOT_FOUND
    assert now(window.session.stage) is not Stage.FAILED


def test_runtime_goes_when_the_window_is_killed(tmp_path: Path) -> None:
    window = subprocess.Popen(
        [sys.executable, "-m", "tests.support.window_without_widgets", str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    assert window.stdout is not None
    runtime = psutil.Process(int(window.stdout.readline()))
    window.kill()
    window.wait()
    window.stdout.close()
    gone, _ = psutil.wait_procs([runtime], timeout=5)
    assert gone or runtime.status() == psutil.STATUS_ZOMBIE


IN_CHANNELS = (
    "<|channel|>analysis<|message|>We think.<|end|><|start|>assistant"
    "<|channel|>final<|message|>It is **Paris**.<|return|>"
)
MARKS = ("<|", "|>", "think>", "analysis", "final")


@pytest.mark.parametrize("pieces", ["characters", "words", "lines"])
def test_markers_reach_neither_window_nor_file_nor_export(
    make_window: MakeWindow, qtbot: QtBot, tmp_path: Path, pieces: str
) -> None:
    tagged = "<think>\nWe think.\n</think>\n\nIt is **Paris**."
    window = make_window(answers=[IN_CHANNELS, tagged, IN_CHANNELS[:38]], pieces=pieces)
    window.load(qtbot)
    assert window.ask(qtbot, "one?") == "It is **Paris**."
    assert window.ask(qtbot, "two?") == "It is **Paris**."
    assert window.ask(qtbot, "three?") == ""
    thoughts = [message.thinking for message in window.chat.messages[1::2]]
    assert thoughts == ["We think.", "We think.", "We think"]
    chat_id = window.chat.chat_id
    assert chat_id is not None
    markdown = window.chat.export_markdown(chat_id)
    written = markdown + window.chat.export_json(chat_id)
    with contextlib.closing(sqlite3.connect(tmp_path / "chats.db")) as database:
        rows = database.execute("SELECT text, thinking FROM messages").fetchall()
    written += "".join(map(str, rows))
    assert not any(mark in written for mark in MARKS)
    assert "We thin" not in markdown
