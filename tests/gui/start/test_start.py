"""How the program starts: before Qt, without a screen, from the command line."""

import faulthandler
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from app import __main__ as program
from app import display, early
from tests.support.private_files import open_to_others

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(autouse=True)
def _same_fault_handler() -> Iterator[None]:
    """Leave the test runner's own crash log as it was."""
    was_enabled = faulthandler.is_enabled()
    yield
    if was_enabled:
        faulthandler.enable(2)


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the program in a process of its own."""
    env = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    return subprocess.run(
        [sys.executable, "-m", "app", *arguments],
        env=env,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        stdin=subprocess.DEVNULL,
    )


class TestEarly:
    def test_versions_from_the_oldest_on_are_supported(self) -> None:
        assert not early.is_version_supported((3, 10))
        assert early.is_version_supported((3, 11))
        assert early.is_version_supported((3, 14))

    def test_crash_log_gets_the_stacks_of_a_crash(self, tmp_path: Path) -> None:
        log = tmp_path / "logs" / "crash.log"
        code = (
            "import sys, pathlib, faulthandler; from app import early;"
            "log = early.keep_crash_log(pathlib.Path(sys.argv[1])); faulthandler._sigsegv()"
        )
        env = {**os.environ, "PYTHONPATH": str(ROOT)}
        done = subprocess.run([sys.executable, "-c", code, str(log)], env=env, check=False)
        assert done.returncode != 0
        assert "Segmentation fault" in log.read_text()
        assert open_to_others(tmp_path) == []

    def test_crash_log_that_grew_too_long_is_begun_anew(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(early, "MAX_LOG_BYTES", 10)
        path = tmp_path / "crash.log"
        path.write_text("x" * 20)
        log = early.keep_crash_log(path)
        assert log is not None
        early.close_crash_log(log)
        assert path.read_text() == ""
        assert (tmp_path / "crash.old.log").read_text() == "x" * 20
        assert not faulthandler.is_enabled()

    def test_crash_log_that_cannot_be_written_is_done_without(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "file").write_text("in the way")
        monkeypatch.setattr(sys, "stderr", sys.__stderr__)
        assert early.keep_crash_log(tmp_path / "file" / "crash.log") is None
        monkeypatch.setattr(sys, "stderr", None)
        assert early.keep_crash_log(tmp_path / "file" / "crash.log") is None


class TestDisplay:
    @pytest.mark.parametrize(
        ("environment", "platform", "problem"),
        [
            ({}, "win32", ""),
            ({}, "darwin", ""),
            ({}, "linux", "no screen"),
            ({"QT_QPA_PLATFORM": "offscreen"}, "linux", ""),
            ({"QT_QPA_PLATFORM": "minimal:x"}, "linux", ""),
            ({"QT_QPA_PLATFORM": "xcb", "WAYLAND_DISPLAY": "w"}, "linux", "no screen"),
            ({"QT_QPA_PLATFORM": "wayland", "DISPLAY": ":0"}, "linux", "no screen"),
        ],
    )
    def test_display_is_judged_by_what_is_set(
        self, environment: dict[str, str], platform: str, problem: str
    ) -> None:
        assert display.display_problem(environment, platform) == problem

    def test_one_screen_that_works_is_enough(self, monkeypatch: pytest.MonkeyPatch) -> None:
        both = {"DISPLAY": ":0", "WAYLAND_DISPLAY": "w"}
        monkeypatch.setattr(display, "_wayland_problem", lambda: "no compositor")
        monkeypatch.setattr(display, "_x11_problem", lambda: "")
        assert display.display_problem(both, "linux") == ""
        monkeypatch.setattr(display, "_x11_problem", lambda: "no server")
        assert display.display_problem(both, "linux") == "no server"

    def test_screen_that_does_not_answer_is_a_problem(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.setenv("DISPLAY", ":9876")
        monkeypatch.setenv("WAYLAND_DISPLAY", "nothing-here")
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
        assert display.display_problem({"DISPLAY": ":9876"}, "linux") != ""
        assert display.display_problem({"WAYLAND_DISPLAY": "nothing-here"}, "linux") != ""


class TestCommandLine:
    def test_version_is_printed_without_qt(self) -> None:
        done = run("--version")
        assert done.returncode == 0
        assert done.stdout.startswith("larder ")

    def test_python_that_is_too_old_is_told(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setattr(early, "MIN_VERSION", (4, 0))
        assert program.main([]) == 1
        assert "Larder needs Python" in capsys.readouterr().err

    def test_without_a_screen_the_terminal_chat_is_started_with_the_same_arguments(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        calls: list[list[str]] = []

        def call(command: list[str], env: dict[str, str]) -> int:
            assert str(ROOT) in env["PYTHONPATH"]
            calls.append(command)
            return 7

        monkeypatch.setattr(subprocess, "call", call)
        for name in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setattr(sys, "platform", "linux")
        folder = str(tmp_path)
        assert program.main(["--folder", folder, "--engine", "scripted", "--rate", "5"]) == 7
        (command,) = calls
        assert command[1:] == [
            "-P", "-m", "runtime.cli", "chat", folder, "--engine", "scripted", "--rate", "5",
        ]  # fmt: skip
        assert "no screen" in capsys.readouterr().err

    def test_terminal_chat_without_a_demo_says_what_to_do(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setenv("LARDER_DEMO_DIR", str(tmp_path / "none"))
        assert program.main(["--terminal"]) == 1
        assert str(tmp_path / "none") in capsys.readouterr().err

    def test_interrupt_is_left_to_the_terminal_chat(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        def call(*_: object, **__: object) -> int:
            signal.raise_signal(signal.SIGINT)
            return 7

        monkeypatch.setattr(subprocess, "call", call)
        monkeypatch.setattr(sys, "stderr", None)
        before = signal.getsignal(signal.SIGINT)
        assert program.main(["--terminal", "--folder", str(tmp_path)]) == 7
        assert signal.getsignal(signal.SIGINT) is before

    def test_starting_imports_nothing_heavy(self) -> None:
        code = (
            "import sys, json; import app.__main__;"
            "print(json.dumps([n for n in ('PySide6', 'torch', 'numpy', 'msgspec', 'sqlite3')"
            " if n in sys.modules]))"
        )
        env = {**os.environ, "PYTHONPATH": str(ROOT)}
        done = subprocess.run(
            [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
        )
        assert json.loads(done.stdout) == []

    def test_state_and_link_import_neither_torch_nor_numpy_nor_widgets(self) -> None:
        code = (
            "import sys, json; import app.state.chat, app.link.client, app.text.errors;"
            "print(json.dumps([n for n in ('torch', 'numpy', 'PySide6.QtWidgets', 'PySide6.QtGui')"
            " if n in sys.modules]))"
        )
        env = {**os.environ, "PYTHONPATH": str(ROOT)}
        done = subprocess.run(
            [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
        )
        assert json.loads(done.stdout) == []
