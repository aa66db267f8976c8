"""JSON from strangers: bounded in size and number of values before anything is built from it."""

import json
from collections import Counter
from pathlib import Path

from runtime.inspect.files import read_small, unusable
from runtime.inspect.lookalike import START_BYTES, mistaken_for

MAX_SEPARATORS = 1 << 20
"""Most commas in one document, which bounds the objects that parsing it makes."""
MAX_OPENINGS = 1 << 20
"""Most objects and lists: nested in each other they need no comma."""
_BYTE_ORDER_MARKS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")


class JsonRefusedError(Exception):
    """The text is not JSON as we accept it; the message says why."""


def parse_object(data: bytes) -> dict[str, object]:
    """Return the one object that ``data`` spells.

    Refuses other values at the top, duplicate keys, text that is not UTF-8, endless nesting, more
    than ``MAX_SEPARATORS`` values and more than ``MAX_OPENINGS`` objects and lists. ``Infinity``
    and ``NaN`` stand in published configs and are let through; whoever wants a number has to refuse
    them.
    """
    if data.count(b",") > MAX_SEPARATORS:
        raise JsonRefusedError(f"more than {MAX_SEPARATORS} values")
    if data.count(b"{") + data.count(b"[") > MAX_OPENINGS:
        raise JsonRefusedError(f"more than {MAX_OPENINGS} objects and lists")
    if data.startswith(_BYTE_ORDER_MARKS):
        raise JsonRefusedError("a byte-order mark at the beginning; JSON is saved as plain UTF-8")
    try:
        value = json.loads(data.decode("utf-8"), object_pairs_hook=_unique)
        if b"\\ud" in data.lower():
            _refuse_half_characters(value)
    except RecursionError as cause:
        raise JsonRefusedError("nested too deeply") from cause
    except json.JSONDecodeError as cause:
        raise JsonRefusedError(f"{cause.msg} in line {cause.lineno}") from cause
    except ValueError as cause:
        raise JsonRefusedError(str(cause)) from cause
    if not isinstance(value, dict):
        raise JsonRefusedError(f"a {type(value).__name__} where an object was expected")
    return value


def read_object(path: Path, max_bytes: int) -> dict[str, object]:
    """Return the object in a file of at most ``max_bytes``.

    Fails like ``read_small``, and with ``FILE_INVALID`` where ``parse_object`` refuses the text.
    """
    data = read_small(path, max_bytes)
    try:
        return parse_object(data)
    except JsonRefusedError as cause:
        reason = mistaken_for(data[:START_BYTES]) or f"it is not valid JSON ({cause})"
        raise unusable(path, reason) from cause


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    made = dict(pairs)
    if len(made) != len(pairs):
        counts = Counter(key for key, _ in pairs)
        twice = counts.most_common(1)[0][0]
        raise JsonRefusedError(f"the key {twice[:80]!r} appears twice")
    return made


def _refuse_half_characters(value: object) -> None:
    """Raise ``ValueError`` for text with half of a surrogate pair, which no message can carry."""
    match value:
        case str():
            value.encode("utf-8")
        case dict():
            for key, item in value.items():
                _refuse_half_characters(key)
                _refuse_half_characters(item)
        case list():
            for item in value:
                _refuse_half_characters(item)
