"""`make bench-expert_map`: what maps of 94 x 512 at 10 Hz cost the window process.

Each sample comes as a frame, as it does through the pipe, is decoded, kept and drawn on the Monitor
page of a shown window, with curves and numbers. CPU time of the process by elapsed time.
"""

from __future__ import annotations

import os
import random
import sys
import tempfile
import time
from pathlib import Path

import psutil
from reporting import row, write_result

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
NUM_LAYERS, NUM_EXPERTS = 94, 512
RATE_HZ = 10
SECONDS = 12.0
WARM_UP_SECONDS = 2.0
TARGET_SHARE = 0.05


def frames(number: int) -> list[bytes]:
    """Return payloads of samples whose maps all differ, as an answer would make them."""
    import msgspec

    from runtime.protocol.messages import TelemetrySampled
    from tests.support.expert_maps import some_expert_map
    from tests.support.monitor_stage import live_sample

    draw = random.Random(7)
    first = some_expert_map(NUM_LAYERS, NUM_EXPERTS)
    use = bytearray(first.use)
    found = []
    for step in range(number):
        for _ in range(NUM_LAYERS * 10):
            cell = draw.randrange(len(use))
            use[cell] = min(255, use[cell] + 9)
        is_changed = step % 5 == 0
        experts = msgspec.structs.replace(
            first,
            use=bytes(use),
            tier=first.tier if is_changed else b"",
            bits=first.bits if step == 0 else b"",
        )
        sample = msgspec.structs.replace(live_sample(step), experts=experts)
        found.append(msgspec.msgpack.encode(TelemetrySampled(sample=sample)))
    return found


def measure(seconds: float = SECONDS) -> float:
    """Return the share of a core that the window takes while maps come ten times a second."""
    from PySide6.QtCore import QEventLoop, Qt, QTimer
    from PySide6.QtWidgets import QApplication

    from app.main import make_application
    from app.theme.apply import apply_theme
    from app.theme.palette import DARK
    from app.views.monitor_view import MonitorView
    from runtime.protocol.framing import decode_event
    from tests.support.monitor_stage import ready_stage

    found = QApplication.instance()
    application = found if isinstance(found, QApplication) else make_application(["bench"])
    apply_theme(application, DARK)
    payloads = frames(round((seconds + WARM_UP_SECONDS) * RATE_HZ) + 5)
    process = psutil.Process()
    with tempfile.TemporaryDirectory() as folder:
        stage = ready_stage(Path(folder))
        stage.monitor.telemetry._clock = time.monotonic  # noqa: SLF001 — real time here
        view = MonitorView(stage.monitor, DARK)
        view.resize(1276, 810)
        view.show()

        def take() -> None:
            if payloads:
                stage.client.answer(decode_event(payloads.pop(0)))

        timer = QTimer()
        timer.setTimerType(Qt.TimerType.PreciseTimer)
        timer.timeout.connect(take)
        timer.start(1000 // RATE_HZ)
        loop = QEventLoop()
        QTimer.singleShot(round(WARM_UP_SECONDS * 1000), loop.quit)
        loop.exec()
        used_s, begun_s = sum(process.cpu_times()[:2]), time.perf_counter()
        QTimer.singleShot(round(seconds * 1000), loop.quit)
        loop.exec()
        share = (sum(process.cpu_times()[:2]) - used_s) / (time.perf_counter() - begun_s)
        timer.stop()
        view.close()
        view.deleteLater()
        stage.close()
    return share


def main() -> None:
    """Measure, print, write `benchmarks/results/expert_map.json`."""
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    share = measure()
    print(f"the window takes {share:.1%} of a core for maps of {NUM_LAYERS} x {NUM_EXPERTS}")
    write_result(
        "expert_map",
        [
            row(
                what=f"share of a core for {NUM_LAYERS} x {NUM_EXPERTS} maps at {RATE_HZ} Hz,"
                " decoded and drawn with curves and numbers in a window of 1276 x 810",
                ours=round(share, 4),
                target=f"under {TARGET_SHARE}",
                is_reached=share < TARGET_SHARE,
            )
        ],
    )


if __name__ == "__main__":
    main()
