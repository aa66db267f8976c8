"""Trying what answers change by when a group of matrices is rounded and all else is as published.

Which errors count cannot be told from their sizes: what the output matrix spoils comes into the
answer whole, and what the first layer spoils hardly does. So each group (``sensitivity``) is
rounded by itself, as a copy would have it, and some tokens of the text are read anew.
"""

import contextlib
import dataclasses
import functools
import math
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import torch

from runtime.errors import LarderError
from runtime.generate.loading import LoadedParts
from runtime.generate.trial_pace import TrialPace
from runtime.inspect.folder import inspect_folder
from runtime.inspect.gguf.places import is_gguf
from runtime.kernels.base import PLAIN_STYLE, ExpertStyle, Kernels
from runtime.kernels.formats import pack, unpack
from runtime.kernels.matrix import Bytes, Matrix, Slot
from runtime.prepare.calibration import Calibration
from runtime.prepare.importance import CalibratedImportance
from runtime.prepare.quantise import chunks_of, convert_rows, matrix_chunks
from runtime.prepare.sensitivity import (
    EVERYTHING,
    FINEST_FORMAT,
    TRIED_FORMAT,
    Name,
    group_of,
    groups_of,
    is_mixable,
    is_mixed,
)
from runtime.protocol.values import WeightFormat
from runtime.spec.model import ModelSpec
from runtime.spec.tensors import (
    PLAIN_FORMATS,
    ExpertId,
    ExpertLayout,
    ExpertPart,
    MatrixLayout,
    TensorEntry,
    expert_layout,
    matrix_bytes,
)
from runtime.store.not_finite import not_finite

NUM_PIECES, PIECE_TOKENS = 4, 128
"""What is read for each trial: pieces of the text, evenly apart, in a row."""
LOGIT_ROWS = 32
"""Rows whose logits are compared at once."""
FINEST_SPEED = 10
"""How many times as fast weights are rounded to eight bits as to two."""
_MAX_THREADS = 8


@dataclasses.dataclass(frozen=True, slots=True)
class Trial:
    """What is rounded, and to what."""

    group: str
    format: WeightFormat
    importance: CalibratedImportance
    names: Mapping[int, str]
    """Of the dense matrices that a mix chooses formats of, by address."""
    folder: str
    """Where the model is published."""

    def takes(self, name: Name) -> bool:
        """Whether a part is rounded."""
        return self.group in (EVERYTHING, group_of(name, self.importance.spec))


class TryingKernels:
    """Other kernels, which are given some matrices rounded while there is a trial.

    At most one dense matrix and one expert lie in memory rounded.

    Threads: one caller at a time.
    """

    def __init__(self, kernels: Kernels) -> None:
        self._kernels = kernels
        self.layer = 0
        """The layer that computes now, set by whoever runs the model."""
        self.trial: Trial | None = None
        self.rounding_s = 0.0
        """What rounding has taken so far."""
        self._last: tuple[Trial, str, Matrix] | None = None

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the kernels have
        """Return what takes no matrix that is rounded, as the kernels have it."""
        return getattr(self._kernels, name)

    def linear(
        self, x: torch.Tensor, matrix: Matrix, bias: torch.Tensor | None = None
    ) -> torch.Tensor:
        """Return the product with the matrix, or with what it is rounded to."""
        trial, name = self._rounding(matrix)
        if trial is not None:
            if self._last is None or self._last[0] is not trial or self._last[1] != name:
                self._last = None
                with self._counted():
                    self._last = trial, name, _rounded(matrix, trial, name)
            matrix = self._last[2]
        return self._kernels.linear(x, matrix, bias)

    def embed(self, matrix: Matrix, ids: torch.Tensor) -> torch.Tensor:
        """Return rows of the matrix, or what they are rounded to."""
        rows = self._kernels.embed(matrix, ids)
        trial, name = self._rounding(matrix)
        if trial is None:
            return rows
        with self._counted():
            packed = pack(trial.format, rows.numpy(), trial.importance.of_dense(name))
            return torch.from_numpy(unpack(trial.format, packed, *rows.shape))

    def experts(
        self,
        x: torch.Tensor,
        layout: ExpertLayout,
        experts: Sequence[tuple[int, Slot]],
        ids: torch.Tensor,
        weights: torch.Tensor,
        out: torch.Tensor,
        style: ExpertStyle = PLAIN_STYLE,
    ) -> None:
        """Add the results of the experts, or of what they are rounded to."""
        trial, layer = self.trial, self.layer
        if trial is None or not trial.takes(ExpertId(layer, 0)):
            self._kernels.experts(x, layout, experts, ids, weights, out, style)
            return
        spec = trial.importance.spec
        wanted = expert_layout(trial.format, spec.hidden_size, spec.expert_width)
        chosen = set(np.unique(ids.numpy()).tolist())
        with _pool() as pool:
            for number, slot in experts:
                if number not in chosen:
                    continue
                try:
                    with self._counted():
                        rounded = _rounded_expert(pool, slot, layout, wanted, trial, number, layer)
                except ValueError as cause:
                    raise _not_finite(trial, ExpertId(layer, number), slot, layout) from cause
                self._kernels.experts(x, wanted, [(number, rounded)], ids, weights, out, style)

    @contextlib.contextmanager
    def _counted(self) -> Iterator[None]:
        """Add what is done meanwhile to the time that rounding takes."""
        begun_s = time.monotonic()
        yield
        self.rounding_s += time.monotonic() - begun_s

    def _rounding(self, matrix: Matrix) -> tuple[Trial | None, str]:
        """Return the trial in which a dense matrix is rounded, and the matrix' name."""
        trial = self.trial
        name = "" if trial is None else trial.names.get(matrix.address, "")
        return (trial if trial is not None and name and trial.takes(name) else None), name


