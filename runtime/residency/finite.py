"""Whether stored weights are numbers: one that is not makes every answer nonsense."""

import math

import torch

_CHUNK = 1 << 20
"""So many numbers at a time, which stay in the processor's cache."""


def is_finite(values: torch.Tensor) -> bool:
    """Whether no number in ``values`` is infinite or undefined; an empty tensor is finite."""
    flat = values.flatten()
    for begin in range(0, len(flat), _CHUNK):
        # Both ends are undefined as soon as one number is.
        low, high = flat[begin : begin + _CHUNK].aminmax()
        if not (math.isfinite(low) and math.isfinite(high)):
            return False
    return True
