"""How tensors, formats and styles are handed to the extension: as numbers."""

import dataclasses
from collections.abc import Sequence
from typing import Self

import torch

from runtime.kernels.base import ExpertStyle
from runtime.kernels.matrix import Slot
from runtime.native.formats import FORMAT_CODES
from runtime.spec.blocks import ActivationKind
from runtime.spec.tensors import ExpertLayout, ExpertPart

ACTIVATION_CODES = {
    ActivationKind.SILU: 0,
    ActivationKind.GELU_TANH: 1,
    ActivationKind.CLAMPED_SWIGLU: 2,
}
"""The numbers that it gives the activations."""
_NO_BIASES: tuple[tuple[int, int, int], list[int]] = ((0, 0, 0), [])


def address_of(tensor: torch.Tensor) -> int:
    """Return where a contiguous f32 tensor starts."""
    if tensor.dtype is not torch.float32 or not tensor.is_contiguous():
        raise ValueError(f"a contiguous f32 tensor is needed, not {tensor.dtype} {tensor.stride()}")
    return tensor.data_ptr()


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class ExpertNumbers:
    """A layout, and as numbers its sizes and the formats and places of gate, up and down."""

    layout: ExpertLayout
    formats: tuple[int, int, int]
    hidden: int
    width: int
    offsets: tuple[int, int, int]

    @classmethod
    def of(cls, layout: ExpertLayout) -> Self:
        """Return the numbers of a layout."""
        gate, up, down = (layout[part] for part in ExpertPart)
        return cls(
            layout,
            (FORMAT_CODES[gate.format], FORMAT_CODES[up.format], FORMAT_CODES[down.format]),
            gate.columns,
            gate.rows,
            (gate.offset_bytes, up.offset_bytes, down.offset_bytes),
        )


def biases_of(
    style: ExpertStyle, experts: Sequence[tuple[int, Slot]], hidden: int, width: int
) -> tuple[tuple[int, int, int], list[int]]:
    """Return where biases lie, and the row of each expert in them."""
    biases = style.biases
    if biases is None:
        return _NO_BIASES
    rows = len(biases.numbers)
    if biases.gate.shape != (rows, width) or biases.up.shape != (rows, width):
        raise ValueError(f"biases {biases.gate.shape} and {biases.up.shape}, width {width}")
    if biases.down.shape != (rows, hidden):
        raise ValueError(f"biases {biases.down.shape} for {hidden} outputs")
    row_of = {number: row for row, number in enumerate(biases.numbers)}
    addresses = (address_of(biases.gate), address_of(biases.up), address_of(biases.down))
    return addresses, [row_of[number] for number, _ in experts]
