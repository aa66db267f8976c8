"""Answers of the demo with little RAM: what they say they read beside what the system counts."""

import dataclasses
import os
from collections.abc import Iterator
from pathlib import Path

from runtime.engine.base import CancelToken
from runtime.generate.engine import TieredEngine
from runtime.protocol.chat import SamplingSettings
from tests.support.drive_counters import drive_counter, process_bytes_read
from tests.support.engine_runs import answer, ignore_load_progress, user
from tests.support.hand_made_plans import exact_plan

NUM_SLOTS = 6
"""Of the 32 experts of each layer so many have room in RAM."""
CONTEXT_TOKENS = 512
MAX_RATIO = 1.02
"""How far our count and the system's may be apart."""


@dataclasses.dataclass(frozen=True)
class CountedAnswer:
    """What one answer read, by three counts."""

    told_bytes: int
    """By the answer's own statistics."""
    process_bytes: int
    """By the system, for this process."""
    drive_bytes: int | None
    """By the system, for the drive, whoever read; None where no block device is below."""
    num_tokens: int


def counted_answers(folder: Path, num_answers: int, num_tokens: int) -> Iterator[CountedAnswer]:
    """Yield answers to one question, each computed anew; none where reads are not direct."""
    engine = TieredEngine()
    engine.load(exact_plan(folder, NUM_SLOTS, CONTEXT_TOKENS), ignore_load_progress, CancelToken())
    try:
        assert engine.wait_filled(60)
        engine.apply()
        assert engine._parts is not None
        if not engine._parts.store.is_direct:
            return
        drive = drive_counter(folder)
        settings = SamplingSettings(temperature=0, max_tokens=num_tokens)
        for _ in range(num_answers):
            engine._parts.kv.truncate(0)
            process_before = process_bytes_read(os.getpid())
            drive_before = 0 if drive is None else drive.bytes_read()
            stats = answer(engine, [user("What is a larder?")], settings).stats
            drive_after = 0 if drive is None else drive.bytes_read()
            yield CountedAnswer(
                stats.drive_bytes_read,
                process_bytes_read(os.getpid()) - process_before,
                None if drive is None else drive_after - drive_before,
                stats.generated_tokens,
            )
    finally:
        engine.close()
