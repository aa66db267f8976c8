"""What of a person's files others on the PC could open."""

import stat
import sys
from pathlib import Path


def open_to_others(folder: Path) -> list[str]:
    """Return the files below a folder that others may read or write, none on Windows.

    A file inside a folder that is closed to them is closed as well, and has to be so by itself.
    """
    if sys.platform == "win32":
        return []
    others = stat.S_IRWXG | stat.S_IRWXO
    return sorted(
        f"{path.relative_to(folder)} {stat.S_IMODE(path.lstat().st_mode):o}"
        for path in folder.rglob("*")
        if path.is_file() and not path.is_symlink() and path.stat().st_mode & others
    )
