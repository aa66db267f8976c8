"""Where the bytes of a prepared copy come from: read, converted, handed on piece by piece."""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Self

import numpy as np

from runtime.errors import LarderError
from runtime.inspect.inspection import Inspection
from runtime.prepare.progress import Progress
from runtime.prepare.quantise import Chunk, chunks_of, convert_rows
from runtime.prepare.recipe import Recipe, WeightFile
from runtime.prepare.weight_file import TensorPlan
from runtime.spec.tensors import ExpertId, ExpertPart, TensorEntry
from runtime.store.checkpoint import CheckpointStore
from runtime.store.not_finite import not_finite

_COPY_BYTES = 4 << 20
_MAX_THREADS = 8


class Sources:
    """The published weights of one model, in the shapes that the files of its copy need.

    Memory: one expert as published and one as prepared, and a small chunk for each thread.
    """

    def __init__(self, inspection: Inspection, recipe: Recipe, work: Progress) -> None:
        self._experts = inspection.experts
        self._store = CheckpointStore(inspection, is_widened=True)
        self._recipe = recipe
        self._work = work
        self._pool = ThreadPoolExecutor(min(os.cpu_count() or 1, _MAX_THREADS))
        self._published = np.zeros(self._store.layout.record_bytes, np.uint8)
        self._record = np.zeros(recipe.layout.record_bytes, np.uint8)
        self._chunks = list(chunks_of(self._store.layout, recipe.layout))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._pool.shutdown(cancel_futures=True)
        self._store.close()

    def pieces(self, file: WeightFile) -> Callable[[TensorPlan], Iterator[memoryview]]:
        """Return what yields the bytes of each tensor of ``file``."""
        layer = file.layer
        if layer is None:
            return lambda tensor: self._dense(self._store.dense_tensors[tensor.name])
        numbers = {tensor.name: number for number, tensor in enumerate(file.tensors)}
        return lambda tensor: self._expert(ExpertId(layer, numbers[tensor.name]))

    def _dense(self, entry: TensorEntry) -> Iterator[memoryview]:
        """Copy a dense tensor, widened if it is published in few bits."""
        buffer = memoryview(bytearray(min(_COPY_BYTES, entry.num_bytes)))
        for piece in self._store.tensor_pieces(entry, buffer):
            yield piece
            self._work.add(piece.nbytes)

    def _expert(self, expert: ExpertId) -> Iterator[memoryview]:
        """Convert one expert, its chunks side by side."""
        self._store.read_expert(expert, self._published.data)
        tasks = [self._pool.submit(convert_rows, self._published, chunk) for chunk in self._chunks]
        done_bytes = 0
        for chunk, task in zip(self._chunks, tasks, strict=True):
            try:
                data = task.result()
            except ValueError as cause:
                raise self._not_finite(expert, chunk, cause) from cause
            self._record[chunk.begin_bytes : chunk.begin_bytes + len(data)] = data
            done_bytes += len(data)
            self._work.add(len(data))
        yield self._record.data
        self._work.add(len(self._record) - done_bytes)

    def _not_finite(self, expert: ExpertId, chunk: Chunk, cause: ValueError) -> LarderError:
        """Return the error for a chunk that cannot be converted, which names its tensor."""
        layout = self._store.layout
        part = next(part for part in ExpertPart if layout[part] is chunk.source)
        detail = f"layer {expert.layer}, expert {expert.expert}: {cause}"
        return not_finite(self._experts[expert][part], detail)
