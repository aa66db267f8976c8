"""What errors of a card's libraries mean."""

import torch

from runtime.errors import LarderError
from runtime.protocol.errors import ErrorCode

_WORDS_OF_LOSS = (
    "CUDA error",
    "HIP error",
    "UR error",
    "UR_RESULT_ERROR",
    "Level-Zero error",
    "device-side assert",
    "driver shutting down",
)
"""How torch's errors begin or go on where they have no class of their own."""


def fault_of(error: RuntimeError, device: str) -> LarderError | None:
    """Return what an error of torch says about a device, None if it says nothing of one."""
    detail = f"{type(error).__name__}: {error}"
    if isinstance(error, torch.OutOfMemoryError):
        return LarderError(ErrorCode.VRAM_FULL, detail, device=device)
    # Torch has the class since 2.8.
    lost = getattr(torch, "AcceleratorError", None)
    is_lost = lost is not None and isinstance(error, lost)
    if is_lost or any(words in str(error) for words in _WORDS_OF_LOSS):
        return LarderError(ErrorCode.DEVICE_LOST, detail, device=device)
    return None
