"""The guards of tests/conftest.py work: each is shown what it must catch."""

from __future__ import annotations

import logging
import os
import socket
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]
CONFTEST = Path(__file__).resolve().parent.parent / "conftest.py"
GUI_CONFTEST = CONFTEST.parent / "gui" / "conftest.py"
_INI = "[pytest]\nmarkers = expects_log(logger, level): announced\n"


def _run(pytester: pytest.Pytester, text: str, conftest: Path = CONFTEST) -> pytest.RunResult:
    pytester.makeini(_INI)
    pytester.makeconftest(conftest.read_text(encoding="utf-8"))
    pytester.makepyfile(text)
    return pytester.runpytest_subprocess("-p", "no:cacheprovider")


def test_unexpected_warning_in_the_log_fails_its_test(pytester: pytest.Pytester) -> None:
    result = _run(
        pytester,
        "import logging\ndef test_it():\n    logging.getLogger('larder').warning('boo')\n",
    )
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["*unexpected in the log:*", "*larder WARNING: boo*"])


def test_announced_warning_passes_and_its_absence_fails(pytester: pytest.Pytester) -> None:
    result = _run(
        pytester,
        """
        import logging, pytest

        @pytest.mark.expects_log("larder", "ERROR")
        def test_it():
            logging.getLogger("larder.engine").error("boo")

        @pytest.mark.expects_log("larder")
        def test_absent():
            pass
        """,
    )
    result.assert_outcomes(passed=2, errors=1)
    result.stdout.fnmatch_lines(["*announced and never logged*"])


def test_connection_to_the_outside_is_refused() -> None:
    with pytest.raises(Exception, match="tried to reach"):
        socket.create_connection(("192.0.2.1", 80))
    with pytest.raises(Exception, match="tried to reach"):
        socket.getaddrinfo("example.org", 80)


def test_connection_to_this_machine_is_allowed() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as client,
    ):
        assert client.getpeername() == server.getsockname()


def test_home_folder_is_the_tests_own(tmp_home: Path) -> None:
    assert Path.home() == tmp_home
    assert os.environ["XDG_DATA_HOME"].startswith(str(tmp_home))


def test_log_below_warning_is_nobodys_business() -> None:
    logger = logging.getLogger("larder")
    logger.info("fine")
    assert logger.isEnabledFor(logging.WARNING)


def test_lines_are_counted_in_all_tests_but_those_that_a_job_leaves_out(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytester.makepyfile(
        counted_module="def one(number):\n    return number + 1\n\ndef two():\n    return 2\n",
        test_apart="import counted_module, pytest\n\n"
        "def test_it():\n    assert counted_module.one(1) == 2\n\n"
        "def test_left_out():\n    pytest.skip('not here')\n",
    )
    # The copied conftest takes the folder above its own for the root.
    copy = CONFTEST.read_text(encoding="utf-8")
    root = "ROOT = Path(__file__).resolve().parent.parent"
    assert root in copy
    pytester.makeini(_INI)
    pytester.makeconftest(copy.replace(root, "ROOT = Path(__file__).resolve().parent"))
    monkeypatch.setenv("LARDER_TEST_UNCOUNTED", "test_apart.py")
    text = "import counted_module\n\ndef test_two():\n    assert counted_module.two() == 2\n"
    pytester.makepyfile(test_counted=text)
    result = pytester.runpytest_subprocess(
        "-p", "no:cacheprovider", "--cov=counted_module", "--cov-report=term-missing"
    )
    result.assert_outcomes(passed=2, skipped=1)
    result.stdout.re_match_lines([r"counted_module\.py +4 +1 +75% +2$"])


def test_widget_thread_or_process_left_behind_fails_its_test(pytester: pytest.Pytester) -> None:
    result = _run(
        pytester,
        """
        import subprocess, sys, threading
        from PySide6.QtCore import QThread
        from PySide6.QtWidgets import QWidget

        kept = []

        def test_widget(qtbot):
            kept.append(QWidget())

        def test_child_of_a_closed_widget(qtbot):
            widget = QWidget()
            qtbot.addWidget(widget)
            QWidget(widget)

        def test_thread(qtbot):
            thread = QThread()
            thread.start()
            kept.append(thread)

        def test_thread_that_ended(qtbot):
            kept[-1].quit()
            assert kept.pop().wait(2000)

        def test_process(qtbot):
            kept.append(subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]))
        """,
        GUI_CONFTEST,
    )
    result.assert_outcomes(passed=5, errors=3)
    result.stdout.fnmatch_lines(["*left behind by this test: widget*"])
    result.stdout.fnmatch_lines(["*left behind by this test: Qt thread*"])
    result.stdout.fnmatch_lines(["*left behind by this test: process*"])
