"""Where the bytes of a prepared copy come from: read, converted, handed on piece by piece."""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Self

import numpy as np

from runtime.errors import LarderError
from runtime.inspect.inspection import Inspection
from runtime.kernels.quads import Floats
from runtime.prepare.progress import Progress
from runtime.prepare.quantise import Chunk, chunks_of, convert_rows, matrix_chunks
from runtime.prepare.recipe import Recipe, WeightFile
from runtime.prepare.weight_file import TensorPlan
from runtime.protocol.values import WeightFormat
from runtime.spec.tensors import ExpertId, ExpertPart, MatrixLayout, TensorEntry
from runtime.store.checkpoint import CheckpointStore
from runtime.store.not_finite import not_finite

_COPY_BYTES = 4 << 20
_MAX_THREADS = 8
_CHUNKS_AT_ONCE = 64


class Sources:
    """The published weights of one model, in the shapes that the files of its copy need.

    Memory: one expert as published and one as prepared, and a small chunk for each thread; of a
    mix, one dense matrix as published.
    """

    def __init__(self, inspection: Inspection, recipe: Recipe, work: Progress) -> None:
        self._experts = inspection.experts
        self._store = CheckpointStore(inspection, is_widened=True)
        self._recipe = recipe
        self._work = work
        self._pool = ThreadPoolExecutor(min(os.cpu_count() or 1, _MAX_THREADS))
        self._published = np.zeros(self._store.layout.record_bytes, np.uint8)
        self._chunks = {
            each: list(chunks_of(self._store.layout, layout))
            for each, layout in recipe.layouts.items()
        }

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
        """Copy a dense tensor, widened if it is published in few bits, or convert it for a mix."""
        mix = self._recipe.mix
        if mix is not None and entry.name in mix.dense:
            yield from self._converted(entry, mix.dense[entry.name])
            return
        buffer = memoryview(bytearray(min(_COPY_BYTES, entry.num_bytes)))
        for piece in self._store.tensor_pieces(entry, buffer):
            yield piece
            self._work.add(piece.nbytes)

    def _converted(self, entry: TensorEntry, wanted: WeightFormat) -> Iterator[memoryview]:
        """Convert a dense matrix, which is held in RAM whole meanwhile."""
        published = np.zeros(entry.num_bytes, np.uint8)
        self._store.read_tensor(entry, published.data)
        heeded = self._recipe.mix.importance if self._recipe.mix is not None else None
        importance = None if heeded is None else heeded.of_dense(entry.name)
        rows, columns = entry.shape
        plain = MatrixLayout(entry.format, rows, columns, 0, entry.num_bytes)
        chunks = list(matrix_chunks(plain, wanted))
        # A few at a time: what is done and not written yet is held too.
        for first in range(0, len(chunks), _CHUNKS_AT_ONCE):
            some = chunks[first : first + _CHUNKS_AT_ONCE]
            tasks = [
                self._pool.submit(convert_rows, published, chunk, importance) for chunk in some
            ]
            for task in tasks:
                try:
                    data = task.result()
                except ValueError as cause:
                    raise not_finite(entry, str(cause)) from cause
                yield data.data
                self._work.add(len(data))

    def _expert(self, expert: ExpertId) -> Iterator[memoryview]:
        """Convert one expert, its chunks side by side."""
        self._store.read_expert(expert, self._published.data)
        wanted = self._recipe.format_of(expert)
        chunks = self._chunks[wanted]
        record = np.zeros(self._recipe.layouts[wanted].record_bytes, np.uint8)
        importance = self._importance(expert)
        tasks = [
            self._pool.submit(convert_rows, self._published, chunk, importance.get(chunk.part))
            for chunk in chunks
        ]
        done_bytes = 0
        for chunk, task in zip(chunks, tasks, strict=True):
            try:
                data = task.result()
            except ValueError as cause:
                raise self._not_finite(expert, chunk, cause) from cause
            record[chunk.begin_bytes : chunk.begin_bytes + len(data)] = data
            done_bytes += len(data)
            self._work.add(len(data))
        yield record.data
        self._work.add(len(record) - done_bytes)

    def _importance(self, expert: ExpertId) -> dict[ExpertPart | None, Floats]:
        """Return what is heeded of each matrix of an expert; empty where nothing is."""
        mix = self._recipe.mix
        if mix is None or mix.importance is None:
            return {}
        return {part: mix.importance.of_expert(expert, part) for part in ExpertPart}

    def _not_finite(self, expert: ExpertId, chunk: Chunk, cause: ValueError) -> LarderError:
        """Return the error for a chunk that cannot be converted, which names its tensor."""
        layout = self._store.layout
        part = next(part for part in ExpertPart if layout[part] is chunk.source)
        detail = f"layer {expert.layer}, expert {expert.expert}: {cause}"
        return not_finite(self._experts[expert][part], detail)
