"""`make run`: the window with the demo model, or the same chat in the terminal without a screen."""

from __future__ import annotations

import os
import sys

import setup
from console import hand_over, say


def has_display() -> bool:
    """Whether a window can be shown to somebody; a chosen Qt platform counts as a screen."""
    if sys.platform != "linux":
        return True
    names = ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")
    return any(os.environ.get(name) for name in names)


def main() -> int:
    """Set up, then start; the status is that of the program."""
    window = has_display()
    python = setup.everything(window=window)
    if window:
        command = [str(python), "-m", "app"]
    else:
        say("there is no screen here, so the same chat opens in this terminal (Ctrl+D leaves)")
        command = [str(python), "-m", "runtime.cli", "chat", str(setup.DEMO)]
    return hand_over(command)
