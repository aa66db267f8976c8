"""Rates of reading that other packages measured on this PC, kept as data in one small file."""

import dataclasses
import json
import math
from pathlib import Path

from runtime.hardware.kept_file import kept_text, replace_file
from runtime.protocol.machine import Measured

RAM = "ram"
_MAX_METHOD_CHARACTERS = 200


def drive_key(mount_point: str) -> str:
    """Return the name under which a drive's rate is kept."""
    return f"drive:{mount_point}"


def link_key(device: str) -> str:
    """Return the name under which the rate of the link to an accelerator is kept."""
    return f"link:{device}"


@dataclasses.dataclass(frozen=True, slots=True)
class RateCache:
    """Bytes per second by name, in a JSON file whose place is given.

    A file that is missing or damaged counts as empty: what it held can be measured again.
    """

    path: Path

    def rate(self, key: str) -> Measured | None:
        """Return a kept rate, None if it was never measured."""
        return self._read().get(key)

    def record(self, key: str, bytes_per_s: float, method: str) -> Measured:
        """Keep a measurement and return what counts from now on.

        Of a drive the lower value counts, since a short measurement meets its fast cache; of RAM
        the higher, since whatever else runs only slows it; of links the newest. A file that cannot
        be written is logged: the rate counts for now.
        """
        if not math.isfinite(bytes_per_s) or bytes_per_s <= 0:
            raise ValueError(f"a rate of {bytes_per_s} bytes/s")
        rates = self._read()
        newest = Measured(value=float(bytes_per_s), method=method[:_MAX_METHOD_CHARACTERS])
        before = rates.get(key)
        if before is not None:
            if key.startswith("drive:"):
                newest = min(before, newest, key=_value)
            elif key == RAM:
                newest = max(before, newest, key=_value)
        if newest != before:
            rates[key] = newest
            self._write(rates)
        return newest

    def _read(self) -> dict[str, Measured]:
        try:
            document = json.loads(kept_text(self.path))
        except (ValueError, RecursionError):
            return {}
        entries = document.get("rates") if isinstance(document, dict) else None
        if not isinstance(entries, dict):
            return {}
        return {
            str(key): measured
            for key, entry in entries.items()
            if (measured := _measured_of(entry)) is not None
        }

    def _write(self, rates: dict[str, Measured]) -> None:
        document = {
            "rates": {
                key: {"bytes_per_s": rate.value, "method": rate.method}
                for key, rate in sorted(rates.items())
            }
        }
        content = json.dumps(document, indent=1)
        replace_file(self.path, content, "measured rates")


def _value(rate: Measured) -> float:
    return rate.value


def _measured_of(entry: object) -> Measured | None:
    """Return an entry of the file if it holds a rate."""
    if not isinstance(entry, dict):
        return None
    value, method = entry.get("bytes_per_s"), entry.get("method")
    if isinstance(value, bool) or not isinstance(value, int | float) or not isinstance(method, str):
        return None
    if not math.isfinite(value) or value <= 0:
        return None
    return Measured(value=float(value), method=method[:_MAX_METHOD_CHARACTERS])
