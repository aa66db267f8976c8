"""What each tensor of a checkpoint is for, checked against what the spec needs."""

import dataclasses
import functools
import itertools
import math
from collections.abc import Iterable, Iterator, Mapping

from runtime.errors import LarderError
from runtime.inspect.families.base import Family, PartPlace, Shape
from runtime.inspect.families.shapes import part_shape
from runtime.inspect.levels import LevelScheme, as_expert, level_entry, levels_name
from runtime.inspect.quantization import READABLE, scale_problems
from runtime.inspect.scaled import ScaleScheme, stored_name
from runtime.inspect.shards import Shards
from runtime.protocol.errors import ErrorCode
from runtime.protocol.values import WeightFormat
from runtime.spec.model import ModelSpec
from runtime.spec.tensors import GROUP_SIZE, ExpertId, ExpertPart, ScaledBlocks, TensorEntry, Weave

FORMATS = {"F32": WeightFormat.F32, "F16": WeightFormat.F16, "BF16": WeightFormat.BF16}
_PACKED = {"U8": WeightFormat.MXFP4}
"""Bytes that hold weights of fewer bits, or their scales."""
MAX_MISSING = 4096
"""So many missing tensors are counted; a config that asks for more is not followed further."""
_MAX_LISTED = 20


@dataclasses.dataclass(slots=True)
class Roles:
    """The needed tensors that were found, and what is wrong with the others."""

    dense: dict[str, TensorEntry] = dataclasses.field(default_factory=dict)
    experts: dict[ExpertId, dict[ExpertPart, TensorEntry]] = dataclasses.field(default_factory=dict)
    missing: list[str] = dataclasses.field(default_factory=list)
    mismatched: list[tuple[str, str, str]] = dataclasses.field(default_factory=list)
    """Name, found, expected."""
    unreadable: dict[str, str] = dataclasses.field(default_factory=dict)
    """First tensor of each element type that the kernels do not read."""
    lost_bytes: dict[str, int] = dataclasses.field(default_factory=dict)
    """By file that is broken: what its tensors take at least, two bytes a number."""
    scheme: ScaleScheme | None = None
    """Where the scales of matrices in few bits are."""
    levels: LevelScheme | None = None
    """How matrices in whole levels are published."""
    refused: set[str] = dataclasses.field(default_factory=set)
    """Needed tensors with which something is wrong, each noted once."""

    def entries(self) -> Iterator[TensorEntry]:
        """Yield all that were found, those of experts first."""
        for parts in self.experts.values():
            yield from parts.values()
        yield from self.dense.values()

    def take(
        self,
        shards: Shards,
        name: str,
        shape: Shape,
        formats: Mapping[str, WeightFormat] = FORMATS,
    ) -> TensorEntry | None:
        """Return the entry of a needed tensor, or note why there is none."""
        if name in self.refused:
            return None
        entry = self._find(shards, name, shape, formats)
        if entry is None:
            self.refused.add(name)
        return entry

    def take_alone(self, shards: Shards, name: str, shape: Shape) -> TensorEntry | None:
        """Return the entry of a tensor that has no bias, or note why there is none.

        GPTQ's files may have one of zeros all the same, which headers do not show.
        """
        entry = self.take(shards, name, shape)
        bias = bias_name(name)
        if entry is None or bias not in shards.tensors:
            return entry
        if entry.levels is None:
            self.mismatched.append((bias, "a bias", "no bias"))
            return entry
        zeros = self.take(shards, bias, shape[:1])
        return dataclasses.replace(entry, levels=dataclasses.replace(entry.levels, bias=zeros))

    def take_part(self, shards: Shards, place: PartPlace, shape: Shape) -> TensorEntry | None:
        """Return the entry of one matrix of an expert, or note why there is none."""
        if place.otherwise is not None and _has_shape(shards, place.otherwise):
            place = place.otherwise
        if place.scales:
            return self._take_packed(shards, place, shape)
        whole = self.take_alone(shards, place.name, place.shape)
        if whole is None:
            return None
        if self.levels is None or whole.levels is None:
            return _part_of(whole, place, shape)
        assert whole.shape == shape  # None is stacked: those have three dimensions.
        return as_expert(self.levels, whole)

    def _take_scaled(self, shards: Shards, name: str, shape: Shape) -> TensorEntry | None:
        """Return the entry of a matrix in few bits whose scales are there."""
        scheme, stored = self.scheme, stored_name(self.scheme, name, shards.tensors)
        path, tensor = shards.tensors[stored]
        is_readable = scheme is not None and tensor.dtype == scheme.dtype and len(shape) == 2
        if scheme is None or not is_readable or name.endswith(scheme.ending):
            self.unreadable.setdefault(tensor.dtype, stored)
            return None
        packed_shape = (shape[0], scheme.packed_columns(shape[1]))
        if tensor.shape != packed_shape:
            found_shape, expected = spell_shape(tensor.shape), spell_shape(packed_shape)
            self.mismatched.append((stored, found_shape, expected))
            return None
        rows, columns = scheme.rows or shape[0], scheme.columns or shape[1]
        grid: Shape = (-(-shape[0] // rows), -(-shape[1] // columns))
        scales_name = name + scheme.ending
        if grid == (1, 1) and scales_name in shards.tensors:
            # One number is stored as one, or as a list or a table of one.
            found = shards.tensors[scales_name][1].shape
            grid = found if math.prod(found) == 1 else grid
        scales = self.take(shards, scales_name, grid)
        if scales is None:
            return None
        return TensorEntry(
            name,
            str(path),
            tensor.offset_bytes,
            2 * math.prod(shape),
            WeightFormat.BF16,
            shape,
            blocks=ScaledBlocks(scales, rows, columns, scheme.bits),
        )

    def _take_packed(self, shards: Shards, place: PartPlace, shape: Shape) -> TensorEntry | None:
        """Return the entry of a matrix in MXFP4 with that of its scales."""
        *outer, rows, columns = place.shape
        groups = (*outer, rows, -(-columns // GROUP_SIZE))
        blocks = self.take(shards, place.name, (*groups, GROUP_SIZE // 2), _PACKED)
        scales = self.take(shards, place.scales, groups, _PACKED)
        if blocks is None or scales is None:
            return None
        num_blocks, index = math.prod(outer), place.index or 0
        return dataclasses.replace(
            _block_of(blocks, num_blocks, index),
            shape=shape,
            weave=Weave(rows, columns, place.first_row, place.row_step),
            scales=_block_of(scales, num_blocks, index),
        )

    def _find(
        self, shards: Shards, name: str, shape: Shape, formats: Mapping[str, WeightFormat]
    ) -> TensorEntry | None:
        if self.levels is not None and len(shape) == 2 and formats is FORMATS:
            in_levels = levels_name(name)
            if in_levels in shards.tensors or in_levels in shards.weight_map:
                return level_entry(self.levels, functools.partial(self.take, shards), name, shape)
        stored = stored_name(self.scheme, name, shards.tensors, shards.weight_map)
        found = shards.tensors.get(stored)
        if found is None:
            file = shards.weight_map.get(stored, "")
            if file in shards.broken:
                num_bytes = math.prod(shape) * (2 if formats is FORMATS else 1)
                self.lost_bytes[file] = self.lost_bytes.get(file, 0) + num_bytes
            else:
                self.missing.append(name)
            return None
        path, tensor = found
        weight_format = formats.get(tensor.dtype)
        if weight_format is None and formats is not FORMATS:
            self.mismatched.append((stored, tensor.dtype, " or ".join(formats)))
            return None
        if weight_format is None:
            return self._take_scaled(shards, name, shape)
        if tensor.shape != shape:
            self.mismatched.append((stored, spell_shape(tensor.shape), spell_shape(shape)))
            return None
        return TensorEntry(
            name, str(path), tensor.offset_bytes, tensor.num_bytes, weight_format, shape
        )


def bias_name(name: str) -> str:
    """Return under which name the bias of a matrix lies, empty if it cannot have any."""
    return name.removesuffix("weight") + "bias" if name.endswith(".weight") else ""


def _has_shape(shards: Shards, place: PartPlace) -> bool:
    """Whether the tensor of a place is there in its shape."""
    found = shards.tensors.get(place.name)
    return found is not None and found[1].shape == place.shape


def _block_of(whole: TensorEntry, num_blocks: int, index: int) -> TensorEntry:
    """Return one of the equal blocks that make up a tensor."""
    num_bytes = whole.num_bytes // num_blocks
    begin = whole.offset_bytes + index * num_bytes
    return dataclasses.replace(whole, offset_bytes=begin, num_bytes=num_bytes)


def _part_of(whole: TensorEntry, place: PartPlace, shape: Shape) -> TensorEntry:
    """Return the entry of one matrix in a tensor: a range of its bytes, or a block to pick from."""
    is_woven = place.is_transposed or place.row_step != 1
    if whole.shape == shape and not is_woven:
        return whole
    rows, columns = whole.shape[-2:]
    block = _block_of(whole, math.prod(whole.shape[:-2]), place.index or 0)
    if is_woven:
        weave = Weave(rows, columns, place.first_row, place.row_step, place.is_transposed)
        return dataclasses.replace(block, shape=shape, weave=weave)
    row_bytes = block.num_bytes // rows
    return dataclasses.replace(
        whole,
        offset_bytes=block.offset_bytes + place.first_row * row_bytes,
        num_bytes=shape[0] * row_bytes,
        shape=shape,
    )


def assign_roles(
    family: Family,
    spec: ModelSpec,
    shards: Shards,
    scheme: ScaleScheme | None = None,
    levels: LevelScheme | None = None,
) -> Roles:
    """Look up every tensor that ``spec`` needs; with a scheme some may be in few bits."""
    roles = Roles(scheme=scheme, levels=levels)
    dense_shapes = family.dense_shapes(spec)
    for name, shape in dense_shapes.items():
        take = roles.take if bias_name(name) in dense_shapes else roles.take_alone
        entry = take(shards, name, shape)
        if entry is not None:
            roles.dense[name] = entry
    _assign_experts(roles, family, spec, shards)
    return roles


def _assign_experts(roles: Roles, family: Family, spec: ModelSpec, shards: Shards) -> None:
    """Look up the routed experts, all of them in one format.

    In few bits, publishers leave some as they were: f32 holds those and whole levels exactly.
    """
    shapes = {part: part_shape(spec, part) for part in ExpertPart}
    first: TensorEntry | None = None
    for layer, number in itertools.product(spec.moe_layers, range(spec.num_experts)):
        if len(roles.missing) >= MAX_MISSING:
            return
        expert = ExpertId(layer, number)
        parts: dict[ExpertPart, TensorEntry] = {}
        for part, shape in shapes.items():
            place = family.expert_part(spec, expert, part)
            entry = roles.take_part(shards, place, shape)
            if entry is None:
                continue
            first = first or entry
            if not _go_together(first, entry, roles.levels) and entry.name not in roles.refused:
                roles.refused.add(entry.name)
                stored = stored_name(roles.scheme, entry.name, shards.tensors)
                roles.mismatched.append((stored, entry.format, first.format))
            parts[part] = entry
        if len(parts) == len(shapes):
            roles.experts[expert] = parts


def _go_together(first: TensorEntry, entry: TensorEntry, levels: LevelScheme | None) -> bool:
    """Whether one format holds the matrices of two experts exactly."""
    if entry.format is first.format:
        return True
    return levels is not None and first.scales is None and entry.scales is None


def role_problems(roles: Roles, shards: Shards) -> Iterable[LarderError]:
    """Yield one error for each kind of thing that is wrong with the tensors."""
    for dtype, name in roles.unreadable.items():
        yield LarderError(
            ErrorCode.QUANTIZATION_UNSUPPORTED,
            method=dtype,
            supported=READABLE,
            detail=f"first in the tensor {name}",
        )
    if roles.scheme is None and roles.levels is None:
        yield from scale_problems(shards.tensors)
    if roles.missing:
        yield LarderError(
            ErrorCode.TENSOR_MISSING,
            tensor=roles.missing[0],
            num_missing=len(roles.missing),
            detail=_listed(roles.missing),
        )
    if roles.mismatched:
        name, found, expected = roles.mismatched[0]
        yield LarderError(
            ErrorCode.TENSOR_MISMATCHED,
            tensor=name,
            found=found,
            expected=expected,
            detail=_listed([item[0] for item in roles.mismatched]),
        )


def spell_shape(shape: Shape) -> str:
    """Return a shape as a person writes it."""
    return " x ".join(map(str, shape)) if shape else "a single number"


def _listed(names: list[str]) -> str:
    more = len(names) - _MAX_LISTED
    return ", ".join(names[:_MAX_LISTED]) + (f" and {more} more" if more > 0 else "")
