"""Speed on GGUF files beside llama.cpp's on the same file, and where answers part.

Run by `make bench-gguf`; writes benchmarks/results/gguf.json. The file is a random model of
Qwen3-30B-A3B's layer shape in one type, or in Q4_K and Q6_K as most people have it, read by both
sides where it lies: ours by the program's own loading, slots and model code, the peer with the best
of its settings. 200 tokens are decoded greedily on both sides; where they part first, the logits of
both are held against those of the file's very numbers with activations as they are. Then both have
half of the file's size of memory, in the same control group, on the drives of `make bench-drive`
(`gguf_drive.py`; root is needed).
`--quick` takes three pairs, `--only Q4_K` one type, and then nothing is written; `--drive` measures
under the limit alone and writes gguf-drive.json. A stopped run goes on, `--fresh` begins anew,
`--most 1` measures one more part of it.
"""

import argparse
import contextlib
import dataclasses
import functools
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import gguf_drive
import numpy as np
import numpy.typing as npt
import peer
import reporting
import torch
from drive_kept import KeptCells, circumstances
from drive_places import FAST, SLOW
from kept_parts import Part, measure_parts
from kernels import Bench, Side, best_settings, line_of, paired_row
from model_shapes import QWEN3_30B
from read_limit import ReadLimit

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.calibrated.feeding import feed, loaded  # noqa: E402
from runtime.generate.loading import LoadedParts  # noqa: E402
from runtime.inspect.gguf import roles  # noqa: E402
from runtime.kernels.dispatch import choose_kernels, usable_cores  # noqa: E402
from runtime.kernels.native import NativeKernels  # noqa: E402
from runtime.kernels.reference import ReferenceKernels  # noqa: E402
from runtime.protocol.values import WeightFormat  # noqa: E402
from runtime.telemetry.recorder import Counters  # noqa: E402
from tests.support.hand_made_plans import exact_plan  # noqa: E402

KEPT = ROOT / "build" / "bench-gguf"
TYPES = ("Q4_K", peer.MIXED, "MXFP4")
TARGETS = {"decode": 1.15, "prompt of 512": 1.3}
DECODED_TOKENS = 24
PROMPT_TOKENS = 512
GREEDY_TOKENS = 200
FIRST_TOKEN = 5
CONTEXT_TOKENS = 1024
EMBEDDING_SCALE = 50.0
"""Each token's stream stays its own for the most part: rounding seldom chooses other experts."""
COMPARED_TOKENS = 24
"""Behind which logits are compared where all tokens are the same."""
MOST_OF_PEERS_ERROR = 1.5
Row = dict[str, Any]
Logits = npt.NDArray[np.float64]


class Ours:
    """Our side: a file that is loaded as the program loads it, with every expert in RAM."""

    def __init__(self, parts: LoadedParts) -> None:
        self._parts = parts

    @property
    def expert_format(self) -> WeightFormat:
        """What the file's matrices have become."""
        return self._parts.plan.expert_format

    @property
    def token_bytes(self) -> int:
        """What one token reads of weights: all but the embedding, and the experts it uses."""
        parts = self._parts
        dense = parts.store.dense_tensors.values()
        num_bytes = sum(each.num_bytes for each in dense if "embed_tokens" not in each.name)
        for layer in parts.spec.moe_layers:
            matrices = parts.experts.layout_of(layer, 0).parts.values()
            num_bytes += parts.spec.top_k * sum(each.num_bytes for each in matrices)
        return num_bytes

    def prompt(self, ids: list[int]) -> int:
        """Put a prompt through, from nothing; return the likeliest token."""
        self._parts.kv.truncate(0)
        return int(feed(self._parts, ids, is_prompt=True).argmax())

    def greedy(self, count: int, first: int) -> list[int]:
        """Return so many tokens, the likeliest each time, from one token on."""
        self._parts.kv.truncate(0)
        found = [first]
        for _ in range(count):
            found.append(int(feed(self._parts, found[-1:]).argmax()))
        return found[1:]

    def logits(self, ids: list[int]) -> Logits:
        """Return what stands behind given tokens, which are fed one by one."""
        self._parts.kv.truncate(0)
        return feed(self._parts, ids).double().numpy().copy()


