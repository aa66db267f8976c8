"""`make bench-drive`: models larger than memory, beside llama.cpp, in the same control group.

Both sides have the same shape (Qwen3-30B-A3B's layers, 8 of them), the same bits (4.5), random
weights and routers, the same tokens one by one and the same number of threads; the peer is mapped.
Runs take turns, A B A B; each begins with no page of its files in the system's cache. What a side
read from the drive is what the system counted for its process.

    python benchmarks/drive.py --short            one cell, 3 pairs, a few minutes
    python benchmarks/drive.py                    all limits on this drive and at 500 MB/s, 5 pairs
    python benchmarks/drive.py --fast FOLDER      and in a folder on a fast drive

A fast drive where there is none, a compressed block device in RAM, as root: `zramctl -s 8G -a lz4
/dev/zram0; mkfs.ext4 /dev/zram0; mount /dev/zram0 FOLDER`. Root is needed for control groups and
for the read-ahead of the peer's drive, which is put back afterwards. The peer is built at its first
use.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import os
import random
import shutil
import statistics
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import peer
import psutil
from asked import AskedProcess, Start
from drive_process import EMBEDDING_SCALE
from model_shapes import QWEN3_30B
from reporting import load_averages, row, write_result

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.support.io_throttle import device_of, io_throttle  # noqa: E402
from tests.support.memory_group import MemoryGroup, memory_group  # noqa: E402

THREADS = 2
SLOW_BYTES_PER_S = 500_000_000
READ_AHEAD_KB = 128
TARGETS = {"fast": {75: 2.1, 50: 2.4, 25: 3.4}, "500 MB/s": {75: 1.15, 50: 1.1, 25: 1.05}}
"""Ratios to the peer with random routing."""
MIN_LIMIT_SHARE = 0.85
_FIRST_TOKENS = 16
"""Fed before the clock runs."""


@dataclasses.dataclass(frozen=True)
class Place:
    """A drive: a folder on it, its name, and to what it is throttled."""

    name: str
    folder: Path
    limit_per_s: int = 0


@dataclasses.dataclass(frozen=True)
class Run:
    """What one side did in one turn."""

    tokens_per_s: float
    read_mb_per_token: float
    cpu_s_per_token: float
    more: dict[str, Any]


class Ours(AskedProcess):
    """Our side in a process of its own."""

    def __init__(self, start: Start = list) -> None:
        command = [sys.executable, str(Path(__file__).with_name("drive_process.py"))]
        super().__init__("our side", start(command))


def main() -> None:
    """Measure the cells that were asked for and write the result."""
    wishes = _wishes()
    python = peer.environment("native")
    places = [Place("this drive", ROOT / "build" / "bench-drive")]
    if not wishes.short:
        places.append(Place("500 MB/s", places[0].folder, SLOW_BYTES_PER_S))
    if wishes.fast:
        places.append(Place("fast", wishes.fast / "larder-bench-drive"))
    rows: list[dict[str, object]] = []
    for place in places:
        model_bytes = _make(place.folder)
        for share in (75,) if wishes.short else (75, 50, 25):
            limit_bytes = model_bytes * share // 100
            with _cell(place.folder, limit_bytes) as group:
                rows += _measure(place, share, limit_bytes, group, python, wishes)
    name = "drive-short" if wishes.short else "drive"
    print(write_result(name, rows, load_averages=load_averages(), num_pairs=wishes.pairs))


def _wishes() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="models larger than memory, beside llama.cpp")
    parser.add_argument("--short", action="store_true", help="one cell, 3 pairs")
    parser.add_argument("--fast", type=Path, help="a folder on a fast drive")
    parser.add_argument("--pairs", type=int, default=0, help="turns of each side")
    parser.add_argument("--tokens", type=int, default=64, help="tokens of a turn")
    wishes = parser.parse_args()
    wishes.pairs = wishes.pairs or (3 if wishes.short else 5)
    return wishes


def _make(folder: Path) -> int:
    """Write both sides' models, where they are not there yet; return the bytes of the peer's."""
    folder.mkdir(parents=True, exist_ok=True)
    with Ours() as ours:
        ours.ask(make=str(folder / "ours"))
    theirs = folder / "peer.gguf"
    if not theirs.exists():
        part = theirs.with_suffix(".part")
        peer.write_model(part, QWEN3_30B, "Q4_0", EMBEDDING_SCALE)
        part.replace(theirs)
    return theirs.stat().st_size


@contextlib.contextmanager
def _cell(folder: Path, limit_bytes: int) -> Iterator[MemoryGroup]:
    """Make the control group of a cell, while the folder's drive has the usual read-ahead."""
    with contextlib.ExitStack() as stack:
        group = stack.enter_context(memory_group(limit_bytes))
        if group is None:
            sys.exit("no control group can be made here: run as root on Linux")
        stack.enter_context(_read_ahead(folder))
        yield group


