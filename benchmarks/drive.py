"""`make bench-drive`: models larger than memory, beside llama.cpp, in the same control group.

Both sides have the same shape (Qwen3-30B-A3B's layers, 8 of them), the same bits (4.5), the same
tokens one by one and the same number of threads; the peer is mapped. One model has random weights
and routers, the other is calibrated: both sides have its very weights, and it routes as recorded
(`drive_models.py`). Runs take turns, A B A B; each begins with no page of its files in the system's
cache. What a side read from the drive is what the system counted for its process. Prompts of 512
and 2048 tokens are measured under the limit of 50 %.

    python benchmarks/drive.py --quick            the limit of 50 %, 2 pairs, under ten minutes
    python benchmarks/drive.py --table            all limits, 5 pairs, fewer tokens, no prompts
    python benchmarks/drive.py                    all limits, 5 pairs, about two hours
    python benchmarks/drive.py --only calibrated --limit 25 --place fast    a part, not kept

A run that was stopped goes on with the next pair when it is started again in the same way;
`--fresh` begins anew, `--minutes 3` stops by itself in time, and `--so-far` writes the cells that
have at least three pairs. The benchmark and what it starts come first in the scheduler; how many
processors other programs took all the same is told for each side.

The drives are a compressed block device in RAM, made for the time of the run, and this one
throttled to 500 MB/s; `--place "this drive"` is this one as it is, and `--fast FOLDER` a folder on
a fast drive instead of RAM. Root is needed for all of this, for control groups and for the
read-ahead of the peer's drive, which is put back afterwards. What this machine refuses is told and
left out. The peer is built at its first use. `--read-ahead 8192` shows the peer with the 8 MiB that
some machines have.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import random
import shutil
import signal
import statistics
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import peer
import psutil
from drive_kept import KeptCells, circumstances
from drive_models import (
    CALIBRATED,
    RANDOM,
    calibrated_model,
    make,
    missed_in_replay,
)
from drive_places import FAST, READ_AHEAD_KB, SLOW, THIS, Place, place_of, read_ahead
from drive_prompts import MIN_LIMIT_SHARE, PROMPTS_TOKENS, prompt_rows
from drive_turns import FIRST_TOKENS, THREADS, Cell, Run, median, our_turn, peer_turn
from model_shapes import QWEN3_30B
from priority import first_in_scheduler
from reporting import load_averages, row, write_result

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.support.io_throttle import io_throttle  # noqa: E402
from tests.support.memory_group import MemoryGroup, memory_group  # noqa: E402

LIMITS = (75, 50, 25)
"""Percent of the peer's file."""
PROMPTS_SHARE = 50
"""The limit under which prompts are measured."""
TABLE_TOKENS = 24
"""Tokens of a turn in the short form of the whole table."""
MIN_PAIRS = 3
"""Fewer are not told where a run has not ended."""
OUR_TURN = 0
"""Stands among turns that are kept for the threads of the peer."""
WORDS = {
    "read_mb_per_token": "MB read a token",
    "cpu_s_per_token": "processor seconds a token",
    "others": "processors that other programs took",
}
TARGETS = {
    (FAST, RANDOM): {75: 2.1, 50: 2.4, 25: 3.4},
    (FAST, CALIBRATED): {75: 1.4, 50: 1.8, 25: 2.3},
    (SLOW, RANDOM): {75: 1.15, 50: 1.1, 25: 1.05},
    (SLOW, CALIBRATED): {75: 1.2, 50: 1.25, 25: 1.25},
}
"""Ratios to the peer."""


class Clock:
    """Ends the program before a pair that would probably end too late."""

    def __init__(self, limit_s: float) -> None:
        self._end_s = time.monotonic() + limit_s
        self._longest_s = self._begun_s = 0.0

    def begin(self) -> None:
        """Begin a pair, or end the program."""
        self._begun_s = time.monotonic()
        if self._begun_s + self._longest_s > self._end_s:
            sys.exit("stopped in time; started again in the same way it goes on")

    def end(self) -> None:
        """End a pair."""
        self._longest_s = max(self._longest_s, time.monotonic() - self._begun_s)


