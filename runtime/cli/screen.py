"""What is written to the terminal: safe text, sizes, rows and progress."""

import io
import re
import sys
import unicodedata
from collections.abc import Iterable

from runtime.protocol.machine import Measured

_GIB = 1 << 30
_MIB = 1 << 20
_KEPT = "\n\t"
_NOT_UNICODE = re.compile("[\ud800-\udfff]")


def safe_text(text: str) -> str:
    """Return text without the control characters that could steer a terminal."""
    return "".join(
        "\N{REPLACEMENT CHARACTER}"
        if unicodedata.category(character) == "Cc" and character not in _KEPT
        else character
        for character in text
    )


def readable_text(text: str) -> str:
    """Return text as it was typed, with a sign in the place of what is not Unicode."""
    return _NOT_UNICODE.sub("\N{REPLACEMENT CHARACTER}", text)


def size_text(num_bytes: float) -> str:
    """Return a size in GiB, or in MiB below one."""
    if num_bytes >= _GIB:
        return f"{num_bytes / _GIB:.2f} GiB"
    return f"{num_bytes / _MIB:.1f} MiB"


def gib_bytes(gib: float) -> int:
    """Return the bytes of a number of GiB."""
    return int(gib * _GIB)


def count_text(count: int) -> str:
    """Return a large count in millions or billions."""
    if count >= 1_000_000_000:
        return f"{count / 1e9:.1f} B"
    return f"{count / 1e6:.1f} M" if count >= 1_000_000 else str(count)


def duration_text(seconds: float) -> str:
    """Return a time as people say it, for example ``2 min 10 s``."""
    minutes, rest = divmod(round(seconds), 60)
    if minutes >= 60:
        return f"{minutes // 60} h {minutes % 60} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def method_text(figure: Measured) -> str:
    """Return how a figure was found, and how long ago where it was kept."""
    if figure.age_s is None:
        return figure.method
    return f"{figure.method}, {age_text(figure.age_s)}"


def age_text(age_s: float) -> str:
    """For example ``just now``, ``20 minutes ago``, ``3 days ago``."""
    for unit_s, unit in ((86_400, "day"), (3600, "hour"), (60, "minute")):
        number = int(age_s // unit_s)
        if number:
            return f"{number} {unit}{'s' if number > 1 else ''} ago"
    return "just now"


def print_rows(rows: Iterable[tuple[str, ...]], indent: str = "") -> None:
    """Print rows in columns as wide as their widest cell; empty cells at the end are left out."""
    table = [[safe_text(cell).replace("\n", " ") for cell in row] for row in rows]
    num_columns = max((len(row) for row in table), default=0)
    widths = [
        max(len(row[column]) for row in table if column < len(row)) for column in range(num_columns)
    ]
    for row in table:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=False))
        print((indent + "  ".join(cells)).rstrip())


def write_streamed(text: str) -> None:
    """Write a piece of an answer at once."""
    sys.stdout.write(safe_text(text))
    sys.stdout.flush()


def use_forgiving_streams() -> None:
    """Put a sign in the place of a character that a terminal cannot show, or that is not one."""
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


class ProgressLine:
    """One line on the error stream that is written over; nothing if nobody looks at it."""

    def __init__(self, label: str = "") -> None:
        self._label = label
        self._is_shown = sys.stderr.isatty()
        self._width = 0

    def show(self, done: int, total: int, unit: str = "") -> None:
        """Show how much is done."""
        share = 100 * done // total if total else 100
        self.write(f"{self._label} {share} %{unit}")

    def tell(self) -> None:
        """Show the label alone, for work of unknown length."""
        self.write(self._label)

    def write(self, text: str) -> None:
        """Show a text in the place of the one before."""
        if not self._is_shown:
            return
        self._width = max(self._width, len(text))
        sys.stderr.write(f"\r{text.ljust(self._width)}")
        sys.stderr.flush()

    def clear(self) -> None:
        """Remove the line."""
        if self._width:
            sys.stderr.write(f"\r{' ' * self._width}\r")
            sys.stderr.flush()
            self._width = 0
