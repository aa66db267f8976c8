"""Weights in few bits with plain scales: what a config says of them, where that is readable."""

import dataclasses
from collections.abc import Container, Mapping

from runtime.inspect.config import ConfigReader

QUANTIZED_KEYS = ("quantization_config", "compression_config")
_DTYPES = {8: "F8_E4M3", 4: "I32"}
_FORMATS = (None, "e4m3", "float8_e4m3fn")
_MAX_BLOCK = 1 << 20


@dataclasses.dataclass(frozen=True, slots=True)
class ScaleScheme:
    """Every matrix in few bits has a tensor of scales beside it, one for each block.

    ``rows`` and ``columns`` are those of a block, 0 where it is as large as the matrix. The scales
    have the name of the matrix with ``ending`` behind it. Of ``bits`` there are eight or four.
    """

    ending: str
    rows: int
    columns: int
    bits: int = 8

    @property
    def dtype(self) -> str:
        """The element type of the matrices."""
        return _DTYPES[self.bits]

    def packed_columns(self, columns: int) -> int:
        """Return how many elements a row of a matrix has."""
        return columns if self.bits == 8 else -(-columns // 8)


def packed_name(name: str) -> str:
    """Return under which name a matrix in packed levels of four bits lies."""
    return f"{name}_packed"


def stored_name(scheme: ScaleScheme | None, name: str, *places: Container[str]) -> str:
    """Return under which name a matrix lies: another one where four bits are packed."""
    packed = packed_name(name)
    is_packed = scheme is not None and scheme.bits == 4 and any(packed in each for each in places)
    return packed if is_packed else name


def read_scheme(config: ConfigReader) -> ScaleScheme | None:
    """Return the scheme of a config's weights, None if it has none that is read."""
    for key in QUANTIZED_KEYS:
        stated = config[key]
        if isinstance(stated, dict):
            return _scheme_of(stated)
    return None


def has_transforms(stated: Mapping[str, object]) -> bool:
    """Whether what the weights are multiplied with has to be turned by other matrices first."""
    transforms = stated.get("transform_config")
    groups = transforms.get("config_groups") if isinstance(transforms, dict) else transforms
    return bool(groups)


def _scheme_of(stated: Mapping[str, object]) -> ScaleScheme | None:
    if has_transforms(stated):
        return None
    match stated.get("quant_method"):
        case "fp8" if stated.get("fmt") in _FORMATS:
            return _blocks("_scale_inv", stated.get("weight_block_size"))
        case "compressed-tensors" if stated.get("format") == "float-quantized":
            return _compressed(stated.get("config_groups"), "float")
        case "compressed-tensors" if stated.get("format") == "pack-quantized":
            return _compressed(stated.get("config_groups"), "int")
    return None


def _blocks(ending: str, sizes: object) -> ScaleScheme | None:
    if not (isinstance(sizes, list) and len(sizes) == 2):
        return None
    rows, columns = sizes
    for size in (rows, columns):
        if type(size) is not int or not 0 < size <= _MAX_BLOCK:
            return None
    return ScaleScheme(ending, rows, columns)


def _compressed(groups: object, kind: str) -> ScaleScheme | None:
    """Return the scheme that all groups of matrices have in common."""
    if not isinstance(groups, dict) or not groups:
        return None
    schemes = [_compressed_group(group, kind) for group in groups.values()]
    return schemes[0] if all(scheme == schemes[0] for scheme in schemes) else None


def _compressed_group(group: object, kind: str) -> ScaleScheme | None:
    weights = group.get("weights") if isinstance(group, dict) else None
    if not isinstance(weights, dict):
        return None
    bits = 8 if kind == "float" else 4
    stated = (weights.get("num_bits"), weights.get("type"), weights.get("symmetric", True))
    if stated != (bits, kind, True):
        return None
    if kind == "int":
        return _integers(weights)
    match weights.get("strategy"):
        case "block":
            return _blocks("_scale", weights.get("block_structure"))
        case "channel":
            return ScaleScheme("_scale", 1, 0)
        case "tensor":
            return ScaleScheme("_scale", 0, 0)
    return None


def _integers(weights: Mapping[str, object]) -> ScaleScheme | None:
    """Return the scheme of whole numbers, whose columns have to be in their own order."""
    if weights.get("actorder"):
        return None
    size = weights.get("group_size")
    match weights.get("strategy"):
        case "group" if type(size) is int and 0 < size <= _MAX_BLOCK:
            return ScaleScheme("_scale", 1, size, bits=4)
        case "channel":
            return ScaleScheme("_scale", 1, 0, bits=4)
    return None
