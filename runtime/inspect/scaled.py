"""Weights in eight bits with plain scales: what a config says of them, where that is readable."""

import dataclasses
from collections.abc import Mapping

from runtime.inspect.config import ConfigReader

QUANTIZED_KEYS = ("quantization_config", "compression_config")
FP8_DTYPE = "F8_E4M3"
_FORMATS = (None, "e4m3", "float8_e4m3fn")
_MAX_BLOCK = 1 << 20


@dataclasses.dataclass(frozen=True, slots=True)
class ScaleScheme:
    """Every matrix in eight bits has a tensor of scales beside it, one for each block.

    ``rows`` and ``columns`` are those of a block, 0 where it is as large as the matrix. The scales
    have the name of the matrix with ``ending`` behind it.
    """

    ending: str
    rows: int
    columns: int


def read_scheme(config: ConfigReader) -> ScaleScheme | None:
    """Return the scheme of a config's weights, None if it has none that is read."""
    for key in QUANTIZED_KEYS:
        stated = config[key]
        if isinstance(stated, dict):
            return _scheme_of(stated)
    return None


def _scheme_of(stated: Mapping[str, object]) -> ScaleScheme | None:
    match stated.get("quant_method"):
        case "fp8" if stated.get("fmt") in _FORMATS:
            return _blocks("_scale_inv", stated.get("weight_block_size"))
        case "compressed-tensors" if stated.get("format") == "float-quantized":
            return _compressed(stated.get("config_groups"))
    return None


def _blocks(ending: str, sizes: object) -> ScaleScheme | None:
    if not (isinstance(sizes, list) and len(sizes) == 2):
        return None
    rows, columns = sizes
    for size in (rows, columns):
        if type(size) is not int or not 0 < size <= _MAX_BLOCK:
            return None
    return ScaleScheme(ending, rows, columns)


def _compressed(groups: object) -> ScaleScheme | None:
    """Return the scheme that all groups of matrices have in common."""
    if not isinstance(groups, dict) or not groups:
        return None
    schemes = [_compressed_group(group) for group in groups.values()]
    return schemes[0] if all(scheme == schemes[0] for scheme in schemes) else None


def _compressed_group(group: object) -> ScaleScheme | None:
    weights = group.get("weights") if isinstance(group, dict) else None
    if not isinstance(weights, dict):
        return None
    kind = (weights.get("num_bits"), weights.get("type"), weights.get("symmetric", True))
    if kind != (8, "float", True):
        return None
    match weights.get("strategy"):
        case "block":
            return _blocks("_scale", weights.get("block_structure"))
        case "channel":
            return ScaleScheme("_scale", 1, 0)
        case "tensor":
            return ScaleScheme("_scale", 0, 0)
    return None
