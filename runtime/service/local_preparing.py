"""Preparing in this process, as ``larderctl`` and the runtime's child do."""

import time
from pathlib import Path

from runtime.engine.base import CancelToken
from runtime.errors import CancelledError
from runtime.inspect.folder import inspect_folder
from runtime.prepare.journal import kept_bytes
from runtime.prepare.place import default_prepared_folder
from runtime.prepare.prepare import prepare_model
from runtime.protocol.messages import PrepareModel
from runtime.protocol.model import PreparedCopy
from runtime.service.prepared_places import PreparedPlaces
from runtime.service.preparing import PrepareReport, PrepareStoppedError


class LocalPreparer:
    """Inspects, writes the copy, and remembers where it was put.

    Threads: called by one thread at a time.
    """

    def __init__(self, data_folder: Path, places: PreparedPlaces) -> None:
        self._data_folder = data_folder
        self._places = places

    def __call__(
        self, command: PrepareModel, progress: PrepareReport, cancel: CancelToken
    ) -> PreparedCopy:
        """Prepare in the folder of the command, or in the usual one."""
        inspection = inspect_folder(command.folder)
        folder = command.output_folder or default_prepared_folder(
            str(self._data_folder), inspection.report, command.expert_format
        )
        rate = _Rate()

        def report(done_bytes: int, total_bytes: int) -> None:
            progress(done_bytes, total_bytes, rate.after(done_bytes))

        try:
            copy = prepare_model(inspection, command.expert_format, folder, report, cancel)
        except CancelledError as error:
            raise PrepareStoppedError(kept_bytes(folder)) from error
        self._places.add(copy.folder)
        return copy


class _Rate:
    """Bytes per second since the first report; what was done before it was not done now."""

    def __init__(self) -> None:
        self._started_s = time.monotonic()
        self._first_bytes: int | None = None

    def after(self, done_bytes: int) -> float:
        """Return the mean rate up to now."""
        if self._first_bytes is None:
            self._first_bytes = done_bytes
        elapsed_s = time.monotonic() - self._started_s
        return (done_bytes - self._first_bytes) / elapsed_s if elapsed_s > 0 else 0.0
