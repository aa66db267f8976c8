"""What is asked of torch's CUDA graphs, in which order; the graphs themselves need a card."""

import contextlib
from collections.abc import Iterator, Sequence

import pytest
import torch

from runtime.device.graphs import CudaGraphs, recorder_of

CARD = torch.device("cuda:0")


class Stream:
    """A queue that tells whom it waits for."""

    def __init__(self, asked: list[str], name: str) -> None:
        self._asked = asked
        self.name = name

    def wait_stream(self, other: "Stream") -> None:
        self._asked.append(f"{self.name} waits for {other.name}")


class Graph:
    """A recording that can be started."""

    def __init__(self, asked: list[str]) -> None:
        self._asked = asked

    def capture_begin(self, *, pool: object, capture_error_mode: str) -> None:
        self._asked.append(f"record in {pool}, {capture_error_mode}")

    def capture_end(self) -> None:
        self._asked.append("recorded")

    def replay(self) -> None:
        self._asked.append("replay")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What torch was asked for, in order."""
    told: list[str] = []

    @contextlib.contextmanager
    def during(name: str) -> Iterator[None]:
        told.append(f"begin {name}")
        try:
            yield
        finally:
            told.append(f"end {name}")

    monkeypatch.setattr("torch.cuda.device", lambda device: during(str(device)))
    monkeypatch.setattr("torch.cuda.current_stream", lambda: Stream(told, "own"))
    monkeypatch.setattr("torch.cuda.Stream", lambda: Stream(told, "side"))
    monkeypatch.setattr("torch.cuda.stream", lambda stream: during(stream.name))
    monkeypatch.setattr("torch.cuda.graph_pool_handle", lambda: "pool")
    monkeypatch.setattr("torch.cuda.CUDAGraph", lambda: Graph(told))
    return told


def test_cuda_graph_is_recorded_after_a_first_run_beside_it(asked: list[str]) -> None:
    recorder = recorder_of(CARD)
    assert isinstance(recorder, CudaGraphs)

    def work() -> Sequence[torch.Tensor]:
        asked.append("work")
        return [torch.tensor([asked.count("work")])]

    replay, results = recorder.record(work)
    replay()

    assert asked == [
        "begin cuda:0",
        "side waits for own",
        "begin side",
        "work",
        "record in pool, thread_local",
        "work",
        "recorded",
        "end side",
        "own waits for side",
        "end cuda:0",
        "replay",
    ]
    assert results[0].tolist() == [2]


def test_cuda_graph_that_fails_ends_the_recording(asked: list[str]) -> None:
    numbers = iter((1, 2))

    def work() -> Sequence[torch.Tensor]:
        if next(numbers) == 2:
            raise RuntimeError("not permitted")
        return ()

    with pytest.raises(RuntimeError, match="not permitted"):
        CudaGraphs(CARD).record(work)

    assert asked[-3] == "recorded"


def test_processor_has_no_recorder() -> None:
    assert recorder_of(torch.device("cpu")) is None
