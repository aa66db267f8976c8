"""Speed of our kernels beside llama.cpp's and beside the plain reading of memory, in one run.

Run by `make bench-kernels`; writes benchmarks/results/kernels.json. Both sides run a random model
of one shape with the same bits for each weight and take the likeliest token each time; the peer has
the best of its settings. `--quick` takes fewer pairs, `--no-peer` leaves it out, `--only Q4_0`
(or a shape) prints the rows of one comparison and writes nothing. A stopped run goes on, `--fresh`
begins anew, `--most 1` measures one more part of it.
"""

import argparse
import dataclasses
import functools
import gc
import itertools
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import peer
import reporting
import torch
from drive_kept import KeptCells, circumstances
from kept_parts import Part, measure_parts
from model_shapes import QWEN3_30B, SHAPES, RandomModel, huge_room, random_record
from read_limit import ReadLimit, plain_read

from runtime.kernels.dispatch import choose_kernels, usable_cores
from runtime.kernels.matrix import Slot
from runtime.kernels.native import NativeKernels
from runtime.protocol.values import WeightFormat
from runtime.spec.tensors import expert_layout

FORMATS = {
    "Q4_0": WeightFormat.Q4_G32,
    "Q4_K": WeightFormat.Q4A_G32,
    "Q8_0": WeightFormat.Q8_G32,
    "MXFP4": WeightFormat.MXFP4,
}
"""The peer's types, and ours of the same bits."""
KEPT = Path(__file__).resolve().parent.parent / "build" / "bench-kernels"
DECODED_TOKENS = 24
SMALL_SET_BYTES = 10 << 20
Row = dict[str, Any]
Bytes = npt.NDArray[np.uint8]


@dataclasses.dataclass(frozen=True)
class Side:
    """Which of our instruction sets meets which build of the peer."""

    instruction_set: str
    flavour: str


@dataclasses.dataclass(frozen=True)
class Bench:
    """What all measurements share."""

    kernels: NativeKernels
    num_pairs: int

    def use(self, instruction_set: str, threads: int) -> None:
        """Take an instruction set and a number of threads from now on."""
        assert self.kernels.module.select_instruction_set(instruction_set)
        self.kernels.module.set_num_threads(threads)


