"""Which files hold the weights of a folder, and what their headers say."""

import dataclasses
import re
from collections import Counter
from pathlib import Path

from runtime.errors import LarderError
from runtime.inspect.bounded_json import JsonRefusedError, parse_object
from runtime.inspect.config import spelled
from runtime.inspect.files import read_small, shown
from runtime.inspect.header import ShardHeader, StoredTensor, read_header
from runtime.protocol.errors import ErrorCode

SINGLE_NAME = "model.safetensors"
INDEX_NAME = "model.safetensors.index.json"
MAX_INDEX_BYTES = 64_000_000
MAX_SHARDS = 4096
_NUMBERED = re.compile(r"(?P<stem>model)-(?P<number>\d{1,5})-of-(?P<total>\d{1,5})\.safetensors")


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

    def add(self, folder: Path, name: str) -> None:
        """Read one file and take its tensors, or keep why not."""
        path = folder / name
        try:
            header = read_header(path)
        except FileNotFoundError:
            mapped = [tensor for tensor, file in self.weight_map.items() if file == name]
            self.broken[name] = LarderError(
                ErrorCode.SHARD_MISSING,
                file=shown(name),
                num_tensors=len(mapped),
                first_tensor=mapped[0] if mapped else "unknown",
            )
        except LarderError as error:
            self.broken[name] = error
        else:
            self.headers[name] = header
            self._take(path, name, header)

    def _take(self, path: Path, name: str, header: ShardHeader) -> None:
        for tensor in header.tensors.values():
            if self.weight_map and self.weight_map.get(tensor.name) != name:
                continue
            if tensor.name in self.tensors:
                reason = f"the tensor {tensor.name[:120]!r} is in another file too"
                self.broken[name] = LarderError(
                    ErrorCode.SHARD_INVALID, file=shown(str(path)), reason=reason
                )
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
        files = sorted(Counter(shards.weight_map.values()))
    else:
        files = _unindexed(names)
    if len(files) > MAX_SHARDS:
        shards.problems.append(_too_many(folder, len(files)))
        return shards
    for file in files:
        shards.add(folder, file)
    return shards


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
        index = parse_object(read_small(path, MAX_INDEX_BYTES))
    except FileNotFoundError as cause:
        raise _index_invalid(path, "nothing", "an index of shards") from cause
    except JsonRefusedError as cause:
        raise _index_invalid(path, str(cause), "valid JSON") from cause
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


def _index_invalid(path: Path, found: str, expected: str) -> LarderError:
    return LarderError(
        ErrorCode.CONFIG_INVALID,
        file=shown(str(path)),
        field="weight_map",
        found=found,
        expected=expected,
    )
