"""`make bench-responsiveness`: how long the window stands still while a person uses it.

Fresh processes of the real program load the demo model, answer, and change the theme. A gap is the
time between two ticks of a timer of 5 ms; of each process the longest of each phase counts. What
the window's thread computed in a gap is told too, because a busy machine makes the gap longer and
not that.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from reporting import load_averages, row, write_result
from screen import a_screen

ROOT = Path(__file__).resolve().parent.parent
NUM_RUNS = 6
TARGET_S = 0.1
MAX_RUN_S = 90
PHASES = {
    "start": "from the shown window to the loaded model",
    "typing": "while the question is typed",
    "first_text": "from sending to the first text",
    "streaming": "while the answer streams",
    "theme": "when the theme is changed",
}
PROMISED = ("start", "typing", "first_text", "streaming")

Phases = dict[str, tuple[float, float]]


def one_use(environment: dict[str, str]) -> Phases:
    """Return the longest gap of each phase, and the most computed in one."""
    child = subprocess.run(
        [sys.executable, str(ROOT / "benchmarks" / "watched_window.py")],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=MAX_RUN_S,
    )
    if not child.stdout.strip():
        raise SystemExit("the window drew no map, or imported torch")
    found: Phases = json.loads(child.stdout)
    return found


def main() -> None:
    """Measure, print, write `benchmarks/results/responsiveness.json`."""
    load_before = load_averages()
    with tempfile.TemporaryDirectory() as home, a_screen(Path(home)) as environment:
        runs = [one_use(environment) for _ in range(NUM_RUNS)]
    rows = []
    for phase, words in PHASES.items():
        gaps = [run[phase][0] for run in runs]
        work_s = max(run[phase][1] for run in runs)
        median_s, worst_s = statistics.median(gaps), max(gaps)
        print(f"{words}: {median_s:.3f} s, worst {worst_s:.3f} s, computing {work_s:.3f} s")
        is_promised = phase in PROMISED
        target = f"under {TARGET_S}" if is_promised else ""
        for what, kind, value in (
            ("longest gap", "median", median_s),
            ("longest gap", "worst", worst_s),
            ("most computed in a gap", "worst", work_s),
        ):
            rows.append(
                row(
                    what=f"{what} {words}, seconds, {kind} of {NUM_RUNS} processes",
                    ours=round(value, 4),
                    target=target,
                    is_reached=value < TARGET_S if is_promised else None,
                )
            )
    write_result("responsiveness", rows, load_before=load_before)


if __name__ == "__main__":
    main()
