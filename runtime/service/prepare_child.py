"""Preparing in a child process, which disturbs no answer and can be killed."""

import collections
import contextlib
import logging
import os
import subprocess
import threading
from collections.abc import Iterator
from typing import IO

import msgspec

from runtime.engine.base import CancelToken
from runtime.errors import LarderError
from runtime.protocol.errors import ErrorCode
from runtime.protocol.messages import (
    CommandFailed,
    ModelPrepared,
    PrepareCancelled,
    PrepareModel,
    PreparePhase,
    PrepareProgressed,
)
from runtime.protocol.model import PreparedCopy
from runtime.protocol.values import WeightFormat
from runtime.service.own_modules import module_command, module_environment
from runtime.service.preparing import PrepareReport, PrepareStoppedError

KILL_AFTER_S = 2.0
_POLL_S = 0.1
_MAX_LINE_BYTES = 1 << 20
_BITS = {
    WeightFormat.Q8_G32: 8,
    WeightFormat.Q6_G32: 6,
    WeightFormat.Q4A_G32: 4,
    WeightFormat.Q3_G16: 3,
    WeightFormat.Q2_G16: 2,
    WeightFormat.MXFP4: 16,
    WeightFormat.Q4_G32: 16,
}
"""Of the child's command line, where 16 is the format in which the model is published."""
_Line = PrepareProgressed | ModelPrepared | PrepareCancelled | CommandFailed
_decoder = msgspec.json.Decoder(_Line)
_logger = logging.getLogger(__name__)


class ChildPreparer:
    """Runs ``larderctl prepare`` and passes on what it tells.

    Threads: called by one thread, which must live as long as the process: the child dies with it.
    ``extra`` goes to the child's command line, for tests with the scripted engine.
    """

    def __init__(self, extra: tuple[str, ...] = ()) -> None:
        self._extra = extra

    def __call__(
        self, command: PrepareModel, progress: PrepareReport, cancel: CancelToken
    ) -> PreparedCopy:
        """Prepare in a child; it is told to stop when cancelled, and killed if it does not."""
        bits = _BITS.get(command.expert_format)
        if bits is None:
            raise LarderError(
                ErrorCode.SETTING_INVALID,
                name="expert_format",
                found=command.expert_format.value,
                expected=", ".join(each.value for each in _BITS),
            )
        with _running(self._arguments(command, bits), cancel) as child:
            return _follow(child, command, progress, cancel)

    def _arguments(self, command: PrepareModel, bits: int) -> list[str]:
        out = ["--out", command.output_folder] if command.output_folder else []
        mix = ["--mix", str(command.mix_bytes / (1 << 30))] if command.mix_bytes else []
        if command.calibration_text:
            mix.append(f"--text={command.calibration_text}")
        return [
            *module_command("runtime.cli"),
            *("prepare", "--progress-json", "--bound"),
            *("--bits", str(bits), *mix, *out, *self._extra, "--", command.folder),
        ]


def _follow(
    child: "subprocess.Popen[bytes]",
    command: PrepareModel,
    progress: PrepareReport,
    cancel: CancelToken,
) -> PreparedCopy:
    """Pass on progress until the child has told how it ended."""
    kept_bytes = 0
    ignored: collections.deque[bytes] = collections.deque(maxlen=5)
    for line in _lines(child):
        try:
            event = _decoder.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            ignored.append(line)
            continue
        match event:
            case PrepareProgressed():
                is_written = event.phase is PreparePhase.WRITING
                kept_bytes = event.done_bytes if is_written else 0
                progress(event.done_bytes, event.total_bytes, event.bytes_per_s, event.phase)
            case ModelPrepared():
                return PreparedCopy(
                    folder=event.folder,
                    expert_format=event.expert_format,
                    size_bytes=event.size_bytes,
                )
            case PrepareCancelled():
                raise PrepareStoppedError(event.kept_bytes)
            case CommandFailed():
                error = event.error
                raise LarderError(error.code, error.detail, **error.parameters)
    if cancel.is_cancelled:
        raise PrepareStoppedError(kept_bytes)
    status = child.wait()
    raise LarderError(
        ErrorCode.PREPARE_FAILED,
        detail=b" ".join(ignored).decode(errors="replace"),
        folder=command.folder,
        reason=f"the process that prepares ended with status {status}",
    )


def _lines(child: "subprocess.Popen[bytes]") -> Iterator[bytes]:
    output: IO[bytes] | None = child.stdout
    assert output is not None, "the child was started with a pipe"
    while line := output.readline(_MAX_LINE_BYTES):
        yield line


@contextlib.contextmanager
def _running(arguments: list[str], cancel: CancelToken) -> Iterator["subprocess.Popen[bytes]"]:
    """Start the child, have a thread stop it when cancelled, and see that it is gone."""
    child = subprocess.Popen(
        arguments,
        env=module_environment(os.environ),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        close_fds=True,
    )
    watcher = threading.Thread(
        target=_stop_when_cancelled, args=(child, cancel), name="prepare watcher", daemon=True
    )
    watcher.start()
    try:
        yield child
    finally:
        _end(child)
        watcher.join()
        for pipe in (child.stdin, child.stdout):
            if pipe is not None:
                pipe.close()


def _stop_when_cancelled(child: "subprocess.Popen[bytes]", cancel: CancelToken) -> None:
    while child.poll() is None:
        if cancel.wait(_POLL_S):
            child.terminate()
            _end(child)
            return


def _end(child: "subprocess.Popen[bytes]") -> None:
    """Wait a little for the child to end, then kill it."""
    try:
        child.wait(KILL_AFTER_S)
    except subprocess.TimeoutExpired:
        _logger.info("the preparing process %d does not end and is killed", child.pid)
        child.kill()
        child.wait()
