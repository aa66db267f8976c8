"""The text that a model is calibrated with: a person's own, or the one that comes with Larder."""

from pathlib import Path

from runtime.errors import LarderError
from runtime.inspect.files import read_small, shown
from runtime.protocol.errors import ErrorCode

SUPPLIED = Path(__file__).resolve().parents[2] / "resources" / "calibration" / "text.txt"
MAX_TEXT_BYTES = 64_000_000


def read_text(path: Path | None = None) -> str:
    """Return the text of a file, or the supplied one.

    Raises ``LarderError`` with ``FILE_UNREADABLE`` or ``FILE_INVALID``.
    """
    place = path or SUPPLIED
    try:
        data = read_small(place, MAX_TEXT_BYTES)
    except FileNotFoundError as cause:
        raise LarderError(
            ErrorCode.FILE_UNREADABLE, file=shown(str(place)), reason="it is not there"
        ) from cause
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as cause:
        raise LarderError(
            ErrorCode.FILE_INVALID,
            file=shown(str(place)),
            reason=f"it is not UTF-8 text from byte {cause.start} on",
        ) from cause
