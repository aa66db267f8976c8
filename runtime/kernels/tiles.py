"""Which part of a matrix a program on a card computes at a time: tried once for each shape."""

import dataclasses
import logging
from collections.abc import Callable, Hashable

import torch

_LOG = logging.getLogger(__name__)
_ROUNDS = 5
Run = Callable[["Tile"], object]
"""Launches a program with a tile; may be run again and again."""
Measure = Callable[[Callable[[], object]], float]
"""Returns the seconds that a card takes for what is launched."""


@dataclasses.dataclass(frozen=True, slots=True)
class Tile:
    """Rows by columns: whole row blocks of eight and whole groups of 32; and how many warps."""

    rows: int
    columns: int
    warps: int


TILES = (Tile(16, 128, 4), Tile(8, 256, 4), Tile(16, 256, 8), Tile(32, 128, 4))
"""Few, so that all are compiled in seconds. The first is taken where nothing is measured: few rows
and long stretches of columns are what products of one row want."""


class TileChoice:
    """Remembers the fastest tile of each kind of product.

    Where a card cannot be measured, or while launches are recorded, the first tile is taken; what
    is recorded later uses what was found before.

    Threads: one caller at a time.
    """

    def __init__(self, measure: Measure | None = None) -> None:
        """``measure`` None: by the events of the card that ``x`` lies on, and nothing elsewhere."""
        self._measure = measure
        self._chosen: dict[Hashable, Tile] = {}

    def of(self, kind: Hashable, device: torch.device, run: Run) -> Tile:
        """Return the tile of a kind of product on a device; ``run`` is how to try one."""
        found = self._chosen.get(kind)
        if found is not None:
            return found
        measure = self._measure or _measure_of(device)
        if measure is None:
            return TILES[0]
        chosen = self._chosen[kind] = _fastest(kind, run, measure)
        return chosen


def _fastest(kind: Hashable, run: Run, measure: Measure) -> Tile:
    """Return the tile that takes least; one that cannot be launched is passed over."""
    times: dict[Tile, float] = {}
    for tile in TILES:
        try:
            times[tile] = measure(lambda tile=tile: run(tile))  # type: ignore[misc]
        except Exception:  # noqa: BLE001 - compilers of cards fail in ways of their own
            _LOG.info("no tile %s for %s here", tile, kind, exc_info=True)
    best = min(times, key=lambda tile: times[tile], default=TILES[0])
    _LOG.info("%s: %s of %s", kind, best, {tile: f"{s * 1e6:.0f} us" for tile, s in times.items()})
    return best


def _measure_of(device: torch.device) -> Measure | None:
    """Return how to measure on a device, None where it cannot be done now."""
    if device.type != "cuda" or torch.cuda.is_current_stream_capturing():
        return None
    return _cuda_seconds


def _cuda_seconds(work: Callable[[], object]) -> float:
    """Return the seconds of a launch by the card's own clock, the first not counted."""
    work()
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
    begin.record()
    for _ in range(_ROUNDS):
        work()
    end.record()
    end.synchronize()
    return float(begin.elapsed_time(end)) / 1e3 / _ROUNDS
