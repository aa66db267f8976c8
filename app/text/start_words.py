"""Sentences for the terminal a window was started from."""

from app.text.translate import tr


def python_too_old(found: str) -> str:
    """Say which Python is needed."""
    return tr("Larder needs Python 3.11, 3.12 or 3.13, and this is {found}.").format(found=found)


def no_screen(reason: str) -> str:
    """Say why there is no window and what happens in its place."""
    return tr(
        "No window can be opened here ({reason}), so the same chat opens in this terminal."
    ).format(reason=reason)


def no_demo(folder: str) -> str:
    """Say that there is nothing to talk to in the terminal."""
    return tr(
        "There is no demo model in {folder}. Name a model with --folder, or run: make setup"
    ).format(folder=folder)
