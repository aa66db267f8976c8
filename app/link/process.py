"""The runtime as a child process: start, watch, stop, and one record of how it ended."""

import dataclasses
import enum
import os
import sys
from pathlib import Path

from PySide6.QtCore import QObject, QProcess, QProcessEnvironment, QTimer, Signal

from app.link.interpreter import module_command, module_environment
from app.link.windows_job import KillOnCloseJob

CLOSE_WAIT_MS = 2000
"""From closing the pipe to asking the system to end the process."""
TERMINATE_WAIT_MS = 2000
"""From there to ending it by force."""
_FORCE_WAIT_MS = 5000
_TAIL_BYTES = 16 << 10
_TAIL_LINES = 40


class RuntimeState(enum.Enum):
    """The life of the child."""

    STOPPED = "stopped"
    STARTING = "starting"
    RUNNING = "running"
    STOPPING = "stopping"


@dataclasses.dataclass(frozen=True, slots=True)
class ProcessOutcome:
    """How one child ended."""

    exit_status: int | None
    """None if it never ran; the signal's number if ``is_crash`` on a Unix system."""
    is_crash: bool
    """Ended by a signal or an unhandled fault."""
    was_expected: bool
    """The window had asked for the end."""
    reason: str
    """Technical words: ``exit status 3``, ``signal 9``, or why it could not be started."""
    log_lines: tuple[str, ...]
    """The last lines of this child's log."""
    log_path: str


@dataclasses.dataclass(frozen=True, slots=True)
class RuntimeCommand:
    """What to start and where its log goes."""

    arguments: tuple[str, ...] = ()
    """For the service."""
    log_path: str = ""
    """Empty: the log is thrown away."""
    program: tuple[str, ...] = module_command("runtime.service")
    """The program and what stands before ``arguments``."""


class RuntimeProcess(QObject):
    """One child after another, at most one at a time; does not know what the bytes mean.

    ``ended`` comes exactly once for each ``start``. Threads: window thread.
    """

    bytes_received = Signal(bytes)
    state_changed = Signal(object)
    """A ``RuntimeState``."""
    ended = Signal(object)
    """A ``ProcessOutcome``."""

    def __init__(self, command: RuntimeCommand, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._command = command
        self._state = RuntimeState.STOPPED
        self._log_start = 0
        self._job = KillOnCloseJob()
        self._process = QProcess(self)
        environment = QProcessEnvironment()
        for name, value in module_environment(os.environ).items():
            environment.insert(name, value)
        self._process.setProcessEnvironment(environment)
        self._process.started.connect(self._on_started)
        self._process.readyReadStandardOutput.connect(self._on_output)
        self._process.finished.connect(self._on_finished)
        self._process.errorOccurred.connect(self._on_error)
        self._patience = QTimer(self)
        self._patience.setSingleShot(True)
        self._patience.timeout.connect(self._on_patience_ended)
        self._was_terminated = False

    @property
    def state(self) -> RuntimeState:
        """Where the child is in its life."""
        return self._state

    @property
    def process_id(self) -> int:
        """The system's number of the child, 0 if there is none."""
        return int(self._process.processId())

    def start(self) -> None:
        """Start the child; does nothing unless stopped."""
        if self._state is not RuntimeState.STOPPED:
            return
        self._log_start = self._open_log()
        self._was_terminated = False
        self._set_state(RuntimeState.STARTING)
        program, *words = *self._command.program, *self._command.arguments
        self._process.start(program, words)

    def send(self, data: bytes) -> bool:
        """Queue bytes for the child; False if there is none that listens."""
        if self._state not in (RuntimeState.STARTING, RuntimeState.RUNNING):
            return False
        return self._process.write(data) == len(data)

    def stop(self) -> None:
        """Close the pipe, and insist if that is not enough; ``ended`` tells when it is done."""
        if self._state in (RuntimeState.STOPPED, RuntimeState.STOPPING):
            return
        self._set_state(RuntimeState.STOPPING)
        self._process.closeWriteChannel()
        self._patience.start(CLOSE_WAIT_MS)

    def kill(self) -> None:
        """End the child by force; ``ended`` comes as unexpected unless ``stop`` came before."""
        self._process.kill()

    def end_now(self, wait_ms: int = CLOSE_WAIT_MS) -> None:
        """End the child and return when it is gone: the last thing a program does with it."""
        if self._state is RuntimeState.STOPPED:
            return
        self.stop()
        if not self._process.waitForFinished(wait_ms):
            self._process.kill()
            self._process.waitForFinished(_FORCE_WAIT_MS)

    def _set_state(self, state: RuntimeState) -> None:
        self._state = state
        self.state_changed.emit(state)

    def _open_log(self) -> int:
        """Point the child's error stream to its log; return where its part will begin.

        The child keeps the log short; here stands only what it says before it does so.
        """
        if not self._command.log_path:
            self._process.setStandardErrorFile(QProcess.nullDevice())
            return 0
        path = Path(self._command.log_path)
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            path.touch(mode=0o600)
            with path.open("ab") as log:
                size_bytes = log.seek(0, os.SEEK_END)
        except OSError:
            # Without a place for logs the runtime still works; it only cannot be looked into.
            self._process.setStandardErrorFile(QProcess.nullDevice())
            return 0
        self._process.setStandardErrorFile(str(path), QProcess.OpenModeFlag.Append)
        return size_bytes

    def _log_tail(self) -> tuple[str, ...]:
        """Return the last lines that this child wrote."""
        if not self._command.log_path:
            return ()
        try:
            with Path(self._command.log_path).open("rb") as log:
                end = log.seek(0, 2)
                # A log that is shorter than it was has been begun anew by the child.
                start = self._log_start if self._log_start <= end else 0
                log.seek(max(start, end - _TAIL_BYTES))
                text = log.read(_TAIL_BYTES).decode("utf-8", "replace")
        except OSError:
            return ()
        return tuple(text.splitlines()[-_TAIL_LINES:])

    def _on_started(self) -> None:
        self._job.add(self.process_id)
        if self._state is RuntimeState.STARTING:
            self._set_state(RuntimeState.RUNNING)

    def _on_output(self) -> None:
        self.bytes_received.emit(self._process.readAllStandardOutput().data())

    def _on_patience_ended(self) -> None:
        if self._was_terminated:
            self._process.kill()
            return
        self._was_terminated = True
        self._process.terminate()
        self._patience.start(TERMINATE_WAIT_MS)

    def _on_error(self, error: QProcess.ProcessError) -> None:
        if error is QProcess.ProcessError.FailedToStart:
            self._finish(None, is_crash=False, reason=self._process.errorString())

    def _on_finished(self, exit_status: int, how: QProcess.ExitStatus) -> None:
        is_crash = how is QProcess.ExitStatus.CrashExit
        word = "signal" if is_crash and sys.platform != "win32" else "exit status"
        self._finish(exit_status, is_crash=is_crash, reason=f"{word} {exit_status}")

    def _finish(self, exit_status: int | None, *, is_crash: bool, reason: str) -> None:
        """Tell the end once, with whatever was still in the pipe before it."""
        self._patience.stop()
        was_expected = self._state is RuntimeState.STOPPING
        rest = self._process.readAllStandardOutput().data()
        if rest:
            self.bytes_received.emit(rest)
        self._set_state(RuntimeState.STOPPED)
        self.ended.emit(
            ProcessOutcome(
                exit_status, is_crash, was_expected, reason, self._log_tail(),
                self._command.log_path,
            )
        )  # fmt: skip
