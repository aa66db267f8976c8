"""`make bench-telemetry`: what ten samples a second cost the runtime, with the largest expert map.

A runtime with the scripted engine answers without end, first unwatched, then watched; what its
process takes of a core more in the second part is the cost. Inventing the map is part of it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TypeVar

import psutil
from reporting import row, write_result

from runtime.protocol.chat import ChatMessage, Role
from runtime.protocol.framing import FrameSplitter, decode_event, encode
from runtime.protocol.messages import (
    AnyCommand,
    AnyEvent,
    Event,
    LoadModel,
    ModelLoaded,
    ModelPlanned,
    OpenSession,
    PlanModel,
    SessionOpened,
    StartGeneration,
    TelemetrySampled,
    TelemetryWatched,
    TokensGenerated,
    WatchTelemetry,
)
from runtime.protocol.version import PROTOCOL_VERSION

ROOT = Path(__file__).resolve().parent.parent
NUM_LAYERS, NUM_EXPERTS = 94, 512
INTERVAL_S = 0.1
TARGET_SHARE = 0.05
MEASURE_S = 15.0
_Kind = TypeVar("_Kind", bound=Event)


class Runtime:
    """A runtime with the scripted engine, and the time that its process takes."""

    def __init__(self, folder: Path) -> None:
        script = {
            "answers": ["word " * 1_000_000],
            "context_tokens": 10_000_000,
            "load_s": 0,
            "num_layers": NUM_LAYERS,
            "num_experts": NUM_EXPERTS,
            "device_gib": 16,
        }
        (folder / "script.json").write_text(json.dumps(script), encoding="utf-8")
        arguments = ["--engine", "scripted", "--script", str(folder / "script.json")]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "runtime.service", *arguments, "--log", str(folder / "log")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=ROOT,
            bufsize=0,
        )
        self._splitter = FrameSplitter()
        self._payloads: list[bytes] = []
        self.num_bytes = 0

    def send(self, command: AnyCommand) -> None:
        """Write a command."""
        assert self.process.stdin is not None
        self.process.stdin.write(encode(command))

    def next_event(self) -> AnyEvent:
        """Wait for the next event."""
        assert self.process.stdout is not None
        while not self._payloads:
            data = os.read(self.process.stdout.fileno(), 1 << 20)
            assert data, "the runtime ended"
            self.num_bytes += len(data)
            self._payloads += self._splitter.feed(data)
        return decode_event(self._payloads.pop(0))

    def wait_for(self, kind: type[_Kind]) -> _Kind:
        """Wait for an event of a kind."""
        event: Event = self.next_event()
        while not isinstance(event, kind):
            event = self.next_event()
        return event

    def start_answer(self, folder: Path) -> None:
        """Load the made-up model and have it answer without end."""
        hello = OpenSession(request_id=1, protocol_version=PROTOCOL_VERSION, client_name="bench")
        self.send(hello)
        self.wait_for(SessionOpened)
        self.send(PlanModel(request_id=2, folder=str(folder)))
        self.send(LoadModel(request_id=3, plan=self.wait_for(ModelPlanned).plans[0]))
        self.wait_for(ModelLoaded)
        question = [ChatMessage(role=Role.USER, text="hello")]
        self.send(StartGeneration(request_id=4, conversation=question))
        self.wait_for(TokensGenerated)

    def busy_share(self, seconds: float) -> tuple[float, int]:
        """Read for some seconds; return the part of a core the process took, and the samples."""
        process = psutil.Process(self.process.pid)
        begun, before = time.perf_counter(), process.cpu_times()
        num_samples = 0
        while (elapsed := time.perf_counter() - begun) < seconds:
            num_samples += isinstance(self.next_event(), TelemetrySampled)
        after = process.cpu_times()
        taken = after.user + after.system - before.user - before.system
        return taken / elapsed, num_samples


def measure(seconds: float) -> dict[str, float]:
    """Measure; returns shares of a core, samples per second and bytes per sample."""
    with tempfile.TemporaryDirectory() as name:
        runtime = Runtime(Path(name))
        try:
            runtime.start_answer(Path(name))
            unwatched, _ = runtime.busy_share(seconds)
            runtime.send(WatchTelemetry(request_id=5, interval_s=INTERVAL_S))
            runtime.wait_for(TelemetryWatched)
            runtime.wait_for(TelemetrySampled)
            runtime.num_bytes = 0
            watched, num_samples = runtime.busy_share(seconds)
        finally:
            runtime.process.kill()
            runtime.process.communicate()
    return {
        "share": watched - unwatched,
        "unwatched_share": unwatched,
        "samples_per_s": num_samples / seconds,
        "sample_bytes": runtime.num_bytes / max(num_samples, 1),
    }


def main() -> None:
    """Measure, print, write `benchmarks/results/telemetry.json`."""
    found = measure(MEASURE_S)
    print(
        f"{found['share']:.1%} of a core for {found['samples_per_s']:.1f} samples/s "
        f"of {found['sample_bytes'] / 1024:.0f} KiB"
    )
    write_result(
        "telemetry",
        [
            row(
                what=f"runtime's share of a core for {NUM_LAYERS} x {NUM_EXPERTS} at 10 Hz",
                ours=round(found["share"], 4),
                target=f"under {TARGET_SHARE}",
                is_reached=found["share"] < TARGET_SHARE,
            ),
            row(what="samples per second", ours=round(found["samples_per_s"], 2)),
            row(what="bytes of a sample", ours=round(found["sample_bytes"])),
        ],
    )


if __name__ == "__main__":
    main()
