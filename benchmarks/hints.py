"""`make bench-hints`: the demo model with parts of its experts in RAM, with guesses and without.

Both take turns, so that other programs on the machine hinder each alike; rates are medians. Beside
them: bytes read for a token, time waited for the drive, and what became of the guesses.
"""

from __future__ import annotations

import dataclasses
import statistics

from ram_tier import CONTEXT_TOKENS, QUESTION, plan_of
from reporting import load_averages, row, write_result

from runtime.engine.base import CancelToken
from runtime.generate.engine import TieredEngine
from runtime.protocol.chat import SamplingSettings
from runtime.protocol.plan import PlacementPlan
from runtime.residency.trial import HintMode
from tests.support.engine_runs import answer, ignore_load_progress, user

SHARES = {"a fifth": 1 / 5, "half": 1 / 2, "three quarters": 3 / 4}
NUM_PAIRS = 5
NUM_TOKENS = 64
assert NUM_TOKENS < CONTEXT_TOKENS


@dataclasses.dataclass(frozen=True)
class Turn:
    """What one answer came to."""

    tokens_per_s: float
    drive_mb_per_token: float
    wait_share: float
    useful: int
    late: int
    wasted: int


def main() -> None:
    """Measure and write the result."""
    rows = []
    for name, share in SHARES.items():
        plan = plan_of(share)
        turns: dict[HintMode, list[Turn]] = {HintMode.NEVER: [], HintMode.ALWAYS: []}
        for _ in range(NUM_PAIRS):
            for mode, found in turns.items():
                found.append(measure(plan, mode))
        without, with_hints = turns[HintMode.NEVER], turns[HintMode.ALWAYS]
        what = f"{name} of the routed bytes in RAM"
        rows.append(
            row(
                what=f"{what}: tokens/s with guesses, beside those without",
                ours=round(_median(with_hints, "tokens_per_s"), 2),
                peer=round(_median(without, "tokens_per_s"), 2),
            )
        )
        rows += [
            row(
                what=f"{what}: {field.replace('_', ' ')}",
                ours=round(_median(with_hints, field), 3),
                peer=round(_median(without, field), 3),
            )
            for field in ("drive_mb_per_token", "wait_share")
        ]
        rows += [
            row(what=f"{what}: guesses {field}", ours=_median(with_hints, field))
            for field in ("useful", "late", "wasted")
        ]
        print(rows[-6]["what"], rows[-6]["ours"], rows[-6]["peer"], flush=True)
    print(write_result("hints", rows, load_averages=load_averages()))


def measure(plan: PlacementPlan, mode: HintMode) -> Turn:
    """Load, warm up with one answer, and measure the next."""
    engine = TieredEngine()
    engine.hints = mode
    engine.load(plan, ignore_load_progress, CancelToken())
    assert engine.wait_filled(600)
    settings = SamplingSettings(temperature=0, max_tokens=NUM_TOKENS)
    answer(engine, [user("How do I bake bread?")], settings)
    before = engine.counters
    stats = answer(engine, [user(QUESTION)], settings).stats
    spent = engine.counters.since(before)
    engine.close()
    return Turn(
        stats.decode_tokens_per_s,
        stats.drive_bytes_read / stats.generated_tokens / 1e6,
        stats.seconds["drive_wait"] / (stats.prefill_s + stats.decode_s),
        spent.hints_useful,
        spent.hints_late,
        spent.hints_wasted,
    )


def _median(turns: list[Turn], field: str) -> float:
    return float(statistics.median(getattr(turn, field) for turn in turns))


if __name__ == "__main__":
    main()
