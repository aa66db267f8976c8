"""The heap's own store: what was freed goes back to the system instead of waiting for next time."""

import ctypes
import sys
from collections.abc import Callable


def give_back_freed(trim: Callable[[], object] | None = None) -> None:
    """Let the C library return free heap pages to the system, where it can be told to.

    It keeps what is freed in many places, some for each thread, and how much depends on who came
    when; under a budget that is somebody's memory. It takes milliseconds: for loads and changes of
    budgets, never for steps.
    """
    trim = trim or _system_trim()
    if trim is not None:
        trim()


def _system_trim() -> Callable[[], object] | None:
    """Return the C library's own way: ``malloc_trim(3)`` of the GNU library; None without it."""
    if sys.platform != "linux":
        return None
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is None:
        return None
    trim.argtypes = (ctypes.c_size_t,)
    return lambda: trim(0)
