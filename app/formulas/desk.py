"""Has formulas set by a process of their own, one at a time, within a time each."""

import json
import os
from collections import OrderedDict
from collections.abc import Sequence
from typing import NamedTuple

from PySide6.QtCore import (
    QByteArray,
    QCoreApplication,
    QObject,
    QProcess,
    QProcessEnvironment,
    Signal,
)

from app.link.interpreter import module_command, module_environment
from app.timers import single_shot

MAX_FORMULA_CHARACTERS = 2000
"""A longer formula is shown as it was written."""
TIME_LIMIT_MS = 2000
"""A formula that takes longer is shown as it was written; most take a hundredth of it."""
START_LIMIT_MS = 30_000
MAX_LATE = 8
"""After so many in a row that took too long, those that wait are not tried."""
MAX_KEPT = 1000
"""So many formulas are remembered."""


class FormulaKey(NamedTuple):
    """A formula as it was written."""

    latex: str
    is_block: bool
    """It stands by itself, and not in a line of text."""


class Formula(NamedTuple):
    """A formula as a picture, in pixels of the text around it."""

    svg: str
    width: float
    ascent: float
    """Above the line of writing."""
    descent: float


class FormulaDesk(QObject):
    """Remembers formulas that were set, and has others set.

    The process starts with the first formula, and is ended and started anew when one takes too
    long. Drawing: asked for, then with the process, then known::

        [queue: f3 f4] -> [process: f2] -> known: {f0: picture, f1: None, which failed}

    Threads: window thread.
    """

    settled = Signal(object)
    """A ``FormulaKey`` of which it is known now what it looks like, or that it cannot be set."""

    def __init__(
        self,
        parent: QObject | None = None,
        *,
        command: Sequence[str] = module_command("app.formulas"),
        time_limit_ms: int = TIME_LIMIT_MS,
    ) -> None:
        super().__init__(parent)
        self._command = tuple(command)
        self._known: OrderedDict[FormulaKey, Formula | None] = OrderedDict()
        self._queue: OrderedDict[FormulaKey, None] = OrderedDict()
        self._current: FormulaKey | None = None
        self._process = self._make_process()
        self._is_ready = False
        self._is_killed = False
        """The process was ended by us; it starts again when it is gone."""
        self._num_late = 0
        self._time_limit_ms = time_limit_ms
        self._timer = single_shot(self, time_limit_ms, self._on_late)
        application = QCoreApplication.instance()
        if application is not None:
            application.aboutToQuit.connect(self.close)
        process = self._process
        self.destroyed.connect(lambda: _end(process))

    def find(self, key: FormulaKey) -> Formula | None:
        """Return a formula that is known; one that is not is set, and ``settled`` tells when."""
        if key in self._known:
            self._known.move_to_end(key)
            return self._known[key]
        if len(key.latex) > MAX_FORMULA_CHARACTERS or not key.latex.strip():
            return None
        if key != self._current and key not in self._queue:
            self._queue[key] = None
            self._go_on()
        return None

    def close(self) -> None:
        """End the process."""
        self._timer.stop()
        self._queue.clear()
        self._current = None
        self._kill()
        _end(self._process)

    def _make_process(self) -> QProcess:
        process = QProcess(self)
        environment = QProcessEnvironment()
        for name, value in module_environment(os.environ).items():
            environment.insert(name, value)
        process.setProcessEnvironment(environment)
        process.setStandardErrorFile(QProcess.nullDevice())
        process.readyReadStandardOutput.connect(self._on_output)
        process.finished.connect(self._on_finished)
        process.errorOccurred.connect(self._on_error)
        return process

    def _go_on(self) -> None:
        if self._current is not None or not self._queue:
            return
        if self._process.state() is QProcess.ProcessState.NotRunning:
            self._is_ready = self._is_killed = False
            self._timer.start(START_LIMIT_MS)
            self._process.start(self._command[0], list(self._command[1:]))
        elif self._is_ready and not self._is_killed:
            self._current, _ = self._queue.popitem(last=False)
            request = json.dumps(self._current._asdict()) + "\n"
            self._process.write(QByteArray(request.encode()))
            self._timer.start(self._time_limit_ms)

    def _kill(self) -> None:
        self._is_ready = False
        if self._process.state() is not QProcess.ProcessState.NotRunning:
            self._is_killed = True
            self._process.kill()

    def _on_output(self) -> None:
        process = self._process
        while not self._is_killed and process.canReadLine():
            reply = json.loads(bytes(process.readLine().data()))
            self._timer.stop()
            if not self._is_ready:
                self._is_ready = True
            elif self._current is not None:
                key, self._current = self._current, None
                self._num_late = 0
                self._settle(key, None if "error" in reply else Formula(**reply))
            self._go_on()

    def _on_late(self) -> None:
        """End the process with the formula that takes too long; go on with the next."""
        self._kill()
        self._fail()

    def _fail(self) -> None:
        """Leave a formula as it was written, and all that wait where that may be for ever."""
        self._timer.stop()
        self._num_late += 1
        key, self._current = self._current, None
        if key is not None:
            self._settle(key, None)
        if key is None or self._num_late >= MAX_LATE:
            self._give_up()
        self._go_on()

    def _on_finished(self) -> None:
        """The process is gone: as we wished, or the formula was too much for it."""
        if self._is_killed:
            self._go_on()
        else:
            self._is_ready = False
            self._fail()

    def _on_error(self, error: QProcess.ProcessError) -> None:
        if error is QProcess.ProcessError.FailedToStart:
            self._fail()

    def _give_up(self) -> None:
        """Leave what waits as it was written."""
        self._num_late = 0
        waiting = list(self._queue)
        self._queue.clear()
        for key in waiting:
            self._settle(key, None)

    def _settle(self, key: FormulaKey, formula: Formula | None) -> None:
        self._known[key] = formula
        if len(self._known) > MAX_KEPT:
            self._known.popitem(last=False)
        self.settled.emit(key)


def _end(process: QProcess) -> None:
    """End a process and wait until it is gone."""
    process.kill()
    process.waitForFinished(1000)
