"""`make bench-sliders`: how long the words beside a moved slider take, and the exact plan.

The real window with the demo model in a process of its own: a budget is moved, the estimate is
read from the curve, and the plan of the runtime is waited for, forty times.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from reporting import load_averages, row, write_result
from screen import a_screen

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

NUM_MOVES = 40
MAX_RUN_S = 110
ESTIMATE_MS = 50
PLAN_MS = 300


def main() -> int:
    """Measure, print, write `benchmarks/results/sliders.json`; 1 where a target is missed."""
    load_before = load_averages()
    with tempfile.TemporaryDirectory() as home, a_screen(Path(home)) as environment:
        told = subprocess.run(
            [sys.executable, __file__, "move"],
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
            timeout=MAX_RUN_S,
        ).stdout
    estimates, plans = json.loads(told.splitlines()[-1])
    rows = []
    for what, times, most in (
        ("from a move to the estimate", estimates, ESTIMATE_MS),
        ("from a move to the exact plan", plans, PLAN_MS),
    ):
        middle, longest = statistics.median(times), max(times)
        print(f"{what}: {middle:.1f} ms, longest {longest:.1f} ms")
        rows.append(
            row(
                what=f"{what}, ms, the longest of {NUM_MOVES}; median {middle:.1f}",
                ours=round(longest, 1),
                target=f"at most {most}",
                is_reached=longest <= most,
            )
        )
    write_result("sliders", rows, load_before=load_before)
    return 0 if all(each["is_reached"] for each in rows) else 1


def move() -> None:
    """Move a budget of the loaded demo model, and print the milliseconds of both as JSON."""
    from app.main import Program, StartOptions, make_application
    from app.state.stages import Stage

    application = make_application(["larder"])
    program = Program(StartOptions(), os.environ)
    program.session.load_folder(program.library.demo_folder)
    program.show()

    def wait(is_done: Callable[[], bool]) -> None:
        end_s = time.monotonic() + MAX_RUN_S
        while not is_done():
            if time.monotonic() > end_s:
                raise SystemExit("the window did not get there in time")
            application.processEvents()

    live = program.monitor.live
    wait(lambda: program.session.stage is Stage.READY and live.bounds is not None)
    bounds = live.bounds
    assert bounds is not None
    rest_s = time.monotonic() + 1.0
    wait(lambda: time.monotonic() > rest_s)
    estimates, plans = [], []
    room = bounds.all_ram_bytes - bounds.min_ram_bytes
    for number in range(NUM_MOVES):
        part = (number * 7 % NUM_MOVES) / NUM_MOVES
        started_s = time.perf_counter()
        live.move_ram(bounds.min_ram_bytes + round(room * part))
        assert live.estimate is not None
        estimates.append(1000 * (time.perf_counter() - started_s))
        # The estimate goes once the plan of what is wanted is there.
        wait(lambda: live.estimate is None)
        plans.append(1000 * (time.perf_counter() - started_s))
    program.window.close()
    program.close()
    print(json.dumps([estimates, plans]))


if __name__ == "__main__":
    if sys.argv[1:] == ["move"]:
        move()
    else:
        sys.exit(main())
