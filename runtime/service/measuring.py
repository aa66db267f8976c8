"""Measures what the planner wants to know of this PC's memory and kernels."""

import os
from pathlib import Path

import numpy as np
import psutil

from runtime.hardware.rates import RAM, RateCache
from runtime.native.loader import load_native, read_bandwidth

KERNELS_VARIABLE = "LARDER_KERNELS"
_BUFFER_BYTES = 64 * 1024 * 1024
_NUM_RUNS = 3


def kernels_name() -> str:
    """Return the name of the kernels that an engine of this PC would use."""
    module = load_native()
    native = "reference" if module is None else f"native-{module.instruction_set()}"
    return os.environ.get(KERNELS_VARIABLE, "") or native


def measure_ram(rates_path: Path) -> None:
    """Measure how fast all cores together read memory; the best that was ever measured is kept.

    Called once by a process: a PC that was busy at the first start is not taken for slow for ever.
    It takes some hundredths of a second and, while it runs, a buffer of 64 MiB.
    """
    if load_native() is None:
        return
    num_threads = psutil.cpu_count(logical=False) or os.cpu_count() or 1
    buffer = np.ones(_BUFFER_BYTES, dtype=np.uint8)
    measured = [
        read_bandwidth(buffer.ctypes.data, buffer.nbytes, num_threads) or 0.0
        for _ in range(_NUM_RUNS)
    ]
    if max(measured) > 0:
        RateCache(rates_path).record(RAM, max(measured), f"measured, {num_threads} threads, 64 MiB")