@contextlib.contextmanager
def _read_ahead(folder: Path) -> Iterator[None]:
    """Set the read-ahead of a folder's drive for the time of a block."""
    path = Path(f"/sys/dev/block/{device_of(folder)}/queue/read_ahead_kb")
    before = path.read_text(encoding="ascii")
    path.write_text(str(READ_AHEAD_KB), encoding="ascii")
    try:
        yield
    finally:
        path.write_text(before, encoding="ascii")


def _measure(
    place: Place,
    share: int,
    limit_bytes: int,
    group: MemoryGroup,
    python: Path,
    wishes: argparse.Namespace,
) -> list[dict[str, object]]:
    """Return the lines of a cell."""
    source = random.Random(share)
    ids = [source.randrange(QWEN3_30B.vocabulary) for _ in range(_FIRST_TOKENS + wishes.tokens)]
    ours: list[Run] = []
    theirs: dict[int, list[Run]] = {}
    with io_throttle(group, place.folder, place.limit_per_s) as join:

        def start(command: list[str]) -> list[str]:
            return join(group.command(command))

        # The best of the peer's own settings: a mapped model may gain from one thread less.
        for _ in range(wishes.pairs):
            ours.append(_our_turn(place.folder / "ours", limit_bytes, ids, start))
            for threads in (THREADS,) if wishes.short else (THREADS, 1):
                found = theirs.setdefault(threads, [])
                found.append(_peer_turn(python, place.folder / "peer.gguf", threads, ids, start))
    best = max(theirs, key=lambda threads: _median(theirs[threads], "tokens_per_s"))
    return _rows(place, share, ours, theirs[best], best)


def _our_turn(folder: Path, limit_bytes: int, ids: list[int], start: Start) -> Run:
    _forget(folder)
    with Ours(start) as ours:
        ours.ask(load=str(folder), limit_bytes=limit_bytes, threads=THREADS)
        ours.ask(feed=ids[:_FIRST_TOKENS])
        before = _spent(ours.process_id)
        told = ours.ask(feed=ids[_FIRST_TOKENS:])
        after = _spent(ours.process_id)
        told |= ours.ask(limits=True)
    return _run(told["seconds"], len(ids) - _FIRST_TOKENS, before, after, told)


def _peer_turn(python: Path, path: Path, threads: int, ids: list[int], start: Start) -> Run:
    _forget(path)
    with peer.PeerProcess(python, start) as process:
        process.load(path, peer.Settings(is_repacked=False, has_flash=False, threads=threads))
        process.feed(ids[:_FIRST_TOKENS])
        before = _spent(process.process_id)
        seconds = process.feed(ids[_FIRST_TOKENS:])
        after = _spent(process.process_id)
    return _run(seconds, len(ids) - _FIRST_TOKENS, before, after, {})


def _spent(process_id: int) -> tuple[int, float]:
    """Return what the system counted for a process: bytes from drives, processor seconds."""
    process = psutil.Process(process_id)
    times = process.cpu_times()
    return process.io_counters().read_bytes, times.user + times.system


def _run(
    seconds: float,
    num_tokens: int,
    before: tuple[int, float],
    after: tuple[int, float],
    more: dict[str, Any],
) -> Run:
    return Run(
        num_tokens / seconds,
        (after[0] - before[0]) / num_tokens / 1e6,
        (after[1] - before[1]) / num_tokens,
        more | {"num_tokens": num_tokens},
    )


def _forget(place: Path) -> None:
    """Let the system's cache forget files."""
    for path in [place] if place.is_file() else place.iterdir():
        with path.open("rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


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


def _rows(
    place: Place, share: int, ours: list[Run], theirs: list[Run], threads: int
) -> list[dict[str, object]]:
    what = f"{place.name}, limit {share} %, random routing"
    rate, beside = _median(ours, "tokens_per_s"), _median(theirs, "tokens_per_s")
    target = TARGETS.get(place.name, {}).get(share)
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
                what=f"{what}: {field.replace('_', ' ')}",
                ours=round(_median(ours, field), 3),
                peer=round(_median(theirs, field), 3),
            )
            for field in ("read_mb_per_token", "cpu_s_per_token")
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
    print(f"{what}: {rate:.2f} tokens/s, peer {beside:.2f}, {limit_share:.0%} of our limit")
    return rows


def _median(runs: list[Run], field: str) -> float:
    return float(statistics.median(getattr(run, field) for run in runs))


if __name__ == "__main__":
    if shutil.which("sh") is None or not sys.platform.startswith("linux"):
        sys.exit("control groups are Linux's; this benchmark runs nowhere else")
    main()
