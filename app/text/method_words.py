"""How a figure of this PC was found, in the words of the window.

The runtime tells methods in English, for reports and terminals. Each is matched as a whole; one
that is not known here stays as it is.
"""

import functools
import re

from app.text.translate import tr
from app.text.words import Word


class MethodWords:
    """The methods, with the numbers of each by name."""

    SYSTEM = Word("asked of the system")
    TOTAL = Word("asked of the system (psutil)")
    FILE_SYSTEM = Word("asked of the file system")
    ASSUMED = Word("assumed")
    COMMIT = Word("what the system promises programs, less what it has promised")
    JOB = Word("job object of this process")
    ADDRESS_SPACE = Word("limit of this process's address space")
    GROUP = Word("control group, {file}")
    GROUP_ROOM = Word("control group, {file}, less what is used")
    NVML = Word("clock and width of its memory (NVML)")
    RAM = Word("measured with {threads} threads in {size} MiB")
    RAM_BUSY = Word(
        "measured with {threads} threads in {size} MiB while other programs took {busy} of {cores} "
        "cores"
    )
    LINK = Word("measured, {size} MiB copied")
    WITH_OWN = Word("{method}, and what this program holds")
    LESS_SIMULATED = Word("{method}, less what simulated cards hold")
    DRIVE = Word("measured without the system's cache, {size} MB a read, {readers} at once")


_NUMBER = r"[\d.]+"
_PATTERNS = {
    "SYSTEM": "system",
    "TOTAL": "psutil (?:total|available)",
    "FILE_SYSTEM": "file system",
    "ASSUMED": "assumed",
    "COMMIT": "commit limit minus committed",
    "JOB": "job object of this process",
    "ADDRESS_SPACE": "address space limit of this process",
    "GROUP": r"control group (?P<file>[\w.]+)",
    "GROUP_ROOM": r"control group (?P<file>[\w.]+) minus used",
    "NVML": "NVML clock and width",
    "RAM": rf"measured, (?P<threads>{_NUMBER}) threads, (?P<size>{_NUMBER}) MiB",
    "RAM_BUSY": (
        rf"measured, (?P<threads>{_NUMBER}) threads, (?P<size>{_NUMBER}) MiB"
        rf", while other programs took (?P<busy>{_NUMBER}) of (?P<cores>{_NUMBER}) cores"
    ),
    "LINK": rf"measured, (?P<size>{_NUMBER}) MiB copied",
    "DRIVE": rf"uncached reads of (?P<size>{_NUMBER}) MB, (?P<readers>{_NUMBER}) at once",
}


_ENDINGS = {
    " and what this program holds": "WITH_OWN",
    ", less the simulated cards": "LESS_SIMULATED",
}
"""What may stand behind any method."""


def method_name(method: str) -> str:
    """For example ``measured with 2 threads in 256 MiB``."""
    for ending, word in _ENDINGS.items():
        if method.endswith(ending):
            named: str = getattr(MethodWords, word)
            return named.format(method=method_name(method.removesuffix(ending)))
    for word, pattern in _compiled():
        match = pattern.fullmatch(method)
        if match is not None:
            text: str = getattr(MethodWords, word)
            return text.format(**match.groupdict())
    return method


def not_measured(reason: str) -> str:
    """Of a figure that could not be measured, with the technical reason."""
    return tr("could not be measured: {reason}").format(reason=reason)


@functools.cache
def _compiled() -> list[tuple[str, re.Pattern[str]]]:
    return [(word, re.compile(pattern)) for word, pattern in _PATTERNS.items()]