def written(kind: str) -> Path:
    """Return a random file of a type, which stands until the result is written."""
    path = KEPT / f"{kind}.gguf"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part")
        vocabulary = gguf_drive.add_vocabulary(QWEN3_30B)
        peer.write_model(part, QWEN3_30B, kind, EMBEDDING_SCALE, vocabulary)
        part.replace(path)
    return path


@contextlib.contextmanager
def both(side: Side, kind: str) -> Iterator[tuple[Ours, peer.PeerProcess, Path]]:
    """Yield our side with a file loaded, the peer, and the file."""
    path = written(kind)
    with (
        peer.PeerProcess(peer.environment(side.flavour)) as process,
        loaded(exact_plan(path, context_tokens=CONTEXT_TOKENS), Counters()) as parts,
    ):
        yield Ours(parts), process, path


def speed_rows(bench: Bench, side: Side, kind: str, threads: int) -> Iterator[Row]:
    """Measure one type with some threads."""
    random = np.random.default_rng(0)
    ids = random.integers(0, QWEN3_30B.vocabulary, PROMPT_TOKENS).tolist()
    with both(side, kind) as (ours, process, path):
        bench.use(side.instruction_set, threads)
        yield from _speed(
            bench, ours, process, path, threads, ids, f"{ours.expert_format} from {kind}"
        )


def said_rows(bench: Bench, side: Side, kind: str) -> Iterator[Row]:
    """Compare what is said."""
    with both(side, kind) as (ours, process, path):
        bench.use(side.instruction_set, usable_cores())
        yield from _parting(ours, process, path, kind)


def _speed(
    bench: Bench,
    ours: Ours,
    process: peer.PeerProcess,
    path: Path,
    threads: int,
    ids: list[int],
    formats: str,
) -> Iterator[Row]:
    works = {
        "decode": (
            lambda: ours.greedy(DECODED_TOKENS, FIRST_TOKEN),
            lambda: process.decode(DECODED_TOKENS, FIRST_TOKEN),
            DECODED_TOKENS,
        ),
        "prompt of 512": (lambda: ours.prompt(ids), lambda: process.prompt(ids), len(ids)),
    }
    for work, least in TARGETS.items():
        mine, theirs, tokens = works[work]
        settings = best_settings(process, path, threads, theirs)
        process.load(path, settings)
        limit = ReadLimit(threads)
        what = f"{work}, tokens/s, {formats}, {threads} thread(s)"
        row = paired_row(bench, what, mine, theirs, least, limit.measure)
        row["ours"] = round(row["ours"] * tokens, 1)
        row["peer"] = round(row["peer"] * tokens, 1)
        row["peer_settings"] = str(settings)
        if work == "decode":
            row["limit_share"] = limit.share(row["ours"] * ours.token_bytes)
        yield row


def _parting(ours: Ours, process: peer.PeerProcess, path: Path, kind: str) -> Iterator[Row]:
    """Tell how many greedy tokens are the same, and how far both are from the file's numbers."""
    process.load(path, peer.Settings(is_repacked=False, has_flash=False, threads=usable_cores()))
    mine = ours.greedy(GREEDY_TOKENS, FIRST_TOKEN)
    theirs = process.greedy(GREEDY_TOKENS, FIRST_TOKEN)
    pairs = zip(mine, theirs, strict=True)
    same = next((i for i, (a, b) in enumerate(pairs) if a != b), GREEDY_TOKENS)
    compared = same if same < GREEDY_TOKENS else COMPARED_TOKENS
    told = [FIRST_TOKEN, *mine[:compared]]
    mine_logits, their_logits = ours.logits(told), np.array(process.logits(told))
    exact = exact_logits(path, told)
    errors = [_error(logits, exact) for logits in (mine_logits, their_logits)]
    is_near = errors[0] <= errors[1] * MOST_OF_PEERS_ERROR
    yield reporting.row(
        what=f"{kind}: greedy tokens that are the same", ours=same, peer=GREEDY_TOKENS,
        target="the first difference is rounding", is_reached=is_near,
    )  # fmt: skip
    yield reporting.row(
        what=f"{kind}: logits there, off the file's numbers, thousandths of their deviation",
        ours=round(errors[0] * 1000, 2), peer=round(errors[1] * 1000, 2),
        target=f"at most {MOST_OF_PEERS_ERROR} x the peer's", is_reached=is_near,
    )  # fmt: skip


