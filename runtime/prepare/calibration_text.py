"""The text that a model is calibrated with: a person's own, or the one that comes with Larder."""

import codecs
from pathlib import Path

from runtime.errors import LarderError
from runtime.inspect.files import read_small, shown
from runtime.protocol.errors import ErrorCode

SUPPLIED = Path(__file__).resolve().parents[2] / "resources" / "calibration" / "text.txt"
MAX_TEXT_BYTES = 64_000_000
MIN_TEXT_TOKENS = 64
"""A shorter text tells nothing."""
MIN_TEXT_WORDS = 100
"""What a person is asked for: so many words have enough tokens in every vocabulary."""
_MARKS_OF_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def read_text(place: Path = SUPPLIED) -> str:
    """Return the text of a file; raise ``LarderError`` with ``TEXT_INVALID`` if it is none."""
    try:
        data = read_small(place, MAX_TEXT_BYTES)
    except FileNotFoundError as cause:
        raise unfit_text(place, "it is not there") from cause
    except LarderError as cause:
        raise unfit_text(place, str(cause.parameters["reason"])) from cause
    if data.startswith(_MARKS_OF_UTF16):
        raise unfit_text(place, "it is saved as UTF-16")
    if b"\0" in data:
        raise unfit_text(place, f"it is no text but data, as its byte {data.index(0) + 1} says")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as cause:
        reason = f"it is not UTF-8 from byte {cause.start + 1} on"
        raise unfit_text(place, reason) from cause
    if not text.strip():
        raise unfit_text(place, "it is empty")
    return text


def unfit_text(file: Path | str, reason: str) -> LarderError:
    """Return the error for a file that is not the text it should be."""
    return LarderError(
        ErrorCode.TEXT_INVALID,
        file=shown(str(file)),
        reason=reason,
        min_words=MIN_TEXT_WORDS,
    )
