"""What ``larderctl replay`` is told of sizes: bytes of experts, and how many slots."""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from runtime.errors import LarderError
from runtime.protocol.errors import ErrorCode
from runtime.simulate.gap import slots_of_share
from runtime.simulate.records import LayerBytes, RecordSizes, sizes_of
from runtime.simulate.replay import Entry
from runtime.simulate.trace import Trace

_UNITS = {"GiB": 1 << 30, "MiB": 1 << 20}
_MAX_FILE_BYTES = 16 << 20


def record_bytes_of(text: str, trace: Trace, layer_stride: int) -> Sequence[LayerBytes]:
    """Return the bytes of experts by layer, of every so many-th layer of a trace.

    The text is one size, sizes of all layers with commas, or the path of a file: a JSON list that
    holds for each layer a size, or a list with a size for each expert.
    """
    expected = f"a size, {trace.num_layers} with commas, or a file of sizes, each from 1"
    parts = [part.strip() for part in text.split(",")]
    try:
        if text.removeprefix("-").isdecimal():
            given: list[LayerBytes] = [int(text)] * trace.num_layers
        elif all(part.isdecimal() for part in parts):
            given = [int(part) for part in parts]
        elif len(parts) > 1 and not text.endswith(".json"):
            raise invalid("record-bytes", text, expected)
        else:
            given = _read(Path(text))
        sizes_of(trace, given)
    except ValueError as error:
        raise invalid("record-bytes", f"{text} ({error})", expected) from error
    return given[::layer_stride]


def total_slots(trace: Trace, text: str, entry: Entry, sizes: RecordSizes) -> int:
    """Return the slots of all layers that a person asked for."""
    least = trace.top_k if entry is Entry.REQUIRED else 1
    expected = (
        f"{least} to {trace.num_experts}, a share such as 25%, or a size of all slots such as 4GiB"
    )
    try:
        if text.endswith("%"):
            total = slots_of_share(trace, float(text[:-1]) / 100)
        elif text[-3:] in _UNITS:
            all_bytes = sum(sizes.slot_bytes(layer) for layer in range(trace.num_layers))
            each = int(float(text[:-3]) * _UNITS[text[-3:]] / all_bytes)
            total = each * trace.num_layers
        else:
            total = int(text) * trace.num_layers
    except (ValueError, OverflowError) as error:
        raise invalid("slots", text, expected) from error
    if not least <= total // trace.num_layers <= trace.num_experts:
        raise invalid("slots", text, expected)
    return total


def invalid(name: str, found: str, expected: str) -> LarderError:
    """Return the error of a setting that makes no sense."""
    return LarderError(ErrorCode.SETTING_INVALID, name=name, found=found, expected=expected)


def _read(path: Path) -> list[LayerBytes]:
    """Read sizes from a file."""
    try:
        with path.open("rb") as file:
            text = file.read(_MAX_FILE_BYTES + 1)
        if len(text) > _MAX_FILE_BYTES:
            raise LarderError(ErrorCode.FILE_UNREADABLE, file=str(path), reason="it is too long")
        found: list[LayerBytes] = list(msgspec.json.decode(text, type=list[int | list[int]]))
    except OSError as error:
        reason = error.strerror or str(error)
        raise LarderError(ErrorCode.FILE_UNREADABLE, file=str(path), reason=reason) from error
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise LarderError(ErrorCode.FILE_UNREADABLE, file=str(path), reason=str(error)) from error
    return found