def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(min(os.cpu_count() or 1, _MAX_THREADS))


def _rounded(matrix: Matrix, trial: Trial, name: str) -> Matrix:
    """Return a dense matrix as a copy would have it."""
    source = MatrixLayout(matrix.format, matrix.rows, matrix.columns, 0, len(matrix.data))
    num_bytes = matrix_bytes(trial.format, matrix.rows, matrix.columns)
    layout = MatrixLayout(trial.format, matrix.rows, matrix.columns, 0, num_bytes)
    chunks = list(matrix_chunks(source, trial.format))
    convert = functools.partial(
        convert_rows, np.asarray(matrix.data), importance=trial.importance.of_dense(name)
    )
    data = _room(num_bytes)
    with _pool() as pool:
        for chunk, packed in zip(chunks, pool.map(convert, chunks), strict=True):
            data[chunk.begin_bytes : chunk.begin_bytes + len(packed)] = packed
    return Matrix.from_buffer(layout, data)


def _rounded_expert(
    pool: Executor,
    slot: Slot,
    layout: ExpertLayout,
    wanted: ExpertLayout,
    trial: Trial,
    number: int,
    layer: int,
) -> Slot:
    """Return a slot with an expert as a copy would have it."""
    record = _room(wanted.record_bytes)
    source = slot.bytes().numpy()
    expert = ExpertId(layer, number)
    chunks = list(chunks_of(layout, wanted))
    importances = [
        None if chunk.part is None else trial.importance.of_expert(expert, chunk.part)
        for chunk in chunks
    ]
    packed = pool.map(functools.partial(convert_rows, source), chunks, importances)
    for chunk, data in zip(chunks, packed, strict=True):
        record[chunk.begin_bytes : chunk.begin_bytes + len(data)] = data
    return Slot.from_buffer(record)


def _not_finite(trial: Trial, expert: ExpertId, slot: Slot, layout: ExpertLayout) -> LarderError:
    """Return the error that names the first matrix of an expert with what is no number."""
    part = next(
        part
        for part, each in slot.matrices(layout.parts).items()
        if not np.isfinite(
            unpack(each.format, np.asarray(each.data), each.rows, each.columns)
        ).all()
    )
    return not_finite(inspect_folder(trial.folder).experts[expert][part])


def _room(num_bytes: int) -> Bytes:
    """Return zeros that begin where kernels want bytes to begin."""
    return torch.zeros(num_bytes, dtype=torch.uint8).numpy()


