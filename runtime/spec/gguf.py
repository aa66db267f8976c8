"""The kinds of numbers in GGUF files, and how a matrix of one becomes one that kernels take."""

import dataclasses
import enum
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from runtime.protocol.values import WeightFormat

if TYPE_CHECKING:
    from runtime.spec.tensors import TensorEntry


class GgufKind(enum.Enum):
    """What is read: the number that stands for a kind, weights of a block, and its bytes."""

    F32 = (0, 1, 4)
    F16 = (1, 1, 2)
    Q4_0 = (2, 32, 18)
    Q4_1 = (3, 32, 20)
    Q5_0 = (6, 32, 22)
    Q5_1 = (7, 32, 24)
    Q8_0 = (8, 32, 34)
    Q2_K = (10, 256, 84)
    Q3_K = (11, 256, 110)
    Q4_K = (12, 256, 144)
    Q5_K = (13, 256, 176)
    Q6_K = (14, 256, 210)
    IQ4_NL = (20, 32, 18)
    IQ4_XS = (23, 256, 136)
    BF16 = (30, 1, 2)
    MXFP4 = (39, 32, 17)

    @property
    def block_columns(self) -> int:
        """Weights of a row that one block holds."""
        return self.value[1]

    @property
    def block_bytes(self) -> int:
        """What one block takes."""
        return self.value[2]

    def row_bytes(self, columns: int) -> int:
        """Return what a row takes, which is whole blocks."""
        return columns // self.block_columns * self.block_bytes


PLAIN: Mapping[GgufKind, WeightFormat] = {
    GgufKind.F32: WeightFormat.F32,
    GgufKind.F16: WeightFormat.F16,
    GgufKind.BF16: WeightFormat.BF16,
}
"""Those that are numbers of their own."""
HOME: Mapping[GgufKind, WeightFormat] = {
    **PLAIN,
    GgufKind.Q8_0: WeightFormat.Q8_G32,
    GgufKind.Q5_0: WeightFormat.Q8_G32,
    GgufKind.IQ4_NL: WeightFormat.Q8_G32,
    GgufKind.Q4_0: WeightFormat.Q4_G32,
    GgufKind.MXFP4: WeightFormat.MXFP4,
    GgufKind.Q4_K: WeightFormat.Q4K_G32,
    GgufKind.Q2_K: WeightFormat.Q2K_G16,
    GgufKind.Q3_K: WeightFormat.Q3K_G16,
    GgufKind.Q4_1: WeightFormat.Q8_G32,
    GgufKind.Q5_1: WeightFormat.Q8_G32,
    GgufKind.Q5_K: WeightFormat.Q5K_G32,
    GgufKind.Q6_K: WeightFormat.Q6K_G16,
    GgufKind.IQ4_XS: WeightFormat.Q8_G32,
}
"""The format of kernels that holds a kind exactly or, where none does, with the least loss."""
EXACT_KINDS = frozenset(
    {
        *PLAIN,
        GgufKind.Q8_0,
        GgufKind.Q5_0,
        GgufKind.IQ4_NL,
        GgufKind.Q4_0,
        GgufKind.Q2_K,
        GgufKind.Q3_K,
        GgufKind.Q4_K,
        GgufKind.Q5_K,
        GgufKind.Q6_K,
        GgufKind.MXFP4,
    }
)
"""Those whose home holds every value exactly."""


class Join(enum.Enum):
    """How a matrix is made of two that lie apart."""

    KEYS_AND_VALUES = "keys and values"
    """Of each head the rows of the first, which lie turned, then those of the second."""
    ALTERNATING = "alternating"
    """Of each row a number of the first, then one of the second."""


@dataclasses.dataclass(frozen=True, slots=True)
class GgufRows:
    """How the rows of a matrix lie in a GGUF file; an entry's bytes are those it becomes."""

    kind: GgufKind
    heads: int = 0
    """Of so many heads the two halves of their rows lie alternating; 0: as they are."""
    join: Join | None = None
    second: "TensorEntry | None" = None
    """What is joined with it, whole."""
    groups: int = 1
    """Heads of a join."""

    def stored_bytes(self, shape: tuple[int, ...]) -> int:
        """Return what a matrix of a shape takes in the file, without what is joined."""
        *outer, columns = shape
        return math.prod(outer) * self.kind.row_bytes(columns)
