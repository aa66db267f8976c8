"""The MXFP4 format: levels of four bits from a fixed list, one power of two for 32 of them."""

import numpy as np
import numpy.typing as npt

from runtime.kernels.quads import Bytes, Floats
from runtime.spec.tensors import GROUP_SIZE, LEAST_EXPONENT, MOST_EXPONENT, QUAD, ROW_BLOCK

_DOUBLED = np.array([0, 1, 2, 3, 4, 6, 8, 12], np.float32)
"""What the lower three bits stand for, times 2; the fourth bit is the sign."""
LEVELS: Floats = np.concatenate([_DOUBLED, -_DOUBLED]) * np.float32(0.5)
"""The sixteen levels, e2m1 as the microscaling formats have it."""
_MIDDLES = (_DOUBLED[1:] + _DOUBLED[:-1]) / 4
_HIGHEST = 6.0
_BIAS = 127


def pack_fp4_groups(groups: Floats) -> Bytes:
    """Return ``[blocks, 8, groups, 32]`` weights as stored.

    The exponent of a group is the least that reaches its largest weight, or the one below if that
    errs less. Weights that an MXFP4 checkpoint stands for are kept exactly.
    """
    largest = np.abs(groups).max(axis=-1)
    _, above = np.frexp(largest / np.float32(_HIGHEST))
    # frexp gives a power above; a quotient that is one itself needs no more.
    exponents = above - (np.ldexp(np.float32(_HIGHEST), above - 1) >= largest)
    exponents = np.minimum(exponents, MOST_EXPONENT - _BIAS)
    first, first_error = _levels_of(groups, exponents)
    lower, lower_error = _levels_of(groups, exponents - 1)
    is_lower = lower_error < 4 * first_error
    nibbles = np.where(is_lower[..., None], lower, first)
    stored = np.maximum(exponents - is_lower + _BIAS, 0)
    stored = np.where((largest == 0) | (stored < LEAST_EXPONENT), 0, stored).astype(np.uint8)
    return _interleaved(np.where(stored[..., None] == 0, 0, nibbles).astype(np.uint8), stored)


def _interleaved(nibbles: Bytes, exponents: Bytes) -> Bytes:
    """Return levels ``[blocks, 8, groups, 32]`` and exponents ``[blocks, 8, groups]`` as stored."""
    blocks, _, num_groups, _ = nibbles.shape
    pairs = nibbles[..., : GROUP_SIZE // 2] | (nibbles[..., GROUP_SIZE // 2 :] << np.uint8(4))
    quads = pairs.reshape(blocks, ROW_BLOCK, num_groups, -1, QUAD).transpose(0, 2, 3, 1, 4)
    weights = np.ascontiguousarray(quads).reshape(blocks, num_groups, -1)
    return np.concatenate([exponents.transpose(0, 2, 1), weights], axis=2).reshape(-1)


def fp4_scales(exponents: Bytes) -> Floats:
    """Return what exponents stand for; 0 for those below the least that is used."""
    scales = np.ldexp(np.float32(1.0), exponents.astype(np.int32) - _BIAS).astype(np.float32)
    return np.where(exponents < LEAST_EXPONENT, np.float32(0.0), scales)


def _levels_of(groups: Floats, exponents: npt.NDArray[np.int32]) -> tuple[Bytes, Floats]:
    """Return the nearest levels under an exponent for each group, and their squared error.

    Errors are in units of the exponent.
    """
    units = np.ldexp(groups, -exponents[..., None])
    magnitudes = np.searchsorted(_MIDDLES, np.abs(units)).astype(np.uint8)
    nibbles = magnitudes | (np.signbit(units).astype(np.uint8) << np.uint8(3))
    errors: Floats = np.square(units - LEVELS[nibbles]).sum(axis=-1)
    return nibbles, errors
