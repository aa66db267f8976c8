"""`make bench-reader`: how fast files are read past the cache, and what that costs the processor.

Reads of the size of experts go to random places of a file of 1 GiB below build/, with 1 to 8
readers, into slots as the expert cache has them; then with checksums of every read, and by `fio`
with the same size and depth where it is installed. Ways take turns; rates are medians.
"""

from __future__ import annotations

import dataclasses
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

from reporting import load_averages, row, write_result

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from runtime.memory.ledger import Ledger  # noqa: E402
from runtime.memory.slot_arena import SlotArena  # noqa: E402
from runtime.protocol.plan import MemoryPart  # noqa: E402
from runtime.residency.depth import DEPTHS, USUAL_DEPTH  # noqa: E402
from runtime.store.checksum import crc32  # noqa: E402
from runtime.store.files import WeightFiles  # noqa: E402

LARGE = "2.65 MB"
"""The size of a large model's expert, for which there is a target."""
SIZES = {LARGE: 2_654_208, "110 KB": 110_592}
FILE_BYTES = 1 << 30
LAP_BYTES = 400_000_000
NUM_ROUNDS = 3
SLOTS_PER_READER = 8
MAX_CPU_S_PER_GB = 0.05
MIN_SHARE_OF_FIO = 0.95


@dataclasses.dataclass(frozen=True)
class Lap:
    """What some reads came to."""

    mb_per_s: float
    cpu_s_per_gb: float


def write_random(path: Path, num_bytes: int) -> None:
    """Write whole pieces of 16 MiB of random bytes, up to a size, and wait until they are kept."""
    with path.open("wb") as file:
        for _ in range(num_bytes >> 24):
            file.write(os.urandom(1 << 24))
        os.fsync(file.fileno())


def main() -> None:
    """Measure and write the result."""
    rows = []
    (ROOT / "build").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=ROOT / "build") as folder:
        path = Path(folder) / "weights"
        write_random(path, FILE_BYTES)
        for name, size in SIZES.items():
            ways: dict[str, Callable[[int], Lap]] = {
                **{f"depth {depth}": _reads(path, size, depth) for depth in DEPTHS},
                "with checksums": _reads(path, size, USUAL_DEPTH, is_checked=True),
            }
            if shutil.which("fio"):
                ways["fio"] = _fio(path, size)
            laps: dict[str, list[Lap]] = {way: [] for way in ways}
            for seed in range(NUM_ROUNDS):
                for way, measure in ways.items():
                    laps[way].append(measure(seed))
            rows += _rows(name, laps)
    print(write_result("reader", rows, load_averages=load_averages()))


def _rows(name: str, laps: dict[str, list[Lap]]) -> list[dict[str, object]]:
    """Return the lines of one size."""
    rates = {way: statistics.median(lap.mb_per_s for lap in found) for way, found in laps.items()}
    costs = {
        way: statistics.median(lap.cpu_s_per_gb for lap in found) for way, found in laps.items()
    }
    usual, peer = f"depth {USUAL_DEPTH}", rates.get("fio")
    rows: list[dict[str, object]] = []
    for way in laps:
        if way == "fio":
            continue
        beside = peer if way == usual else None
        rows.append(
            row(
                what=f"{name}, {way}: MB/s",
                ours=round(rates[way]),
                peer=None if beside is None else round(beside),
                target=f"at least {MIN_SHARE_OF_FIO:.0%} of fio" if beside else "",
                is_reached=rates[way] >= MIN_SHARE_OF_FIO * beside if beside else None,
            )
        )
        is_judged = way == usual and name == LARGE
        rows.append(
            row(
                what=f"{name}, {way}: processor seconds per GB",
                ours=round(costs[way], 3),
                target=f"at most {MAX_CPU_S_PER_GB}" if is_judged else "",
                is_reached=costs[way] <= MAX_CPU_S_PER_GB if is_judged else None,
            )
        )
        print(f"{name}, {way}: {rates[way]:.0f} MB/s, {costs[way]:.3f} s/GB", flush=True)
    more = (costs["with checksums"] - costs[usual]) * rates[usual] / 1000
    rows.append(row(what=f"{name}: checksums of all, part of a core while reading", ours=more))
    return rows


def _reads(path: Path, size: int, depth: int, *, is_checked: bool = False) -> Callable[[int], Lap]:
    def measure(seed: int) -> Lap:
        number, source = LAP_BYTES // size, random.Random(seed)
        offsets = iter([source.randrange(FILE_BYTES // size) * size for _ in range(number)])
        files = WeightFiles([str(path)])
        arena = SlotArena(Ledger(1 << 34), MemoryPart.EXPERTS, size)
        slots = [arena.add() for _ in range(depth * SLOTS_PER_READER)]
        for slot in slots:
            arena.view(slot)[:] = bytes(size)

        def work(mine: list[int]) -> None:
            for count, offset in enumerate(offsets):
                view = arena.view(mine[count % len(mine)])
                files.read(str(path), offset, [view])
                if is_checked:
                    crc32(view)

        threads = [
            threading.Thread(target=work, args=(slots[first::depth],)) for first in range(depth)
        ]
        started_s, cpu_s = time.perf_counter(), time.process_time()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        seconds, cpu_s = time.perf_counter() - started_s, time.process_time() - cpu_s
        assert files.is_direct, "the file system refuses direct reads; nothing is measured"
        files.close()
        arena.close()
        return Lap(number * size / seconds / 1e6, cpu_s / (number * size) * 1e9)

    return measure


def _fio(path: Path, size: int) -> Callable[[int], Lap]:
    def measure(seed: int) -> Lap:
        settings = (
            "--name=reads", f"--filename={path}", "--rw=randread", "--direct=1", f"--bs={size}",
            f"--io_size={LAP_BYTES}", f"--randseed={seed}", "--ioengine=libaio",
            f"--iodepth={USUAL_DEPTH}", "--output-format=json",
        )  # fmt: skip
        told = subprocess.run(["fio", *settings], capture_output=True, check=True, text=True)
        job = json.loads(told.stdout)["jobs"][0]
        cpu_s = (job["usr_cpu"] + job["sys_cpu"]) / 100 * job["job_runtime"] / 1000
        return Lap(job["read"]["bw_bytes"] / 1e6, cpu_s / job["read"]["io_bytes"] * 1e9)

    return measure


if __name__ == "__main__":
    main()
