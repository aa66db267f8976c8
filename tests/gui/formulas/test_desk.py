"""Formulas are set by a process of their own, whatever they do to it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from PySide6.QtCore import QCoreApplication, QEvent
from pytestqt.qtbot import QtBot

from app.formulas import desk as module
from app.formulas.desk import FormulaDesk, FormulaKey
from app.link.interpreter import module_command
from tests.support.loop_gaps import LoopGaps

WAIT_MS = 30_000
MAX_GAP_S = 0.1
"""Stated by the field cases; asserted at three times its value."""
GOOD = FormulaKey(r"\frac{a}{b}", is_block=False)
HOSTILE = FormulaKey(r"\frac{1}{" * 16 + "x" + "}" * 16, is_block=False)
"""Takes minutes: each level of nesting doubles the time."""
MakeDesk = Callable[..., FormulaDesk]


@pytest.fixture
def make_desk(qtbot: QtBot) -> Iterator[MakeDesk]:
    desks: list[FormulaDesk] = []

    def make(script: str = "", time_limit_ms: int = module.TIME_LIMIT_MS) -> FormulaDesk:
        """Make a desk, with a process that runs a script in place of ours if there is one."""
        ours = module_command("app.formulas")
        command = (sys.executable, "-c", script) if script else ours
        desks.append(FormulaDesk(command=command, time_limit_ms=time_limit_ms))
        return desks[-1]

    yield make
    for desk in desks:
        desk.close()


def settle(qtbot: QtBot, desk: FormulaDesk, *keys: FormulaKey) -> list[FormulaKey]:
    """Ask for formulas and wait until all are settled; return them in that order."""
    done: list[FormulaKey] = []
    desk.settled.connect(done.append)
    for key in keys:
        assert desk.find(key) is None
    qtbot.waitUntil(lambda: len(done) >= len(keys), timeout=WAIT_MS)
    desk.settled.disconnect(done.append)
    return done


def test_formula_is_set_once_and_remembered(qtbot: QtBot, make_desk: MakeDesk) -> None:
    desk = make_desk()
    assert settle(qtbot, desk, GOOD) == [GOOD]
    found = desk.find(GOOD)
    assert found is not None
    assert "<path" in found.svg
    (process,) = psutil.Process().children()
    desk.find(GOOD)
    assert desk._current is None
    desk.close()
    assert not process.is_running()


def test_broken_formula_fails_and_the_process_goes_on(qtbot: QtBot, make_desk: MakeDesk) -> None:
    desk = make_desk()
    broken = FormulaKey(r"\frac{a", is_block=True)
    assert settle(qtbot, desk, broken, GOOD) == [broken, GOOD]
    assert desk.find(broken) is None
    assert desk.find(GOOD) is not None
    assert len(psutil.Process().children()) == 1


def test_hostile_formula_is_given_up_while_the_window_goes_on(
    qtbot: QtBot, make_desk: MakeDesk
) -> None:
    desk = make_desk(time_limit_ms=500)
    settle(qtbot, desk, FormulaKey("x", is_block=False))
    (before,) = psutil.Process().children()
    gaps = LoopGaps()
    gaps.start()
    assert settle(qtbot, desk, HOSTILE, GOOD) == [HOSTILE, GOOD]
    longest_s = gaps.stop()
    assert desk.find(HOSTILE) is None
    assert desk.find(GOOD) is not None
    assert not before.is_running()
    assert longest_s < 3 * MAX_GAP_S


def test_formula_that_ends_the_process_is_given_up(qtbot: QtBot, make_desk: MakeDesk) -> None:
    script = "import sys; print('{}', flush=True); sys.stdin.readline(); sys.exit(3)"
    desk = make_desk(script)
    second = FormulaKey("y", is_block=False)
    assert settle(qtbot, desk, GOOD, second) == [GOOD, second]
    assert desk.find(GOOD) is None


@pytest.mark.parametrize("command", [("/no/such/program",), (sys.executable, "-c", "pass")])
def test_process_that_never_begins_leaves_formulas_as_they_were_written(
    qtbot: QtBot, command: tuple[str, ...]
) -> None:
    desk = FormulaDesk(command=command)
    second = FormulaKey("y", is_block=False)
    done: list[FormulaKey] = []
    desk.settled.connect(done.append)
    desk.find(GOOD)
    desk.find(second)
    qtbot.waitUntil(lambda: {GOOD, second} <= set(done), timeout=WAIT_MS)
    assert desk.find(GOOD) is None
    desk.close()


def test_many_late_formulas_in_a_row_end_the_trying(
    qtbot: QtBot, make_desk: MakeDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_LATE", 2)
    script = "import sys; print('{}', flush=True); sys.stdin.readline(); sys.stdin.read()"
    desk = make_desk(script, time_limit_ms=50)
    keys = [FormulaKey(str(number), is_block=False) for number in range(6)]
    assert settle(qtbot, desk, *keys) == keys
    assert not desk._queue


@pytest.mark.parametrize("latex", ["", "  ", "x" * (module.MAX_FORMULA_CHARACTERS + 1)])
def test_empty_and_long_formulas_are_not_tried(make_desk: MakeDesk, latex: str) -> None:
    desk = make_desk()
    assert desk.find(FormulaKey(latex, is_block=False)) is None
    assert not psutil.Process().children()


def test_only_so_many_formulas_are_remembered(
    qtbot: QtBot, make_desk: MakeDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_KEPT", 2)
    desk = make_desk()
    keys = [FormulaKey(letter, is_block=False) for letter in "abc"]
    settle(qtbot, desk, *keys)
    assert list(desk._known) == keys[1:]


def test_desk_that_is_deleted_takes_its_process_along(qtbot: QtBot, tmp_path: Path) -> None:
    desk = FormulaDesk()
    settle(qtbot, desk, GOOD)
    (process,) = psutil.Process().children()
    desk.deleteLater()
    QCoreApplication.sendPostedEvents(desk, QEvent.Type.DeferredDelete.value)
    qtbot.waitUntil(lambda: not process.is_running(), timeout=WAIT_MS)
