"""Ties the life of this process to that of the one which started it."""

import contextlib
import ctypes
import os
import signal
import sys
import threading

_PR_SET_PDEATHSIG = 1
_BACKGROUND_NICE = 5


def die_with_parent() -> None:
    """Have the system kill this process when its parent ends, where the system can do that.

    On Linux the parent is the *thread* that started this process, which has to outlive it. On
    other systems the end of the channel and the window's job object do the same.
    """
    if sys.platform != "linux":
        return
    parent = os.getppid()
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(0)


def die_with_input() -> None:
    """End this process when its standard input closes, which is when its parent ends."""
    threading.Thread(target=_watch_input, name="input watcher", daemon=True).start()


def _watch_input() -> None:
    with contextlib.suppress(OSError):
        while os.read(0, 4096):
            pass
    os._exit(0)


def step_back() -> None:
    """Lower the priority of this process below that of windows; failing to is no harm."""
    if sys.platform == "win32":
        import psutil

        psutil.Process().nice(psutil.BELOW_NORMAL_PRIORITY_CLASS)
        return
    os.nice(_BACKGROUND_NICE)