class Trials:
    """The trials that a calibration still lacks, one after the other."""

    def __init__(
        self,
        parts: LoadedParts,
        kernels: TryingKernels,
        found: Calibration,
        ids: Sequence[int],
        enter: Callable[[int], None],
    ) -> None:
        """``enter`` is called with the layer that comes next; what it raises ends a trial."""
        self._parts = parts
        self._kernels = kernels
        self._found = found
        self._ids = pieces_of(ids)[: parts.kv.context_tokens]
        self._enter = enter
        entries = parts.store.dense_tensors
        layout = parts.store.layout
        experts: list[Name] = []
        # GGUF files are used where they lie, whatever their experts are in.
        is_copied = not is_gguf(Path(parts.plan.model_folder))
        if is_copied and PLAIN_FORMATS.issuperset(layout.formats):
            experts = [ExpertId(layer, 0) for layer in parts.spec.moe_layers]
        names = [*experts, *(name for name, entry in entries.items() if is_mixable(entry))]
        self.groups = (*groups_of(names, parts.spec), EVERYTHING) if experts else ()
        """What is tried; nothing of a model of which no mix can be made."""
        self._pace = TrialPace(_weights_of(names, entries, parts.spec))
        self._begun_s: float | None = None

    @property
    def num_done(self) -> int:
        """Groups that were tried."""
        return sum(group in self._found.trials for group in self.groups)

    @property
    def per_s(self) -> float:
        """How many of the groups that are left are tried in a second; 0 while that is not known."""
        missing = self._missing
        if not missing or self._begun_s is None:
            return 0.0
        left_s = self._pace.seconds_left(missing, time.monotonic() - self._begun_s)
        return len(missing) / left_s if left_s else 0.0

    def run(self) -> Iterator[None]:
        """Try what was not tried yet; yield after each group."""
        missing = self._missing
        if missing:
            exact = self._hidden()
        entries, matrices = self._parts.store.dense_tensors, self._parts.home.matrices()
        names = {
            matrices[name].address: name
            for name, entry in entries.items()
            if is_mixed(entry, self._found)
        }
        for group in missing:
            self._begun_s, rounding_s = time.monotonic(), self._kernels.rounding_s
            self._found.trials[group] = self._tried(group, exact, names)
            now_s = time.monotonic()
            rounding_s = self._kernels.rounding_s - rounding_s
            self._pace.note(group, now_s - self._begun_s, rounding_s)
            self._begun_s = now_s
            yield
        self._found.is_tried = True

    @property
    def _missing(self) -> Sequence[str]:
        return [group for group in self.groups if group not in self._found.trials]

    def _tried(self, group: str, exact: torch.Tensor, names: Mapping[int, str]) -> float:
        """Return the mean KL divergence of next tokens with a group rounded."""
        trial = Trial(
            group,
            FINEST_FORMAT if group == EVERYTHING else TRIED_FORMAT,
            CalibratedImportance(self._found, self._parts.spec),
            names,
            self._parts.plan.model_folder,
        )
        try:
            self._kernels.trial = trial
            hidden = self._hidden()
            total = 0.0
            for first in range(0, len(hidden), LOGIT_ROWS):
                rows = slice(first, first + LOGIT_ROWS)
                self._kernels.trial = trial
                changed = torch.log_softmax(self._parts.model.logits(hidden[rows]), dim=-1)
                self._kernels.trial = None
                true = torch.log_softmax(self._parts.model.logits(exact[rows]), dim=-1)
                total += float((true.exp() * (true - changed)).sum(dtype=torch.float64))
        finally:
            self._kernels.trial = None
        return total / len(hidden)

    def _hidden(self) -> torch.Tensor:
        """Put the tokens through all layers, from an empty memory."""
        parts = self._parts
        rows: list[torch.Tensor] = []
        parts.kv.truncate(0)
        for first in range(0, len(self._ids), parts.home.chunk_tokens):
            chunk = self._ids[first : first + parts.home.chunk_tokens]
            parts.experts.begin_step()
            parts.kv.reserve(len(chunk))
            self._enter(0)
            hidden = parts.model.forward(
                chunk, parts.kv.num_tokens, parts.kv.layers, lambda layer: self._enter(layer + 1)
            )
            parts.kv.commit(chunk)
            rows.append(hidden.clone())
        return torch.cat(rows)


def _weights_of(
    names: Iterable[Name], entries: Mapping[str, TensorEntry], spec: ModelSpec
) -> Mapping[str, int]:
    """Return how much there is to round in each group: weights, at the pace of two bits.

    The first expert of a layer stands for all of it.
    """
    found: Counter[str] = Counter()
    layer_weights = spec.num_experts * len(ExpertPart) * spec.hidden_size * spec.expert_width
    for name in names:
        if isinstance(name, ExpertId):
            num_weights = layer_weights
        else:
            num_weights = math.prod(entries[name].shape)
        found[group_of(name, spec)] += num_weights
        found[EVERYTHING] += num_weights
    found[EVERYTHING] //= FINEST_SPEED
    return found


def pieces_of(ids: Sequence[int]) -> list[int]:
    """Return pieces of a text, evenly apart and in their order; a short text whole."""
    if len(ids) <= NUM_PIECES * PIECE_TOKENS:
        return list(ids)
    step = (len(ids) - PIECE_TOKENS) / (NUM_PIECES - 1)
    begins = [round(place * step) for place in range(NUM_PIECES)]
    return [token for begin in begins for token in ids[begin : begin + PIECE_TOKENS]]
