"""Where tensors lie in files, and how an expert lies in memory."""

import dataclasses
import enum
from collections.abc import Mapping, Sequence

from runtime.protocol.values import WeightFormat
from runtime.spec.gguf import GgufRows

PAGE_BYTES = 4096
"""Alignment and padding of expert records and slots, the unit of uncached reads."""
PART_ALIGN_BYTES = 64
"""Alignment of each matrix inside a slot, one cache line."""
GROUP_SIZE = 32
"""Weights of a row that share one scale in the ``G32`` formats."""
SPAN = 256
"""Columns that share units in the formats of ``SPAN_ROW_BYTES``."""
SPAN_ROW_BYTES = {
    WeightFormat.Q4K_G32: 144,
    WeightFormat.Q5K_G32: 176,
    WeightFormat.Q6K_G16: 210,
    WeightFormat.Q3K_G16: 114,
    WeightFormat.Q2K_G16: 84,
}
"""What a row takes there for so many columns: as blocks of the kinds do, those of Q3_K with scales
of eight bits for six."""
ROW_BLOCK = 8
"""Rows interleaved in the ``G32`` formats."""
QUAD = 4
"""Neighbouring columns that lie together in the interleaved formats."""
LEAST_EXPONENT, MOST_EXPONENT = 2, 252
"""Stored exponents of ``MXFP4`` that are used: less counts as 0, more is outside the range of f32,
and 255 no number."""
PLAIN_FORMATS = frozenset({WeightFormat.F32, WeightFormat.F16, WeightFormat.BF16})
"""Those whose weights are numbers of their own, without scales."""
STORED_BITS = {
    WeightFormat.F32: 32,
    WeightFormat.F16: 16,
    WeightFormat.BF16: 16,
    WeightFormat.Q8_G32: 8,
    WeightFormat.Q4_G32: 4,
    WeightFormat.MXFP4: 4,
    WeightFormat.Q4A_G32: 4,
    WeightFormat.Q6_G32: 6,
    WeightFormat.Q3_G16: 3,
    WeightFormat.Q2_G16: 2,
    WeightFormat.Q4K_G32: 4,
    WeightFormat.Q6K_G16: 6,
    WeightFormat.Q5K_G32: 5,
    WeightFormat.Q3K_G16: 3,
    WeightFormat.Q2K_G16: 2,
}
"""Bits of a weight by format, scales left out."""
AFFINE_FORMATS = frozenset(
    {WeightFormat.Q4A_G32, WeightFormat.Q6_G32, WeightFormat.Q3_G16, WeightFormat.Q2_G16}
)
"""Those with least weights, whose blocks of rows begin with the units of their rows."""


@dataclasses.dataclass(frozen=True, slots=True, order=True)
class ExpertId:
    """One routed expert: index of its layer in the model, and its number in that layer."""

    layer: int
    expert: int


class ExpertPart(enum.StrEnum):
    """The three matrices of a gated feed-forward expert, in their order in a record."""

    GATE = "gate"
    UP = "up"
    DOWN = "down"


