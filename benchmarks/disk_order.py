"""`make bench-disk_order`: what it would gain to lay experts that are missed together side by side.

An order of each layer's experts is learned from the misses in the first half of a recorded routing,
and the misses in the second half are counted that could then be read in one go with a neighbour.
What one go is worth is measured beside it: a batch of two experts below build/, read as one piece
or as two at the same time. Writes `benchmarks/results/disk_order.json`.
"""

from __future__ import annotations

import random
import statistics
import sys
import tempfile
import time
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt
from reader import write_random
from reporting import load_averages, row, write_result

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from runtime.memory.ledger import Ledger  # noqa: E402
from runtime.memory.slot_arena import SlotArena  # noqa: E402
from runtime.protocol.plan import MemoryPart  # noqa: E402
from runtime.simulate.trace import Trace  # noqa: E402
from runtime.simulate.trace_files import HEADER, read_trace  # noqa: E402
from runtime.store.files import WeightFiles  # noqa: E402

TRACES = ROOT / "resources" / "traces"
SHARES = (0.25, 0.5)
SIZES = {"2.65 MB": 2_654_208, "0.5 MB": 524_288, "110 KB": 110_592, "57 KB": 57_344}
"""An expert of Qwen3-30B in four bits, of OLMoE in two, of the demo, and half of that."""
FILE_BYTES = 1 << 30
NUM_ROUNDS, BATCHES = 7, 150
Batches = list[list[int]]


def misses_of(trace: Trace, layer: int, slots: int) -> Iterator[list[int]]:
    """Yield the experts that each token misses in a layer, the least recently used leaving."""
    held: OrderedDict[int, None] = OrderedDict()
    for experts in trace.rows(layer):
        yield [expert for expert in experts if expert not in held]
        for expert in experts:
            held[expert] = None
            held.move_to_end(expert)
        while len(held) > slots:
            held.popitem(last=False)


def learned_order(batches: Batches, num_experts: int) -> list[int]:
    """Return the place of each expert: a path through those that are missed together most.

    Pairs are taken by how often they were missed together, as long as paths come of them.
    """
    together: npt.NDArray[np.int64] = np.zeros((num_experts, num_experts), dtype=np.int64)
    for batch in batches:
        together[np.ix_(batch, batch)] += 1
    first, second = np.triu_indices(num_experts, 1)
    neighbours: list[list[int]] = [[] for _ in range(num_experts)]
    path_of = list(range(num_experts))
    for pair in np.argsort(-together[first, second], kind="stable"):
        a, b = int(first[pair]), int(second[pair])
        if len(neighbours[a]) == 2 or len(neighbours[b]) == 2 or path_of[a] == path_of[b]:
            continue
        neighbours[a].append(b)
        neighbours[b].append(a)
        left, kept = path_of[b], path_of[a]
        path_of = [kept if path == left else path for path in path_of]
    places = [0] * num_experts
    before, now = -1, next(i for i, some in enumerate(neighbours) if len(some) < 2)
    for place in range(num_experts):
        places[now] = place
        following = [expert for expert in neighbours[now] if expert != before]
        before, now = now, following[0] if following else -1
    return places


def num_joined(batches: Batches, places: Sequence[int]) -> int:
    """Return how many misses lie directly behind another of their batch."""
    return sum(
        b - a == 1 for batch in batches for a, b in pairwise(sorted(places[e] for e in batch))
    )


def order_rows(folder: Path) -> list[dict[str, object]]:
    """The part of misses with a neighbour: as published, and in the order that was learned."""
    trace = read_trace(folder)
    half, rows = trace.num_tokens // 2, []
    for share in SHARES:
        slots = max(trace.top_k, int(share * trace.num_experts))
        total = published = learned = 0
        for layer in range(trace.num_layers):
            batches = list(misses_of(trace, layer, slots))
            places = learned_order(batches[:half], trace.num_experts)
            total += sum(map(len, batches[half:]))
            published += num_joined(batches[half:], range(trace.num_experts))
            learned += num_joined(batches[half:], places)
        what = f"{trace.name}, {share:.0%} in RAM: part of misses read with a neighbour"
        rows.append(
            row(what=what, ours=round(learned / total, 3), peer=round(published / total, 3))
        )
    return rows


def read_rows() -> list[dict[str, object]]:
    """Milliseconds of a batch of two experts: as one piece, and as two at the same time."""
    rows = []
    with tempfile.TemporaryDirectory(dir=ROOT / "build") as folder, ThreadPoolExecutor(2) as pool:
        path = Path(folder) / "weights"
        write_random(path, FILE_BYTES)
        for name, size in SIZES.items():
            files = WeightFiles([str(path)])
            arena = SlotArena(Ledger(1 << 34), MemoryPart.EXPERTS, size)
            views = [arena.view(arena.add()) for _ in range(2)]
            for view in views:
                view[:] = bytes(size)

            def joined(
                offsets: Sequence[int],
                files: WeightFiles = files,
                views: list[memoryview] = views,
            ) -> None:
                files.read(str(path), offsets[0], views)

            def apart(
                offsets: Sequence[int],
                files: WeightFiles = files,
                views: list[memoryview] = views,
            ) -> None:
                asked = [
                    pool.submit(files.read, str(path), offset, [view])
                    for offset, view in zip(offsets, views, strict=True)
                ]
                for each in asked:
                    each.result()

            source = random.Random(1)
            times: dict[str, list[float]] = {"joined": [], "apart": []}
            for _ in range(NUM_ROUNDS):
                for way, read in (("joined", joined), ("apart", apart)):
                    places = [
                        [source.randrange(FILE_BYTES // size - 1) * size for _ in range(2)]
                        for _ in range(BATCHES)
                    ]
                    started_s = time.perf_counter()
                    for offsets in places:
                        read(offsets)
                    times[way].append((time.perf_counter() - started_s) / BATCHES * 1e3)
            assert files.is_direct, "the file system refuses direct reads; nothing is measured"
            files.close()
            arena.close()
            one, two = (statistics.median(times[way]) for way in ("joined", "apart"))
            what = f"two experts of {name}: ms as one piece, beside two reads at the same time"
            rows.append(row(what=what, ours=round(one, 3), peer=round(two, 3)))
    return rows


def main() -> None:
    """Count, measure and write the result."""
    (ROOT / "build").mkdir(exist_ok=True)
    rows = read_rows()
    for folder in sorted(each.parent for each in TRACES.glob(f"*/{HEADER}")):
        rows += order_rows(folder)
    for each in rows:
        print(each["what"], each["ours"], each["peer"], flush=True)
    print(write_result("disk_order", rows, load_averages=load_averages()))


if __name__ == "__main__":
    main()
