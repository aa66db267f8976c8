"""The fixed part of a layer as one launch: what every token computes alike, recorded once.

A token starts some thirty small operations in each layer before its experts are known, which takes
longer than what they compute. Recorded they start as one::

    norm, queries, keys, values, attention, output, norm, router | experts, wherever they lie
    ------------------------- recorded ------------------------- | as before
"""

import dataclasses
import logging
from collections.abc import Sequence

import torch

from runtime.device.base import Device
from runtime.device.graphs import GraphRecorder, Replay
from runtime.kernels.base import FixedWork
from runtime.kernels.fixed import FixedPlace
from runtime.kernels.kv import KvPages
from runtime.kernels.tiered import TieredKernels

_LOG = logging.getLogger(__name__)
FIRST_LENGTH = 256
"""Positions that the first recordings see; a longer conversation is recorded anew at twice that."""
PLAIN_TOKENS = 8
"""So many tokens are computed piece by piece first: recording pays for longer answers alone."""
MAX_ERROR = 1e-3
"""Of what a recording may be off, as part of the largest number: sums are of another order."""


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class _Recorded:
    """One layer's recording, and the pages that it reads and writes; moved ones are others."""

    length: int
    pages: KvPages
    replay: Replay
    results: Sequence[torch.Tensor]


class LayerGraphs:
    """Records layers as they are met, and runs what is recorded.

    Each recording is compared with the plain computation once. Where one cannot be made, or comes
    to something else, all layers are computed piece by piece from then on, and ``failure`` says
    why.

    Threads: used by the engine thread.
    """

    def __init__(self, kernels: TieredKernels, device: Device, recorder: GraphRecorder) -> None:
        self.failure: str | None = None
        self._kernels = kernels
        self._device = device
        self._recorder = recorder
        self._position = torch.zeros(1, dtype=torch.int64, device=device.torch_device)
        self._at = -1
        self._num_tokens = 0
        self._x: torch.Tensor | None = None
        """The stream, where recordings read and write it."""
        self._recorded: dict[int, _Recorded] = {}

    @property
    def num_recorded(self) -> int:
        """Layers that are recorded."""
        return len(self._recorded)

    def run(
        self, layer: int, work: FixedWork, x: torch.Tensor, position: int, pages: KvPages
    ) -> tuple[torch.Tensor, Sequence[torch.Tensor]] | None:
        """Return the stream and the results of ``work``, None where the caller is to run it.

        Results are valid until the layer runs again.
        """
        if self.failure is not None or pages.whole is None or len(x) != 1:
            return None
        self._stand_at(position)
        if self._num_tokens <= PLAIN_TOKENS:
            return None
        length = _length_of(position + 1, len(pages.whole[0]))
        found = self._recorded.get(layer)
        if found is None or found.length != length or found.pages is not pages:
            return self._record(layer, work, x, pages, length)
        stream = self._stream(x)
        self._device.launch(found.replay)
        return stream, found.results

    def close(self) -> None:
        """Give the recordings' memory back."""
        self._recorded.clear()
        self._x = None

    def _stand_at(self, position: int) -> None:
        """Let recordings compute a position; layers of one token share it."""
        if position != self._at:
            self._at = position
            self._num_tokens += 1
            self._position.fill_(position)

    def _stream(self, x: torch.Tensor) -> torch.Tensor:
        """Return the stream where recordings read it; nothing is copied from layer to layer."""
        if self._x is None or self._x.shape != x.shape:
            self._x = torch.empty_like(x)
        if x is not self._x:
            self._x.copy_(x)
        return self._x

    def _record(
        self, layer: int, work: FixedWork, x: torch.Tensor, pages: KvPages, length: int
    ) -> tuple[torch.Tensor, Sequence[torch.Tensor]]:
        """Compute a layer piece by piece, record it, and compare; return what is known right."""
        position, before = self._at, x.clone()
        # Not the place that recordings write to.
        x = x.clone()
        expected = work(x, position, pages)
        stream, place = self._stream(before), FixedPlace(self._position, length)

        def recorded() -> Sequence[torch.Tensor]:
            with self._kernels.at(place):
                return work(stream, position, pages)

        try:
            replay, results = self._recorder.record(recorded)
            stream.copy_(before)
            self._device.launch(replay)
            pairs = zip((stream, *results), (x, *expected), strict=True)
            # The largest, or no number: of those, none is larger than another.
            error = float(torch.tensor([_error(*pair) for pair in pairs]).max())
        except Exception as fault:  # noqa: BLE001 - libraries of cards fail in ways of their own
            self._give_up(f"{type(fault).__name__}: {fault}")
            _LOG.warning("a layer cannot be recorded here", exc_info=True)
            return x, expected
        if not error <= MAX_ERROR:
            self._give_up(f"layer {layer} is off by {error:g}")
            _LOG.warning("a recorded layer is off by %g here: none are used", error)
            return x, expected
        self._recorded[layer] = _Recorded(length, pages, replay, results)
        return x, expected

    def _give_up(self, why: str) -> None:
        self.failure = why
        self.close()


def _length_of(num_seen: int, most: int) -> int:
    """Return how many positions a recording for so many sees."""
    length = FIRST_LENGTH
    while length < num_seen:
        length *= 2
    return min(length, most)


def _error(found: torch.Tensor, wanted: torch.Tensor) -> float:
    """Return how far numbers are off, as part of the largest; of whole numbers all must be same."""
    if not wanted.is_floating_point():
        return 0.0 if torch.equal(found, wanted) else torch.inf
    largest = max(1.0, float(wanted.abs().max()))
    return float((found - wanted).abs().max()) / largest
