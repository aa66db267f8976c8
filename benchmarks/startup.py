"""`make bench-startup`: from starting the program to the window's first picture, warm.

The child is `python -m app` as a person starts it: it looks for a screen, shows the window, starts
the runtime and loads the demo model. It says when its first picture was painted, and the runtime's
log says when the model was loaded; the parent's clock is the one that counts. Under Xvfb if there
is one, else offscreen.
"""

from __future__ import annotations

import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from reporting import load_averages, row, write_result
from screen import a_screen

ROOT = Path(__file__).resolve().parent.parent
NUM_RUNS = 9
TARGET_S = 1.5
MAX_LOAD_S = 60.0
LOOK_S = 0.01
CHILD = """
import runpy, sys
from PySide6.QtCore import QEvent, QObject, QTimer
from PySide6.QtWidgets import QApplication

class FirstPaint(QObject):
    def eventFilter(self, watched, event):
        if event.type() == QEvent.Type.Paint:
            QApplication.instance().removeEventFilter(self)
            QTimer.singleShot(0, said)
        return False

def said():
    print("shown", "torch" in sys.modules, "numpy" in sys.modules, flush=True)

def watched_exec(application):
    watch = FirstPaint()
    application.installEventFilter(watch)
    return run_loop()

run_loop, QApplication.exec = QApplication.exec, watched_exec
sys.argv = ["larder"]
runpy.run_module("app", run_name="__main__", alter_sys=True)
"""
"""Qt is imported by the program itself as well, a moment later."""


def one_start(environment: dict[str, str]) -> tuple[float, float]:
    """Return the seconds until the first picture, and until the demo model was loaded."""
    log = Path(environment["LARDER_HOME"]) / "logs" / "runtime.log"
    num_known = _num_loaded(log)
    begun_s = time.perf_counter()
    with subprocess.Popen(
        [sys.executable, "-c", CHILD], cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        said = child.stdout.readline().split()
        shown_s = time.perf_counter() - begun_s
        if said != ["shown", "False", "False"]:
            child.kill()
            raise SystemExit(f"the window did not show, or imported torch or numpy first: {said}")
        while _num_loaded(log) == num_known:
            if time.perf_counter() - begun_s > MAX_LOAD_S or child.poll() is not None:
                child.kill()
                raise SystemExit("the demo model was not loaded")
            time.sleep(LOOK_S)
        loaded_s = time.perf_counter() - begun_s
        child.send_signal(signal.SIGTERM)
    return shown_s, loaded_s


def _num_loaded(log: Path) -> int:
    return log.read_text(encoding="utf-8").count("model loaded") if log.exists() else 0


def main() -> None:
    """Measure, print, write `benchmarks/results/startup.json`."""
    load_before = load_averages()
    with tempfile.TemporaryDirectory() as home, a_screen(Path(home)) as environment:
        one_start(environment)
        times = [one_start(environment) for _ in range(NUM_RUNS)]
    shown, loaded = zip(*times, strict=True)
    median_s, loaded_s = statistics.median(shown), statistics.median(loaded)
    print(f"window after {median_s:.2f} s ({min(shown):.2f}-{max(shown):.2f}, {NUM_RUNS} starts)")
    print(f"demo model loaded after {loaded_s:.2f} s")
    write_result(
        "startup",
        [
            row(
                what=f"start of the program to first picture, demo loading, seconds, warm, "
                f"median of {NUM_RUNS}",
                ours=round(median_s, 3),
                target=f"under {TARGET_S}",
                is_reached=median_s < TARGET_S,
            ),
            row(what=f"the same, worst of {NUM_RUNS}", ours=round(max(shown), 3)),
            row(
                what=f"start of the program to the loaded model, seconds, median of {NUM_RUNS}",
                ours=round(loaded_s, 3),
            ),
        ],
        load_before=load_before,
    )


if __name__ == "__main__":
    main()
