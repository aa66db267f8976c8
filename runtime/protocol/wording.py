"""Values to words: bytes, counts and texts put into the places of a sentence."""

import re
from collections.abc import Mapping
from typing import Final

KIB: Final = 1024
MIB: Final = 1024**2
GIB: Final = 1024**3
MAX_VALUE_CHARACTERS: Final = 300
MISSING: Final = "?"
"""Stands where a sentence has a place and the report no value."""

_PLACE = re.compile(r"\{([a-z_]+)\}")
_STOPS = frozenset(".,”")
_AS_NUMBERS = frozenset({"offset_bytes"})
"""Positions in a file, which have to be exact."""


def places(template: str) -> frozenset[str]:
    """Return the names of the places of a template."""
    return frozenset(_PLACE.findall(template))


def fill(template: str, parameters: Mapping[str, str | int | float]) -> str:
    """Return a template with values in its places; a value that is missing shows as ``?``.

    Names that end in ``bytes``, or hold ``bytes_per``, are amounts of memory. Where two different
    amounts would read the same, all are shown to the byte.
    """
    amounts = [
        parameters[name] for name in places(template) if name in parameters and _is_amount(name)
    ]
    is_exact = len({format_bytes(amount) for amount in amounts}) < len(set(amounts))

    def value(match: re.Match[str]) -> str:
        name = match.group(1)
        if name not in parameters:
            return MISSING
        text = _value_text(name, parameters[name], is_exact=is_exact)
        return text.rstrip(".") if template[match.end() : match.end() + 1] in _STOPS else text

    return _PLACE.sub(value, template)


def format_bytes(num_bytes: str | float) -> str:
    """Return an amount of memory in GiB or MiB, below these in KiB or bytes."""
    if isinstance(num_bytes, str):
        return num_bytes
    for unit, name in ((GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")):
        amount = num_bytes / unit
        if abs(amount) >= 99.95:
            return f"{amount:,.0f} {name}"
        if abs(amount) >= 1:
            return f"{amount:.1f} {name}"
    return f"{num_bytes:,.0f} bytes"


def _is_amount(name: str) -> bool:
    return name not in _AS_NUMBERS and (name.endswith("bytes") or "bytes_per" in name)


def _value_text(name: str, value: str | float, *, is_exact: bool) -> str:
    if isinstance(value, str):
        text = " ".join(value.split())
        if len(text) > MAX_VALUE_CHARACTERS:
            text = text[: MAX_VALUE_CHARACTERS - 1] + "…"
        return text or MISSING
    if _is_amount(name):
        return f"{value:,.0f} bytes" if is_exact else format_bytes(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:,.1f}"
