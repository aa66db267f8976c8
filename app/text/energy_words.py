"""Words of energy by source, each with whether it was measured."""

from collections.abc import Sequence

from app.text.monitor_words import LiveWords
from app.text.translate import tr
from runtime.protocol.values import EnergyPart

_LEAST_PART = 0.005
"""Smaller parts of all are not named."""


def energy_part(source: str, *, is_all: bool = False) -> str:
    """The name of a source; where nothing is measured, what is assumed is the whole PC."""
    names = {
        "rapl:dram": LiveWords.RAM_PART,
        "battery": LiveWords.PC_PART,
        "drive-reads": LiveWords.DRIVE_PART,
        "ram-reads": LiveWords.RAM_PART,
        "link-copies": LiveWords.LINK,
        "assumed-watts": LiveWords.PC_PART if is_all else LiveWords.REST_PART,
    }
    kinds = {"rapl": LiveWords.CPU_PART, "nvml": LiveWords.GPU_PART}
    return names.get(source) or kinds.get(source.partition(":")[0], source)


def energy_parts(parts: Sequence[EnergyPart]) -> str:
    """For example ``processor 120 J measured, rest 40 J estimated``."""
    is_all = not any(part.is_measured for part in parts)
    total = sum(part.joules for part in parts)
    return ", ".join(
        tr("{part} {joules} J {how}").format(
            part=energy_part(part.source, is_all=is_all),
            joules=_joules(part.joules),
            how=how_known(is_measured=part.is_measured),
        )
        for part in parts
        if part.joules >= max(0.05, _LEAST_PART * total)
    )


def energy_of_tokens(parts: Sequence[EnergyPart], num_tokens: int) -> str:
    """For example ``8.0 J a token: processor 120 J measured, rest 40 J estimated``."""
    total = sum(part.joules for part in parts)
    if num_tokens <= 0 or total <= 0:
        return ""
    return tr("{joules} J a token: {parts}").format(
        joules=_joules(total / num_tokens), parts=energy_parts(parts)
    )


def how_known(*, is_measured: bool) -> str:
    """Measured or estimated."""
    return tr("measured") if is_measured else tr("estimated")


def _joules(joules: float) -> str:
    return f"{joules:.0f}" if joules >= 9.95 else f"{joules:.1f}"
