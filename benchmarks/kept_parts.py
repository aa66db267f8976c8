"""A benchmark that is measured part by part: what is measured stays, a stopped run goes on."""

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from drive_kept import KeptCells

Row = dict[str, Any]
Part = tuple[str, Callable[[], Iterable[Row]]]


@dataclasses.dataclass(frozen=True)
class Measured:
    """Rows of all parts so far, what could not be measured here, and whether that is everything."""

    rows: list[Row]
    refused: list[str]
    is_whole: bool


def measure_parts(
    kept: KeptCells, parts: Iterator[Part], most: int, line_of: Callable[[Row], str]
) -> Measured:
    """Measure the parts that are not kept yet, ``most`` of them, and print all rows.

    A part that raises ``OSError`` is told and left out.
    """
    rows: list[Row] = []
    refused: list[str] = []
    num_left = most
    for name, measure in parts:
        found = kept.rows(name)
        if found is None:
            if num_left <= 0:
                return Measured(rows, refused, is_whole=False)
            num_left -= 1
            try:
                found = list(measure())
            except OSError as error:
                refused.append(f"{name}: {error}")
                print(f"left out: {refused[-1]}", flush=True)
                continue
            kept.keep(name, found)
        for line in found:
            print(line_of(line), flush=True)
        rows += found
    return Measured(rows, refused, is_whole=True)
