"""The small text files in which Linux tells about itself, below a root that tests can replace."""

import dataclasses
from pathlib import Path

MAX_FILE_BYTES = 4 * 1024 * 1024


@dataclasses.dataclass(frozen=True, slots=True)
class SystemFiles:
    """``/proc`` and ``/sys`` below ``root``. What cannot be read counts as absent."""

    root: Path = Path("/")

    def path(self, name: str) -> Path:
        """Return the place of an absolute name below the root."""
        return self.root / name.lstrip("/")

    def text(self, name: str) -> str:
        """Return a file's text, empty if it is absent or may not be read."""
        try:
            with self.path(name).open("rb") as file:
                return file.read(MAX_FILE_BYTES).decode("utf-8", "replace")
        except OSError:
            return ""

    def number(self, name: str) -> int | None:
        """Return the whole number that a file holds, None if it holds none (``max`` included)."""
        text = self.text(name).strip()
        return int(text) if text.lstrip("-").isdecimal() else None

    def table(self, name: str) -> dict[str, int]:
        """Return a file of lines ``key value`` or ``key: value kB``, amounts in its own unit."""
        found: dict[str, int] = {}
        for line in self.text(name).splitlines():
            words = line.split()
            if len(words) >= 2 and words[1].isdecimal():
                found[words[0].rstrip(":")] = int(words[1])
        return found

    def folders(self, name: str, pattern: str) -> list[str]:
        """Return the names of entries of a folder that fit a pattern, in order."""
        folder = self.path(name)
        try:
            return sorted(entry.name for entry in folder.glob(pattern))
        except OSError:
            return []
