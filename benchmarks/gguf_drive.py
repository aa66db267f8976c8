"""GGUF files larger than memory, beside llama.cpp on the same file in the same control group."""

from __future__ import annotations

import random
import statistics
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gguf
import peer
import psutil
from asked import AskedProcess, Start
from drive_places import FAST, SLOW, Place, forget, place_of, read_ahead
from model_shapes import QWEN3_30B, Shape
from reporting import row

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.support.io_throttle import io_throttle  # noqa: E402
from tests.support.memory_group import memory_group  # noqa: E402

SHARE = 50
"""Percent of the file that both sides may have of memory."""
TARGETS = {FAST: 2.4, SLOW: 1.1}
"""As of `make bench-drive` with random routing under this limit."""
THREADS = 2
NUM_PAIRS = 5
FIRST_TOKENS = 16
"""Fed before the clock runs."""
TIMED_TOKENS = 24
EMBEDDING_SCALE = 500.0
"""Each token's stream stays its own, so that routing is as near to uniform as it can be."""
Row = dict[str, Any]
Run = dict[str, float]


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


def limited_rows(kind: str, place_name: str) -> Iterator[Row]:
    """Measure a kind on a drive; ``OSError`` where this system lets nobody make it."""
    with place_of(place_name, None) as place:
        place.folder.mkdir(parents=True, exist_ok=True)
        path = place.folder / f"{kind}.gguf"
        if not path.exists():
            part = path.with_suffix(".part")
            peer.write_model(part, QWEN3_30B, kind, EMBEDDING_SCALE, add_vocabulary(QWEN3_30B))
            part.replace(path)
        limit_bytes = path.stat().st_size * SHARE // 100
        with memory_group(limit_bytes) as group, read_ahead(place.folder):
            if group is None:
                raise OSError("no control group can be made here")
            with io_throttle(group, place.folder, place.limit_per_s) as join:

                def start(command: list[str]) -> list[str]:
                    return join(group.command(command))

                yield from _rows(kind, place, path, limit_bytes, start)
            if group.num_killed:
                raise OSError(f"{group.num_killed} processes were killed under the limit")


def _rows(kind: str, place: Place, path: Path, limit_bytes: int, start: Start) -> Iterator[Row]:
    source = random.Random(SHARE)
    number = FIRST_TOKENS + TIMED_TOKENS
    ids = [source.randrange(QWEN3_30B.vocabulary) for _ in range(number)]
    python = peer.environment("native")
    ours, theirs = [], []
    for _ in range(NUM_PAIRS):
        ours.append(_our_turn(path, limit_bytes, ids, start))
        theirs.append(_peer_turn(python, path, ids, start))
    what = f"{kind} in place, {place.name} drive, limit {SHARE} %"
    rate, beside = _median(ours, "tokens_per_s"), _median(theirs, "tokens_per_s")
    yield row(
        what=f"{what}: tokens/s, the peer mapped with {THREADS} threads",
        ours=round(rate, 2), peer=round(beside, 2), target=f"{TARGETS[place.name]} x",
        is_reached=rate >= TARGETS[place.name] * beside,
    )  # fmt: skip
    for field in ("read_mb_per_token", "cpu_s_per_token"):
        yield row(
            what=f"{what}: {field.replace('_', ' ')}",
            ours=round(_median(ours, field), 3), peer=round(_median(theirs, field), 3),
        )  # fmt: skip
    for field in ("hits", "wait_share", "slots"):
        said = {"hits": "share of hits", "wait_share": "share of the time waited for the drive"}
        told = round(_median(ours, field), 3)
        yield row(what=f"{what}: {said.get(field, 'experts of a layer in RAM')}", ours=told)


def _our_turn(path: Path, limit_bytes: int, ids: list[int], start: Start) -> Run:
    forget(path)
    command = [sys.executable, str(Path(__file__).with_name("gguf_process.py"))]
    with AskedProcess("our side", start(command)) as ours:
        slots = ours.ask(load=str(path), limit_bytes=limit_bytes, threads=THREADS)["slots"]
        ours.ask(feed=ids[:FIRST_TOKENS])
        before = _spent(ours.process_id)
        told = ours.ask(feed=ids[FIRST_TOKENS:])
        run = _run(told["seconds"], before, _spent(ours.process_id))
    run |= {"hits": told["hits"], "wait_share": told["wait_s"] / told["seconds"], "slots": slots}
    return run


def _peer_turn(python: Path, path: Path, ids: list[int], start: Start) -> Run:
    forget(path)
    with peer.PeerProcess(python, start) as process:
        process.load(path, peer.Settings(is_repacked=False, has_flash=False, threads=THREADS))
        process.feed(ids[:FIRST_TOKENS])
        before = _spent(process.process_id)
        seconds = process.feed(ids[FIRST_TOKENS:], is_going_on=True)
        return _run(seconds, before, _spent(process.process_id))


def _run(seconds: float, before: tuple[int, float], after: tuple[int, float]) -> Run:
    return {
        "tokens_per_s": TIMED_TOKENS / seconds,
        "read_mb_per_token": (after[0] - before[0]) / TIMED_TOKENS / 1e6,
        "cpu_s_per_token": (after[1] - before[1]) / TIMED_TOKENS,
    }


def _spent(process_id: int) -> tuple[int, float]:
    """Return what the system counted for a process: bytes from drives, processor seconds."""
    process = psutil.Process(process_id)
    times = process.cpu_times()
    return process.io_counters().read_bytes, times.user + times.system


def _median(runs: list[Run], field: str) -> float:
    return statistics.median(run[field] for run in runs)
