"""`make bench-drive_bytes`: what answers say they read, against the counters of the system.

The demo model with little RAM. The counters of the process are compared for every answer. Those of
the drive count everybody's reads, so the answer with the least beside it is compared.
"""

from __future__ import annotations

import sys
from pathlib import Path

from reporting import load_averages, row, write_result

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.support.drive_answers import MAX_RATIO, NUM_SLOTS, counted_answers  # noqa: E402
from tests.support.drive_counters import drive_counter  # noqa: E402

DEMO = ROOT / "build" / "demo" / "larder-demo"
NUM_ANSWERS = 5
NUM_TOKENS = 48
TARGET = f"within {MAX_RATIO - 1:.0%}"


def main() -> int:
    """Measure and write the result."""
    answers = list(counted_answers(DEMO, NUM_ANSWERS, NUM_TOKENS))
    if not answers:
        print("The demo's files cannot be read past the cache here: there is nothing to compare.")
        return 1
    what = f"{NUM_SLOTS} experts of each layer in RAM, answers of {NUM_TOKENS} tokens"
    most = max(answers, key=lambda each: abs(each.told_bytes - each.process_bytes))
    rows = [_compared(f"{what}: MB told, by the process's counter", most.told_bytes,
                      most.process_bytes)]  # fmt: skip
    drive = drive_counter(DEMO)
    beside = [(each.drive_bytes, each) for each in answers if each.drive_bytes is not None]
    if drive is not None and beside:
        drive_bytes, least = min(beside, key=lambda pair: pair[0] / pair[1].told_bytes)
        rows.append(
            _compared(f"{what}: MB told, by the counter of {drive.name}", least.told_bytes,
                      drive_bytes)
        )  # fmt: skip
    for each in rows:
        print(f"{each['what']}: {each['ours']} and {each['peer']} MB, ratio {each['ratio']}")
    print(
        write_result("drive_bytes", rows, num_answers=len(answers), load_averages=load_averages())
    )
    return 0


def _compared(what: str, told_bytes: int, counted_bytes: int) -> dict[str, object]:
    """Return the row of one comparison; the peer is the system."""
    ratio = told_bytes / counted_bytes
    return row(
        what=what,
        ours=round(told_bytes / 1e6, 3),
        peer=round(counted_bytes / 1e6, 3),
        ratio=round(ratio, 5),
        target=TARGET,
        is_reached=1 / MAX_RATIO <= ratio <= MAX_RATIO,
    )


if __name__ == "__main__":
    sys.exit(main())
