"""Writes down, while a model runs, which experts its tokens choose."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from runtime.simulate.trace import MAX_SCORE, ExpertIds, Scores, Trace, TraceOrigin
from runtime.simulate.trace_files import TraceWriter
from runtime.simulate.whole_steps import WholeSteps

TOKENS_PER_PART = 2048
"""So many tokens wait in memory before a part is written."""


class RoutingRecorder:
    """Keeps ids and the router's weights of each token in every MoE layer; no tokens, no text.

    Steps are noted as ``WholeSteps`` takes them. A sequence is what one answer computed.

    Threads: used by the engine thread.
    """

    def __init__(
        self, folder: Path, model: str, num_experts: int, layers: Sequence[int], top_k: int
    ) -> None:
        """Raises ``SETTING_INVALID`` if the folder holds a trace already."""
        origin = TraceOrigin(model, "decode", "recorded on this PC", "")
        empty = np.empty((0, len(layers), top_k), np.uint16)
        self._empty = Trace(folder.name, origin, num_experts, tuple(layers), (), empty, None, False)
        self._writer = TraceWriter(folder, self._empty)
        self._whole_steps = WholeSteps[tuple[ExpertIds, Scores]](layers)
        self._steps: list[tuple[ExpertIds, Scores]] = []
        self._num_waiting = 0
        self._sequences: list[int] = []
        self._num_in_sequence = 0

    def note(
        self, layer: int, ids: npt.NDArray[np.int32], weights: npt.NDArray[np.float32]
    ) -> None:
        """Note what the tokens of a step chose in a layer, both [tokens, top_k]."""
        scores = np.clip(np.rint(weights * MAX_SCORE), 0, MAX_SCORE).astype(np.uint8)
        step = self._whole_steps.add(layer, (ids.astype(np.uint16), scores))
        if step is not None:
            chosen, shares = zip(*step, strict=True)
            self._steps.append((np.stack(chosen, axis=1), np.stack(shares, axis=1)))
            self._num_waiting += len(ids)
            self._num_in_sequence += len(ids)
            if self._num_waiting >= TOKENS_PER_PART:
                self._flush()

    def end_sequence(self) -> None:
        """End what belongs together, and write what waits. Raises ``DISK_NOT_WRITABLE``."""
        self._flush()
        if self._num_in_sequence:
            self._sequences.append(self._num_in_sequence)
            self._num_in_sequence = 0

    def _flush(self) -> None:
        """Write a part of what was noted since the last one."""
        if not self._steps:
            return
        ids = np.concatenate([step[0] for step in self._steps])
        scores = np.concatenate([step[1] for step in self._steps])
        self._steps = []
        self._num_waiting = 0
        part = dataclasses.replace(self._empty, sequence_tokens=(len(ids),), ids=ids, scores=scores)
        open_tokens = (self._num_in_sequence,) if self._num_in_sequence else ()
        self._writer.add(part, (*self._sequences, *open_tokens))
