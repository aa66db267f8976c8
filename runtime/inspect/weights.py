"""The weights of a folder as a whole: which files there are, and what is wrong with them."""

from collections.abc import Iterable

from runtime.errors import LarderError
from runtime.inspect.files import shown
from runtime.inspect.place import Place
from runtime.inspect.roles import Roles, role_problems
from runtime.inspect.shards import SINGLE_NAME, Shards
from runtime.protocol.errors import ErrorCode

_PICKLE_ENDINGS = (".bin", ".pt", ".pth", ".ckpt")


def weight_problems(place: Place, shards: Shards, roles: Roles) -> Iterable[LarderError]:
    """Yield what is wrong with files first, then with the tensors in them."""
    yield from shards.problems
    if not (shards.headers or shards.broken or shards.problems):
        yield _no_weights(place)
        return
    missing = roles.missing
    for name in sorted(shards.broken):
        yield _with_loss(shards.broken[name], name, roles, has_index=bool(shards.weight_map))
    if shards.problems or (shards.broken and not shards.weight_map):
        # What a file that cannot be read holds is not missing on its own.
        roles.missing = []
    yield from role_problems(roles, shards)
    roles.missing = missing


def _with_loss(error: LarderError, name: str, roles: Roles, *, has_index: bool) -> LarderError:
    """Return the error of a file with what the spec says should be in it."""
    if error.code is ErrorCode.SHARD_MISSING and not has_index and roles.missing:
        error.parameters["num_tensors"] = len(roles.missing)
        error.parameters["first_tensor"] = roles.missing[0]
    if error.code is ErrorCode.SHARD_TRUNCATED:
        expected = int(error.parameters["expected_bytes"])
        error.parameters["expected_bytes"] = max(expected, roles.lost_bytes.get(name, 0))
    return error


def _no_weights(place: Place) -> LarderError:
    folder = shown(str(place.folder))
    endings = {name[name.rfind(".") :].lower() for name in place.names if "." in name}
    if ".gguf" in endings:
        reason = "it holds GGUF files, which cannot be read yet; the safetensors version is needed"
        return LarderError(ErrorCode.NOT_A_MODEL, folder=folder, reason=reason)
    if endings.intersection(_PICKLE_ENDINGS):
        reason = (
            "its weights are pickle files, which are not read because they can run code; "
            "the safetensors version is needed"
        )
        return LarderError(ErrorCode.NOT_A_MODEL, folder=folder, reason=reason)
    reason = f"it holds no weight files such as {SINGLE_NAME}"
    return LarderError(ErrorCode.NOT_A_MODEL, folder=folder, reason=reason)
