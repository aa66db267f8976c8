"""Rates of reading that other packages measured on this PC, kept as data in one small file."""

import dataclasses
import json
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from runtime.hardware.kept_file import kept_text, replace_file
from runtime.protocol.machine import Measured

RAM = "ram beyond caches"
_MAX_METHOD_CHARACTERS = 200


def drive_key(mount_point: str) -> str:
    """Return the name under which a drive's rate is kept."""
    return f"drive:{mount_point}"


def sized_drive_key(mount_point: str, total_bytes: int) -> str:
    """Return how the names begin under which a drive's rates with reads of some size are kept."""
    # Another drive in the same place is hardly of the same size.
    return f"{drive_key(mount_point)}:{total_bytes >> 30}GiB:"


def link_key(device: str) -> str:
    """Return the name under which the rate of the link to an accelerator is kept."""
    return f"link:{device}"


def link_back_key(device: str) -> str:
    """Return the name under which the rate from an accelerator to RAM is kept."""
    return f"link-back:{device}"


@dataclasses.dataclass(frozen=True, slots=True)
class Failure:
    """Why something could not be measured, and how long ago that was."""

    reason: str
    age_s: float


@dataclasses.dataclass(frozen=True, slots=True)
class RateCache:
    """Bytes per second by name, in a JSON file whose place is given.

    A file that is missing or damaged counts as empty: what it held can be measured again.
    """

    path: Path
    now_s: Callable[[], float] = time.time
    """Seconds of the calendar: ages outlive a process."""

    def rate(self, key: str) -> Measured | None:
        """Return a kept rate with its age, None if it was never measured."""
        entry = self._read().get(key)
        if entry is None:
            return None
        age_s = max(0.0, self.now_s() - entry.at_s)
        return Measured(value=entry.value, method=entry.method, age_s=age_s)

    def failure(self, key: str) -> Failure | None:
        """Return why a rate could not be measured, None if it was or nobody tried."""
        entry = self._failures().get(key)
        if not isinstance(entry, dict) or not isinstance(entry.get("reason"), str):
            return None
        return Failure(entry["reason"], max(0.0, self.now_s() - _instant(entry)))

    def fail(self, key: str, reason: str) -> None:
        """Keep why a rate could not be measured, until it is or all is forgotten."""
        entry = {"reason": reason[:_MAX_METHOD_CHARACTERS], "at": self.now_s()}
        document = self._document()
        failures = {**self._failures(), key: entry}
        self._write(self._read(), document.get("machine"), failures)

    def fastest(self, beginning: str) -> float:
        """Return the highest kept rate whose name begins so, 0 if there is none."""
        rates = self._read().items()
        return max((rate.value for key, rate in rates if key.startswith(beginning)), default=0.0)

    def forget_other_machine(self, machine: str) -> bool:
        """Drop everything if it was measured on other hardware; return whether that was so.

        ``machine`` names what the rates depend on. Rates that were kept without such a name are
        taken for this machine's.
        """
        document = self._document()
        before = document.get("machine")
        if before == machine:
            return False
        is_other = isinstance(before, str)
        if is_other:
            self._write({}, machine, {})
        else:
            self._write(self._read(), machine, self._failures())
        return is_other

    def forget(self) -> None:
        """Drop all rates and failures; the machine they were measured on stays named."""
        self._write({}, self._document().get("machine"), {})

    def record(self, key: str, bytes_per_s: float, method: str) -> Measured:
        """Keep a measurement and return what counts from now on, as new as it is.

        Of a drive the lower value counts, since a short measurement meets its fast cache; of RAM
        the higher, since whatever else runs only slows it; of links the newest. A file that cannot
        be written is logged: the rate counts while the process lives.
        """
        if not math.isfinite(bytes_per_s) or bytes_per_s <= 0:
            raise ValueError(f"a rate of {bytes_per_s} bytes/s")
        rates = self._read()
        newest = _Kept(float(bytes_per_s), method[:_MAX_METHOD_CHARACTERS], self.now_s())
        before = rates.get(key)
        if before is not None:
            if key.startswith("drive:"):
                newest = min(before, newest, key=_value)
            elif key == RAM:
                # Of equal ones the newest, which may know better how it was measured.
                newest = max(newest, before, key=_value)
                # It was looked at again just now and still counts.
                newest = dataclasses.replace(newest, at_s=self.now_s())
        if newest != before:
            rates[key] = newest
            failures = {name: why for name, why in self._failures().items() if name != key}
            self._write(rates, self._document().get("machine"), failures)
        age_s = max(0.0, self.now_s() - newest.at_s)
        return Measured(value=newest.value, method=newest.method, age_s=age_s)

    def _document(self) -> dict[str, object]:
        try:
            document = json.loads(kept_text(self.path))
        except (ValueError, RecursionError):
            return {}
        return document if isinstance(document, dict) else {}

    def _read(self) -> dict[str, "_Kept"]:
        entries = self._document().get("rates")
        if not isinstance(entries, dict):
            return {}
        return {
            str(key): kept
            for key, entry in entries.items()
            if (kept := _kept_of(entry)) is not None
        }

    def _failures(self) -> dict[str, object]:
        failures = self._document().get("failures")
        return failures if isinstance(failures, dict) else {}

    def _write(
        self, rates: dict[str, "_Kept"], machine: object, failures: dict[str, object]
    ) -> None:
        document: dict[str, object] = {
            "rates": {
                key: {"bytes_per_s": rate.value, "method": rate.method, "at": rate.at_s}
                for key, rate in sorted(rates.items())
            }
        }
        if isinstance(machine, str):
            document["machine"] = machine
        if failures:
            document["failures"] = failures
        content = json.dumps(document, indent=1)
        replace_file(self.path, content, "measured rates")


@dataclasses.dataclass(frozen=True, slots=True)
class _Kept:
    """One rate of the file."""

    value: float
    method: str
    at_s: float


def _value(rate: _Kept) -> float:
    return rate.value


def _kept_of(entry: object) -> _Kept | None:
    """Return an entry of the file if it holds a rate."""
    if not isinstance(entry, dict):
        return None
    value, method = entry.get("bytes_per_s"), entry.get("method")
    if isinstance(value, bool) or not isinstance(value, int | float) or not isinstance(method, str):
        return None
    if not math.isfinite(value) or value <= 0:
        return None
    return _Kept(float(value), method[:_MAX_METHOD_CHARACTERS], _instant(entry))


def _instant(entry: dict[str, Any]) -> float:
    """Return when an entry was made, 0 if that is not told."""
    at_s = entry.get("at", 0.0)
    if isinstance(at_s, bool) or not isinstance(at_s, int | float) or not math.isfinite(at_s):
        return 0.0
    return float(at_s)
