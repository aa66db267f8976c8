"""Prompts under a limit in `make bench-drive`, beside what the drive and the processor allow.

The processor's part is measured in the same run: the same prompt with every expert resident.
"""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Any

import peer
from asked import Start
from drive_models import OURS, THEIRS, prompt_bytes
from drive_places import forget
from drive_turns import THREADS, Cell, Ours
from reporting import row

PROMPTS_TOKENS = (512, 2048)
UBATCHES = (512, 2048)
"""Tokens that the peer takes at a time; the better counts."""
MIN_LIMIT_SHARE = 0.85
CONTEXT_TOKENS = 2304
_NO_LIMIT = 1 << 40


def prompt_rows(
    cell: Cell, python: Path, ids: list[int], num_pairs: int, start: Start
) -> list[dict[str, object]]:
    """Return the lines of prompts of each length, made of the beginning of some tokens."""
    rows = []
    for number in PROMPTS_TOKENS:
        prompt = ids[:number]
        (computed,) = _ours(cell, _NO_LIMIT, [prompt, prompt], list)[1:]
        ours: list[dict[str, Any]] = []
        theirs: dict[int, list[float]] = {size: [] for size in UBATCHES if size <= number}
        for _ in range(num_pairs):
            ours += _ours(cell, cell.limit_bytes, [prompt], start)
            for size, found in theirs.items():
                found.append(_peer(cell, python, size, prompt, start))
        rate = number / statistics.median(run["seconds"] for run in ours)
        beside = max(number / statistics.median(found) for found in theirs.values())
        read_bytes = prompt_bytes(cell.routing, prompt, ours[0]["chunk_tokens"])
        least_s = [
            max(read_bytes / run["drive"] if run["drive"] else 0, computed["seconds"])
            for run in ours
        ]
        share = statistics.median(
            least / run["seconds"] for least, run in zip(least_s, ours, strict=True)
        )
        what = f"{cell}: prompt of {number} tokens"
        rows.append(
            row(
                what=f"{what}, tokens/s", ours=round(rate, 1), peer=round(beside, 1),
                limit_share=round(share, 3), target=f"{MIN_LIMIT_SHARE:.0%} of the limit",
                is_reached=share >= MIN_LIMIT_SHARE,
            )
        )  # fmt: skip
        read = statistics.median(run["read_bytes"] for run in ours)
        rows.append(
            row(
                what=f"{what}, MB read; the peer is each expert once a chunk",
                ours=round(read / 1e6), peer=round(read_bytes / 1e6),
            )
        )  # fmt: skip
        print(f"{what}: {rate:.1f} tokens/s, peer {beside:.1f}, {share:.0%} of our limit")
    return rows


def _ours(
    cell: Cell, limit_bytes: int, prompts: list[list[int]], start: Start
) -> list[dict[str, Any]]:
    """Return what our side told of prompts, each from an empty cache of keys and values."""
    forget(cell.folder / OURS)
    with Ours(start) as ours:
        loaded = ours.ask(
            load=str(cell.folder / OURS),
            limit_bytes=limit_bytes,
            threads=THREADS,
            hints=False,
            context_tokens=CONTEXT_TOKENS,
            is_prompt=True,
        )
        told = [loaded | ours.ask(prompt=prompt) for prompt in prompts]
        limits = ours.ask(limits=True)
    return [each | limits for each in told]


def _peer(cell: Cell, python: Path, ubatch: int, prompt: list[int], start: Start) -> float:
    forget(cell.folder / THEIRS)
    with peer.PeerProcess(python, start) as process:
        settings = peer.Settings(is_repacked=False, has_flash=False, threads=THREADS, ubatch=ubatch)
        process.load(cell.folder / THEIRS, settings, context_tokens=CONTEXT_TOKENS)
        return process.prompt(prompt)