def main() -> None:
    """Measure the cells that were asked for and write the result."""
    wishes = _wishes()
    name = "drive-quick" if wishes.quick else "drive"
    about_the_run = ("fresh", "minutes", "so_far", "clock")
    settings = {
        field: str(value) for field, value in vars(wishes).items() if field not in about_the_run
    }
    path = ROOT / "build" / "bench-drive" / f"{name}.json"
    kept = KeptCells(path, settings | circumstances())
    if wishes.fresh:
        kept.forget()
        kept = KeptCells(path, settings | circumstances())
    python = peer.environment("native")
    rows: list[dict[str, object]] = []
    refused = []
    with first_in_scheduler() as is_first:
        for place_name in wishes.place:
            for routing in wishes.only:
                try:
                    rows += _cells(place_name, routing, python, wishes, kept)
                except OSError as error:
                    refused.append(f"{place_name}, {routing} routing: {error}")
                    print(f"left out: {refused[-1]}", flush=True)
    if not wishes.so_far:
        kept.forget()
    if wishes.is_part:
        print(json.dumps(rows, indent=1))
        return
    told = {"num_pairs": wishes.pairs, "num_tokens": wishes.tokens, "refused": refused}
    told |= {"read_ahead_kb": wishes.read_ahead, "is_first_in_scheduler": is_first}
    print(write_result(name, rows, load_averages=load_averages(), **told))


def _wishes() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="models larger than memory, beside llama.cpp")
    add = parser.add_argument
    add("--quick", action="store_true", help="50 %% alone, 2 pairs, fewer tokens")
    add("--table", action="store_true", help="all limits, fewer tokens, no prompts")
    add("--fresh", action="store_true", help="do not go on with a run that was stopped")
    add("--minutes", type=float, default=1e9, help="begin no pair that would end later")
    add("--so-far", action="store_true", help="measure nothing, write what there is")
    add("--fast", type=Path, help="a folder on a fast drive, instead of one in RAM")
    add("--pairs", type=int, default=0, help="turns of each side")
    add("--tokens", type=int, default=0, help="tokens of a turn")
    add("--only", action="append", choices=(RANDOM, CALIBRATED), help="how the model routes")
    add("--limit", action="append", type=int, choices=LIMITS, help="percent of the model")
    add("--place", action="append", choices=(FAST, SLOW, THIS), help="which drive")
    add("--read-ahead", type=int, default=READ_AHEAD_KB, help="KiB, of the peer's drive")
    add("--prompts", action="store_true", help="prompts too, of which --quick has none")
    wishes = parser.parse_args()
    wishes.clock = Clock(wishes.minutes * 60)
    wishes.is_part = bool(wishes.only or wishes.limit or wishes.place)
    wishes.is_short = wishes.quick or wishes.table
    wishes.prompts = wishes.prompts or not wishes.is_short
    wishes.pairs = wishes.pairs or (2 if wishes.quick else 5)
    wishes.tokens = wishes.tokens or (32 if wishes.quick else TABLE_TOKENS if wishes.table else 64)
    wishes.only = wishes.only or [RANDOM, CALIBRATED]
    wishes.limit = wishes.limit or ([50] if wishes.quick else list(LIMITS))
    wishes.place = wishes.place or [FAST, SLOW]
    return wishes


def _cells(
    place_name: str, routing: str, python: Path, wishes: argparse.Namespace, kept: KeptCells
) -> list[dict[str, object]]:
    """Return the lines of all limits on a drive with one model; kept ones are not measured."""
    names = {share: f"{place_name}, {routing}, {share}" for share in wishes.limit}
    missing = [share for share, name in names.items() if kept.rows(name) is None]
    if wishes.so_far:
        place = Place(place_name, Path())
        return [line for share in names for line in _so_far(place, routing, share, wishes, kept)]
    if missing:
        with place_of(place_name, wishes.fast) as place:
            for share, rows in _measured(place, routing, missing, python, wishes, kept):
                kept.keep(names[share], rows)
    return [line for name in names.values() for line in kept.rows(name) or ()]


