"""What each tensor of a GGUF model is for, checked against what the spec needs."""

import dataclasses
import itertools
import math
from collections.abc import Iterable, Mapping
from pathlib import Path

from runtime.errors import LarderError
from runtime.inspect.families.base import Family, Shape
from runtime.inspect.families.shapes import part_shape
from runtime.inspect.files import shown
from runtime.inspect.gguf import names
from runtime.inspect.gguf.header import GgufTensor
from runtime.inspect.roles import MAX_MISSING, Roles, spell_shape
from runtime.protocol.errors import ErrorCode
from runtime.protocol.values import WeightFormat
from runtime.spec.attention import LatentAttentionSpec
from runtime.spec.gguf import HOME, PLAIN, GgufKind, GgufRows, Join
from runtime.spec.model import ModelSpec
from runtime.spec.tensors import ExpertId, ExpertPart, TensorEntry, matrix_bytes

Tensors = Mapping[str, tuple[Path, GgufTensor]]
_Found = tuple[Path, GgufTensor, GgufKind]
READABLE = (
    "Q4_K_M, Q4_K_S, Q5_K_M, Q6_K, Q8_0, Q4_0, IQ4_XS, IQ4_NL, Q3_K_M, Q2_K, MXFP4, BF16, F16"
)
"""As the names of files call them, so that a person can look for one."""
MAX_PLAIN_WEIGHTS = 1 << 28
"""A dense part of no more weights becomes f16, each weight rounded once, and is computed with
activations as they are: small models feel it most when those are rounded to eight bits."""
_MAX_LISTED = 20


@dataclasses.dataclass(slots=True)
class _Reading:
    """The tensors that are there, what was made of them, and what is wrong."""

    tensors: Tensors
    roles: Roles
    has_turned_pairs: bool
    is_dense_plain: bool
    kinds: dict[str, int] = dataclasses.field(default_factory=dict)
    """Weights of each kind that are used in matrices."""

    def find(self, name: str, *others: str) -> _Found | None:
        """Return the first of some tensors that is there, or note that the first is missing."""
        for each in (name, *others):
            found = self.tensors.get(each)
            if found is None:
                continue
            path, tensor = found
            if tensor.kind not in GgufKind.__members__:
                self.roles.unreadable.setdefault(tensor.kind, each)
                return None
            return path, tensor, GgufKind[tensor.kind]
        self.roles.missing.append(name)
        return None

    def count(self, kind: GgufKind, shape: Shape) -> None:
        """Note that a matrix is used."""
        if len(shape) > 1:
            self.kinds[kind.name] = self.kinds.get(kind.name, 0) + math.prod(shape)

    def fits(self, tensor: GgufTensor, shape: Shape) -> bool:
        """Whether a tensor has a shape, ones at its beginning aside; note if it has another."""
        if _bare(tensor.shape) == _bare(shape):
            return True
        found, expected = spell_shape(tensor.shape), spell_shape(shape)
        self.roles.mismatched.append((tensor.name, found, expected))
        return False


def assign_roles(
    family: Family, spec: ModelSpec, tensors: Tensors, *, has_turned_pairs: bool
) -> tuple[Roles, list[str]]:
    """Look up every tensor that ``spec`` needs; return also the kinds of matrices, most first.

    ``has_turned_pairs``: the halves of each head of queries and keys lie alternating.
    """
    shapes = family.dense_shapes(spec)
    is_plain = sum(map(math.prod, shapes.values())) <= MAX_PLAIN_WEIGHTS
    reading = _Reading(tensors, Roles(), has_turned_pairs, is_plain)
    for name, shape in shapes.items():
        entry = _dense_entry(reading, spec, name, shape)
        if entry is not None:
            reading.roles.dense[name] = entry
    _assign_experts(reading, spec)
    kinds = sorted(reading.kinds, key=lambda kind: (-reading.kinds[kind], kind))
    return reading.roles, kinds


def _dense_entry(reading: _Reading, spec: ModelSpec, name: str, shape: Shape) -> TensorEntry | None:
    layer, rest = names.layer_of(name)
    if rest == names.GATE_UP_BIAS:
        return _alternating(reading, name, layer, shape)
    if rest == names.KV_B:
        return _keys_and_values(reading, spec, name, layer, shape)
    candidates = names.stored_names(name)
    part = _part_of_fused(reading, spec, layer, rest)
    if part is not None and not any(each in reading.tensors for each in candidates):
        return _fused_entry(reading, name, layer, rest, shape, part)
    found = reading.find(*candidates)
    if found is None or not reading.fits(found[1], shape):
        return None
    heads = _turned_heads(reading, spec, layer, rest)
    return _entry(reading, name, found, found[1].offset_bytes, shape, heads)


def _turned_heads(reading: _Reading, spec: ModelSpec, layer: int, rest: str) -> int:
    """Return of how many heads a matrix has alternating halves, 0 for others."""
    if not reading.has_turned_pairs or layer < 0:
        return 0
    attention = spec.attention[layer]
    assert not isinstance(attention, LatentAttentionSpec)
    module = rest.rpartition(".")[0]
    counts = {"self_attn.q_proj": attention.num_heads, "self_attn.k_proj": attention.num_kv_heads}
    return counts.get(module, 0)


