"""Weights published in whole levels with zeros, by GPTQ and AWQ: what is read of them, and why."""

import dataclasses
import struct
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from runtime.inspect.config import ConfigReader, spelled
from runtime.inspect.families.base import Shape
from runtime.inspect.files import read_range, unreadable
from runtime.inspect.scaled import QUANTIZED_KEYS
from runtime.protocol.values import WeightFormat
from runtime.spec.tensors import GROUP_SIZE, LevelOrder, TensorEntry, WholeLevels, matrix_bytes

Take = Callable[[str, Shape, Mapping[str, WeightFormat]], TensorEntry | None]
"""Returns the entry of a needed tensor of one of some element types, or notes why not."""
_WORDS = {"I32": WeightFormat.F32}
_SCALES = {"F16": WeightFormat.F16}
_WORD_BITS = 32
_MAX_GROUP = 1 << 20
_MAX_READ = 1 << 20
_WEIGHT, _LEVELS = ".weight", ".qweight"
_GPTQ_ZERO_OFFSETS = {None: 1, "gptq": 1, "gptq_v2": 0}
"""By ``checkpoint_format``, newer ``format``: the first version stores one less than is meant."""


@dataclasses.dataclass(frozen=True, slots=True)
class LevelScheme:
    """How all matrices of a checkpoint are published in whole levels; see ``WholeLevels``."""

    order: LevelOrder
    bits: int
    group_columns: int
    zero_offset: int = 0
    is_centred: bool = False

    @property
    def expert_format(self) -> WeightFormat:
        """The smallest of our formats that holds every matrix exactly."""
        is_small = self.bits == 4 and self.is_centred
        return WeightFormat.Q4_G32 if is_small else WeightFormat.Q8_G32

    @property
    def num_in_word(self) -> int:
        """How many levels a word holds."""
        return _WORD_BITS // self.bits


def read_levels(config: ConfigReader) -> LevelScheme | None:
    """Return the scheme of a config's weights, None if they are not in whole levels we read."""
    for key in QUANTIZED_KEYS:
        stated = config[key]
        if isinstance(stated, dict):
            scheme = _scheme_of(stated)
            return scheme if isinstance(scheme, LevelScheme) else None
    return None


def refused_variant(stated: Mapping[str, object]) -> str:
    """Return what it is about weights by GPTQ or AWQ that is not read, empty for other methods."""
    scheme = _scheme_of(stated)
    return scheme if isinstance(scheme, str) else ""


