"""Quantised checkpoints, told by name: what is not read is refused."""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence

from runtime.errors import LarderError
from runtime.inspect.chat_files import optional_config
from runtime.inspect.config import ConfigReader, spelled
from runtime.inspect.levels import has_other_order, read_levels, refused_variant
from runtime.inspect.place import Place
from runtime.inspect.scaled import QUANTIZED_KEYS, has_transforms, read_scheme
from runtime.protocol.errors import ErrorCode
from runtime.spec.tensors import TensorEntry

READABLE = (
    "bf16, f16, f32, fp8 (e4m3) with block scales, compressed-tensors fp8 and int4,"
    " GPTQ (4 or 8 bits without desc_act), AWQ (4 bits, gemm)"
)
_METHOD_FILES = {
    "hf_quant_config.json": "modelopt",
    "quantize_config.json": "gptq",
    "quant_config.json": "awq",
}
"""Files that say what a config may leave out, and who writes them."""
_PACKED = {".weight_packed": ".weight_scale", ".qweight": ".scales"}
"""Endings of packed weights and of the scales without which they mean nothing."""


@dataclasses.dataclass(frozen=True, slots=True)
class OwnFile:
    """What a file of its own says of quantised weights, as a config would say it."""

    name: str = ""
    """Empty: there is none, or the config says it."""
    values: Mapping[str, object] = dataclasses.field(default_factory=dict)
    problems: Sequence[LarderError] = ()


def read_own_file(place: Place, config: ConfigReader) -> OwnFile:
    """Return what a file says of the weights where the config says nothing."""
    name = next((file for file in _METHOD_FILES if file in place.names), "")
    if not name or any(config[key] for key in QUANTIZED_KEYS):
        return OwnFile()
    read, problems = optional_config(place.folder, name)
    inner = read["quantization"]
    stated = inner if isinstance(inner, dict) else read.values
    values = {QUANTIZED_KEYS[0]: {"quant_method": _METHOD_FILES[name], **stated}}
    return OwnFile(name, values, problems)


def quantization_problems(
    config: ConfigReader, file: str = "", readable: frozenset[str] = frozenset()
) -> Iterable[LarderError]:
    """Yield an error naming the method if a config says that the weights are in none we read.

    ``file`` is what says so in its place. Methods that are ``readable`` are those that the family
    of the config looks after itself.
    """
    if read_scheme(config) is not None or read_levels(config) is not None:
        return
    for key in QUANTIZED_KEYS:
        stated = config[key]
        if isinstance(stated, dict) and stated.get("quant_method") in readable:
            return
        if stated:
            method = _method(stated) if isinstance(stated, dict) else spelled(stated)
            yield _unsupported(method, file or f"{key} in config.json")
            return


def order_problems(config: ConfigReader, entries: Iterable[TensorEntry]) -> Iterable[LarderError]:
    """Yield an error naming the method if columns of weights are in another order than groups."""
    if has_other_order(config, entries):
        yield _unsupported("gptq with columns in another order (desc_act)", "found in a g_idx")


def scale_problems(tensors: Mapping[str, object]) -> Iterable[LarderError]:
    """Yield an error naming the first packed tensor's scale that is not there."""
    missing = [
        stem + scale
        for name in tensors
        for packed, scale in _PACKED.items()
        if name.endswith(packed) and (stem := name.removesuffix(packed)) + scale not in tensors
    ]
    if missing:
        yield LarderError(ErrorCode.TENSOR_MISSING, tensor=missing[0], num_missing=len(missing))


def _method(table: Mapping[str, object]) -> str:
    """Return what the config calls its method, with the scheme inside a container kind."""
    method = table.get("quant_method", table.get("quant_algo", "unnamed"))
    scheme = table.get("format", table.get("quant_algo", table.get("fmt")))
    named = (
        spelled(method) if scheme in (None, method) else f"{spelled(method)} ({spelled(scheme)})"
    )
    variant = "transforms" if has_transforms(table) else refused_variant(table)
    return named.replace("'", "") + (f" with {variant}" if variant else "")


def _unsupported(method: str, place: str) -> LarderError:
    return LarderError(
        ErrorCode.QUANTIZATION_UNSUPPORTED, method=method, supported=READABLE, detail=place
    )