def seconds(work: Callable[[], object]) -> float:
    """Return the time of one call."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def gemv_rows(bench: Bench, weight_format: WeightFormat, threads: int, name: str) -> list[Row]:
    """Measure one token's eight experts, others each time, and a set that stays in the caches."""
    shape = QWEN3_30B
    layout = expert_layout(weight_format, shape.hidden, shape.width)
    size, top_k = layout.record_bytes, shape.top_k
    used = top_k * sum(part.num_bytes for part in layout.parts.values())
    count = (1 << 30) // size // top_k * top_k
    room = huge_room(count * size).reshape(count, size)
    room[:] = random_record(layout)
    slots = [Slot.from_buffer(row) for row in room]
    x, out = torch.randn(1, shape.hidden), torch.zeros(1, shape.hidden)

    def call(first: int, num: int) -> float:
        pairs = [(i, slots[first + i]) for i in range(num)]
        ids = torch.arange(num, dtype=torch.int32).view(1, num)
        weights = torch.full((1, num), 1 / num)
        return seconds(lambda: bench.kernels.experts(x, layout, pairs, ids, weights, out))

    # Every part is used in turn, by the loops and by the kernel: none is in a cache when read.
    starts = itertools.cycle(range(0, count, top_k))
    parts = (room[first : first + top_k].reshape(-1) for first in starts)
    shares, rates, limits = [], [], []
    for _ in range(40 * bench.num_pairs):
        limits.append(plain_read(parts, threads))
        rates.append(used / call(next(starts), top_k))
        shares.append(rates[-1] / limits[-1])
    few = max(1, SMALL_SET_BYTES // size)
    small = [few * used / top_k / call(0, few) for _ in range(100 * bench.num_pairs)]
    limit = statistics.median(limits)
    share, what = statistics.median(shares), f"{weight_format}, {threads} thread(s), {name}"
    least = 0.90 if threads == 1 else 0.88
    ratio = statistics.median(small) / limit
    return [
        reporting.row(
            what=f"experts, 8 in a call, GB/s, {what}",
            ours=round(statistics.median(rates) / 1e9, 2),
            limit_share=round(share, 3),
            target=f"{least:.0%} of plain reading, {limit / 1e9:.1f} GB/s",
            is_reached=least <= share <= 1.0,
        ),
        reporting.row(
            what=f"experts, 10 MB set, GB/s, {what}",
            ours=round(statistics.median(small) / 1e9, 2),
            ratio=round(ratio, 3),
            target="2 x plain reading",
            is_reached=ratio >= 2.0,
        ),
    ]


def best_settings(
    process: peer.PeerProcess, path: Path, threads: int, measure: Callable[[], float]
) -> peer.Settings:
    """Return the settings with which the peer is fastest: each tried twice, the best counts."""
    found: dict[peer.Settings, float] = {}
    for is_repacked, has_flash in itertools.product((True, False), (True, False)):
        settings = peer.Settings(is_repacked, has_flash, threads)
        process.load(path, settings)
        found[settings] = min(measure() for _ in range(2))
    return min(found, key=lambda each: found[each])


def paired_row(
    bench: Bench,
    what: str,
    ours: Callable[[], object],
    theirs: Callable[[], float],
    least: float,
    between: Callable[[], object] = lambda: None,
) -> Row:
    """Run both sides in turn; ``theirs`` returns its own seconds. Rates are calls per second."""
    ours(), theirs()
    pairs = []
    for _ in range(bench.num_pairs):
        pairs.append((seconds(ours), theirs()))
        between()
    ratio = statistics.median(theirs_s / ours_s for ours_s, theirs_s in pairs)
    return reporting.row(
        what=what,
        ours=1 / statistics.median(ours_s for ours_s, _ in pairs),
        peer=1 / statistics.median(theirs_s for _, theirs_s in pairs),
        ratio=round(ratio, 3),
        target=f"{least} x",
        is_reached=ratio >= least,
    )


def model_rows(
    bench: Bench, side: Side, threads: int, kind: str, shape_name: str, targets: dict[str, float]
) -> Iterator[Row]:
    """Measure decoding, and prompts where there is a target, of one shape in one format."""
    shape = SHAPES[shape_name]
    ids = [random.randrange(shape.vocabulary) for _ in range(512)]
    model = RandomModel(bench.kernels, FORMATS[kind], shape)
    bench.use(side.instruction_set, threads)
    with (
        tempfile.TemporaryDirectory(prefix="larder-bench-") as folder,
        peer.PeerProcess(peer.environment(side.flavour)) as process,
    ):
        path = Path(folder) / "random.gguf"
        peer.write_model(path, shape, kind)
        works: dict[str, tuple[Callable[[], int], Callable[[], float], int]] = {
            "decode": (
                lambda: model.decode(DECODED_TOKENS, 5),
                lambda: process.decode(DECODED_TOKENS, 5),
                DECODED_TOKENS,
            ),
            "prompt of 32": (
                lambda: model.prompt(ids[:32]),
                lambda: process.prompt(ids[:32]),
                32,
            ),
            "prompt of 512": (lambda: model.prompt(ids), lambda: process.prompt(ids), 512),
        }
        for work, least in targets.items():
            ours, theirs, tokens = works[work]
            settings = best_settings(process, path, threads, theirs)
            process.load(path, settings)
            sets = f"{side.instruction_set} / peer {side.flavour}"
            formats = f"{FORMATS[kind]} / {kind}"
            what = f"{shape_name}, {work}, tokens/s, {formats}, {threads} thread(s), {sets}"
            limit = ReadLimit(threads)
            row = paired_row(bench, what, ours, theirs, least, limit.measure)
            row["ours"] = round(row["ours"] * tokens, 1)
            row["peer"] = round(row["peer"] * tokens, 1)
            row["peer_settings"] = str(settings)
            if work == "decode":
                used = shape.token_bytes(FORMATS[kind])
                row["limit_share"] = limit.share(row["ours"] * used)
            yield row


def kernel_parts(bench: Bench, sides: list[Side]) -> Iterator[Part]:
    """Yield the experts of one token, of each format with each number of threads."""
    formats = (*FORMATS.values(), WeightFormat.Q4K_G32)
    for side, weight_format, threads in itertools.product(sides, formats, _threads()):

        def measure(
            side: Side = side, weight_format: WeightFormat = weight_format, threads: int = threads
        ) -> list[Row]:
            bench.use(side.instruction_set, threads)
            gc.collect()
            return gemv_rows(bench, weight_format, threads, side.instruction_set)

        yield f"experts, {side.instruction_set}, {weight_format}, {threads}", measure


def peer_parts(bench: Bench, sides: list[Side], only: str) -> Iterator[Part]:
    """Yield models beside the peer; ``only`` names the one type or shape that is wanted."""
    prompts = {"prompt of 512": 2.0, "prompt of 32": 1.5}
    few = {"decode": 1.0, "prompt of 32": 1.0}
    wanted = [
        (kind, "Qwen3-30B-A3B", targets, sides)
        for kind, targets in (
            ("Q4_0", {"decode": 1.3, **prompts}),
            ("Q4_K", {"decode": 1.3, **prompts}),
            ("Q8_0", {"decode": 1.15}),
        )
        if only in {"", kind}
    ]
    wanted += [
        (kind, name, few, sides[:1])
        for name, kind in (
            ("gpt-oss-20b", "MXFP4"),
            ("DeepSeek-V2-Lite", "Q4_0"),
            ("Mixtral-8x7B", "Q4_0"),
        )
        if only in {"", name}
    ]
    for kind, name, targets, where in wanted:
        for side, threads in itertools.product(where, _threads()):
            part = f"{name}, {kind}, {side.instruction_set}, {threads}"
            yield part, functools.partial(model_rows, bench, side, threads, kind, name, targets)


def _threads() -> list[int]:
    return sorted({1, usable_cores()})


def line_of(row: Row) -> str:
    """Return a row as it is printed."""
    beside = "" if row["peer"] is None else f"  peer {row['peer']:8.1f}"
    ratio = "" if row["ratio"] is None else f"  ratio {row['ratio']:5.2f}"
    share = "" if row["limit_share"] is None else f"  {row['limit_share']:.0%}"
    verdict = "reached" if row["is_reached"] else "MISSED"
    judged = "" if row["is_reached"] is None else f"  ({row['target']}: {verdict})"
    return f"{row['what']:<88} {row['ours']:8.1f}{beside}{ratio}{share}{judged}"


def main() -> None:
    """Measure, print and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="three pairs instead of seven")
    parser.add_argument("--no-peer", action="store_true", help="our own rows alone")
    parser.add_argument("--only", default="", help="one type or shape beside the peer, and no more")
    parser.add_argument("--fresh", action="store_true", help="do not go on with a stopped run")
    parser.add_argument("--most", type=int, default=99, help="stop after so many more parts")
    options = parser.parse_args()
    kernels = choose_kernels()
    if not isinstance(kernels, NativeKernels):
        sys.exit("the native extension is not built: there is nothing to compare")
    load_before = round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else -1.0
    bench = Bench(kernels, 3 if options.quick else 7)
    sides = [
        Side(name, flavour)
        for name, flavour in (("avx2", "avx2"), ("avx512", "native"))
        if kernels.module.select_instruction_set(name)
    ] or [Side(kernels.module.instruction_set(), "native")]
    if not options.no_peer:
        for side in sides:
            peer.environment(side.flavour)
    kept_path = KEPT / ("no-peer.json" if options.no_peer else "kernels.json")
    if options.fresh:
        kept_path.unlink(missing_ok=True)
    kept = KeptCells(kept_path, {"pairs": bench.num_pairs} | circumstances())
    kernels_alone = () if options.only else kernel_parts(bench, sides)
    beside = () if options.no_peer else peer_parts(bench, sides, options.only)
    parts = itertools.chain(kernels_alone, beside)
    measured = measure_parts(kept, parts, options.most, line_of)
    if options.only or not measured.is_whole:
        return
    path = reporting.write_result(
        "kernels",
        measured.rows,
        load_before=load_before,
        num_pairs=bench.num_pairs,
        peer=peer.PACKAGE,
        sides=[dataclasses.asdict(side) for side in sides],
    )
    kept.forget()
    print(f"written: {path.name}")


if __name__ == "__main__":
    main()
