"""The processor: its name, its cores that this process may use, its vector instructions."""

import dataclasses
import math
import os
import platform
import sys
from collections.abc import Sequence

import psutil

from runtime.hardware.control_group import processor_limit
from runtime.hardware.system_files import SystemFiles

_X86_SETS = (
    ("avx512-vnni", {"avx512f", "avx512bw", "avx512vl", "avx512_vnni"}),
    ("avx512", {"avx512f", "avx512bw", "avx512vl"}),
    ("avx2", {"avx2", "fma", "f16c"}),
    ("avx", {"avx"}),
)
_ARM_SETS = (("neon-dotprod", {"asimd", "asimddp"}), ("neon", {"asimd"}))
_WINDOWS_AVX512 = 41
_WINDOWS_AVX2 = 40
"""Numbers that Windows gives these instruction sets."""


@dataclasses.dataclass(frozen=True, slots=True)
class ProcessorFacts:
    """What computes. Cores are those that this process may use."""

    name: str
    num_physical_cores: int
    num_logical_cores: int
    instruction_set: str


def read_processor(files: SystemFiles) -> ProcessorFacts:
    """Return the processor facts of this process."""
    info = files.text("/proc/cpuinfo")
    allowed = _allowed_processors()
    logical = len(allowed)
    physical = _physical_cores(files, allowed)
    quota = processor_limit(files)
    if quota is not None:
        most = max(1, math.ceil(quota))
        logical, physical = min(logical, most), min(physical, most)
    return ProcessorFacts(
        name=_field(info, "model name") or platform.processor() or platform.machine(),
        num_physical_cores=physical,
        num_logical_cores=logical,
        instruction_set=_instruction_set(info),
    )


def _allowed_processors() -> Sequence[int]:
    """Return the numbers of the logical processors that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return range(psutil.cpu_count(logical=True) or 1)


def _physical_cores(files: SystemFiles, allowed: Sequence[int]) -> int:
    """Return how many different cores the allowed processors lie on."""
    cores = {
        siblings
        for number in allowed
        if (
            siblings := files.text(
                f"/sys/devices/system/cpu/cpu{number}/topology/thread_siblings_list"
            )
        )
    }
    if cores:
        return len(cores)
    return min(psutil.cpu_count(logical=False) or len(allowed), len(allowed))


def _field(info: str, name: str) -> str:
    for line in info.splitlines():
        key, _, value = line.partition(":")
        if key.strip() == name:
            return value.strip()
    return ""


def _instruction_set(info: str) -> str:
    """Return the best set of vector instructions that this program has a use for."""
    flags = set(_field(info, "flags").split())
    if flags:
        return next((name for name, needed in _X86_SETS if needed <= flags), "x86-64")
    features = set(_field(info, "Features").split())
    if features:
        return next((name for name, needed in _ARM_SETS if needed <= features), "arm")
    if platform.machine().lower() in {"arm64", "aarch64"}:
        return "neon"
    return _windows_instruction_set()


def _windows_instruction_set() -> str:
    """Ask Windows; elsewhere return what the machine calls itself."""
    if sys.platform == "win32":
        import ctypes

        has = ctypes.windll.kernel32.IsProcessorFeaturePresent
        return "avx512" if has(_WINDOWS_AVX512) else "avx2" if has(_WINDOWS_AVX2) else "x86-64"
    else:  # noqa: RET505 (the type checker looks at one system at a time)
        return platform.machine().lower() or "unknown"


def last_cache_bytes(files: SystemFiles) -> int:
    """Return the size of the largest cache of the first processor, 0 if it is not told."""
    folder = "/sys/devices/system/cpu/cpu0/cache"
    units = {"K": 1 << 10, "M": 1 << 20}
    sizes = [0]
    for entry in files.folders(folder, "index*"):
        text = files.text(f"{folder}/{entry}/size").strip()
        if text[:-1].isdecimal() and text[-1:] in units:
            sizes.append(int(text[:-1]) * units[text[-1]])
    return max(sizes)
