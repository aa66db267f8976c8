"""Functions that kill the process they run in, for tests of going on afterwards."""

import os
import signal
from collections.abc import Callable
from typing import Any


def die() -> None:
    """Kill this process, so that nothing is tidied up."""
    os.kill(os.getpid(), signal.SIGKILL)


def mortal(function: Callable[..., Any], number: int) -> Callable[..., Any]:
    """Return ``function`` that kills the process when it is called the ``number``-th time."""
    left = [number]

    def called(*arguments: Any, **named: Any) -> Any:
        left[0] -= 1
        if not left[0]:
            die()
        return function(*arguments, **named)

    return called
