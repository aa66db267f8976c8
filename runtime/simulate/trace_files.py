"""Reading and writing traces: a folder of a header and parts (docs/replay.md)."""

import dataclasses
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np

from runtime.errors import LarderError
from runtime.protocol.errors import ErrorCode
from runtime.simulate.hygiene import repeated_rows
from runtime.simulate.trace import Trace, TraceOrigin

FORMAT_VERSION = 1
HEADER = "trace.json"
_MAX_HEADER_BYTES = 1 << 20
_MAX_PART_BYTES = 256 << 20
_MAX_PARTS = 1000
_MAX_EXPERTS = 1 << 12
"""Of a layer; several times what any published model has. Policies keep a square of them."""
_Part = dict[str, np.ndarray]
# A compression or a cipher that is not at hand is told by the last of them.
_DAMAGED = (
    OSError, KeyError, ValueError, EOFError, zipfile.BadZipFile, zlib.error, RuntimeError
)  # fmt: skip


class _Header(msgspec.Struct, forbid_unknown_fields=True):
    """The file ``trace.json``."""

    version: int
    name: str
    model: str
    kind: str
    source: str
    licence: str
    num_experts: int
    layers: list[int]
    sequence_tokens: list[int]
    is_ranked: bool
    parts: list[str]


class TraceWriter:
    """Writes a trace part by part; after each part the folder holds a whole trace.

    Threads: used by whoever made it.
    """

    def __init__(self, folder: Path, trace: Trace) -> None:
        """Take name, origin, layers and the number of experts of a trace, which may be empty.

        Raises ``SETTING_INVALID`` if the folder holds a trace already.
        """
        if (folder / HEADER).exists():
            raise LarderError(
                ErrorCode.SETTING_INVALID,
                name="trace folder",
                found=str(folder),
                expected="a folder without a trace",
            )
        self._folder = folder
        self._trace = trace
        self._parts: list[str] = []

    def add(self, trace: Trace, sequence_tokens: Sequence[int]) -> None:
        """Add the tokens of a trace; ``sequence_tokens`` are those of all sequences so far.

        Raises ``DISK_NOT_WRITABLE``.
        """
        name = f"part-{len(self._parts):03}.npz"
        dtype = np.uint8 if trace.num_experts <= 256 else np.uint16
        # Layers first: what repeats from token to token lies close and compresses well.
        arrays = {"ids": np.ascontiguousarray(trace.ids.transpose(1, 0, 2), dtype)}
        if trace.scores is not None:
            arrays["scores"] = np.ascontiguousarray(trace.scores.transpose(1, 0, 2))
        if trace.hints is not None:
            arrays["hints"] = np.ascontiguousarray(trace.hints.transpose(1, 0, 2), dtype)
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            with (self._folder / name).open("wb") as file:
                np.savez_compressed(file, allow_pickle=False, **arrays)
            self._parts.append(name)
            self._write_header(sequence_tokens)
        except OSError as error:
            reason = error.strerror or str(error)
            raise LarderError(
                ErrorCode.DISK_NOT_WRITABLE, folder=str(self._folder), reason=reason
            ) from error

    def _write_header(self, sequence_tokens: Sequence[int]) -> None:
        trace, origin = self._trace, self._trace.origin
        header = _Header(
            FORMAT_VERSION, trace.name, origin.model, origin.kind, origin.source, origin.licence,
            trace.num_experts, list(trace.layers), list(sequence_tokens), trace.is_ranked,
            self._parts,
        )  # fmt: skip
        text = msgspec.json.format(msgspec.json.encode(header), indent=1)
        (self._folder / HEADER).write_bytes(text + b"\n")


def write_trace(folder: Path, trace: Trace, tokens_per_part: int) -> None:
    """Write a trace into a folder, which may exist and hold no trace."""
    writer = TraceWriter(folder, trace)
    for first in range(0, trace.num_tokens, tokens_per_part):
        chosen = slice(first, first + tokens_per_part)
        ids = trace.ids[chosen]
        part = dataclasses.replace(
            trace,
            sequence_tokens=(len(ids),),
            ids=ids,
            scores=None if trace.scores is None else trace.scores[chosen],
            hints=None if trace.hints is None else trace.hints[chosen],
        )
        writer.add(part, trace.sequence_tokens)


