"""Telemetry over the channel of a real process: cheap, complete, and never waited for."""

import contextlib
import importlib
import random
import shlex
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import msgspec
import psutil
import pytest

from runtime.engine.script import TOP_K, Script
from runtime.protocol.messages import (
    GenerationFinished,
    TelemetrySampled,
    TelemetryWatched,
    TokensGenerated,
    WatchTelemetry,
)
from runtime.protocol.telemetry import TelemetrySample
from runtime.telemetry.expert_tally import IN_RAM, ON_DRIVE, ExpertTally
from tests.support.runtime_process import ROOT, RuntimeProcess, running_runtime, service_command
from tests.support.scripted import ask
from tests.unit.telemetry.test_sampler import Bench

COST_TARGET_SHARE = 0.05
MEASURE_S = 4.0
STOPPED_S = 4.0
ANSWER_S = 1.0
LARGE = Script(
    answers=("word " * 100,),
    decode_tokens_per_s=100 / ANSWER_S,
    load_s=0,
    num_layers=94,
    num_experts=512,
    device_gib=16.0,
)


def large_script(folder: Path) -> tuple[str, str]:
    path = folder / "script.json"
    path.write_bytes(msgspec.json.encode(LARGE))
    return "--script", str(path)


def test_largest_map_at_full_rate_costs_little(
    monkeypatch: pytest.MonkeyPatch, record_property: Callable[[str, object], None]
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    found = importlib.import_module("telemetry").measure(MEASURE_S)
    record_property("core_share", str(found["share"]))
    assert found["samples_per_s"] < 11.0
    assert found["share"] < 3 * COST_TARGET_SHARE


def test_samples_of_the_largest_map_of_an_engine_at_work_cost_little(
    monkeypatch: pytest.MonkeyPatch, record_property: Callable[[str, object], None]
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    bench = Bench(tally=ExpertTally(LARGE.num_layers, LARGE.num_experts, 4))
    sampler = bench.sampler()
    num_all = LARGE.num_layers * LARGE.num_experts
    draw = random.Random(7)

    def take(interval_s: float) -> TelemetrySample:
        for first in range(0, num_all, LARGE.num_experts):
            bench.tally.note_uses(first, draw.sample(range(LARGE.num_experts), TOP_K))
        moved = draw.randrange(num_all)
        bench.tally.tiers[moved] = IN_RAM + ON_DRIVE - bench.tally.tiers[moved]
        return sampler.sample(interval_s)

    found = importlib.import_module("sampler").watched(take, MEASURE_S)
    record_property("core_share", str(found["share"]))
    assert found["samples_per_s"] < 11.0
    assert found["moved_ratio"] == 1.0
    assert found["share"] < COST_TARGET_SHARE


def test_every_watch_begins_with_a_complete_map_and_goes_on_with_changes(tmp_path: Path) -> None:
    with running_runtime(tmp_path, *large_script(tmp_path)) as runtime:
        runtime.open()
        runtime.load_first(tmp_path)
        num_all = LARGE.num_layers * LARGE.num_experts
        for request_id in (4, 5):
            runtime.send(WatchTelemetry(request_id=request_id, interval_s=0.01))
            assert runtime.wait_for(TelemetryWatched).interval_s == pytest.approx(0.1)
            first = runtime.wait_for(TelemetrySampled).sample.experts
            second = runtime.wait_for(TelemetrySampled).sample.experts
            assert first is not None
            assert second is not None
            assert (len(first.tier), len(first.bits)) == (num_all, num_all)
            assert (len(second.use), second.tier, second.bits) == (num_all, b"", b"")


def test_stopped_reader_slows_no_answer_and_loses_no_token(tmp_path: Path) -> None:
    service = shlex.join(service_command(tmp_path / "runtime.log", *large_script(tmp_path)))
    runtime = RuntimeProcess(tmp_path, command=["sh", "-c", f"{service} | cat"])
    reader: psutil.Process | None = None
    with runtime.process:
        try:
            runtime.open()
            runtime.load_first(tmp_path)
            children = psutil.Process(runtime.process.pid).children()
            reader = next(child for child in children if child.name() == "cat")
            runtime.send(WatchTelemetry(request_id=4, interval_s=0.1))
            runtime.wait_for(TelemetrySampled)
            reader.send_signal(signal.SIGSTOP)
            runtime.send(ask(5))
            with pytest.raises(subprocess.TimeoutExpired):
                runtime.process.wait(STOPPED_S)
            reader.send_signal(signal.SIGCONT)
            texts, num_dropped = [], 0
            while not isinstance(event := runtime.next_event(), GenerationFinished):
                if isinstance(event, TokensGenerated):
                    texts.append(event.text)
            num_dropped = runtime.wait_for(TelemetrySampled).sample.num_dropped
            assert event.stats.decode_s < 3 * ANSWER_S < STOPPED_S
            assert "".join(texts) == LARGE.answers[0]
            assert num_dropped > 0
            runtime.close_input()
            runtime.rest()
        finally:
            if reader is not None:
                with contextlib.suppress(psutil.NoSuchProcess):
                    reader.kill()
            runtime.process.kill()
