"""Which files hold the weights of a folder, and what their headers say."""

import dataclasses
import re
import unicodedata
from pathlib import Path

from runtime.errors import LarderError
from runtime.inspect.bounded_json import read_object
from runtime.inspect.config import spelled
from runtime.inspect.files import shown, unusable
from runtime.inspect.header import MAX_HEADER_BYTES, ShardHeader, StoredTensor, read_header
from runtime.protocol.errors import ErrorCode

SINGLE_NAME = "model.safetensors"
INDEX_NAME = "model.safetensors.index.json"
MAX_INDEX_BYTES = 64_000_000
MAX_SHARDS = 4096
MAX_TENSORS = 1 << 19
"""Most tensors in all files of a folder together."""
_NUMBERED = re.compile(r"model-(?P<number>\d{1,5})-of-(?P<total>\d{1,5})\.safetensors")


@dataclasses.dataclass(slots=True)
class Shards:
    """The weight files of one folder as far as they could be read."""

    headers: dict[str, ShardHeader] = dataclasses.field(default_factory=dict)
    """By file name."""
    tensors: dict[str, tuple[Path, StoredTensor]] = dataclasses.field(default_factory=dict)
    """By tensor name: the path of its file, and the tensor."""
    weight_map: dict[str, str] = dataclasses.field(default_factory=dict)
    """What the index says: file name by tensor name; empty without an index."""
    broken: dict[str, LarderError] = dataclasses.field(default_factory=dict)
    """By file name: why it cannot be used."""
    problems: list[LarderError] = dataclasses.field(default_factory=list)
    room_bytes: int = MAX_HEADER_BYTES
    """What the headers of further files may take; all together get what one file may have."""
    _num_tensors: int = 0
    _by_file: dict[str, list[str]] = dataclasses.field(default_factory=dict)

    def add(self, path: Path, name: str) -> None:
        """Read the file that goes by ``name`` and take its tensors, or keep why not."""
        try:
            header = read_header(path, self.room_bytes)
        except FileNotFoundError:
            mapped = self._tensors_of(name)
            self.broken[name] = LarderError(
                ErrorCode.SHARD_MISSING,
                file=shown(name),
                num_tensors=len(mapped),
                first_tensor=mapped[0] if mapped else "unknown",
            )
        except LarderError as error:
            self.broken[name] = error
        else:
            self.room_bytes -= len(header.header)
            self._num_tensors += len(header.tensors)
            if self._num_tensors > MAX_TENSORS:
                self.room_bytes = 0
                reason = f"with it the model has more than {MAX_TENSORS} matrices"
                self.broken[name] = _invalid(path, reason)
                return
            self.headers[name] = header
            self._take(path, name, header)

    def _tensors_of(self, name: str) -> list[str]:
        """Return what the index puts into a file."""
        if not self._by_file:
            for tensor, file in self.weight_map.items():
                self._by_file.setdefault(file, []).append(tensor)
        return self._by_file.get(name, [])

    def _take(self, path: Path, name: str, header: ShardHeader) -> None:
        for tensor in header.tensors.values():
            if self.weight_map and self.weight_map.get(tensor.name) != name:
                continue
            if tensor.name in self.tensors:
                other = self.tensors[tensor.name][0].name
                reason = f"the matrix {tensor.name[:120]} in it is in {other} too"
                self.broken[name] = _invalid(path, reason)
                return
            self.tensors[tensor.name] = (path, tensor)


def read_shards(folder: Path, names: list[str]) -> Shards:
    """Read the headers of all weight files of ``folder``, whose entries are ``names``."""
    shards = Shards()
    if INDEX_NAME in names:
        try:
            shards.weight_map = _read_index(folder / INDEX_NAME)
        except LarderError as error:
            shards.problems.append(error)
            return shards
        # In the order of the files' names, which is the order of reading them.
        files = sorted(set(shards.weight_map.values()))
        if SINGLE_NAME in names and not set(files).intersection(names):
            # The list of an earlier version, none of whose files is left.
            shards.weight_map = {}
            files = [SINGLE_NAME]
    else:
        files = _unindexed(names)
    if len(files) > MAX_SHARDS:
        shards.problems.append(_too_many(folder, len(files)))
        return shards
    composed = {_composed(name): name for name in names if not name.isascii()}
    for file in files:
        shards.add(folder / composed.get(_composed(file), file), file)
    return shards


def _composed(name: str) -> str:
    """Return a name as it reads: some systems store an accent apart from its letter."""
    return unicodedata.normalize("NFC", name)


def weight_files(names: list[str]) -> list[str]:
    """Return the safetensors files among ``names`` that can be a model's own weights."""
    found = [name for name in names if name.endswith(".safetensors")]
    return sorted(name for name in found if not name.startswith(("adapter_", "consolidated")))


def _unindexed(names: list[str]) -> list[str]:
    """Return the files of a folder without index, those included that their numbers say exist."""
    if SINGLE_NAME in names:
        return [SINGLE_NAME]
    found = weight_files(names)
    matches = [match for name in found if (match := _NUMBERED.fullmatch(name))]
    if not matches:
        return found
    total_text = matches[0]["total"]
    width = len(matches[0]["number"])
    expected = range(1, min(int(total_text), MAX_SHARDS) + 1)
    return [f"model-{number:0{width}d}-of-{total_text}.safetensors" for number in expected]


def _read_index(path: Path) -> dict[str, str]:
    try:
        index = read_object(path, MAX_INDEX_BYTES)
    except FileNotFoundError as cause:
        raise unusable(path, "it is a link to a file that is not there") from cause
    weight_map = index.get("weight_map")
    if not isinstance(weight_map, dict) or not weight_map:
        raise _index_invalid(path, "no weight_map", "an object of file names")
    for name, file in weight_map.items():
        if not (isinstance(file, str) and is_shard_name(file)):
            raise LarderError(
                ErrorCode.CONFIG_INVALID,
                file=shown(str(path)),
                field=f"the file of {spelled(name)}",
                found=spelled(file),
                expected="the name of a safetensors file in the same folder",
            )
    return weight_map


def read_index_files(path: Path) -> list[str]:
    """Return the files that an index names, in the order of reading them.

    Raises ``LarderError``, or ``FileNotFoundError``.
    """
    files = sorted(set(_read_index(path).values()))
    if len(files) > MAX_SHARDS:
        raise _too_many(path.parent, len(files))
    return files


def _too_many(folder: Path, num_files: int) -> LarderError:
    path = folder / INDEX_NAME
    return _index_invalid(path, f"a list of {num_files} files", f"at most {MAX_SHARDS}")


def is_shard_name(name: str) -> bool:
    """Whether ``name`` is a plain file name that cannot lead out of its folder."""
    return (
        name.endswith(".safetensors")
        and len(name) <= 255
        and name.isprintable()
        and not any(letter in '/\\:*?"<>|' for letter in name)
    )


def _invalid(path: Path, reason: str) -> LarderError:
    return LarderError(ErrorCode.SHARD_INVALID, file=shown(str(path)), reason=shown(reason))


def _index_invalid(path: Path, found: str, expected: str) -> LarderError:
    return LarderError(
        ErrorCode.CONFIG_INVALID,
        file=shown(str(path)),
        field="weight_map",
        found=found,
        expected=expected,
    )
