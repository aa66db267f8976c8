"""Measures once what the planner wants to know of this PC and nobody has kept yet."""

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
    """Measure how fast all cores together read memory, unless that is kept already.

    It takes some hundredths of a second and, while it runs, a buffer of 64 MiB.
    """
    rates = RateCache(rates_path)
    if rates.rate(RAM) is not None or load_native() is None:
        return
    num_threads = psutil.cpu_count(logical=False) or os.cpu_count() or 1
    buffer = np.ones(_BUFFER_BYTES, dtype=np.uint8)
    measured = [
        read_bandwidth(buffer.ctypes.data, buffer.nbytes, num_threads) or 0.0
        for _ in range(_NUM_RUNS)
    ]
    if max(measured) > 0:
        rates.record(RAM, max(measured), f"measured, {num_threads} threads, 64 MiB")
