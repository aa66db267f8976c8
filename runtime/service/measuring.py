"""Measures what the planner wants to know of this PC's memory and kernels."""

import mmap
import os
import statistics
import time
from pathlib import Path

import numpy as np
import psutil

from runtime.hardware.machine import describe_machine
from runtime.hardware.memory import host_memory, read_memory
from runtime.hardware.processor import last_cache_bytes
from runtime.hardware.profile import INSTRUCTION_SETS, profile_of
from runtime.hardware.rates import RAM, RateCache
from runtime.hardware.system_files import SystemFiles
from runtime.native.loader import load_native, read_bandwidth
from runtime.spec.tensors import PAGE_BYTES

KERNELS_VARIABLE = "LARDER_KERNELS"
MIN_BUFFER_BYTES = 64 << 20
USUAL_BUFFER_BYTES = 1 << 30
"""Where pages lie decides about a tenth: so much do smaller buffers differ from each other."""
AGAIN_AFTER_S = 86_400.0
"""So long a rate counts without being measured again."""
BUSY_AGAIN_AFTER_S = 600.0
"""The same for one of a PC on which other programs computed, within the life of a process."""
BUSY_RATIO = 0.1
"""From this share of all cores on other programs are told; below, clocks are not that exact."""
_NUM_RUNS = 3
_BUSY_TIMES = ("user", "nice", "system", "irq", "softirq", "steal")
_BUSY_WORDS = ", while other programs took "


def kernels_name() -> str:
    """Return the name of the kernels that an engine of this PC would use."""
    module = load_native()
    if module is None:
        native = "reference"
    else:
        profile = profile_of(os.environ)
        stated = profile.instruction_set if profile is not None else ""
        native = f"native-{stated if stated in INSTRUCTION_SETS else module.instruction_set()}"
    return os.environ.get(KERNELS_VARIABLE, "") or native


def buffer_bytes(available_bytes: int, cache_bytes: int) -> int:
    """Return how much to read: at most a quarter of what is free.

    0 if so little is free that a cache would be measured.
    """
    num_bytes = min(USUAL_BUFFER_BYTES, available_bytes // 4) >> 20 << 20
    return num_bytes if num_bytes >= max(MIN_BUFFER_BYTES, cache_bytes) else 0


def forget_other_machine(rates_path: Path) -> None:
    """Forget the rates if they were measured with another processor, memory or card."""
    machine = describe_machine(env={})
    memory_gib = round(machine.ram_total.value / 2**30)
    cards = [card.name for card in machine.devices]
    parts = (machine.cpu_name, f"{machine.num_physical_cores} cores", f"{memory_gib} GiB", *cards)
    RateCache(rates_path).forget_other_machine(", ".join(parts))


class Others:
    """How many cores other programs take meanwhile: what all took, less what this process did."""

    def __init__(self) -> None:
        self._started = (_busy_s(), time.process_time(), time.perf_counter())

    def cores(self) -> float:
        """Return how many cores they took since the beginning."""
        all_s, own_s, at_s = self._started
        passed_s = time.perf_counter() - at_s
        others_s = (_busy_s() - all_s) - (time.process_time() - own_s)
        return max(0.0, others_s / passed_s) if passed_s > 0 else 0.0


def _busy_s() -> float:
    """Return how long all cores together have computed; what a host took away counts too."""
    times = psutil.cpu_times()._asdict()
    return float(sum(times.get(name, 0.0) for name in _BUSY_TIMES))


def measure_ram(rates_path: Path, *, is_start: bool = True) -> None:
    """Measure how fast all cores together read memory, unless that was done within a day.

    The best of all days counts: whatever else runs only slows it. Of one measurement the median
    does, so that no single run is believed. It takes some tenths of a second. Where other programs
    computed meanwhile, the method says so, and it is measured again at the next call; later in the
    life of a process nothing else is.
    """
    rates = RateCache(rates_path)
    kept = rates.rate(RAM)
    was_busy = kept is not None and _BUSY_WORDS in kept.method
    is_recent = kept is not None and kept.age_s is not None and kept.age_s < AGAIN_AFTER_S
    is_due = was_busy or (is_start and not is_recent)
    if load_native() is None or not is_due:
        return
    files = SystemFiles()
    available = int(read_memory(host_memory(), files).available.value)
    num_bytes = buffer_bytes(available, last_cache_bytes(files))
    if not num_bytes:
        return
    num_threads = psutil.cpu_count(logical=False) or os.cpu_count() or 1
    others = Others()
    with mmap.mmap(-1, num_bytes) as room:
        # As weights lie in arenas.
        if hasattr(mmap, "MADV_HUGEPAGE"):
            room.madvise(mmap.MADV_HUGEPAGE)
        pages = np.frombuffer(room, dtype=np.uint8)
        # A page that was never written is one that all share, and lies in a cache.
        pages[::PAGE_BYTES] = 1
        measured = statistics.median(
            read_bandwidth(pages.ctypes.data, num_bytes, num_threads) or 0.0
            for _ in range(_NUM_RUNS)
        )
        del pages
    busy_cores, num_cores = others.cores(), os.cpu_count() or 1
    if measured <= 0:
        return
    method = f"measured, {num_threads} threads, {num_bytes >> 20} MiB"
    if busy_cores >= BUSY_RATIO * num_cores:
        method += f"{_BUSY_WORDS}{busy_cores:.1f} of {num_cores} cores"
    elif kept is not None and was_busy:
        # What was reached beside other programs can be reached without them.
        measured = max(measured, kept.value)
    rates.record(RAM, measured, method)
