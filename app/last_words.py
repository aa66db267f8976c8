"""What a person is shown when no window of ours can tell them: a dialog of the system's.

Run by itself (`python -m app.last_words SIGNAL`) it tells of a program that a fault has ended; the
packaged program's launcher does that.
"""

import os
import shutil
import subprocess
import sys
import traceback
from collections.abc import Mapping
from pathlib import Path

from app import early
from app.text import start_words

MAX_WAIT_S = 3600
"""How long a dialog may stay open."""
_QT_DIALOG = """
import sys
from PySide6.QtWidgets import QApplication, QMessageBox
application = QApplication(["larder"])
QMessageBox.critical(None, sys.argv[1], sys.argv[2])
"""


def tell_of_failure(error: BaseException, log: Path) -> str:
    """Write the stack of an error to the log and show what happened; return what was shown."""
    lines = "".join(traceback.format_exception(error))
    kept = _append(log, lines)
    reason = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    text = start_words.failed(reason, str(log) if kept else "") + _of_version_before()
    show(start_words.failed_title(), text, os.environ)
    return text


def tell_of_fault(number: int, log: Path) -> str:
    """Show that the program was ended by a signal of the system; return what was shown."""
    text = start_words.crashed(number, str(log)) + _of_version_before()
    show(start_words.failed_title(), text, os.environ)
    return text


def show(title: str, text: str, environment: Mapping[str, str]) -> str:
    """Show a dialog and wait until it is closed; return what showed it, empty if nothing could.

    The error stream gets the text in any case, if there is one.
    """
    if sys.stderr is not None:
        sys.stderr.write(f"larder: {text}\n")
    if sys.platform == "win32":
        import ctypes

        ctypes.windll.user32.MessageBoxW(None, text, title, 0x10)
        return "MessageBoxW"
    for words in commands(title, text, environment, sys.platform):
        if shutil.which(words[0]) is None:
            continue
        try:
            done = subprocess.run(
                words,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=MAX_WAIT_S,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            continue
        if done.returncode == 0:
            return words[0]
    return ""


def commands(
    title: str, text: str, environment: Mapping[str, str], platform: str
) -> list[list[str]]:
    """Return the programs that could show a dialog, the likeliest first."""
    if platform == "darwin":
        # Given as arguments, so that no text can be read as a script.
        script = "on run {a, b}\ndisplay alert a message b as critical\nend run"
        return [["osascript", "-e", script, title, text]]
    if not environment.get("DISPLAY") and not environment.get("WAYLAND_DISPLAY"):
        return []
    # Qt comes with us. Where it is what failed, one of the desktop's own may be there.
    return [
        [sys.executable, "-P", "-c", _QT_DIALOG, title, text],
        ["zenity", "--error", "--no-markup", f"--title={title}", f"--text={text}"],
        ["kdialog", "--title", title, "--error", text],
        ["xmessage", "-center", text],
        ["notify-send", "-u", "critical", title, text],
    ]


def _of_version_before() -> str:
    """Return a paragraph that names the version before, if it is still kept; else nothing."""
    from app.state.folders import app_folders
    from app.state.package import read_replaced, replaced_file

    record = read_replaced(replaced_file(app_folders(os.environ).data))
    if record is None or not record.previous or not Path(record.previous).exists():
        return ""
    return f"\n\n{start_words.version_before(record.previous)}"


def _append(log: Path, text: str) -> bool:
    """Add to the log; False where it cannot be written."""
    try:
        with early.open_log(log) as file:
            file.write(text)
    except OSError:
        return False
    return True


def main(arguments: list[str]) -> int:
    """Tell of a signal by its number."""
    from app.state.folders import app_folders

    early.speak(os.environ)
    tell_of_fault(int(arguments[0]), app_folders(os.environ).crash_log)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
