"""The weight formats as tensors on any device: what ``formats.unpack`` gives, bit for bit."""

import torch

from runtime.kernels.fp4 import LEVELS
from runtime.protocol.values import WeightFormat
from runtime.spec.tensors import (
    AFFINE_FORMATS,
    GROUP_SIZE,
    LEAST_EXPONENT,
    QUAD,
    ROW_BLOCK,
    SPAN,
    STORED_BITS,
    matrix_bytes,
)

_Q4_OFFSET = 8
PLAIN_TYPES = {
    WeightFormat.F32: torch.float32,
    WeightFormat.F16: torch.float16,
    WeightFormat.BF16: torch.bfloat16,
}
"""The formats that are plain arrays of one of torch's types."""
_HALF_OFFSETS = {6: 32, 3: 4}
"""How much too large levels of half spans are stored, by bits."""


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
    if weight_format in {WeightFormat.Q4K_G32, WeightFormat.Q5K_G32}:
        quads = _spans(data, columns, STORED_BITS[weight_format])
    elif weight_format in {WeightFormat.Q6K_G16, WeightFormat.Q3K_G16, WeightFormat.Q2K_G16}:
        quads = _half_spans(data, columns, STORED_BITS[weight_format])
    elif weight_format in AFFINE_FORMATS:
        quads = _affine(data, columns, STORED_BITS[weight_format])
    else:
        levels, scales = _GROUPED[weight_format](data, columns)
        quads = levels * scales[:, :, None, :, None]
    padded = quads.permute(0, 3, 1, 2, 4).reshape(quads.shape[0] * ROW_BLOCK, -1)
    return padded[:rows, :columns].contiguous()


