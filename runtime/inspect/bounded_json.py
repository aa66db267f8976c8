"""JSON from strangers: bounded in size and number of values before anything is built from it."""

import json
from collections import Counter

MAX_SEPARATORS = 1 << 20
"""Most commas in one document, which bounds the objects that parsing it makes."""


class JsonRefusedError(Exception):
    """The text is not JSON as we accept it; the message says why."""


def parse_object(data: bytes) -> dict[str, object]:
    """Return the one object that ``data`` spells.

    Refuses other values at the top, duplicate keys, text that is not UTF-8, endless nesting, and
    more than ``MAX_SEPARATORS`` values. ``Infinity`` and ``NaN`` stand in published configs and are
    let through; whoever wants a number has to refuse them.
    """
    if data.count(b",") > MAX_SEPARATORS:
        raise JsonRefusedError(f"more than {MAX_SEPARATORS} values")
    try:
        value = json.loads(data.decode("utf-8"), object_pairs_hook=_unique)
        if b"\\ud" in data.lower():
            _refuse_half_characters(value)
    except RecursionError as cause:
        raise JsonRefusedError("nested too deeply") from cause
    except ValueError as cause:
        raise JsonRefusedError(str(cause)) from cause
    if not isinstance(value, dict):
        raise JsonRefusedError(f"a {type(value).__name__} where an object was expected")
    return value


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
