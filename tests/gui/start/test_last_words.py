"""What a person is shown when the window itself cannot tell them."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from app import __main__ as program
from app import display, last_words
from app.text import start_words

ROOT = Path(__file__).resolve().parents[3]


def stand_in(folder: Path, name: str, status: int = 0) -> Path:
    """A program that keeps the words it is given, one a line, and ends with a status."""
    kept = folder / f"{name}.words"
    path = folder / name
    path.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > "{kept}"\nexit {status}\n')
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return kept


@pytest.fixture(name="no_qt")
def _no_qt(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A folder of programs, the only one that is searched; our Qt shows no dialog."""
    folder = tmp_path / "programs"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setattr(last_words, "_QT_DIALOG", "raise SystemExit(3)")
    return folder


@pytest.mark.skipif(os.name == "nt", reason="the stand-ins are shell scripts")
class TestShow:
    def test_first_program_that_shows_it_is_enough(
        self, no_qt: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        zenity = stand_in(no_qt, "zenity", status=1)
        kdialog = stand_in(no_qt, "kdialog")
        xmessage = stand_in(no_qt, "xmessage")
        monkeypatch.setenv("PATH", f"{no_qt}:/bin:/usr/bin")
        shown = last_words.show("Title", "Text with <b>marks</b>", {"DISPLAY": ":9"})
        assert shown == "kdialog"
        assert zenity.read_text().splitlines()[-1] == "--text=Text with <b>marks</b>"
        assert kdialog.read_text().splitlines() == [
            "--title", "Title", "--error", "Text with <b>marks</b>",
        ]  # fmt: skip
        assert not xmessage.exists()

    def test_without_a_screen_only_the_error_stream_gets_it(
        self, no_qt: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert last_words.show("Title", "Text", {}) == ""
        assert capsys.readouterr().err == "larder: Text\n"

    def test_qt_shows_it_where_it_works(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("QT_QPA_PLATFORM", "offscreen")
        closing = "from PySide6.QtCore import QTimer\n" + last_words._QT_DIALOG.replace(
            "QMessageBox.critical",
            "QTimer.singleShot(0, lambda: application.activeModalWidget().accept())\n"
            "QMessageBox.critical",
        )
        monkeypatch.setattr(last_words, "_QT_DIALOG", closing)
        assert last_words.show("Title", "Text", {"DISPLAY": ":9"}) == sys.executable


def test_macos_gets_the_words_as_arguments_and_not_as_a_script() -> None:
    (words,) = last_words.commands("T", 'a" & quit', {}, "darwin")
    assert words[-2:] == ["T", 'a" & quit']
    assert 'a" & quit' not in words[2]


def test_failure_before_the_window_is_shown_and_logged(
    monkeypatch: pytest.MonkeyPatch, tmp_home: Path
) -> None:
    shown: list[str] = []
    monkeypatch.setattr(last_words, "show", lambda _title, text, _env: shown.append(text))

    def broken(_environment: object) -> str:
        raise ImportError("libGL.so.1: cannot open shared object file")

    monkeypatch.setattr(display, "display_problem", broken)
    assert program.main([]) == program.EXIT_FAILED
    (text,) = shown
    assert "ImportError: libGL.so.1: cannot open shared object file" in text
    log = Path(text.rpartition(" in ")[2])
    assert log.is_relative_to(tmp_home)
    assert "Traceback" in log.read_text()


def test_log_that_cannot_be_written_is_not_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(last_words, "show", lambda *_: "")
    text = last_words.tell_of_failure(ValueError(), tmp_path / "file" / "crash.log")
    assert text == start_words.failed("ValueError", "")


@pytest.mark.parametrize(("language", "words"), [("C.UTF-8", "signal 11"), ("zh_CN.UTF-8", "信号")])
def test_fault_is_told_by_a_process_of_its_own(tmp_path: Path, language: str, words: str) -> None:
    home = {"PYTHONPATH": str(ROOT), "LARDER_HOME": str(tmp_path), "PATH": os.environ["PATH"]}
    done = subprocess.run(
        [sys.executable, "-P", "-X", "utf8", "-m", "app.last_words", "11"],
        env={**home, "LANG": language},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )
    assert done.returncode == 0
    assert words in done.stderr
    assert str(tmp_path) in done.stderr


def test_version_before_is_named_while_the_new_one_has_not_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LARDER_HOME", str(tmp_path))
    monkeypatch.setattr(last_words, "show", lambda *_: "")
    kept, log = tmp_path / "larder.AppImage.previous", tmp_path / "crash.log"
    record = tmp_path / "data" / "update.json"
    record.parent.mkdir()
    record.write_text(f'{{"version": "0.2.0", "previous": "{kept.as_posix()}"}}')
    assert str(kept) not in last_words.tell_of_fault(11, log)
    kept.write_text("old")
    assert str(kept) in last_words.tell_of_fault(11, log)
    assert str(kept) in last_words.tell_of_failure(RuntimeError("broken"), log)


def test_no_version_before_is_named_where_none_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LARDER_HOME", str(tmp_path))
    monkeypatch.setattr(last_words, "show", lambda *_: "")
    record = tmp_path / "data" / "update.json"
    record.parent.mkdir()
    told = last_words.tell_of_fault(11, tmp_path / "crash.log")
    record.write_text('{"version": "0.2.0", "previous": ""}')
    assert last_words.tell_of_fault(11, tmp_path / "crash.log") == told
