"""The list of folders outside the usual one into which prepared copies were written."""

import json
import logging
from pathlib import Path

from runtime.inspect.prepared import find_prepared
from runtime.prepare.place import prepared_root
from runtime.protocol.model import PreparedCopy

MAX_PLACES = 100
_logger = logging.getLogger(__name__)


class PreparedPlaces:
    """Finds prepared copies in the usual place and wherever else a person had them written.

    The list is a convenience: without it a copy elsewhere is merely not found.

    Threads: any thread may call any method; several processes may, the last writer wins.
    """

    def __init__(self, data_folder: Path) -> None:
        self.usual = prepared_root(str(data_folder))
        self._list_file = data_folder / "prepared-places.json"

    def add(self, copy_folder: str) -> None:
        """Remember where a copy was written, unless it is the usual place."""
        parent = str(Path(copy_folder).parent)
        others = self.folders()
        if parent == self.usual or parent in others:
            return
        try:
            self._list_file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            written = self._list_file.with_suffix(".part")
            written.touch(mode=0o600)
            written.write_text(json.dumps([parent, *others][:MAX_PLACES]), encoding="utf-8")
            written.replace(self._list_file)
        except OSError as error:
            _logger.info("the place of a prepared copy is not remembered: %s", error)

    def find_elsewhere(self, fingerprint: str) -> list[PreparedCopy]:
        """Return the copies of a checkpoint outside the usual place."""
        return [copy for place in self.folders() for copy in find_prepared(place, fingerprint)]

    def folders(self) -> list[str]:
        """Return the folders outside the usual place, newest first."""
        try:
            listed = json.loads(self._list_file.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            return []
        if not isinstance(listed, list):
            return []
        return [place for place in listed if isinstance(place, str)][:MAX_PLACES]
