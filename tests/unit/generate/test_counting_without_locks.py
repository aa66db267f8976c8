"""What the engine thread counts, it counts without a lock: no sampler can make it wait."""

import dataclasses
import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

import pytest

from runtime.protocol.telemetry import TelemetrySample
from tests.support.engine_runs import answer, user
from tests.support.hand_made_plans import exact_plan
from tests.unit.generate.conftest import OpenEngine

QUESTION = [user("What is the capital of France?")]
LockFactory = Callable[[], threading.Lock]


class LockWatch:
    """Counts how often the thread that made it takes a lock made while it was there."""

    def __init__(self) -> None:
        self.thread = threading.get_ident()
        self.num_taken = 0

    def note(self) -> None:
        self.num_taken += threading.get_ident() == self.thread


class WatchedLock:
    """A lock that tells a watch when it is taken; threading's conditions use it as their own."""

    def __init__(self, watch: LockWatch, inner: threading.Lock) -> None:
        self._watch = watch
        self._inner = inner

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        self._watch.note()
        return self._inner.acquire(blocking, timeout)

    def release(self) -> None:
        self._inner.release()

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()

    def __getattr__(self, name: str) -> object:
        return getattr(self._inner, name)


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> LockWatch:
    made = LockWatch()
    for name in ("Lock", "RLock"):
        factory: LockFactory = getattr(threading, name)
        monkeypatch.setattr(threading, name, lambda make=factory: WatchedLock(made, make()))
    return made


def test_engine_takes_no_lock_while_it_answers_from_ram(
    watch: LockWatch, open_engine: OpenEngine, qwen2_folder: Path
) -> None:
    engine = open_engine(exact_plan(qwen2_folder))
    assert watch.num_taken > 0, "loading reads, and readers are waited for with locks"
    answer(engine, QUESTION)
    engine.sample(0.1)
    watch.num_taken = 0

    run = answer(engine, QUESTION)

    assert len(run.token_ids) > 8
    assert watch.num_taken == 0
    assert engine.sample(0.1).num_tokens == run.stats.generated_tokens - 1, "one is the prompt's"


@pytest.mark.parametrize("num_slots", [6, 2])
def test_engine_answers_while_a_sampler_stands_still(
    open_engine: OpenEngine, qwen2_folder: Path, num_slots: int
) -> None:
    engine = open_engine(exact_plan(qwen2_folder, num_slots))
    expected = answer(engine, QUESTION).token_ids
    engine.sample(0.1)
    stands, go_on = threading.Event(), threading.Event()
    sampler = engine._sampler
    assert sampler is not None
    resident_bytes = sampler._gauges.resident_bytes

    def stand_still() -> int:
        stands.set()
        assert go_on.wait(60)
        return resident_bytes()

    sampler._gauges = dataclasses.replace(sampler._gauges, resident_bytes=stand_still)
    samples: list[TelemetrySample] = []
    thread = threading.Thread(target=lambda: samples.append(engine.sample(0.1)))
    thread.start()
    assert stands.wait(60)

    run = answer(engine, QUESTION)

    assert run.token_ids == expected
    assert thread.is_alive()
    go_on.set()
    thread.join(60)
    sampler._gauges = dataclasses.replace(sampler._gauges, resident_bytes=resident_bytes)
    assert samples[0].num_tokens == 0
    assert engine.sample(0.1).num_tokens == run.stats.generated_tokens - 1, "one is the prompt's"