def _entry(
    reading: _Reading,
    name: str,
    found: _Found,
    offset_bytes: int,
    shape: Shape,
    heads: int = 0,
    home: WeightFormat | None = None,
) -> TensorEntry | None:
    """Return the entry of a matrix or vector that lies in one piece."""
    path, tensor, kind = found
    is_matrix = len(shape) == 2
    if not is_matrix and kind not in PLAIN:
        reading.roles.mismatched.append((tensor.name, kind.name, "F32"))
        return None
    reading.count(kind, shape)
    home = home or (_plain_home(kind) if reading.is_dense_plain else HOME[kind])
    num_bytes = math.prod(shape) * kind.block_bytes
    if PLAIN.get(kind) is home and not heads:
        return TensorEntry(name, str(path), offset_bytes, num_bytes, home, shape)
    if is_matrix:
        num_bytes = matrix_bytes(home, *shape)
    rows = GgufRows(kind, heads)
    return TensorEntry(name, str(path), offset_bytes, num_bytes, home, shape, gguf=rows)


def _part_of_fused(
    reading: _Reading, spec: ModelSpec, layer: int, rest: str
) -> tuple[int, int] | None:
    """Return the rows before a projection and all rows where queries, keys and values are one."""
    if layer < 0 or not any(
        f"blk.{layer}.attn_qkv.{ending}" in reading.tensors for ending in ("weight", "bias")
    ):
        return None
    attention = spec.attention[layer]
    if isinstance(attention, LatentAttentionSpec):
        return None
    heads = [attention.num_heads, attention.num_kv_heads, attention.num_kv_heads]
    modules = ["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"]
    module = rest.rpartition(".")[0]
    if module not in modules:
        return None
    before = sum(heads[: modules.index(module)])
    return before * attention.head_dim, sum(heads) * attention.head_dim


def _fused_entry(
    reading: _Reading, name: str, layer: int, rest: str, shape: Shape, part: tuple[int, int]
) -> TensorEntry | None:
    """Return the entry of a projection that lies in one matrix with the two others."""
    first_row, rows = part
    ending = rest.rpartition(".")[2]
    found = reading.find(f"blk.{layer}.attn_qkv.{ending}")
    if found is None or not reading.fits(found[1], (rows, *shape[1:])):
        return None
    row_bytes = found[2].row_bytes(shape[1]) if len(shape) > 1 else found[2].block_bytes
    return _entry(reading, name, found, found[1].offset_bytes + first_row * row_bytes, shape)


