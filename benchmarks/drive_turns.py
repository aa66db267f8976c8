"""One turn of one side in `make bench-drive`, in the control group of its cell."""

from __future__ import annotations

import dataclasses
import statistics
import sys
from pathlib import Path
from typing import Any, NamedTuple

import peer
import psutil
from asked import AskedProcess, Start
from drive_models import CALIBRATED, OURS, RANDOM, THEIRS
from drive_places import Place, forget
from priority import busy_s

THREADS = 2
FIRST_TOKENS = {RANDOM: 16, CALIBRATED: 96}
"""Fed before the clock runs; where tokens use the same experts again, the caches fill slowly."""


@dataclasses.dataclass(frozen=True)
class Cell:
    """One drive, model and limit."""

    place: Place
    folder: Path
    routing: str
    share: int
    limit_bytes: int

    def __str__(self) -> str:
        """Return what stands in the table."""
        return f"{self.place.name}, limit {self.share} %, {self.routing} routing"

    def parted(self, ids: list[int]) -> tuple[list[int], list[int]]:
        """Return the tokens that are fed first, and those that are timed."""
        number = FIRST_TOKENS[self.routing]
        return ids[:number], ids[number:]


@dataclasses.dataclass(frozen=True)
class Run:
    """What one side did in one turn."""

    tokens_per_s: float
    read_mb_per_token: float
    cpu_s_per_token: float
    others: float
    """Processors that other programs took meanwhile."""
    more: dict[str, Any]


class Ours(AskedProcess):
    """Our side in a process of its own."""

    def __init__(self, start: Start = list) -> None:
        command = [sys.executable, str(Path(__file__).with_name("drive_process.py"))]
        super().__init__("our side", start(command))


def our_turn(cell: Cell, ids: list[int], start: Start) -> Run:
    """Feed our side, the first tokens without a clock."""
    forget(cell.folder / OURS)
    first, rest = cell.parted(ids)
    with Ours(start) as ours:
        told = ours.ask(
            load=str(cell.folder / OURS),
            limit_bytes=cell.limit_bytes,
            threads=THREADS,
            hints=cell.routing == RANDOM,
        )
        ours.ask(feed=first)
        before = _spent(ours.process_id)
        told |= ours.ask(feed=rest)
        after = _spent(ours.process_id)
        told |= ours.ask(limits=True)
    return _run(told["seconds"], len(rest), before, after, told)


def peer_turn(python: Path, cell: Cell, threads: int, ids: list[int], start: Start) -> Run:
    """Feed the peer, the first tokens without a clock."""
    forget(cell.folder / THEIRS)
    first, rest = cell.parted(ids)
    with peer.PeerProcess(python, start) as process:
        settings = peer.Settings(is_repacked=False, has_flash=False, threads=threads)
        process.load(cell.folder / THEIRS, settings)
        process.feed(first)
        before = _spent(process.process_id)
        seconds = process.feed(rest, is_going_on=True)
        after = _spent(process.process_id)
    return _run(seconds, len(rest), before, after, {})


class _Spent(NamedTuple):
    """What the system counted until now."""

    read_bytes: int
    """By a process from drives."""
    cpu_s: float
    """By the same process."""
    busy_s: float
    """By all of them."""


def _spent(process_id: int) -> _Spent:
    process = psutil.Process(process_id)
    times = process.cpu_times()
    return _Spent(process.io_counters().read_bytes, times.user + times.system, busy_s())


def _run(
    seconds: float, num_tokens: int, before: _Spent, after: _Spent, more: dict[str, Any]
) -> Run:
    cpu_s = after.cpu_s - before.cpu_s
    return Run(
        num_tokens / seconds,
        (after.read_bytes - before.read_bytes) / num_tokens / 1e6,
        cpu_s / num_tokens,
        max(0.0, after.busy_s - before.busy_s - cpu_s) / seconds,
        more | {"num_tokens": num_tokens},
    )


def median(runs: list[Run], field: str) -> float:
    """Return the median of a figure."""
    return float(statistics.median(getattr(run, field) for run in runs))
