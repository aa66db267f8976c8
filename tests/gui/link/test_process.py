"""The life of the child process."""

import ctypes
import os
import signal
import sys
from pathlib import Path

import psutil
import pytest
from pytestqt.qtbot import QtBot

from app.link import process as process_module
from app.link import windows_job
from app.link.interpreter import module_command, module_environment
from app.link.process import ProcessOutcome, RuntimeCommand, RuntimeProcess, RuntimeState
from runtime.protocol.framing import encode
from runtime.protocol.messages import OpenSession
from runtime.protocol.version import PROTOCOL_VERSION
from tests.gui.link.conftest import MakeProcess

WAIT_MS = 20_000


def outcome_of(process: RuntimeProcess, qtbot: QtBot) -> ProcessOutcome:
    """Start and wait for the end."""
    with qtbot.waitSignal(process.ended, timeout=WAIT_MS) as ended:
        process.start()
    assert ended.args is not None
    outcome = ended.args[0]
    assert isinstance(outcome, ProcessOutcome)
    return outcome


def test_process_that_exits_tells_status_and_last_words(
    make_fake: MakeProcess, qtbot: QtBot, log_path: Path
) -> None:
    log_path.parent.mkdir()
    log_path.write_text("of an earlier child\n")
    outcome = outcome_of(make_fake("exiting"), qtbot)
    assert (outcome.exit_status, outcome.is_crash, outcome.was_expected) == (3, False, False)
    assert outcome.reason == "exit status 3"
    assert outcome.log_lines == ("first line", "last words")
    assert outcome.log_path == str(log_path)


def test_process_that_is_killed_tells_the_signal(make_fake: MakeProcess, qtbot: QtBot) -> None:
    process = make_fake("dumb")
    process.start()
    qtbot.waitUntil(lambda: process.state is RuntimeState.RUNNING)
    with qtbot.waitSignal(process.ended, timeout=WAIT_MS) as ended:
        os.kill(process.process_id, signal.SIGKILL)
    assert ended.args is not None
    assert ended.args[0].is_crash
    assert ended.args[0].reason == "signal 9"


def test_program_that_is_not_there_ends_without_a_status(qtbot: QtBot) -> None:
    process = RuntimeProcess(RuntimeCommand(program=("/no/such/program",)))
    outcome = outcome_of(process, qtbot)
    assert outcome.exit_status is None
    assert outcome.reason
    assert outcome.log_lines == ()
    assert process.state is RuntimeState.STOPPED
    assert not process.send(b"x")


def test_process_leaves_when_its_pipe_is_closed(make_scripted: MakeProcess, qtbot: QtBot) -> None:
    process = make_scripted()
    states: list[RuntimeState] = []
    process.state_changed.connect(states.append)
    process.start()
    process.start()
    hello = OpenSession(request_id=1, protocol_version=PROTOCOL_VERSION, client_name="test")
    with qtbot.waitSignal(process.bytes_received, timeout=WAIT_MS):
        assert process.send(encode(hello))
    with qtbot.waitSignal(process.ended, timeout=WAIT_MS) as ended:
        process.stop()
        process.stop()
    assert ended.args is not None
    assert ended.args[0].was_expected
    assert ended.args[0].exit_status == 0
    assert states == [*list(RuntimeState)[1:], RuntimeState.STOPPED]


def test_process_that_does_not_leave_is_ended_by_force(
    make_fake: MakeProcess, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process_module, "CLOSE_WAIT_MS", 20)
    monkeypatch.setattr(process_module, "TERMINATE_WAIT_MS", 20)
    process = make_fake("stubborn")
    process.start()
    qtbot.waitUntil(lambda: process.state is RuntimeState.RUNNING)
    with qtbot.waitSignal(process.ended, timeout=WAIT_MS) as ended:
        process.stop()
    assert ended.args is not None
    assert ended.args[0].was_expected
    assert ended.args[0].is_crash


def test_end_now_returns_when_the_process_is_gone(make_fake: MakeProcess, qtbot: QtBot) -> None:
    process = make_fake("stubborn")
    process.end_now()
    process.start()
    qtbot.waitUntil(lambda: process.state is RuntimeState.RUNNING)
    child = psutil.Process(process.process_id)
    process.end_now(10)
    assert not child.is_running()
    assert process.state is RuntimeState.STOPPED


def test_process_can_be_started_again(make_fake: MakeProcess, qtbot: QtBot) -> None:
    process = make_fake("exiting")
    outcome_of(process, qtbot)
    assert outcome_of(process, qtbot).log_lines == ("first line", "last words")


def test_log_that_cannot_be_written_does_not_stop_the_child(tmp_path: Path, qtbot: QtBot) -> None:
    (tmp_path / "file").write_text("in the way")
    command = RuntimeCommand(
        ("exiting",),
        str(tmp_path / "file" / "runtime.log"),
        module_command("tests.support.fake_runtime"),
    )
    outcome = outcome_of(RuntimeProcess(command), qtbot)
    assert outcome.exit_status == 3
    assert outcome.log_lines == ()


def test_log_that_is_a_folder_does_not_stop_the_child(
    make_fake: MakeProcess, qtbot: QtBot, log_path: Path
) -> None:
    log_path.mkdir(parents=True)
    outcome = outcome_of(make_fake("exiting"), qtbot)
    assert outcome.exit_status == 3
    assert outcome.log_lines == ()


def test_log_begun_anew_by_the_child_is_read_from_its_start(
    make_fake: MakeProcess, qtbot: QtBot, log_path: Path
) -> None:
    process = make_fake("exiting")
    log_path.parent.mkdir()
    log_path.write_text("x" * 1000)
    process.state_changed.connect(
        lambda state: log_path.unlink() if state is RuntimeState.STARTING else None
    )
    assert outcome_of(process, qtbot).log_lines == ("first line", "last words")


def test_child_imports_nothing_from_the_folder_it_is_started_in(
    tmp_path: Path, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch, log_path: Path
) -> None:
    folder = tmp_path / "model"
    (folder / "tests" / "support").mkdir(parents=True)
    (folder / "tests" / "support" / "fake_runtime.py").write_text("raise SystemExit(77)")
    (folder / "msgspec.py").write_text("raise SystemExit(78)")
    monkeypatch.chdir(folder)
    command = RuntimeCommand(
        ("exiting",), str(log_path), module_command("tests.support.fake_runtime")
    )
    assert outcome_of(RuntimeProcess(command), qtbot).exit_status == 3


def test_module_environment_keeps_a_path_that_was_set() -> None:
    root = str(Path(process_module.__file__).resolve().parents[2])
    assert module_environment({"A": "1"}) == {"A": "1", "PYTHONPATH": root}
    found = module_environment({"PYTHONPATH": "/mine"})["PYTHONPATH"]
    assert found == os.pathsep.join((root, "/mine"))


def test_windows_job_has_the_sizes_of_the_system() -> None:
    assert ctypes.sizeof(windows_job._IoCounters) == 48
    if ctypes.sizeof(ctypes.c_void_p) == 8:
        assert ctypes.sizeof(windows_job._BasicLimits) == 64
        assert ctypes.sizeof(windows_job._ExtendedLimits) == 144
    if sys.platform != "win32":
        assert not windows_job.KillOnCloseJob().add(os.getpid())
