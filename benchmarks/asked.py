"""Processes that are asked by lines: a JSON object each, answered by one line of JSON."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

Start = Callable[[list[str]], list[str]]
"""Turns a command into one that starts it where it belongs."""


class AskedProcess:
    """One such process; closed with the block that it is used in."""

    def __init__(
        self, name: str, command: Sequence[str], environment: Mapping[str, str] | None = None
    ) -> None:
        """``name`` is told if it ends or says what is wrong."""
        self._name = name
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )

    @property
    def process_id(self) -> int:
        """The process, for whoever counts what it does."""
        return self._process.pid

    def ask(self, **wish: object) -> dict[str, Any]:
        """Return the answer to a wish; end the program if there is none."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(wish) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            sys.exit(f"{self._name} ended with status {self._process.wait()}")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            sys.exit(f"{self._name}: {answer['error']}")
        return answer

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write('{"close": true}\n')
            self._process.stdin.close()
        self._process.wait(60)
