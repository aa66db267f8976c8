"""Preparing in this process, as ``larderctl`` and the runtime's child do."""

import time
from pathlib import Path

from runtime.engine.base import CancelToken
from runtime.errors import CancelledError, LarderError
from runtime.inspect.folder import inspect_folder
from runtime.inspect.inspection import Inspection
from runtime.prepare.calibration import calibration_path, read_calibration
from runtime.prepare.journal import kept_bytes
from runtime.prepare.mixing import measure_formats
from runtime.prepare.place import default_prepared_folder
from runtime.prepare.prepare import prepare_model, require_mixable
from runtime.protocol.errors import ErrorCode
from runtime.protocol.messages import PrepareModel, PreparePhase
from runtime.protocol.model import PreparedCopy
from runtime.service.prepared_places import PreparedPlaces
from runtime.service.preparing import PrepareReport, PrepareStoppedError
from runtime.spec.mix import Mix


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
            str(self._data_folder), inspection.report, command.expert_format, command.mix_bytes
        )
        rate = Rate()

        def report(done_bytes: int, total_bytes: int) -> None:
            progress(done_bytes, total_bytes, rate.after(done_bytes), PreparePhase.WRITING)

        expert_format, mix = command.expert_format, None
        try:
            if command.mix_bytes:
                mix = self._mix(inspection, command.mix_bytes, progress, cancel)
                rate = Rate()
                expert_format = mix.most_common
            copy = prepare_model(inspection, expert_format, folder, report, cancel, mix)
        except CancelledError as error:
            raise PrepareStoppedError(kept_bytes(folder)) from error
        self._places.add(copy.folder)
        return copy

    def _mix(
        self,
        inspection: Inspection,
        budget_bytes: int,
        progress: PrepareReport,
        cancel: CancelToken,
    ) -> Mix:
        """Return the mix of a calibrated model."""
        report = inspection.report
        require_mixable(inspection)
        found = read_calibration(calibration_path(self._data_folder, report), report.fingerprint)
        if found is None or not found.is_complete:
            raise LarderError(ErrorCode.NOT_CALIBRATED, folder=report.folder, name=report.name)
        rate = Rate()

        def tried(done_bytes: int, total_bytes: int) -> None:
            progress(done_bytes, total_bytes, rate.after(done_bytes), PreparePhase.TRYING_FORMATS)

        return measure_formats(inspection, found, tried, cancel).mix(budget_bytes)


class Rate:
    """Bytes per second since the first report; what was done before is not counted."""

    def __init__(self) -> None:
        self._first: tuple[float, int] | None = None

    def after(self, done_bytes: int) -> float:
        """Return the mean rate up to now."""
        now_s = time.monotonic()
        if self._first is None:
            self._first = now_s, done_bytes
        first_s, first_bytes = self._first
        return (done_bytes - first_bytes) / (now_s - first_s) if now_s > first_s else 0.0