def read_trace(folder: Path) -> Trace:
    """Read a trace; raise ``FILE_UNREADABLE`` if it is not one, damaged, or nobody's routing."""
    header = _read_header(folder / HEADER)
    parts = [_read_part(folder / name) for name in header.parts]
    try:
        trace = Trace(
            header.name,
            TraceOrigin(header.model, header.kind, header.source, header.licence),
            header.num_experts,
            tuple(header.layers),
            tuple(header.sequence_tokens),
            np.concatenate([part["ids"] for part in parts]).astype(np.uint16),
            _joined(parts, "scores"),
            header.is_ranked,
            _joined(parts, "hints"),
        )
    except ValueError as error:
        raise _unreadable(folder / HEADER, str(error)) from error
    if not trace.ids.size:
        raise _unreadable(folder / HEADER, f"ids of {trace.ids.shape}: nothing was chosen")
    repeated = repeated_rows(trace)
    if repeated:
        raise _unreadable(folder / HEADER, f"{repeated} rows name an expert twice")
    return trace


def _joined(parts: Sequence[_Part], name: str) -> np.ndarray | None:
    """Return an array of all parts, None if some lack it."""
    if not all(name in part for part in parts):
        return None
    whole = np.concatenate([part[name] for part in parts])
    return whole if name == "scores" else whole.astype(np.uint16)


def _read_header(path: Path) -> _Header:
    try:
        with path.open("rb") as file:
            text = file.read(_MAX_HEADER_BYTES + 1)
        if len(text) > _MAX_HEADER_BYTES:
            raise _unreadable(path, "it is too long")
        header = msgspec.json.decode(text, type=_Header)
    except OSError as error:
        raise _unreadable(path, error.strerror or str(error)) from error
    except (msgspec.MsgspecError, RecursionError) as error:
        raise _unreadable(path, str(error)) from error
    if header.version != FORMAT_VERSION:
        raise _unreadable(path, f"version {header.version}, and not {FORMAT_VERSION}")
    if not 0 < len(header.parts) <= _MAX_PARTS:
        raise _unreadable(path, f"{len(header.parts)} parts")
    if not 0 < header.num_experts <= _MAX_EXPERTS:
        reason = f"{header.num_experts} experts in a layer, and not 1 to {_MAX_EXPERTS}"
        raise _unreadable(path, reason)
    if len(set(header.layers)) < len(header.layers) or min(header.layers, default=0) < 0:
        raise _unreadable(path, "layers are not numbers of their own")
    if any(name in ("", ".", "..") or Path(name).name != name for name in header.parts):
        raise _unreadable(path, "a part lies outside of the folder")
    return header


def _read_part(path: Path) -> _Part:
    """Return the arrays of a part, tokens first."""
    try:
        with zipfile.ZipFile(path) as archive:
            if sum(entry.file_size for entry in archive.infolist()) > _MAX_PART_BYTES:
                raise _unreadable(path, "it is too long")
        with np.load(path, allow_pickle=False) as arrays:
            ids = arrays["ids"]
            found = {name: arrays[name] for name in ("scores", "hints") if name in arrays}
    except _DAMAGED as error:
        raise _unreadable(path, str(error)) from error
    if ids.dtype not in (np.uint8, np.uint16) or ids.ndim != 3:
        raise _unreadable(path, f"ids are {ids.dtype} of {ids.ndim} dimensions")
    scores, hints = found.get("scores"), found.get("hints")
    if scores is not None and (scores.dtype != np.uint8 or scores.shape != ids.shape):
        raise _unreadable(path, "scores do not fit the ids")
    if hints is not None and (hints.dtype != ids.dtype or hints.shape[:2] != ids.shape[:2]):
        raise _unreadable(path, "hints do not fit the ids")
    found["ids"] = ids
    return {name: array.transpose(1, 0, 2) for name, array in found.items()}


def _unreadable(path: Path, reason: str) -> LarderError:
    return LarderError(ErrorCode.FILE_UNREADABLE, file=str(path), reason=reason)
