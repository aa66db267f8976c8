"""Choosing the mix of a model: what each format would spoil of answers in each part."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from runtime.errors import LarderError
from runtime.inspect.inspection import Inspection
from runtime.plan.mix import Choice, Part, choose_formats
from runtime.prepare.calibration import BLOCK_ENDS, Calibration, Floats
from runtime.prepare.importance import CalibratedImportance
from runtime.prepare.progress import Progress, ProgressReport, Stopper
from runtime.prepare.quantise import error_of, plain_rows
from runtime.prepare.sensitivity import Name, is_mixed, layer_of, unavoidable, weighed
from runtime.protocol.errors import ErrorCode
from runtime.protocol.values import WeightFormat
from runtime.spec.footprint import dense_tensor_bytes
from runtime.spec.mix import MIX_FORMATS, Importance, Mix, layouts_of
from runtime.spec.tensors import (
    ROW_BLOCK,
    ExpertId,
    ExpertPart,
    MatrixLayout,
    TensorEntry,
    matrix_bytes,
)
from runtime.store.checkpoint import CheckpointStore
from runtime.store.not_finite import not_finite

LEAST_USE = 0.02
"""An expert that was never used counts as this part of a usual one: texts differ."""
EXPERT_ROWS = 96
DENSE_ROWS = 256
"""Rows of a matrix that are tried, whole blocks of it, evenly apart."""


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """What each format would take and spoil of each part of a model."""

    parts: Sequence[Part[Name]]
    fixed_bytes: int
    """What stays as published."""
    importance: Importance | None = None
    """What packing heeds."""
    unavoidable: float = 0.0
    """What even the smallest change spoils of answers."""

    def mix(self, budget_bytes: int) -> Mix:
        """Return the mix whose weights take at most so much, everything counted.

        Raises ``LarderError`` with ``SETTING_INVALID`` where not even the fewest bits do.
        """
        room = budget_bytes - self.fixed_bytes
        formats = choose_formats(self.parts, room, self.unavoidable)
        if formats is None:
            least = self.fixed_bytes + sum(
                min(one.num_bytes for one in part.choices) for part in self.parts
            )
            raise LarderError(
                ErrorCode.SETTING_INVALID,
                name="mix",
                found=f"{budget_bytes / (1 << 30):.3f} GiB",
                expected=f"at least {least / (1 << 30):.3f} GiB",
            )
        return _mix_of(formats, self.importance)


def measure_formats(
    inspection: Inspection,
    found: Calibration,
    progress: ProgressReport | None,
    cancel: Stopper,
) -> Measured:
    """Try every format on every part.

    ``progress`` is called with bytes of published experts that were looked at, and all of them.
    Raises ``CancelledError``, ``WEIGHTS_NOT_FINITE``, or what reading raises.
    """
    spec = inspection.spec
    assert spec is not None
    importance = CalibratedImportance(found, spec)
    store = CheckpointStore(inspection, is_widened=True)
    try:
        parts = [
            *_expert_parts(store, inspection.experts, importance, progress, cancel),
            *_dense_parts(store, importance),
        ]
    finally:
        store.close()
    named = {part.name for part in parts}
    fixed = sum(
        dense_tensor_bytes(entry) for name, entry in inspection.tensors.items() if name not in named
    )
    known = weighed(parts, spec, found.trials)
    return Measured(known, fixed, importance, unavoidable(found.trials))


def _mix_of(formats: Mapping[Name, WeightFormat], importance: Importance | None) -> Mix:
    experts = {name: each for name, each in formats.items() if isinstance(name, ExpertId)}
    dense = {name: each for name, each in formats.items() if isinstance(name, str)}
    return Mix(experts, dense, importance)


def _expert_parts(
    store: CheckpointStore,
    entries: Mapping[ExpertId, Mapping[ExpertPart, TensorEntry]],
    importance: CalibratedImportance,
    progress: ProgressReport | None,
    cancel: Stopper,
) -> Iterator[Part[Name]]:
    """Yield every expert with what each format would take and spoil."""
    spec, found = importance.spec, importance.found
    layout = store.layout
    layouts = layouts_of(MIX_FORMATS, spec.hidden_size, spec.expert_width)
    num_all = len(spec.moe_layers) * spec.num_experts
    work = Progress(layout.record_bytes * num_all, progress, cancel)
    with ThreadPoolExecutor(len(MIX_FORMATS)) as pool:
        for index, layer in enumerate(spec.moe_layers):
            weights = _weight_of_experts(found, index, layer)
            for expert in range(spec.num_experts):
                record = np.zeros(layout.record_bytes, np.uint8)
                name = ExpertId(layer, expert)
                store.read_expert(name, record.data)
                matrices = [
                    (
                        _sampled(layout[part], record, EXPERT_ROWS),
                        importance.of_expert(name, part),
                    )
                    for part in ExpertPart
                ]
                for part, (sample, _) in zip(ExpertPart, matrices, strict=True):
                    if not np.isfinite(sample).all():
                        raise not_finite(entries[name][part])

                def spoilt(
                    wanted: WeightFormat, matrices: Sequence[tuple[Floats, Floats]] = matrices
                ) -> float:
                    return sum(error_of(wanted, each, columns) for each, columns in matrices)

                errors = pool.map(spoilt, MIX_FORMATS)
                yield Part(
                    name,
                    [
                        Choice(each, layouts[each].record_bytes, weights[expert] * error)
                        for each, error in zip(MIX_FORMATS, errors, strict=True)
                    ],
                )
                work.add(layout.record_bytes)
    work.finish()


def _weight_of_experts(found: Calibration, index: int, layer: int) -> Sequence[float]:
    """Return how much each expert of a layer adds to the stream, as a part of it."""
    outputs = found.outputs[index]
    usual = float(outputs.mean())
    stream = float(found.stream[layer]) or 1.0
    weights: list[float] = ((outputs + LEAST_USE * usual) / stream).tolist()
    return weights


def _dense_parts(store: CheckpointStore, importance: CalibratedImportance) -> Iterator[Part[Name]]:
    """Yield the dense matrices that are mixed.

    None of them may stay as published: kernels take matrices of one input in grouped formats, or
    all of them in plain ones.
    """
    found = importance.found
    for name, entry in store.dense_tensors.items():
        if not is_mixed(entry, found):
            continue
        heeded = importance.of_dense(name)
        rows, columns = entry.shape
        data = np.zeros(entry.num_bytes, np.uint8)
        store.read_tensor(entry, data.data)
        layout = MatrixLayout(entry.format, rows, columns, 0, entry.num_bytes)
        sample = _sampled(layout, data, DENSE_ROWS)
        counts = np.ones(columns, np.float32) if heeded is None else heeded
        weight = _weight_of_dense(name, found)
        yield Part(
            name,
            [
                Choice(
                    each,
                    matrix_bytes(each, rows, columns),
                    weight * error_of(each, sample, counts),
                )
                for each in MIX_FORMATS
            ],
        )


def _weight_of_dense(name: str, found: Calibration) -> float:
    """Return how much the block of a matrix adds to the stream, as a part of it."""
    number = layer_of(name)
    if number is None:
        # The output matrix: what it spoils of the logits; the embedding: of the first stream.
        return 1.0
    block = name.rsplit(".", 2)[0] + "."
    ends = (block + end for end in BLOCK_ENDS)
    own = next(
        (sums for end in ends for other, sums in found.dense.items() if other.startswith(end)),
        None,
    )
    stream = float(found.stream[number]) if number < len(found.stream) else 0.0
    return float(own[-1]) / stream if own is not None and stream > 0 else 1.0


def _sampled(layout: MatrixLayout, data: np.ndarray, max_rows: int) -> Floats:
    """Return some rows of a matrix of plain numbers, whole blocks evenly apart."""
    row_bytes = matrix_bytes(layout.format, 1, layout.columns)
    place = data[layout.offset_bytes : layout.offset_bytes + layout.rows * row_bytes]
    by_row = place.reshape(layout.rows, row_bytes)
    num_blocks = -(-layout.rows // ROW_BLOCK)
    step = max(1, -(-num_blocks // (max_rows // ROW_BLOCK)))
    begins = range(0, num_blocks * ROW_BLOCK, step * ROW_BLOCK)
    kept = np.concatenate([by_row[begin : begin + ROW_BLOCK] for begin in begins])
    return plain_rows(layout.format, kept.reshape(-1), len(kept), layout.columns)
