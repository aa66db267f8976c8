"""Activations in eight bits: what the ``G32`` formats are multiplied with."""

import torch

from runtime.protocol.values import WeightFormat
from runtime.spec.tensors import GROUP_SIZE, PLAIN_FORMATS

_HIGHEST = 127.0
_LEAST_LARGEST = 2.0**-100
"""A group whose activations are all smaller counts as zeros."""
GROUPED = frozenset(WeightFormat) - PLAIN_FORMATS
"""The formats that take activations in eight bits; the others take them as they are."""


def as_input(weight_format: WeightFormat, x: torch.Tensor) -> torch.Tensor:
    """Return activations ``[n, columns]`` as a matrix of a format sees them."""
    return in_eight_bits(x) if weight_format in GROUPED else x


def in_eight_bits(x: torch.Tensor) -> torch.Tensor:
    """Return each group of 32 activations of a row as its largest by 127, times whole numbers.

    This defines what native kernels compute with; the levels are the same bit by bit. A group with
    a NaN becomes NaN.
    """
    n, columns = x.shape
    padded = torch.nn.functional.pad(x, (0, -columns % GROUP_SIZE))
    groups = padded.view(n, -1, GROUP_SIZE)
    largest = groups.abs().amax(dim=-1, keepdim=True)
    is_zero = largest < _LEAST_LARGEST
    scales = (largest / _HIGHEST).masked_fill(is_zero, 0.0)
    inverse = (_HIGHEST / largest).masked_fill(is_zero, 0.0)
    return (torch.round(groups * inverse) * scales).view(n, -1)[:, :columns]