def has_other_order(config: ConfigReader, entries: Iterable[TensorEntry]) -> bool:
    """Whether columns are in the order of their weight, as a config may say, and groups are not.

    Headers do not show it, so that the groups of the first matrix are read, a few kilobytes; those
    of the others are looked at when they are read. A group of all columns has no order.
    """
    every = (config[key] for key in QUANTIZED_KEYS)
    if not any(isinstance(stated, dict) and stated.get("desc_act") for stated in every):
        return False
    levels = next((entry.levels for entry in entries if entry.levels is not None), None)
    if levels is None or levels.groups is None or not levels.group_columns:
        return False
    path, num_bytes = Path(levels.groups.file), min(levels.groups.num_bytes, _MAX_READ)
    try:
        data = read_range(path, levels.groups.offset_bytes, num_bytes)
    except FileNotFoundError as cause:
        raise unreadable(path, cause) from cause
    numbers = struct.unpack(f"<{len(data) // 4}i", data[: len(data) // 4 * 4])
    return any(number != column // levels.group_columns for column, number in enumerate(numbers))


def levels_name(name: str) -> str:
    """Return under which name the levels of a matrix lie, empty if it cannot have any."""
    return name.removesuffix(_WEIGHT) + _LEVELS if name.endswith(_WEIGHT) else ""


def level_entry(scheme: LevelScheme, take: Take, name: str, shape: Shape) -> TensorEntry | None:
    """Return the entry of a matrix in f32, if all that makes it up is there."""
    rows, columns = shape
    stem = name.removesuffix(_WEIGHT)
    num_groups = -(-columns // (scheme.group_columns or columns))
    packed = -(-rows // scheme.num_in_word)
    is_by_inputs = scheme.order is LevelOrder.INPUTS
    in_words = (-(-columns // scheme.num_in_word), rows) if is_by_inputs else (columns, packed)
    words = take(stem + _LEVELS, in_words, _WORDS)
    scales = take(f"{stem}.scales", (num_groups, rows), _SCALES)
    zeros = take(f"{stem}.qzeros", (num_groups, packed), _WORDS)
    groups = take(f"{stem}.g_idx", (columns,), _WORDS) if is_by_inputs else None
    if words is None or scales is None or zeros is None or (is_by_inputs and groups is None):
        return None
    levels = WholeLevels(
        **dataclasses.asdict(scheme), words=words, scales=scales, zeros=zeros, groups=groups
    )
    return dataclasses.replace(
        words,
        name=name,
        num_bytes=matrix_bytes(WeightFormat.F32, rows, columns),
        shape=shape,
        levels=levels,
    )


def as_expert(scheme: LevelScheme, entry: TensorEntry) -> TensorEntry:
    """Return the entry of an expert's matrix in the format of records that holds it exactly."""
    num_bytes = matrix_bytes(scheme.expert_format, *entry.shape)
    return dataclasses.replace(entry, format=scheme.expert_format, num_bytes=num_bytes)


def _scheme_of(stated: Mapping[str, object]) -> LevelScheme | str | None:
    """Return the scheme, or what it is that is not read; None for other methods."""
    match stated.get("quant_method"):
        case "gptq":
            return _gptq(stated)
        case "awq":
            return _awq(stated)
    return None


def _gptq(stated: Mapping[str, object]) -> LevelScheme | str:
    bits, is_centred = stated.get("bits"), stated.get("sym", True)
    version = stated.get("checkpoint_format", stated.get("format"))
    if bits not in (4, 8) or type(bits) is not int:
        return f"{spelled(bits)} bits"
    if not isinstance(is_centred, bool) or (bits == 8 and not is_centred):
        return f"sym {spelled(is_centred)} in {bits} bits"
    if not (version is None or isinstance(version, str)) or version not in _GPTQ_ZERO_OFFSETS:
        return f"checkpoint_format {spelled(version)}"
    if stated.get("is_marlin_format"):
        return "the order of Marlin"
    if stated.get("pack_dtype", "int32") != "int32":
        return f"pack_dtype {spelled(stated['pack_dtype'])}"
    exceptions = stated.get("dynamic") or {}
    if not isinstance(exceptions, dict) or any(not key.startswith("-:") for key in exceptions):
        return "different schemes in one model (dynamic)"
    columns = _group_columns(stated.get("group_size"))
    if columns is None:
        return f"group_size {spelled(stated.get('group_size'))}"
    offset = _GPTQ_ZERO_OFFSETS[version]
    return LevelScheme(LevelOrder.INPUTS, bits, columns, offset, is_centred)


def _awq(stated: Mapping[str, object]) -> LevelScheme | str:
    bits = stated.get("bits", stated.get("w_bit"))
    if bits != 4 or type(bits) is not int:
        return f"{spelled(bits)} bits"
    version = stated.get("version", "gemm")
    if not isinstance(version, str) or version.lower() != "gemm":
        return f"version {spelled(version)}"
    if stated.get("zero_point", True) is not True:
        return "no zero points"
    size = stated.get("group_size", stated.get("q_group_size"))
    columns = _group_columns(size)
    if columns is None:
        return f"group_size {spelled(size)}"
    return LevelScheme(LevelOrder.OUTPUTS, 4, columns)


def _group_columns(size: object) -> int | None:
    """Return the columns of a group, 0 for all, None if groups of records do not fit into it."""
    if type(size) is not int:
        return None
    if size == -1:
        return 0
    return size if 0 < size <= _MAX_GROUP and size % GROUP_SIZE == 0 else None
