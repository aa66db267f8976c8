"""Matrices published in whole levels with zeros, by GPTQ or AWQ, without any rounding.

A weight is ``(level - zero) * scale``, with a scale in f16. The difference is a whole number of at
most eight bits with its sign, so that f32 holds the product exactly, and a record holds difference
and scale as they are; docs/formats.md draws records.
"""

from collections.abc import Iterator
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from runtime.errors import LarderError
from runtime.inspect.files import shown
from runtime.protocol.errors import ErrorCode
from runtime.protocol.values import WeightFormat
from runtime.spec.tensors import GROUP_SIZE, ROW_BLOCK, LevelOrder, TensorEntry, WholeLevels
from runtime.store.base import Reads
from runtime.store.not_finite import not_finite
from runtime.store.records import interleaved

Bytes = npt.NDArray[np.uint8]
Words = npt.NDArray[np.uint32]
Levels = npt.NDArray[np.int8]
Halves = npt.NDArray[np.float16]

_Number = TypeVar("_Number", np.uint32, np.float16)

_STRIPE_WEIGHTS = 1 << 20
"""So many weights are put right at a time."""
_OFFSET = 8
"""What is added to the levels of ``q4_g32``, so that they have no sign."""
_AWQ_ORDER = (0, 2, 4, 6, 1, 3, 5, 7)


