"""What the development commands say: one plain line a step, one sentence for what went wrong."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


class CommandError(Exception):
    """A development command cannot go on; its text is one sentence for the person who typed it."""


def say(text: str) -> None:
    """Print one line at once, so that it stands above what a started program prints."""
    print(f"larder: {text}", flush=True)


@contextmanager
def timed(text: str) -> Iterator[None]:
    """Say what begins, and afterwards how long it took."""
    say(f"{text} ...")
    started_s = time.monotonic()
    yield
    say(f"{text}: done in {time.monotonic() - started_s:.1f} s")


def run(
    command: Sequence[str | Path],
    failure: str,
    *,
    env: Mapping[str, str] | None = None,
    cwd: Path = ROOT,
) -> None:
    """Run a program with its output shown; a non-zero exit becomes `failure`, one sentence."""
    sys.stdout.flush()
    try:
        status = subprocess.call([str(part) for part in command], env=merged(env), cwd=cwd)
    except FileNotFoundError as error:
        raise CommandError(f"{failure} ({command[0]} is not installed)") from error
    if status != 0:
        raise CommandError(f"{failure} (exit status {status}; its own words stand above)")


def hand_over(command: Sequence[str | Path], *, cwd: Path = ROOT) -> int:
    """Let a program have the terminal; return its exit status.

    Ctrl+C reaches the program as well, and what it means is for the program to say: this process
    only waits. A handler is not inherited, while ignoring the signal would be.
    """
    before = signal.signal(signal.SIGINT, lambda _number, _frame: None)
    try:
        return subprocess.call([str(part) for part in command], cwd=cwd)
    finally:
        signal.signal(signal.SIGINT, before)


def output_of(
    command: Sequence[str | Path], *, env: Mapping[str, str] | None = None, cwd: Path = ROOT
) -> tuple[int, str]:
    """Exit status and everything a program printed, both streams together; 127 if absent."""
    try:
        done = subprocess.run(
            [str(part) for part in command],
            env=merged(env),
            cwd=cwd,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,
            errors="replace",
            check=False,
        )
    except FileNotFoundError:
        return 127, f"{command[0]} is not installed"
    return done.returncode, done.stdout


def merged(env: Mapping[str, str] | None) -> dict[str, str]:
    """This process's environment with the given variables on top."""
    return {**os.environ, **(env or {})}
