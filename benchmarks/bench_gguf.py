"""Speed on GGUF files beside llama.cpp's on the same file, and where answers part.

Run by `make bench-gguf`; writes benchmarks/results/gguf.json. The file is a random model of
Qwen3-30B-A3B's layer shape in one type, read by both sides where it lies: ours by the program's own
loading, slots and model code, the peer with the best of its settings. 200 tokens are decoded
greedily on both sides; where they part first, the logits of both are held against those of the
file's very numbers with activations as they are. `--quick` takes three pairs, `--only Q4_K` one
type, and then nothing is written.
"""

import argparse
import dataclasses
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import gguf
import numpy as np
import numpy.typing as npt
import peer
import reporting
import torch
from kernels import Bench, Side, best_settings, line_of, paired_row
from model_shapes import QWEN3_30B, Shape

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.calibrated.feeding import feed, loaded  # noqa: E402
from runtime.generate.loading import LoadedParts  # noqa: E402
from runtime.inspect.gguf import roles  # noqa: E402
from runtime.kernels.dispatch import choose_kernels, usable_cores  # noqa: E402
from runtime.kernels.native import NativeKernels  # noqa: E402
from runtime.kernels.reference import ReferenceKernels  # noqa: E402
from runtime.telemetry.recorder import Counters  # noqa: E402
from tests.support.hand_made_plans import exact_plan  # noqa: E402

TYPES = ("Q4_K", "MXFP4")
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


def add_vocabulary(shape: Shape) -> Any:  # noqa: ANN401 - gguf is untyped
    """Return what writes a vocabulary of a shape's size: bytes, one merge, and words."""
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = iter(range(256, 512))
    letters = [chr(byte if byte in shown else next(others)) for byte in range(256)]
    words = [*letters, "ab", *(f"w{number}" for number in range(shape.vocabulary - 257))]

    def add(writer: gguf.GGUFWriter) -> None:
        writer.add_tokenizer_model("gpt2")
        writer.add_tokenizer_pre("gpt-2")
        writer.add_token_list(words)
        writer.add_token_types([int(gguf.TokenType.NORMAL)] * len(words))
        writer.add_token_merges(["a b"])
        writer.add_eos_token_id(0)
        writer.add_chat_template("{% for m in messages %}{{ m['content'] }}{% endfor %}")

    return add


class Ours:
    """Our side: a file that is loaded as the program loads it, with every expert in RAM."""

    def __init__(self, parts: LoadedParts) -> None:
        self._parts = parts

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


def type_rows(bench: Bench, side: Side, kind: str, threads: list[int]) -> Iterator[Row]:
    """Measure one type, and compare what is said."""
    shape = QWEN3_30B
    random = np.random.default_rng(0)
    ids = random.integers(0, shape.vocabulary, PROMPT_TOKENS).tolist()
    with tempfile.TemporaryDirectory(prefix="larder-bench-") as folder:
        path = Path(folder) / "random.gguf"
        peer.write_model(path, shape, kind, EMBEDDING_SCALE, add_vocabulary(shape))
        with (
            peer.PeerProcess(peer.environment(side.flavour)) as process,
            loaded(exact_plan(path, context_tokens=CONTEXT_TOKENS), Counters()) as parts,
        ):
            ours = Ours(parts)
            formats = f"{parts.plan.expert_format} from {kind}"
            for number in threads:
                bench.use(side.instruction_set, number)
                yield from _speed(bench, ours, process, path, number, ids, formats)
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
        row = paired_row(bench, f"{work}, tokens/s, {formats}, {threads} thread(s)",
                         mine, theirs, least)  # fmt: skip
        row["ours"] = round(row["ours"] * tokens, 1)
        row["peer"] = round(row["peer"] * tokens, 1)
        row["peer_settings"] = str(settings)
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


def main() -> None:
    """Measure, print and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="three pairs instead of five")
    parser.add_argument("--only", choices=TYPES, help="one type, and nothing is written")
    options = parser.parse_args()
    kernels = choose_kernels()
    if not isinstance(kernels, NativeKernels):
        sys.exit("the native extension is not built: there is nothing to compare")
    torch.set_num_threads(1)
    bench = Bench(kernels, 3 if options.quick else 5)
    side = Side("avx2", "avx2")
    if not kernels.module.select_instruction_set(side.instruction_set):
        side = Side(kernels.module.instruction_set(), "native")
    threads = sorted({1, usable_cores()})
    rows: list[Row] = []
    for kind in [options.only] if options.only else TYPES:
        for row in type_rows(bench, side, kind, threads):
            print(line_of(row), flush=True)
            rows.append(row)
    if options.only:
        return
    path = reporting.write_result(
        "gguf",
        rows,
        load_averages=reporting.load_averages(),
        num_pairs=bench.num_pairs,
        peer=peer.PACKAGE,
        side=dataclasses.asdict(side),
    )
    print(f"written: {path.name}")


if __name__ == "__main__":
    main()
