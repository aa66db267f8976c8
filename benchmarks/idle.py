"""`make bench-idle`: what window and background process compute while a loaded model rests.

The real program under Xvfb loads the demo, answers once, and then each page is shown for a while
that nothing happens in; last the window is minimised. Processor time of both, as the system
counts it. Names of pages choose some of them, and then nothing is written.
"""

from __future__ import annotations

import json
import os
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

TARGET_SHARE = 0.01
SETTLE_S = 6.0
"""Until samples are few, and the page is drawn."""
MEASURE_S = 20.0
MAX_WAIT_S = 60.0
WIDTH, HEIGHT = 1360, 850
"""Wide enough for the cards beside the chat."""
PAGES = ("monitor", "chat", "settings")
HIDDEN = "nothing"

Shares = dict[str, tuple[float, float]]
"""By page: parts of a core of window and background process."""


def main(chosen: list[str]) -> None:
    """Measure, print, write `benchmarks/results/idle.json`."""
    load_before = load_averages()
    with tempfile.TemporaryDirectory() as home, a_screen(Path(home)) as environment:
        child = subprocess.run(
            [sys.executable, __file__, "inside", *(chosen or [*PAGES, HIDDEN])],
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
    found: Shares = json.loads(child.stdout)
    rows = []
    for page, (window, runtime) in found.items():
        together = window + runtime
        print(f"{page}: window {window:.2%}, background process {runtime:.2%} of a core")
        rows.append(
            row(
                what=f"part of a core while a loaded model rests, {page} shown",
                ours=round(together, 4),
                target=f"under {TARGET_SHARE}",
                is_reached=together < TARGET_SHARE,
            )
        )
        rows.append(row(what=f"of it the window, {page} shown", ours=round(window, 4)))
    if chosen:
        return
    write_result("idle", rows, load_before=load_before, measured_s=MEASURE_S)


def inside(pages: list[str]) -> None:
    """Show some pages of a window of one's own; print the shares."""
    import psutil
    from PySide6.QtCore import QEventLoop, QTimer

    from app.main import Program, StartOptions, make_application
    from app.state.stages import Stage
    from app.views.rail import Page
    from runtime.protocol.chat import SamplingSettings

    application = make_application(["larder"])
    program = Program(StartOptions(), os.environ)
    program.settings.change(
        sampling=SamplingSettings(temperature=0.0, max_tokens=30), is_welcomed=True
    )
    program.window.resize(WIDTH, HEIGHT)
    program.show()

    def wait(is_done: Callable[[], bool]) -> None:
        end_s = time.monotonic() + MAX_WAIT_S
        while not is_done():
            application.processEvents()
            time.sleep(0.005)
            if time.monotonic() > end_s:
                raise SystemExit("the demo did not answer")

    def rest(seconds: float) -> None:
        """Let the window be as it is for a person who only looks."""
        loop = QEventLoop()
        QTimer.singleShot(round(seconds * 1000), loop.quit)
        loop.exec()

    wait(lambda: program.session.stage is Stage.READY)
    program.chat.ask("What is the capital of France?")
    wait(lambda: bool(program.chat.messages) and not program.chat.is_answering)
    own = psutil.Process()
    processes = (own, *own.children())
    found: Shares = {}
    for page in pages:
        if page == HIDDEN:
            program.window.show_page(Page.MONITOR)
            program.window.showMinimized()
        else:
            program.window.show_page(Page(page))
        rest(SETTLE_S)
        begun_s, before = time.monotonic(), [_computed_s(each) for each in processes]
        rest(MEASURE_S)
        elapsed_s, after = time.monotonic() - begun_s, [_computed_s(each) for each in processes]
        taken = [(now - then) / elapsed_s for then, now in zip(before, after, strict=True)]
        found[page] = (taken[0], sum(taken[1:]))
    print(json.dumps(found))
    program.window.close()
    program.close()


def _computed_s(process: object) -> float:
    import psutil

    assert isinstance(process, psutil.Process)
    times = process.cpu_times()
    return float(times.user + times.system)


if __name__ == "__main__":
    if sys.argv[1:2] == ["inside"]:
        inside(sys.argv[2:])
    else:
        main(sys.argv[1:])