def _split(
    data: torch.Tensor, columns: int, scale_bytes: int, weight_bytes: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return scales ``[blocks, groups, bytes]`` and weights ``[blocks, groups, quads, 8, 4]``."""
    groups = data.view(-1, -(-columns // GROUP_SIZE), ROW_BLOCK * (scale_bytes + weight_bytes))
    scales = groups[..., : ROW_BLOCK * scale_bytes].contiguous()
    weights = groups[..., ROW_BLOCK * scale_bytes :].contiguous()
    return scales, weights.view(*groups.shape[:2], -1, ROW_BLOCK, QUAD)


def _halves(pairs: torch.Tensor) -> torch.Tensor:
    return torch.cat([pairs & 15, pairs >> 4], dim=2)


def _eight_bit(data: torch.Tensor, columns: int) -> tuple[torch.Tensor, torch.Tensor]:
    scales, weights = _split(data, columns, 2, GROUP_SIZE)
    return weights.view(torch.int8).to(torch.float32), scales.view(torch.float16).to(torch.float32)


def _four_bit(data: torch.Tensor, columns: int) -> tuple[torch.Tensor, torch.Tensor]:
    scales, pairs = _split(data, columns, 2, GROUP_SIZE // 2)
    levels = _halves(pairs).to(torch.float32) - _Q4_OFFSET
    return levels, scales.view(torch.float16).to(torch.float32)


def _fp4(data: torch.Tensor, columns: int) -> tuple[torch.Tensor, torch.Tensor]:
    exponents, pairs = _split(data, columns, 1, GROUP_SIZE // 2)
    levels = torch.from_numpy(LEVELS).to(data.device)[_halves(pairs).to(torch.int64)]
    # The bits of a float whose exponent is the byte; 0 and 1 stand for 0.
    bits = exponents.to(torch.int32) << 23
    return levels, bits.masked_fill(exponents < LEAST_EXPONENT, 0).view(torch.float32)


def _affine(data: torch.Tensor, columns: int, bits: int) -> torch.Tensor:
    """Return the weights ``[blocks, groups, quads, 8, 4]``; see ``affine`` for the drawing."""
    num_groups, head_bytes = -(-columns // GROUP_SIZE), 4 * ROW_BLOCK
    blocks = data.view(-1, head_bytes + num_groups * ROW_BLOCK * (2 + GROUP_SIZE * bits // 8))
    units = blocks[:, :head_bytes].contiguous().view(torch.float16).to(torch.float32)
    units = units.view(-1, 2, 1, 1, ROW_BLOCK)
    groups = blocks[:, head_bytes:].reshape(len(blocks), num_groups, -1)
    vectors = groups[..., 2 * ROW_BLOCK :].reshape(len(blocks), num_groups, -1, ROW_BLOCK, QUAD)
    wholes = (groups[..., :ROW_BLOCK], groups[..., ROW_BLOCK : 2 * ROW_BLOCK])
    steps, leasts = (
        (units[:, place] * _by_quad(each, bits).to(torch.float32))[..., None]
        for place, each in enumerate(wholes)
    )
    return _levels(vectors, bits).to(torch.float32) * steps - leasts


def _spans(data: torch.Tensor, columns: int, bits: int) -> torch.Tensor:
    """Return the weights ``[blocks, groups, quads, 8, 4]``; see ``spans`` for the drawing."""
    num_spans, unit_bytes = -(-columns // SPAN), 4 * ROW_BLOCK
    spans = data.view(-1, num_spans, ROW_BLOCK * (16 + SPAN * bits // 8))
    units = spans[..., :unit_bytes].contiguous().view(torch.float16).to(torch.float32)
    units = units.view(-1, num_spans, 2, 1, ROW_BLOCK)
    head_bytes = 16 * ROW_BLOCK
    packed = spans[..., unit_bytes:head_bytes].reshape(-1, num_spans, 3, 4, ROW_BLOCK)
    scales, leasts, nibbles = packed.unbind(2)
    shape = (len(spans), num_spans * SPAN // GROUP_SIZE)
    steps, lowest = (
        (units[:, :, place] * torch.cat([lower & 63, four | lower >> 2 & 0x30], dim=2)).reshape(
            *shape, 1, ROW_BLOCK, 1
        )
        for place, (lower, four) in enumerate(((scales, nibbles & 15), (leasts, nibbles >> 4)))
    )
    levels = _span_levels(spans[..., head_bytes:], bits).to(torch.float32)
    return levels.reshape(*shape, 8, ROW_BLOCK, QUAD) * steps - lowest


def _span_levels(vectors: torch.Tensor, bits: int) -> torch.Tensor:
    """Return levels ``[blocks, spans, pairs of groups, 2, quads, 8, 4]``."""
    shape = (*vectors.shape[:2], 4, 8) if bits == 4 else (*vectors.shape[:2], 8, 5)
    vectors = vectors.reshape(*shape, ROW_BLOCK, QUAD)
    pairs = vectors if bits == 4 else vectors[:, :, :, :4].transpose(2, 3)
    levels = torch.stack([pairs & 15, pairs >> 4], dim=3)
    if bits == 4:
        return levels
    shifts = torch.arange(8, dtype=torch.uint8, device=vectors.device).view(4, 2, 1, 1, 1)
    return levels | (vectors[:, :, None, None, :, 4] >> shifts & 1) << 4


def _half_spans(data: torch.Tensor, columns: int, bits: int) -> torch.Tensor:
    """Return the weights ``[blocks, groups, quads, 8, 4]``; see ``half_spans`` for the drawing."""
    num_spans, num_groups, has_leasts = -(-columns // SPAN), SPAN // GROUP_SIZE, bits == 2
    sizes = [ROW_BLOCK * (4 if has_leasts else 2), ROW_BLOCK * 16, ROW_BLOCK * SPAN * bits // 8]
    head, stored, vectors = torch.split(data.view(-1, num_spans, sum(sizes)), sizes, dim=2)
    units = head.contiguous().view(torch.float16).to(torch.float32)
    units = units.view(-1, num_spans, 1 + has_leasts, 1, ROW_BLOCK, 1)
    stored = stored.contiguous().view(-1, num_spans, num_groups, ROW_BLOCK, 2)
    scales = stored & 15 if has_leasts else stored.view(torch.int8)
    levels = _half_levels(vectors, bits).to(torch.float32) - _HALF_OFFSETS.get(bits, 0)
    halves = levels.view(-1, num_spans, num_groups, 2, 4, ROW_BLOCK, QUAD)
    weights = halves * _for_halves(units[:, :, 0] * scales)
    if has_leasts:
        weights = weights - _for_halves(units[:, :, 1] * (stored >> 4))
    return weights.view(-1, num_spans * num_groups, 8, ROW_BLOCK, QUAD)


def _for_halves(values: torch.Tensor) -> torch.Tensor:
    """Return values ``[blocks, spans, groups, 8, 2]`` as ``[..., groups, 2, 1, 8, 1]``."""
    return values.transpose(3, 4)[..., None, :, None]


def _half_levels(vectors: torch.Tensor, bits: int) -> torch.Tensor:
    """Return levels ``[blocks, spans, groups, quads, 8, 4]`` of runs of bundles of vectors."""
    runs, size = (2, 3) if bits == 6 else (1, bits)
    bundles = vectors.reshape(*vectors.shape[:2], runs, 8, size, ROW_BLOCK, QUAD).transpose(3, 4)
    shape = (*vectors.shape[:2], SPAN // GROUP_SIZE, 8, ROW_BLOCK, QUAD)
    eight = torch.arange(8, dtype=torch.uint8, device=vectors.device).view(8, 1, 1, 1)
    twos = eight[:4] * 2
    if bits == 6:
        lower, upper = bundles[:, :, :, :2], bundles[:, :, :, 2:]
        fours = torch.cat([lower & 15, lower >> 4], dim=3)
        return (fours | (upper >> twos & 3) << 4).reshape(shape)
    levels = (bundles[:, :, 0, :2, None] >> twos & 3).reshape(shape)
    if bits == 3:
        levels = levels | (bundles[:, :, 0, 2:] >> eight & 1) << 2
    return levels


def _by_quad(wholes: torch.Tensor, bits: int) -> torch.Tensor:
    """Return whole numbers ``[blocks, groups, 1 or 8, 8]`` of bytes ``[blocks, groups, 8]``."""
    if bits >= 4:
        return wholes[:, :, None]
    return torch.stack([wholes & 15, wholes >> 4], dim=2).repeat_interleave(4, dim=2)


def _levels(vectors: torch.Tensor, bits: int) -> torch.Tensor:
    if bits == 4:
        return _halves(vectors)
    if bits == 6:
        return _halves(vectors[:, :, :4]) | _twos(vectors[:, :, 4:]) << 4
    lower = _twos(vectors[:, :, :2])
    if bits == 2:
        return lower
    return lower | torch.stack([vectors[:, :, 2] >> j & 1 for j in range(8)], dim=2) << 2


def _twos(vectors: torch.Tensor) -> torch.Tensor:
    quads = [vectors[:, :, v] >> 2 * k & 3 for v in range(2) for k in range(4)]
    return torch.stack(quads, dim=2)


_GROUPED = {
    WeightFormat.Q8_G32: _eight_bit,
    WeightFormat.Q4_G32: _four_bit,
    WeightFormat.MXFP4: _fp4,
}
"""Levels ``[blocks, groups, quads, 8, 4]`` and scales ``[blocks, groups, 8]`` of each format."""
