"""Another program that needs memory: it takes what a test says, and gives all back at its end."""

import subprocess
import sys
from collections.abc import Callable
from types import TracebackType
from typing import Self

_PROGRAM = """
import sys
held = []
for line in sys.stdin:
    held.append(bytearray(b"1") * int(line))
    print(len(held), flush=True)
"""


class MemoryEater:
    """That program, in a process of its own; ``command`` puts a command line into a group."""

    def __init__(self, command: Callable[[list[str]], list[str]]) -> None:
        self._process = subprocess.Popen(
            command([sys.executable, "-S", "-c", _PROGRAM]),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def take(self, num_bytes: int) -> None:
        """Have it take so much more, and return once it has."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{num_bytes}\n")
        self._process.stdin.flush()
        assert self._process.stdout.readline(), "the other program is gone"

    def stop(self) -> None:
        """End it, with all that it holds."""
        self._process.kill()
        self._process.wait()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()