def _so_far(
    place: Place, routing: str, share: int, wishes: argparse.Namespace, kept: KeptCells
) -> list[dict[str, object]]:
    """Return the lines of a cell from the pairs that there are, none of too few."""
    cell = Cell(place, place.folder, routing, share, 0)
    turns = [kept.rows(_name_of(cell, pair)) for pair in range(wishes.pairs)]
    sides = Sides()
    for pair in turns:
        sides.take(pair or [])
    return sides.rows(cell) if len(sides.ours) >= MIN_PAIRS else []


def _name_of(cell: Cell, pair: int) -> str:
    """Return under which name a pair is kept."""
    return f"{cell}: pair {pair}"


class Sides:
    """The turns of both sides in one cell."""

    def __init__(self) -> None:
        self.ours: list[Run] = []
        self.theirs: dict[int, list[Run]] = {}

    def take(self, turns: list[dict[str, object]]) -> None:
        """Add the turns of a pair, as they are kept."""
        for turn in turns:
            fields: dict[str, Any] = dict(turn)
            threads = fields.pop("threads")
            runs = self.ours if threads == OUR_TURN else self.theirs.setdefault(threads, [])
            runs.append(Run(**fields))

    def rows(self, cell: Cell) -> list[dict[str, object]]:
        """Return the lines of the cell."""
        best = _thread_numbers(self.theirs, is_short=True)[0]
        return _rows(cell, self.ours, self.theirs[best], best)


def _measured(
    place: Place,
    routing: str,
    shares: list[int],
    python: Path,
    wishes: argparse.Namespace,
    kept: KeptCells,
) -> Iterator[tuple[int, list[dict[str, object]]]]:
    """Yield each limit with its lines."""
    folder = place.folder / routing
    model_bytes = make(folder, routing)
    for share in shares:
        limit_bytes = model_bytes * share // 100
        with memory_group(limit_bytes) as group:
            if group is None:
                sys.exit("no control group can be made here: run as root on Linux")
            with read_ahead(folder, wishes.read_ahead):
                cell = Cell(place, folder, routing, share, limit_bytes)
                yield share, _measure(cell, group, python, wishes, kept)


def _measure(
    cell: Cell, group: MemoryGroup, python: Path, wishes: argparse.Namespace, kept: KeptCells
) -> list[dict[str, object]]:
    """Return the lines of a cell."""
    number = FIRST_TOKENS[cell.routing] + wishes.tokens
    ids = tokens_of(cell, number)
    sides = Sides()
    with io_throttle(group, cell.folder, cell.place.limit_per_s) as join:

        def start(command: list[str]) -> list[str]:
            return join(group.command(command))

        for pair in range(wishes.pairs):
            name = _name_of(cell, pair)
            turns = kept.rows(name)
            if turns is None:
                wishes.clock.begin()
                mine = our_turn(cell, ids, start)
                turns = [{"threads": OUR_TURN, **dataclasses.asdict(mine)}]
                for threads in _thread_numbers(sides.theirs, is_short=wishes.is_short):
                    beside = peer_turn(python, cell, threads, ids, start)
                    turns.append({"threads": threads, **dataclasses.asdict(beside)})
                kept.keep(name, turns)
                wishes.clock.end()
            sides.take(turns)
        prompts: list[dict[str, object]] = []
        if wishes.prompts and cell.share == PROMPTS_SHARE:
            tokens = tokens_of(cell, max(PROMPTS_TOKENS))
            prompts = prompt_rows(cell, python, tokens, wishes.pairs, start)
    return sides.rows(cell) + prompts


