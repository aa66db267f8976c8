"""What expert maps cost the process that draws them: frames in, a shown Monitor page, CPU time."""

from __future__ import annotations

import random
import tempfile
import time
from pathlib import Path

import msgspec
import psutil
from PySide6.QtCore import QEventLoop, Qt, QTimer

from app.theme.palette import DARK
from app.views.monitor_view import MonitorView
from runtime.protocol.framing import decode_event
from runtime.protocol.messages import TelemetrySampled
from tests.support.expert_maps import some_expert_map
from tests.support.monitor_stage import live_sample, ready_stage

NUM_LAYERS, NUM_EXPERTS = 94, 512
RATE_HZ = 10
WARM_UP_S = 2.0


def frames(number: int) -> list[bytes]:
    """Return payloads of samples whose maps all differ, as an answer would make them."""
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


def share_of_a_core(seconds: float) -> float:
    """Return what the process takes while maps come ten times a second; needs an application."""
    payloads = frames(round((seconds + WARM_UP_S) * RATE_HZ) + 5)
    process = psutil.Process()
    with tempfile.TemporaryDirectory() as folder:
        stage = ready_stage(Path(folder))
        stage.monitor.telemetry._clock = time.monotonic
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
        QTimer.singleShot(round(WARM_UP_S * 1000), loop.quit)
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