def level_pieces(
    files: Reads, entry: TensorEntry, weight_format: WeightFormat
) -> Iterator[memoryview]:
    """Yield a matrix in f32 or as a record holds it, some rows at a time, in their order.

    Raises ``LarderError`` that names the tensor for a scale that is no number, for zeros and groups
    that are not as the config says, and for a bias that the model does not have.
    """
    levels = entry.levels
    assert levels is not None
    rows, columns = entry.shape
    group_columns = levels.group_columns or columns
    _check_groups(files, levels, group_columns)
    _check_bias(files, levels)
    # Turned as the matrix itself is.
    scales = _read(files, levels.scales, np.float16).T
    zeros = _zeros(_read(files, levels.zeros, np.uint32), levels)[:rows]
    if not np.isfinite(scales).all():
        raise not_finite(levels.scales)
    words = _read(files, levels.words, np.uint32)
    num_rows = max(1, _STRIPE_WEIGHTS // columns // ROW_BLOCK) * ROW_BLOCK
    for first in range(0, rows, num_rows):
        here = slice(first, min(first + num_rows, rows))
        stored = _stored_levels(words, levels, here)[:, :columns]
        wide = np.repeat(zeros[here], group_columns, axis=1)[:, :columns]
        # Of eight bits, the difference to the middle fits as well: it wraps to the right number.
        differences = (stored - wide).view(np.int8)
        if weight_format is WeightFormat.F32:
            yield _products(differences, scales[here], group_columns)
        else:
            yield _record(differences, scales[here], group_columns, weight_format)


def _read(files: Reads, entry: TensorEntry, kind: type[_Number]) -> npt.NDArray[_Number]:
    stored: npt.NDArray[_Number] = np.empty(entry.shape, kind)
    files.read(entry.file, entry.offset_bytes, [stored.reshape(-1).view(np.uint8).data])
    return stored


def _stored_levels(words: Words, levels: WholeLevels, rows: slice) -> Bytes:
    """Return the levels ``[rows, columns]`` of some rows that begin at a multiple of eight."""
    if levels.order is LevelOrder.INPUTS:
        return _unpacked(np.ascontiguousarray(words[:, rows].T), levels.bits)
    in_words = slice(rows.start // ROW_BLOCK, -(-rows.stop // ROW_BLOCK))
    turned = _in_order(_unpacked(np.ascontiguousarray(words[:, in_words]), levels.bits))
    return np.ascontiguousarray(turned[:, : rows.stop - rows.start].T)


def _unpacked(words: Words, bits: int) -> Bytes:
    """Return the levels of words one after another, the lowest bits first."""
    data = words.view(np.uint8)
    if bits == 8:
        return data
    levels = np.empty((len(data), 2 * data.shape[1]), np.uint8)
    levels[:, ::2] = data & np.uint8(15)
    levels[:, 1::2] = data >> np.uint8(4)
    return levels


def _in_order(levels: Bytes) -> Bytes:
    """Return levels that AWQ packed in their own order."""
    eights = levels.reshape(len(levels), -1, len(_AWQ_ORDER))
    ordered = np.empty_like(eights)
    ordered[..., _AWQ_ORDER] = eights
    return ordered.reshape(levels.shape)


def _zeros(words: Words, levels: WholeLevels) -> Bytes:
    """Return the zeros ``[rows, groups]``, those of begun words at the end included."""
    # A one in each level. The sum carries over to the next level, as the writer borrowed from it.
    ones = np.uint32(0xFFFFFFFF // ((1 << levels.bits) - 1))
    zeros = _unpacked(words + ones * np.uint32(levels.zero_offset), levels.bits)
    if levels.order is LevelOrder.OUTPUTS:
        zeros = _in_order(zeros)
    middle = 1 << levels.bits - 1
    num_rows = levels.scales.shape[1]
    strange = zeros[:, :num_rows][zeros[:, :num_rows] != middle]
    if levels.is_centred and strange.size:
        found, expected = f"{strange[0]} in one place", f"{middle} everywhere (sym is true)"
        raise _mismatched(levels.zeros, found, expected)
    return np.ascontiguousarray(zeros.T)


def _check_groups(files: Reads, levels: WholeLevels, group_columns: int) -> None:
    if levels.groups is None:
        return
    groups = _read(files, levels.groups, np.uint32)
    if not np.array_equal(groups, np.arange(groups.size) // group_columns):
        expected = f"groups of {group_columns} neighbours, as without desc_act"
        raise _mismatched(levels.groups, "columns in another order", expected)


def _check_bias(files: Reads, levels: WholeLevels) -> None:
    if levels.bias is None:
        return
    stored = np.empty(levels.bias.num_bytes, np.uint8)
    files.read(levels.bias.file, levels.bias.offset_bytes, [stored.data])
    if stored.any():
        raise _mismatched(levels.bias, "a bias", "no bias, or zeros")


def _mismatched(entry: TensorEntry, found: str, expected: str) -> LarderError:
    return LarderError(
        ErrorCode.TENSOR_MISMATCHED,
        file=shown(entry.file),
        tensor=entry.name,
        found=found,
        expected=expected,
    )


def _products(differences: Levels, scales: Halves, group_columns: int) -> memoryview:
    """Return the bytes of a stripe in f32."""
    wide = np.repeat(scales.astype(np.float32), group_columns, axis=1)
    products = differences * wide[:, : differences.shape[1]]
    return products.reshape(-1).view(np.uint8).data


def _record(
    differences: Levels, scales: Halves, group_columns: int, weight_format: WeightFormat
) -> memoryview:
    """Return the bytes of a stripe as a record holds it."""
    rows, columns = differences.shape
    num_groups = -(-columns // GROUP_SIZE)
    padded = np.zeros((rows, num_groups * GROUP_SIZE), np.int8)
    padded[:, :columns] = differences
    if weight_format is WeightFormat.Q4_G32:
        halves = (padded + np.int8(_OFFSET)).view(np.uint8)
        halves = halves.reshape(rows, num_groups, 2, -1)
        weights = halves[:, :, 0] | halves[:, :, 1] << np.uint8(4)
    else:
        weights = padded.view(np.uint8).reshape(rows, num_groups, -1)
    own = np.ascontiguousarray(scales[:, np.arange(num_groups) * GROUP_SIZE // group_columns])
    return interleaved([own.view(np.uint8).reshape(rows, num_groups, 2)], weights).reshape(-1).data