def _alternating(reading: _Reading, name: str, layer: int, shape: Shape) -> TensorEntry | None:
    """Return the entry of biases that lie apart and are used alternating."""
    half = (shape[0], shape[1] // 2)
    gate = reading.find(f"blk.{layer}.ffn_gate_exps.bias")
    up = reading.find(f"blk.{layer}.ffn_up_exps.bias")
    if gate is None or up is None:
        return None
    if not (reading.fits(gate[1], half) and reading.fits(up[1], half)):
        return None
    return _joined(name, (gate, up), (shape, half), Join.ALTERNATING, WeightFormat.F32)


def _keys_and_values(
    reading: _Reading, spec: ModelSpec, name: str, layer: int, shape: Shape
) -> TensorEntry | None:
    """Return the entry of what expands latent rows: whole in older files, apart in newer ones.

    It is used head by head, for which numbers of their own are quickest.
    """
    whole = f"blk.{layer}.attn_kv_b.weight"
    attention = spec.attention[layer]
    assert isinstance(attention, LatentAttentionSpec)
    keys_name, values_name = f"blk.{layer}.attn_k_b.weight", f"blk.{layer}.attn_v_b.weight"
    if whole in reading.tensors or keys_name not in reading.tensors:
        found = reading.find(whole)
        if found is None or not reading.fits(found[1], shape):
            return None
        offset = found[1].offset_bytes
        return _entry(reading, name, found, offset, shape, home=_plain_home(found[2]))
    keys, values = reading.find(keys_name), reading.find(values_name)
    if keys is None or values is None:
        return None
    heads, latent = attention.num_heads, attention.latent_dim
    value_shape = (heads, attention.value_dim, latent)
    if not reading.fits(keys[1], (heads, latent, attention.plain_dim)):
        return None
    if not reading.fits(values[1], value_shape):
        return None
    reading.count(keys[2], keys[1].shape)
    reading.count(values[2], values[1].shape)
    home = _plain_home(keys[2] if keys[2] not in PLAIN else values[2])
    return _joined(
        name, (keys, values), (shape, value_shape), Join.KEYS_AND_VALUES, home, groups=heads
    )


def _plain_home(kind: GgufKind) -> WeightFormat:
    """Return the format of numbers of their own that comes nearest to a kind."""
    return PLAIN.get(kind, WeightFormat.F16)


def _joined(
    name: str,
    found: tuple[_Found, _Found],
    shapes: tuple[Shape, Shape],
    join: Join,
    home: WeightFormat,
    groups: int = 1,
) -> TensorEntry:
    """Return the entry of a matrix made of two; shapes are its own and that of the second."""
    (path, first, kind), (other_path, second, other_kind) = found
    shape, second_shape = shapes
    other = TensorEntry(
        second.name,
        str(other_path),
        second.offset_bytes,
        second.num_bytes,
        home,
        second_shape,
        gguf=GgufRows(other_kind),
    )
    rows = GgufRows(kind, join=join, second=other, groups=groups)
    num_bytes = matrix_bytes(home, *shape)
    return TensorEntry(name, str(path), first.offset_bytes, num_bytes, home, shape, gguf=rows)


def _assign_experts(reading: _Reading, spec: ModelSpec) -> None:
    """Look up the routed experts; each matrix gets the format that holds its own kind."""
    places: dict[ExpertId, dict[ExpertPart, tuple[Path, int, GgufKind]]] = {}
    for layer, part in itertools.product(spec.moe_layers, ExpertPart):
        if len(reading.roles.missing) >= MAX_MISSING:
            return
        for number, place in enumerate(_expert_places(reading, spec, layer, part)):
            if place is not None:
                places.setdefault(ExpertId(layer, number), {})[part] = place
    shapes = {part: part_shape(spec, part) for part in ExpertPart}
    sizes = {
        (part, home): matrix_bytes(home, *shape)
        for part, shape in shapes.items()
        for home in set(HOME.values())
    }
    for expert in sorted(places):
        parts = places[expert]
        if len(parts) < len(shapes):
            continue
        reading.roles.experts[expert] = {
            part: _expert_entry(expert, part, parts[part], shapes[part], sizes)
            for part in ExpertPart
        }


def _expert_entry(
    expert: ExpertId,
    part: ExpertPart,
    place: tuple[Path, int, GgufKind],
    shape: Shape,
    sizes: Mapping[tuple[ExpertPart, WeightFormat], int],
) -> TensorEntry:
    path, offset_bytes, kind = place
    home, rows = HOME[kind], None if kind in PLAIN else GgufRows(kind)
    name = f"{names.stacked_name(expert.layer, part)} of expert {expert.expert}"
    num_bytes = sizes[part, home]
    return TensorEntry(name, str(path), offset_bytes, num_bytes, home, shape, gguf=rows)


def _expert_places(
    reading: _Reading, spec: ModelSpec, layer: int, part: ExpertPart
) -> Iterable[tuple[Path, int, GgufKind] | None]:
    """Yield for each expert of a layer where one of its matrices lies, or note why nowhere."""
    rows, columns = part_shape(spec, part)
    stacked, fused = names.stacked_name(layer, part), names.fused_name(layer)
    first_row, all_rows = 0, rows
    if stacked not in reading.tensors and part is not ExpertPart.DOWN and fused in reading.tensors:
        stacked, all_rows = fused, 2 * rows
        first_row = rows if part is ExpertPart.UP else 0
    single = names.single_name(layer, 0, part)
    if stacked not in reading.tensors and single in reading.tensors:
        for number in range(spec.num_experts):
            found = reading.find(names.single_name(layer, number, part))
            is_there = found is not None and reading.fits(found[1], (rows, columns))
            if found is None or not is_there:
                yield None
                continue
            reading.count(found[2], (rows, columns))
            yield found[0], found[1].offset_bytes, found[2]
        return
    found = reading.find(stacked)
    if found is None or not reading.fits(found[1], (spec.num_experts, all_rows, columns)):
        return
    path, tensor, kind = found
    row_bytes = kind.row_bytes(columns)
    reading.count(kind, (spec.num_experts, rows, columns))
    for number in range(spec.num_experts):
        yield path, tensor.offset_bytes + (number * all_rows + first_row) * row_bytes, kind


def role_problems(roles: Roles, tensors: Tensors) -> Iterable[LarderError]:
    """Yield one error for each kind of thing that is wrong with the tensors."""
    for kind, name in roles.unreadable.items():
        yield LarderError(
            ErrorCode.QUANTIZATION_UNSUPPORTED,
            method=f"GGUF {kind}",
            supported=READABLE,
            detail=f"first in the tensor {name}",
        )
    if roles.missing:
        yield LarderError(
            ErrorCode.TENSOR_MISSING,
            tensor=roles.missing[0],
            num_missing=len(roles.missing),
            detail=", ".join(roles.missing[:_MAX_LISTED]),
        )
    if roles.mismatched:
        name, found, expected = roles.mismatched[0]
        yield LarderError(
            ErrorCode.TENSOR_MISMATCHED,
            tensor=name,
            file=shown(str(tensors[name][0])),
            found=found,
            expected=expected,
            detail=", ".join(item[0] for item in roles.mismatched[:_MAX_LISTED]),
        )


def _bare(shape: Shape) -> Shape:
    """Return a shape without ones at its beginning, which files leave out."""
    first = next((index for index, size in enumerate(shape[:-1]) if size != 1), len(shape) - 1)
    return tuple(shape[max(first, 0) :])
