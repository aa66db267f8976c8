"""Recordings of what is launched on a device, to be started as one."""

from collections.abc import Callable, Sequence
from typing import Protocol

import torch

Work = Callable[[], Sequence[torch.Tensor]]
"""Launches something, always the same on the same memory, and returns what comes out of it."""
Replay = Callable[[], None]
"""Launches a recording; what came out of it when it was recorded holds the results."""


class GraphRecorder(Protocol):
    """What records work.

    Threads: used by the engine thread.
    """

    def record(self, work: Work) -> tuple[Replay, Sequence[torch.Tensor]]:
        """Return a recording and its results, which no replay of another one touches.

        ``work`` runs some times meanwhile. Raises what the device's libraries raise.
        """


class CudaGraphs:
    """Recordings as CUDA graphs. All share one pool, so that they must run one after the other."""

    def __init__(self, torch_device: torch.device) -> None:
        self._torch_device = torch_device
        self._pool = torch.cuda.graph_pool_handle()
        self._side: torch.cuda.Stream | None = None
        """Nothing can be recorded in the queue that everything else is in."""

    def record(self, work: Work) -> tuple[Replay, Sequence[torch.Tensor]]:
        """Return a recording and its results; see ``GraphRecorder``."""
        with torch.cuda.device(self._torch_device):
            current = torch.cuda.current_stream()
            if self._side is None:
                self._side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
            side = self._side
            side.wait_stream(current)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.stream(side):
                # Libraries take their room and compilers their time before anything is recorded.
                work()
                # Uploads go on in a thread of their own, which must not end the recording.
                graph.capture_begin(pool=self._pool, capture_error_mode="thread_local")
                try:
                    results = tuple(work())
                finally:
                    graph.capture_end()
            current.wait_stream(side)
            return graph.replay, results


def recorder_of(torch_device: torch.device) -> GraphRecorder | None:
    """Return what records on a device, None where nothing can."""
    return CudaGraphs(torch_device) if torch_device.type == "cuda" else None