def _thread_numbers(theirs: Mapping[int, list[Run]], *, is_short: bool) -> tuple[int, ...]:
    """Return with how many threads the peer runs next: a mapped model may gain from one less.

    In the short forms the first pair decides.
    """
    if not theirs or not is_short:
        return THREADS, 1
    most = max(map(len, theirs.values()))
    whole = [threads for threads, runs in theirs.items() if len(runs) == most]
    return (max(whole, key=lambda threads: median(theirs[threads], "tokens_per_s")),)


def _limit_s(run: Run) -> float:
    """Return the least time of a token: memory, drive and processor each by itself."""
    more, tokens = run.more, run.more["num_tokens"]
    parts = [run.cpu_s_per_token / (psutil.cpu_count(logical=False) or 1)]
    if more["plain_read"]:
        parts.append(more["touched_bytes"] / tokens / (MIN_LIMIT_SHARE * more["plain_read"]))
        traffic = more["touched_bytes"] + more["read_bytes"]
        parts.append(traffic / tokens / more["plain_read"])
    if more["drive"]:
        parts.append(more["missed_bytes"] / tokens / more["drive"])
    return max(parts)


def tokens_of(cell: Cell, number: int) -> list[int]:
    """Return the tokens that both sides are fed."""
    if cell.routing == CALIBRATED:
        return calibrated_model().sequence[:number]
    source = random.Random(cell.share)
    return [source.randrange(QWEN3_30B.vocabulary) for _ in range(number)]


def _rows(cell: Cell, ours: list[Run], theirs: list[Run], threads: int) -> list[dict[str, object]]:
    what = str(cell)
    rate, beside = median(ours, "tokens_per_s"), median(theirs, "tokens_per_s")
    target = TARGETS.get((cell.place.name, cell.routing), {}).get(cell.share)
    limit_share = statistics.median(_limit_s(run) * run.tokens_per_s for run in ours)
    rows = [
        row(
            what=f"{what}: tokens/s, the peer mapped with {threads} threads",
            ours=round(rate, 2),
            peer=round(beside, 2),
            limit_share=round(limit_share, 3),
            target="" if target is None else f"{target}x, {MIN_LIMIT_SHARE:.0%} of the limit",
            is_reached=None
            if target is None
            else rate >= target * beside and limit_share >= MIN_LIMIT_SHARE,
        ),
        *(
            row(
                what=f"{what}: {WORDS[field]}",
                ours=round(median(ours, field), 3),
                peer=round(median(theirs, field), 3),
            )
            for field in WORDS
        ),
        row(
            what=f"{what}: pairs of turns",
            ours=len(ours),
        ),
        row(
            what=f"{what}: share of hits",
            ours=round(statistics.median(run.more["hits"] for run in ours), 3),
        ),
        row(
            what=f"{what}: share of the time waited for the drive",
            ours=round(statistics.median(r.more["wait_s"] / r.more["seconds"] for r in ours), 3),
        ),
    ]
    if cell.routing == CALIBRATED:
        rows.append(_beside_replay(what, ours))
    print(
        f"{what}: {rate:.2f} tokens/s, peer {beside:.2f}, {limit_share:.0%} of our limit",
        flush=True,
    )
    return rows


def _beside_replay(what: str, ours: list[Run]) -> dict[str, object]:
    """Return the line that compares missed bytes with a replay of the same tokens and slots."""
    more = ours[0].more
    number = missed_in_replay(more["slots"], FIRST_TOKENS[CALIBRATED], more["num_tokens"])
    replayed = number * more["record_bytes"]
    missed = statistics.median(run.more["missed_bytes"] for run in ours)
    return row(
        what=f"{what}: MB missed a token, the peer is a replay",
        ours=round(missed / more["num_tokens"] / 1e6, 2),
        peer=round(replayed / more["num_tokens"] / 1e6, 2),
        target="at most the replay's",
        is_reached=missed <= replayed,
    )


if __name__ == "__main__":
    if shutil.which("sh") is None or not sys.platform.startswith("linux"):
        sys.exit("control groups are Linux's; this benchmark runs nowhere else")
    # Ended from outside, it still puts back what it changed of the system.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    main()
