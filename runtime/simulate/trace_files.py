"""Reading and writing traces: a folder of a header and parts (docs/replay.md)."""

import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np

from runtime.errors import LarderError
from runtime.protocol.errors import ErrorCode
from runtime.simulate.trace import Trace, TraceOrigin

FORMAT_VERSION = 1
HEADER = "trace.json"
_MAX_HEADER_BYTES = 1 << 20
_MAX_PART_BYTES = 256 << 20
_MAX_PARTS = 1000
_Part = dict[str, np.ndarray]


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


def write_trace(folder: Path, trace: Trace, tokens_per_part: int) -> None:
    """Write a trace into a folder, which may exist and be empty."""
    folder.mkdir(parents=True, exist_ok=True)
    dtype = np.uint8 if trace.num_experts <= 256 else np.uint16
    names: list[str] = []
    for first in range(0, trace.num_tokens, tokens_per_part):
        names.append(f"part-{len(names):03}.npz")
        chosen = slice(first, first + tokens_per_part)
        # Layers first: what repeats from token to token lies close and compresses well.
        arrays = {"ids": np.ascontiguousarray(trace.ids[chosen].transpose(1, 0, 2), dtype)}
        if trace.scores is not None:
            arrays["scores"] = np.ascontiguousarray(trace.scores[chosen].transpose(1, 0, 2))
        if trace.hints is not None:
            arrays["hints"] = np.ascontiguousarray(trace.hints[chosen].transpose(1, 0, 2), dtype)
        with (folder / names[-1]).open("wb") as file:
            np.savez_compressed(file, allow_pickle=False, **arrays)
    origin = trace.origin
    header = _Header(
        FORMAT_VERSION, trace.name, origin.model, origin.kind, origin.source, origin.licence,
        trace.num_experts, list(trace.layers), list(trace.sequence_tokens), trace.is_ranked, names,
    )  # fmt: skip
    text = msgspec.json.format(msgspec.json.encode(header), indent=1)
    (folder / HEADER).write_bytes(text + b"\n")


def read_trace(folder: Path) -> Trace:
    """Read a trace; raise ``FILE_UNREADABLE`` if it is not one, or damaged."""
    header = _read_header(folder / HEADER)
    parts = [_read_part(folder / name) for name in header.parts]
    try:
        return Trace(
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
    except msgspec.MsgspecError as error:
        raise _unreadable(path, str(error)) from error
    if header.version != FORMAT_VERSION:
        raise _unreadable(path, f"version {header.version}, and not {FORMAT_VERSION}")
    if not 0 < len(header.parts) <= _MAX_PARTS:
        raise _unreadable(path, f"{len(header.parts)} parts")
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
    except (OSError, KeyError, ValueError, EOFError, zipfile.BadZipFile, zlib.error) as error:
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
