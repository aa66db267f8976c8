"""What a loaded model really moved to and from the drive, by the system's counters where it needs.

A store counts what it asked for. Where its reads cannot go past the system's cache, the cache may
have answered, and only the system's own counter knows what came from the drive.
"""

from pathlib import Path

from runtime.hardware.strain import own_bytes_written
from runtime.hardware.system_files import SystemFiles
from runtime.store.base import ExpertStore
from runtime.store.direct import lies_in_memory

_COUNTERS = "/proc/self/io"


class DriveBytes:
    """Counts of one loaded model, from its making on; they never go down.

    Threads: any thread may call any of them.
    """

    def __init__(self, store: ExpertStore, folder: str, files: SystemFiles | None = None) -> None:
        self._store = store
        self._files = files or SystemFiles()
        # Files that lie in memory stand for a drive: no counter tells of them.
        self._is_counted = not lies_in_memory(str(Path(folder) / "file"))
        self._before = self._counted()
        self._written_before = own_bytes_written(self._files)

    def read(self) -> int:
        """Return the bytes that the drive gave: never more than was asked for."""
        asked = self._store.num_bytes_read
        if self._store.is_direct or not self._is_counted:
            return asked
        now = self._counted()
        if now is None or self._before is None:
            return asked
        return min(asked, max(0, now - self._before))

    def written(self) -> int | None:
        """Return the bytes that this process wrote to drives; None where the system is silent."""
        now = own_bytes_written(self._files)
        if now is None or self._written_before is None:
            return None
        return max(0, now - self._written_before)

    def _counted(self) -> int | None:
        return self._files.table(_COUNTERS).get("read_bytes")
