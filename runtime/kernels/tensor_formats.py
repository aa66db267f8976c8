"""The weight formats as tensors on any device: what ``formats.unpack`` gives, bit for bit."""

import torch

from runtime.protocol.values import WeightFormat
from runtime.spec.tensors import GROUP_SIZE, ROW_BLOCK, matrix_bytes

_QUAD = 4
_Q4_OFFSET = 8
PLAIN_TYPES = {
    WeightFormat.F32: torch.float32,
    WeightFormat.F16: torch.float16,
    WeightFormat.BF16: torch.bfloat16,
}
"""The formats that are plain arrays of one of torch's types."""


def unpack_tensor(
    weight_format: WeightFormat, data: torch.Tensor, rows: int, columns: int
) -> torch.Tensor:
    """Return the weights ``[rows, columns]`` that bytes on a device stand for, as f32 there.

    For f32 the result shares the memory of ``data``.
    """
    if data.numel() != matrix_bytes(weight_format, rows, columns):
        raise ValueError(f"{data.numel()} bytes for {rows} x {columns} in {weight_format}")
    plain = PLAIN_TYPES.get(weight_format)
    if plain is not None:
        return data.view(plain).view(rows, columns).to(torch.float32)
    return _unpack_grouped(data, rows, columns, is_eight_bit=weight_format is WeightFormat.Q8_G32)


def _unpack_grouped(
    data: torch.Tensor, rows: int, columns: int, *, is_eight_bit: bool
) -> torch.Tensor:
    """Undo the interleaving of row blocks; see ``formats`` for the drawing."""
    scale_bytes = 2 * ROW_BLOCK
    weight_bytes = ROW_BLOCK * GROUP_SIZE // (1 if is_eight_bit else 2)
    groups = data.view(-1, -(-columns // GROUP_SIZE), scale_bytes + weight_bytes)
    scales = groups[..., :scale_bytes].contiguous().view(torch.float16).to(torch.float32)
    weights = groups[..., scale_bytes:].contiguous()
    if is_eight_bit:
        levels = weights.view(torch.int8).to(torch.float32)
    else:
        halves = weights.view(*weights.shape[:2], -1, ROW_BLOCK, _QUAD)
        levels = torch.cat([halves & 15, halves >> 4], dim=2).to(torch.float32) - _Q4_OFFSET
    quads = levels.view(*groups.shape[:2], -1, ROW_BLOCK, _QUAD) * scales[:, :, None, :, None]
    padded = quads.permute(0, 3, 1, 2, 4).reshape(groups.shape[0] * ROW_BLOCK, -1)
    return padded[:rows, :columns].contiguous()