@dataclasses.dataclass(frozen=True, slots=True)
class Weave:
    """How a matrix lies among others in a block of ``rows`` by ``columns`` that is read whole.

    Its rows are those from ``first_row`` on with a distance of ``row_step``; if ``is_transposed``,
    the block is turned first, so that its columns count as rows.
    """

    rows: int
    columns: int
    first_row: int = 0
    row_step: int = 1
    is_transposed: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class ScaledBlocks:
    """How a matrix is published in few bits: blocks of ``rows`` by ``columns``, a scale for each.

    ``scales`` are plain numbers, one for each block, row of blocks after row of blocks. Eight bits
    are e4m3 numbers; four are whole ones plus eight, eight of them in four bytes, the lowest first.
    """

    scales: "TensorEntry"
    rows: int
    columns: int
    bits: int = 8

    def row_bytes(self, columns: int) -> int:
        """Return what a row of the matrix takes in its file."""
        return columns if self.bits == 8 else -(-columns // 8) * 4


class LevelOrder(enum.StrEnum):
    """Which levels share a word of a matrix that is published in whole ones."""

    INPUTS = "inputs"
    """Neighbouring inputs of one output, the first in the lowest bits, as GPTQ has them."""
    OUTPUTS = "outputs"
    """Neighbouring outputs of one input in the order 0, 2, 4, 6, 1, 3, 5, 7, as AWQ has them."""


@dataclasses.dataclass(frozen=True, slots=True)
class WholeLevels:
    """How a matrix is published in whole levels: a weight is ``(level - zero) * scale``.

    All lie turned, inputs before outputs: ``words`` with some levels in each; for each
    ``group_columns`` inputs (0: all of them) and each output one of the ``scales``, in f16, and one
    of the ``zeros``, packed along outputs. To every zero in a stored word ``zero_offset`` is added
    at once, with what that carries over to the next one.
    """

    order: LevelOrder
    bits: int
    group_columns: int
    zero_offset: int
    is_centred: bool
    """Whether every zero has to be the level in the middle."""
    words: "TensorEntry"
    scales: "TensorEntry"
    zeros: "TensorEntry"
    groups: "TensorEntry | None" = None
    """The group of each input, if that is stored: they have to follow one another."""
    bias: "TensorEntry | None" = None
    """Of a matrix that has none, if one is stored: all of it has to be zero."""


@dataclasses.dataclass(frozen=True, slots=True)
class TensorEntry:
    """One tensor in one file: ``num_bytes`` from ``offset_bytes`` on, row-major.

    It may be a part of a larger tensor of that name: ``shape`` is what it stands for. With a
    ``weave`` the bytes are those of a block out of which it has to be picked. With ``scales`` it
    is packed as published, and they are the bytes of its block that say what a level is worth.
    """

    name: str
    file: str
    """Absolute path."""
    offset_bytes: int
    num_bytes: int
    format: WeightFormat
    shape: tuple[int, ...]
    weave: Weave | None = None
    blocks: ScaledBlocks | None = None
    """If it is published in few bits, which lie at ``offset_bytes``, while format and
    ``num_bytes`` are those in which the store hands it on."""
    scales: "TensorEntry | None" = None
    levels: WholeLevels | None = None
    """If it is published in whole levels; format and ``num_bytes`` are those that hold them all
    exactly, and in which the store hands it on."""
    gguf: GgufRows | None = None
    """If it lies in a GGUF file in another way than kernels take it; format and ``num_bytes`` are
    those in which the store hands it on."""


@dataclasses.dataclass(frozen=True, slots=True)
class MatrixLayout:
    """One matrix inside a buffer: ``rows`` outputs by ``columns`` inputs in a format.

    In the ``G32`` formats ``rows`` is padded to a multiple of ``ROW_BLOCK`` and ``columns`` to a
    multiple of ``GROUP_SIZE`` in storage, in the formats of ``SPAN_ROW_BYTES`` of ``SPAN``;
    ``num_bytes`` says what the padded matrix takes.
    """

    format: WeightFormat
    rows: int
    columns: int
    offset_bytes: int
    num_bytes: int


@dataclasses.dataclass(frozen=True, slots=True)
class ExpertLayout:
    """How an expert lies in a slot, a record or any other buffer.

    Each matrix has a format of its own. ``record_bytes`` is a multiple of ``PAGE_BYTES``. The same
    layout holds in files of a prepared store, in RAM slots and in device slots::

        0            gate.offset      up.offset        down.offset        record_bytes
        | gate ......| pad to 64 | up ....| pad to 64 | down .....| pad to 4096 |
    """

    parts: Mapping[ExpertPart, MatrixLayout]
    record_bytes: int

    def __getitem__(self, part: ExpertPart) -> MatrixLayout:
        return self.parts[part]

    @property
    def formats(self) -> tuple[WeightFormat, ...]:
        """The formats of gate, up and down."""
        return tuple(self.parts[part].format for part in ExpertPart)

    @property
    def mean_bits(self) -> int:
        """Bits of a weight in the mean, scales left out, rounded."""
        return round(sum(STORED_BITS[each] for each in self.formats) / len(self.parts))


def matrix_bytes(weight_format: WeightFormat, rows: int, columns: int) -> int:
    """Return what a matrix takes in a format, padding to whole row blocks and groups included."""
    bits = STORED_BITS[weight_format]
    if weight_format in PLAIN_FORMATS:
        return rows * columns * bits // 8
    padded_rows = -(-rows // ROW_BLOCK) * ROW_BLOCK
    if weight_format in SPAN_ROW_BYTES:
        return padded_rows * -(-columns // SPAN) * SPAN_ROW_BYTES[weight_format]
    num_groups = -(-columns // GROUP_SIZE)
    scale_bytes = 1 if weight_format is WeightFormat.MXFP4 else 2
    row_bytes = 4 if weight_format in AFFINE_FORMATS else 0
    return padded_rows * (row_bytes + num_groups * (scale_bytes + GROUP_SIZE * bits // 8))


def expert_layout(weight_format: WeightFormat, hidden_size: int, expert_width: int) -> ExpertLayout:
    """Return the layout of an expert with ``hidden_size`` inputs and ``expert_width`` channels."""
    return layout_in([weight_format] * len(ExpertPart), hidden_size, expert_width)


def layout_in(formats: Sequence[WeightFormat], hidden_size: int, expert_width: int) -> ExpertLayout:
    """Return the layout of an expert of these sizes whose gate, up and down have some formats."""
    parts: dict[ExpertPart, MatrixLayout] = {}
    offset = 0
    for part, weight_format in zip(ExpertPart, formats, strict=True):
        rows, columns = (
            (hidden_size, expert_width) if part is ExpertPart.DOWN else (expert_width, hidden_size)
        )
        num_bytes = matrix_bytes(weight_format, rows, columns)
        parts[part] = MatrixLayout(weight_format, rows, columns, offset, num_bytes)
        offset += -(-num_bytes // PART_ALIGN_BYTES) * PART_ALIGN_BYTES
    return ExpertLayout(parts, -(-offset // PAGE_BYTES) * PAGE_BYTES)
