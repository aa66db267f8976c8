"""A config with typed getters that collect what is wrong instead of stopping at the first."""

import math
from collections.abc import Mapping
from typing import TypeGuard

from runtime.errors import LarderError
from runtime.inspect.files import shown
from runtime.protocol.errors import ErrorCode

MAX_COUNT = 1 << 31
MAX_LAYERS = 1024


def spelled(value: object) -> str:
    """Return a short text of a JSON value for a message."""
    text = shown(repr(value) if isinstance(value, str) else str(value))
    return text if len(text) <= 80 else text[:79] + "…"


def _is_number(value: object) -> TypeGuard[float]:
    """Whether a value is a finite number above zero and not absurdly large."""
    if type(value) is int:
        return 0 < value < MAX_COUNT
    return type(value) is float and math.isfinite(value) and value > 0


class ConfigReader:
    """One JSON object, read field by field.

    A getter that meets a wrong type or range adds a problem and returns its lowest allowed value,
    so that all fields are looked at; what is read is meaningless unless ``problems`` is empty.
    Null counts as absent.
    """

    def __init__(self, values: Mapping[str, object], file: str) -> None:
        self.values = values
        self.file = file
        self.problems: list[LarderError] = []

    def __getitem__(self, name: str) -> object:
        return self.values.get(name)

    def with_values(self, values: Mapping[str, object]) -> "ConfigReader":
        """Return this config with fields laid over its own."""
        laid = ConfigReader({**self.values, **values}, self.file)
        laid.problems.extend(self.problems)
        return laid

    def integer(
        self,
        *names: str,
        minimum: int = 1,
        maximum: int = MAX_COUNT,
        default: int | None = None,
    ) -> int:
        """Return the first of ``names`` that is there; required unless there is a ``default``."""
        name, value = self._find(names)
        if value is None and default is not None:
            return default
        if type(value) is int and minimum <= value <= maximum:
            return value
        self.refuse(name, value, f"a whole number from {minimum} to {maximum}")
        return minimum

    def number(self, name: str, default: float) -> float:
        """Return a finite number above zero."""
        value = self[name]
        if value is None:
            return default
        if _is_number(value):
            return float(value)
        self.refuse(name, value, "a number above 0")
        return default

    def boolean(self, name: str, *, default: bool) -> bool:
        """Return a truth value."""
        value = self[name]
        if value is None:
            return default
        if type(value) is bool:
            return value
        self.refuse(name, value, "true or false")
        return default

    def text(self, name: str, default: str = "") -> str:
        """Return a text."""
        value = self[name]
        if value is None:
            return default
        if isinstance(value, str):
            return value
        self.refuse(name, value, "a text")
        return default

    def integers(self, name: str, maximum: int = MAX_COUNT) -> tuple[int, ...]:
        """Return a list of numbers from 0 on; a single number counts as a list of one."""
        value = self[name]
        if value is None:
            return ()
        items = value if isinstance(value, list) else [value]
        if all(type(item) is int and 0 <= item <= maximum for item in items):
            return tuple(items)
        self.refuse(name, value, f"a list of whole numbers from 0 to {maximum}")
        return ()

    def numbers(self, name: str, count: int) -> tuple[float, ...]:
        """Return a list of exactly ``count`` finite numbers above zero."""
        value = self[name]
        if isinstance(value, list) and len(value) == count and all(map(_is_number, value)):
            return tuple(map(float, value))
        self.refuse(name, value, f"a list of {count} numbers above 0")
        return (1.0,) * count

    def table(self, name: str) -> Mapping[str, object]:
        """Return an object, empty if absent."""
        value = self[name]
        if value is None:
            return {}
        if isinstance(value, dict):
            return value
        self.refuse(name, value, "an object")
        return {}

    def refuse(self, field: str, found: object, expected: str) -> None:
        """Add the problem that ``field`` is not as ``expected``."""
        problem = LarderError(
            ErrorCode.CONFIG_INVALID,
            file=shown(self.file),
            field=field,
            found="nothing" if found is None else spelled(found),
            expected=expected,
        )
        # A field may be read more than once.
        if all(each.parameters != problem.parameters for each in self.problems):
            self.problems.append(problem)

    def _find(self, names: tuple[str, ...]) -> tuple[str, object]:
        for name in names:
            if self[name] is not None:
                return name, self[name]
        return names[0], None
