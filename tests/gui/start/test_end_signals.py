"""The system's wish that the program ends: Ctrl+C, termination, the end of the session."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from app.end_signals import END_SIGNALS, EndSignals
from tests.support.window_process import running_window

pytestmark = pytest.mark.skipif(
    sys.platform == "win32", reason="a process cannot send itself these signals"
)


@pytest.mark.parametrize("number", END_SIGNALS)
def test_end_signals_tell_the_event_loop_each_time(qtbot: QtBot, number: signal.Signals) -> None:
    before = signal.getsignal(number)
    signals = EndSignals()
    try:
        for _ in range(2):
            with qtbot.waitSignal(signals.arrived, timeout=5000):
                os.kill(os.getpid(), number)
    finally:
        signals.close()
    assert signal.getsignal(number) is before
    assert signal.set_wakeup_fd(-1) == -1


@pytest.mark.parametrize("number", END_SIGNALS)
def test_window_told_to_end_closes_as_by_hand(
    tmp_home: Path,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    number: signal.Signals,
) -> None:
    with running_window(tmp_home, tmp_path, "--engine", "scripted") as window:
        window.wait_until_loaded()
        window.process.send_signal(number)
        assert window.process.wait(15) == 0
    settings = json.loads((tmp_home / "settings" / "settings.json").read_bytes())
    assert settings["window_geometry"]
    assert "Traceback" not in capfd.readouterr().err
