"""The files of a GGUF model: one, or a set that was split, whichever of it is named."""

import dataclasses
import hashlib
import re
from collections.abc import Iterable
from pathlib import Path

from runtime.errors import LarderError
from runtime.inspect.files import shown
from runtime.inspect.gguf.header import GgufHeader, GgufTensor, read_header
from runtime.inspect.shards import MAX_SHARDS, MAX_TENSORS
from runtime.protocol.errors import ErrorCode

ENDING = ".gguf"
_BESIDE = re.compile(
    r"mmproj|mtp-|.*[-_.]mmproj[-_.]|(.*[-_.])?imatrix([-_.][a-z]+)?\.gguf$", re.IGNORECASE
)
"""Names of files that are no model of their own but go beside one, or were used to make it."""
_NUMBERED = re.compile(
    r"(?P<stem>.+)-(?P<number>\d{5})-of-(?P<total>\d{5})(?P<ending>\.gguf)", re.IGNORECASE
)


@dataclasses.dataclass(slots=True)
class GgufParts:
    """The files of one model as far as they could be read."""

    headers: dict[str, GgufHeader] = dataclasses.field(default_factory=dict)
    """By file name, in their order."""
    tensors: dict[str, tuple[Path, GgufTensor]] = dataclasses.field(default_factory=dict)
    problems: list[LarderError] = dataclasses.field(default_factory=list)

    @property
    def first(self) -> GgufHeader | None:
        """The one whose metadata counts, None if it could not be read."""
        header = next(iter(self.headers.values()), None)
        return header if header is not None and "general.architecture" in header.values else None

    def fingerprint(self) -> str:
        """Return 32 hex digits over each file's name, size and header."""
        digest = hashlib.sha256()
        for name, header in self.headers.items():
            digest.update(f"\0{name}\0{header.file_bytes}\0".encode())
            digest.update(header.digest)
        return digest.hexdigest()[:32]


def is_gguf_name(name: str) -> bool:
    """Whether a file's name is that of a model in GGUF, or of a part of one."""
    return name.lower().endswith(ENDING) and not _BESIDE.match(name)


def models_among(names: Iterable[str]) -> list[str]:
    """Return of each model among the entries of a folder the first file that is there, sorted."""
    found: dict[str, str] = {}
    for name in sorted(filter(is_gguf_name, names)):
        match = _of_set(name)
        if match is None:
            found[name] = name
        elif 1 <= int(match["number"]) <= int(match["total"]):
            found.setdefault(_part_name(match, 1), name)
    return [found[first] for first in sorted(found)]


def model_name(name: str) -> str:
    """Return what to call the model of a file."""
    match = _NUMBERED.fullmatch(name)
    return shown(match["stem"] if match else name.removesuffix(name[-len(ENDING) :]))


def first_part(path: Path) -> Path:
    """Return the first file of the set that one belongs to, or itself."""
    match = _of_set(path.name)
    return path if match is None else path.with_name(_part_name(match, 1))


def part_paths(path: Path) -> list[Path]:
    """Return all files of the set that one belongs to, whether they are there or not."""
    return [path.with_name(name) for name in part_names(path.name)]


def part_names(name: str) -> list[str]:
    """Return the names of all files of the set that one belongs to."""
    match = _of_set(name)
    if match is None:
        return [name]
    return [_part_name(match, number) for number in range(1, int(match["total"]) + 1)]


def _of_set(name: str) -> re.Match[str] | None:
    """Return the pieces of a name that says which part of a set it is, None for a whole model."""
    match = _NUMBERED.fullmatch(name)
    return match if match is not None and 1 <= int(match["total"]) <= MAX_SHARDS else None


def _part_name(match: re.Match[str], number: int) -> str:
    return f"{match['stem']}-{number:05d}-of-{match['total']}{match['ending']}"


def read_parts(path: Path) -> GgufParts:
    """Read the headers of all files of the set that ``path`` belongs to."""
    parts = GgufParts()
    paths = part_paths(path)
    for number, each in enumerate(paths):
        try:
            header = read_header(each)
            _check_place(header, number, len(paths))
            _take(parts, header)
        except FileNotFoundError:
            error = LarderError(
                ErrorCode.SHARD_MISSING,
                file=shown(each.name),
                num_tensors=0,
                first_tensor="unknown",
            )
            parts.problems.append(error)
        except LarderError as error:
            parts.problems.append(error)
    _tell_what_is_lost(parts)
    return parts


def _check_place(header: GgufHeader, number: int, total: int) -> None:
    """Raise if a file says that it belongs elsewhere than its name does."""
    count, own = header.values.get("split.count", 0), header.values.get("split.no", number)
    if count not in (0, 1, total):
        reason = f"it is one of {str(count)[:80]} parts, and its name says one of {total}"
        raise _invalid(header.path, reason)
    if total > 1 and own != number:
        found = own + 1 if isinstance(own, int) else own
        raise _invalid(header.path, f"it is part {str(found)[:80]}, and its name says {number + 1}")


def _take(parts: GgufParts, header: GgufHeader) -> None:
    for name, tensor in header.tensors.items():
        if name in parts.tensors:
            other = parts.tensors[name][0].name
            raise _invalid(header.path, f"the matrix {name[:120]} in it is in {other} too")
        parts.tensors[name] = (header.path, tensor)
    if len(parts.tensors) > MAX_TENSORS:
        raise _invalid(header.path, f"with it the model has more than {MAX_TENSORS} matrices")
    parts.headers[header.path.name] = header


def _tell_what_is_lost(parts: GgufParts) -> None:
    """Say of files that are not there how many matrices are missing, which the first file knows."""
    missing = [each for each in parts.problems if each.code is ErrorCode.SHARD_MISSING]
    first = parts.first
    count = first.values.get("split.tensors.count") if first is not None else None
    if missing and isinstance(count, int):
        missing[0].parameters["num_tensors"] = max(0, min(count, MAX_TENSORS) - len(parts.tensors))


def _invalid(path: Path, reason: str) -> LarderError:
    return LarderError(ErrorCode.SHARD_INVALID, file=shown(str(path)), reason=shown(reason))
