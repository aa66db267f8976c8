"""Weights that lie elsewhere than the names of the files, or the index, say."""

from collections.abc import Iterable

from runtime.errors import LarderError
from runtime.inspect.files import shown
from runtime.inspect.header import read_header
from runtime.inspect.place import Place
from runtime.inspect.shards import INDEX_NAME, Shards, weight_files
from runtime.protocol.errors import ErrorCode

MAX_STRANGERS = 64
"""So many files that nothing names are looked into for what is missing."""
_MAX_STRANGER_BYTES = 8_000_000


def find_misnamed(place: Place, shards: Shards, missing: Iterable[str]) -> dict[str, str]:
    """Return, for each missing file, the file of another name that holds what belongs in it.

    What belongs in a file is told by the index; without one, and with one file missing, it is all
    of the ``missing`` tensors.
    """
    lost = [n for n, error in shards.broken.items() if error.code is ErrorCode.SHARD_MISSING]
    wanted: dict[str, set[str]] = {name: set() for name in lost}
    if shards.weight_map:
        for tensor, file in shards.weight_map.items():
            if file in wanted:
                wanted[file].add(tensor)
    elif len(lost) == 1:
        wanted[lost[0]] = set(missing)
    if not any(wanted.values()):
        return {}
    strangers = _strangers(place, shards)
    holders = {
        file: [name for name, has in strangers.items() if tensors <= has]
        for file, tensors in wanted.items()
    }
    return {file: found[0] for file, found in holders.items() if found}


def stale_index(place: Place, shards: Shards, missing: list[str]) -> tuple[LarderError, list[str]]:
    """Return the error for an index that is wrong about ``missing`` tensors, and which it explains.

    It explains those that it puts into a file that can be read, or nowhere though they are stored.
    The list may be empty; then there is no such error and what is returned is not to be used.
    """
    holders = {
        tensor: name for name in sorted(shards.headers) for tensor in shards.headers[name].tensors
    }
    explained = [n for n in missing if n in holders or shards.weight_map.get(n) in shards.headers]
    tensor = next((n for n in explained if n in holders), next(iter(explained), ""))
    holder = holders.get(tensor)
    error = LarderError(
        ErrorCode.INDEX_STALE,
        file=shown(str(place.folder / INDEX_NAME)),
        tensor=tensor,
        expected=shards.weight_map.get(tensor, "no file"),
        found=f"it is in {holder}" if holder else "it is not there",
        num_tensors=len(explained),
    )
    return error, explained


def _strangers(place: Place, shards: Shards) -> dict[str, set[str]]:
    """Return the tensors in each weight file that nothing names, as far as they can be read."""
    known = {*shards.headers, *shards.broken}
    names = [name for name in weight_files(place.names) if name not in known]
    found: dict[str, set[str]] = {}
    for name in names[:MAX_STRANGERS]:
        try:
            header = read_header(place.folder / name, _MAX_STRANGER_BYTES)
        except (FileNotFoundError, LarderError):
            continue
        found[name] = set(header.tensors)
    return found
