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


def no_answer() -> str:
    """Say that the window that is open does not take anything."""
    return tr(
        "Larder is open already, but its window does not answer. Wait a moment and try again, or "
        "end that window first."
    )


def no_demo(folder: str) -> str:
    """Say that there is nothing to talk to in the terminal."""
    return tr(
        "There is no demo model in {folder}. Name a model with --folder, or run: make setup"
    ).format(folder=folder)


def failed_title() -> str:
    """Name the dialog that tells of a program that could not go on."""
    return tr("Larder could not go on")


def failed(reason: str, log: str) -> str:
    """Say that the window could not be opened, or broke, and what to do."""
    text = tr(
        "Larder ran into an error and had to close. Your chats and models are untouched.\n\n"
        "Start it again; if that does not help, install it again.\n\n{reason}"
    ).format(reason=reason)
    return f"{text}\n\n{_more_in(log)}" if log else text


def crashed(number: int, log: str) -> str:
    """Say that the system ended the program, and what to do."""
    text = tr(
        "Larder was ended by a fault (signal {number}). Your chats and models are untouched.\n\n"
        "Start it again; if that happens each time, update the driver of your graphics card, or "
        "install Larder again."
    ).format(number=number)
    return f"{text}\n\n{_more_in(log)}"


def version_before(path: str) -> str:
    """Say where the version is that worked."""
    return tr(
        "This version is new here. The one before is kept: start {path}, or give it back its name "
        "in place of the new one."
    ).format(path=path)


def _more_in(log: str) -> str:
    """Say where details are."""
    return tr("Details are in {log}").format(log=log)
