"""The choice of kernels for this machine."""

import os

import psutil
import torch

from runtime.errors import LarderError
from runtime.hardware.profile import INSTRUCTION_SETS, profile_of
from runtime.kernels.base import Kernels
from runtime.kernels.native import NativeKernels
from runtime.kernels.reference import ReferenceKernels
from runtime.kernels.triton_kernels import TritonKernels, has_triton
from runtime.native.loader import load_native
from runtime.protocol.errors import ErrorCode

KERNELS_VARIABLE = "LARDER_KERNELS"
"""Environment variable that names the kernels to use instead of the fastest ones."""
_CHOICES = ("reference", *(f"native-{name}" for name in INSTRUCTION_SETS))


def choose_kernels(num_threads: int | None = None) -> Kernels:
    """Return native kernels on ``num_threads`` threads, or the reference where there are none.

    None means as many as the machine profile states, else one thread for each physical core that
    this process may use; the set of instructions is the profile's too. With native kernels
    torch is held to one thread: what is left to it is small, and its waiting threads would take
    the cores from ours. ``LARDER_KERNELS`` forces one of ``reference``, ``native-avx512``,
    ``native-avx2``, ``native-portable``. What this machine cannot do raises ``LarderError``, with
    ``SETTING_INVALID``, or ``MACHINE_FILE_INVALID`` where the profile states it.
    """
    profile = profile_of(os.environ)
    stated = profile.instruction_set if profile is not None else ""
    wanted = os.environ.get(KERNELS_VARIABLE, "")
    if not wanted and stated in INSTRUCTION_SETS and load_native() is not None:
        wanted = f"native-{stated}"
    if wanted and wanted not in _CHOICES:
        raise _invalid(wanted)
    module = load_native()
    if wanted == "reference" or (module is None and not wanted):
        return ReferenceKernels()
    if module is None:
        raise _invalid(wanted)
    if wanted and not module.select_instruction_set(wanted.removeprefix("native-")):
        if profile is not None and not os.environ.get(KERNELS_VARIABLE, ""):
            raise LarderError(
                ErrorCode.MACHINE_FILE_INVALID,
                file=profile.path,
                place="instruction_set",
                found=f"{stated}, which this processor lacks,",
                expected="another",
            )
        raise _invalid(wanted)
    threads = profile.num_threads if profile is not None else None
    module.set_num_threads(num_threads or threads or usable_cores())
    torch.set_num_threads(1)
    return NativeKernels(module)


def choose_device_kernels(device: torch.device) -> Kernels:
    """Return Triton's programs for a card that it drives, if it is installed, else the reference.

    The reference unpacks weights before it multiplies, which moves several times the bytes.
    """
    if device.type == "cuda" and has_triton():
        return TritonKernels()
    return ReferenceKernels()


def usable_cores() -> int:
    """Return the physical cores that this process may use, at least 1."""
    physical = psutil.cpu_count(logical=False) or os.cpu_count() or 1
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else physical
    return max(1, min(physical, allowed))


def _invalid(found: str) -> LarderError:
    return LarderError(
        ErrorCode.SETTING_INVALID,
        name=KERNELS_VARIABLE,
        found=found,
        expected=", ".join(_CHOICES),
    )