def exact_logits(path: Path, ids: list[int]) -> Logits:
    """Return the logits of the numbers that stand in a file, with activations as they are."""
    with (
        mock.patch.object(roles, "MAX_PLAIN_WEIGHTS", 1 << 62),
        mock.patch("runtime.kernels.reference.as_input", lambda _, x: x),
        mock.patch("benchmarks.calibrated.feeding.choose_kernels", ReferenceKernels),
        loaded(exact_plan(path, context_tokens=CONTEXT_TOKENS), Counters()) as parts,
    ):
        return Ours(parts).logits(ids)


def _error(found: Logits, exact: Logits) -> float:
    """Root mean square of what is off, by the deviation of the exact logits."""
    return float(np.sqrt(np.mean((found - exact) ** 2)) / exact.std())


def cells(bench: Bench, side: Side, wishes: argparse.Namespace) -> Iterator[Part]:
    """Yield what is measured in one go, by name."""
    threads = sorted({1, usable_cores()})
    for kind in [wishes.only] if wishes.only else TYPES:
        if not wishes.drive:
            for number in threads:
                cell = f"{kind}, {number} thread(s)"
                yield cell, functools.partial(speed_rows, bench, side, kind, number)
            yield f"{kind}, logits", functools.partial(said_rows, bench, side, kind)
        for place in (FAST, SLOW):
            yield f"{kind}, {place}", functools.partial(gguf_drive.limited_rows, kind, place)


def main() -> None:
    """Measure, print and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="three pairs instead of five")
    parser.add_argument("--only", choices=TYPES, help="one type, and nothing is written")
    parser.add_argument("--drive", action="store_true", help="under a limit of memory alone")
    parser.add_argument("--fresh", action="store_true", help="do not go on with a stopped run")
    parser.add_argument("--most", type=int, default=99, help="stop after so many more cells")
    wishes = parser.parse_args()
    kernels = choose_kernels()
    if not isinstance(kernels, NativeKernels):
        sys.exit("the native extension is not built: there is nothing to compare")
    torch.set_num_threads(1)
    bench = Bench(kernels, 3 if wishes.quick else 5)
    side = Side("avx2", "avx2")
    if not kernels.module.select_instruction_set(side.instruction_set):
        side = Side(kernels.module.instruction_set(), "native")
    name = "gguf-drive" if wishes.drive else "gguf"
    path = KEPT / f"{name}.json"
    if wishes.fresh:
        path.unlink(missing_ok=True)
    kept = KeptCells(path, {"quick": wishes.quick} | circumstances())
    measured = measure_parts(kept, cells(bench, side, wishes), wishes.most, line_of)
    if wishes.only or not measured.is_whole:
        return
    result = reporting.write_result(
        name,
        measured.rows,
        load_averages=reporting.load_averages(),
        num_pairs=gguf_drive.NUM_PAIRS if wishes.drive else bench.num_pairs,
        peer=peer.PACKAGE,
        side=dataclasses.asdict(side),
        refused=measured.refused,
    )
    kept.forget()
    for kind in TYPES:
        (KEPT / f"{kind}.gguf").unlink(missing_ok=True)
    print(f"written: {result.name}")


if __name__ == "__main__":
    main()
