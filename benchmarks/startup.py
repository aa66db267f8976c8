"""`make bench-startup`: from starting the process to the window's first picture, warm.

The child builds the real window against the scripted engine and says when its first frame was
painted; the parent's clock is the one that counts. Under Xvfb if there is one, else offscreen.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from reporting import row, write_result

ROOT = Path(__file__).resolve().parent.parent
NUM_RUNS = 9
TARGET_S = 1.5
CHILD = """
import os, sys
from app.main import Program, StartOptions, make_application
from PySide6.QtCore import QEvent, QObject, QTimer

class FirstPaint(QObject):
    def eventFilter(self, watched, event):
        if event.type() == QEvent.Type.Paint and not self.property("done"):
            self.setProperty("done", True)
            QTimer.singleShot(0, said)
        return False

def said():
    print("shown", "torch" in sys.modules, "numpy" in sys.modules, flush=True)
    QTimer.singleShot(0, program.window.close)

application = make_application(["larder"])
options = StartOptions(is_demo_wanted=False, runtime_arguments=("--engine", "scripted"))
program = Program(options, os.environ)
watch = FirstPaint()
program.window.strip.installEventFilter(watch)
program.show()
application.exec()
program.close()
"""


def one_start(environment: dict[str, str]) -> float:
    """Seconds until the first picture; fails if the window imported torch."""
    begun = time.perf_counter()
    with subprocess.Popen(
        [sys.executable, "-c", CHILD],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    ) as child:
        assert child.stdout is not None
        said = child.stdout.readline().split()
        seconds = time.perf_counter() - begun
        child.stdout.read()
    if said[:2] != ["shown", "False"]:
        raise SystemExit(f"the window did not show or imported torch: {said}")
    return seconds


def main() -> None:
    """Measure, print, write `benchmarks/results/startup.json`."""
    with tempfile.TemporaryDirectory() as home:
        environment = {**os.environ, "LARDER_HOME": home}
        xvfb = None
        if shutil.which("Xvfb") and sys.platform == "linux":
            xvfb = subprocess.Popen(
                ["Xvfb", ":97", "-screen", "0", "1600x1000x24"], stderr=subprocess.DEVNULL
            )
            time.sleep(1.0)
            environment |= {"DISPLAY": ":97", "QT_QPA_PLATFORM": "xcb"}
        else:
            environment["QT_QPA_PLATFORM"] = "offscreen"
        try:
            one_start(environment)
            times = [one_start(environment) for _ in range(NUM_RUNS)]
        finally:
            if xvfb is not None:
                xvfb.terminate()
                xvfb.wait()
    median = statistics.median(times)
    print(f"window after {median:.2f} s (median of {NUM_RUNS}; {min(times):.2f}-{max(times):.2f})")
    write_result(
        "startup",
        [
            row(
                what=f"process start to first picture, seconds, warm, median of {NUM_RUNS}",
                ours=round(median, 3),
                target=f"under {TARGET_S}",
                is_reached=median < TARGET_S,
            )
        ],
    )


if __name__ == "__main__":
    main()
