"""The standard streams of a command: missing, full, or closed while it runs."""

import os
import sys
from collections.abc import Callable
from typing import TextIO

EXIT_OUTPUT_LOST = 2
EXIT_PIPE_CLOSED = 141


def open_missing_streams() -> None:
    """Put the null device where this process was started without a stream.

    Otherwise the next file that is opened would take the stream's number.
    """
    if sys.stdin is None:
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115, PTH123 - for the whole process
    if sys.stdout is None:
        sys.stdout = _null_output()
    if sys.stderr is None:
        sys.stderr = _null_output()


def run_writing(work: Callable[[], int]) -> int:
    """Return the exit status of work that prints, or another one if nobody can have its output.

    Who closes the pipe has read enough, so nothing is said then. An ``OSError`` of a file names the
    file; one of a stream does not.
    """
    try:
        status = work()
        sys.stdout.flush()
    except OSError as error:
        if error.filename is not None:
            raise
        _forget(sys.stdout)
        if isinstance(error, BrokenPipeError):
            return EXIT_PIPE_CLOSED
        tell(
            f"larderctl: The output cannot be written: {error.strerror or error}. Free some room "
            "there, or send it elsewhere."
        )
        return EXIT_OUTPUT_LOST
    return status


def tell(text: str) -> None:
    """Write a line for the person to the error stream, if it can be written at all."""
    try:
        print(text, file=sys.stderr, flush=True)
    except OSError:
        _forget(sys.stderr)


def _forget(stream: TextIO) -> None:
    """Drop what cannot be written, so that the interpreter does not complain at its end."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, stream.fileno())
    os.close(null)


def _null_output() -> TextIO:
    return open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123 - for the whole process
