"""The weights of a folder as a whole: which files there are, and what is wrong with them."""

from collections.abc import Iterable

from runtime.errors import LarderError
from runtime.inspect.astray import find_misnamed, stale_index
from runtime.inspect.files import shown
from runtime.inspect.place import Place
from runtime.inspect.roles import Roles, role_problems
from runtime.inspect.shards import SINGLE_NAME, Shards
from runtime.protocol.errors import ErrorCode

MAX_TOLD = 20
"""So many broken files are told one by one; a person downloads again anyway."""
_PICKLE_ENDINGS = (".bin", ".pt", ".pth", ".ckpt")


def weight_problems(place: Place, shards: Shards, roles: Roles) -> Iterable[LarderError]:
    """Yield what is wrong with files first, then with the tensors in them."""
    yield from shards.problems
    if not (shards.headers or shards.broken or shards.problems):
        yield _no_weights(place)
        return
    missing = roles.missing
    yield from _file_problems(place, shards, roles)
    if shards.problems or (shards.broken and not shards.weight_map):
        # What a file that cannot be read holds is not missing on its own.
        roles.missing = []
    if shards.weight_map and roles.missing:
        error, explained = stale_index(place, shards, roles.missing)
        if explained:
            yield error
            roles.missing = sorted(set(roles.missing).difference(explained))
    for problem in role_problems(roles, shards):
        yield _with_file(problem, shards)
    roles.missing = missing


def _file_problems(place: Place, shards: Shards, roles: Roles) -> Iterable[LarderError]:
    misnamed = find_misnamed(place, shards, roles.missing)
    names = sorted(shards.broken)
    for name in names[:MAX_TOLD]:
        error = shards.broken[name]
        if name in misnamed:
            error = LarderError(
                ErrorCode.SHARD_MISNAMED, file=shown(name), found=shown(misnamed[name])
            )
        if len(names) > MAX_TOLD and name == names[MAX_TOLD - 1]:
            error.detail = f"and {len(names) - MAX_TOLD} more files with problems"
        yield _with_loss(
            _with_part_file(place, error, roles.lost_bytes.get(name, 0)),
            name,
            roles,
            has_index=bool(shards.weight_map),
        )


def _with_part_file(place: Place, error: LarderError, lost_bytes: int) -> LarderError:
    """Return the error of a missing file, or the better one if a part of it lies there.

    Browsers and downloaders write into a file of the same name with an ending of their own.
    """
    if error.code is not ErrorCode.SHARD_MISSING:
        return error
    file = str(error.parameters["file"])
    part = next((name for name in place.names if name.startswith(f"{file}.")), None)
    try:
        found_bytes = (place.folder / part).stat().st_size if part else lost_bytes
    except OSError:
        return error
    if part is None or found_bytes >= lost_bytes:
        return error
    return LarderError(
        ErrorCode.SHARD_TRUNCATED,
        file=shown(str(place.folder / part)),
        found_bytes=found_bytes,
        expected_bytes=lost_bytes,
    )


def _with_loss(error: LarderError, name: str, roles: Roles, *, has_index: bool) -> LarderError:
    """Return the error of a file with what the spec says should be in it."""
    if error.code is ErrorCode.SHARD_MISSING and not has_index and roles.missing:
        error.parameters["num_tensors"] = len(roles.missing)
        error.parameters["first_tensor"] = roles.missing[0]
    if error.code is ErrorCode.SHARD_TRUNCATED:
        expected = int(error.parameters["expected_bytes"])
        error.parameters["expected_bytes"] = max(expected, roles.lost_bytes.get(name, 0))
    return error


def _with_file(error: LarderError, shards: Shards) -> LarderError:
    """Return an error about one tensor with the file that holds it."""
    if error.code is ErrorCode.TENSOR_MISMATCHED:
        path, _ = shards.tensors[str(error.parameters["tensor"])]
        error.parameters["file"] = shown(str(path))
    return error


def _no_weights(place: Place) -> LarderError:
    folder = shown(str(place.folder))
    endings = {name[name.rfind(".") :].lower() for name in place.names if "." in name}
    if ".gguf" in endings:
        reason = "the GGUF files in it are no models of their own but go beside one"
    elif endings.intersection(_PICKLE_ENDINGS):
        reason = "its weights are pickle files, which are never opened because they can run code"
    else:
        reason = f"it holds no weight files such as {SINGLE_NAME}"
    return LarderError(ErrorCode.NOT_A_MODEL, folder=folder, reason=reason)
