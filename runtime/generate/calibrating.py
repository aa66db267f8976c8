"""Reading a text with a model to learn which experts it uses and how large its numbers are."""

import dataclasses
import hashlib
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import torch

from runtime.engine.base import CancelToken
from runtime.errors import CancelledError, LarderError
from runtime.generate.loading import LoadedParts, Tools, load_parts
from runtime.generate.trials import Trials, TryingKernels
from runtime.kernels.base import PLAIN_STYLE, ExpertStyle, Kernels
from runtime.kernels.composition import gated, glu, matrices_of
from runtime.kernels.dispatch import choose_kernels
from runtime.kernels.matrix import CPU, Matrix, Slot
from runtime.prepare.calibration import (
    BLOCK_ENDS,
    Calibration,
    CalibrationReport,
    CalibrationStep,
    Identity,
    read_calibration,
    write_calibration,
)
from runtime.prepare.calibration_text import MIN_TEXT_TOKENS, unfit_text
from runtime.protocol.errors import ErrorCode
from runtime.protocol.messages import PreparePhase
from runtime.protocol.plan import PlacementPlan
from runtime.spec.blocks import SILU, Activation
from runtime.spec.model import ModelSpec
from runtime.spec.tensors import ExpertLayout, ExpertPart
from runtime.tokenizer.chat import ChatTokenizer

SEGMENT_TOKENS = 512
"""Tokens that are read together, from an empty memory."""
KEEP_EVERY_S = 15.0
"""At most so much of the work is lost when it is cut off."""
OUTPUT_ROWS = 32
"""Rows of a segment that are put through the output matrix."""
_CHARACTERS_PER_TOKEN = 16
"""More than in nearly all texts."""
_SPARE_TOKENS = 16
TELL_EVERY_S = 1.0
"""How often the time that is left of a trial is told."""


class _Added(NamedTuple):
    """What one expert was given and gave."""

    number: int
    rows: torch.Tensor
    """Which rows of ``x`` were its own."""
    x: torch.Tensor
    hidden: torch.Tensor
    added: torch.Tensor


class WatchingKernels:
    """Other kernels, and beside them sums of what matrices are given and give.

    Each token counts by its own stream with what is added to it: what is added to a large one
    changes little, and what is larger than the stream becomes the stream. A few tokens have streams
    a hundred times as large as all others, and sums would be of these alone.

    Threads: one caller at a time.
    """

    def __init__(self, kernels: Kernels) -> None:
        self._kernels = kernels
        self.layer = 0
        """The layer that computes now, set by whoever runs the model."""
        self.found: Calibration | None = None
        self._names: dict[int, str] = {}
        self._moe_index: dict[int, int] = {}
        self._hidden_size = 0
        self._vocabulary_size = 0
        self._is_stream_due = False
        self._energies = torch.empty(0)
        """The square of the stream of each row of the layer."""
        self._added: list[_Added] = []
        """What experts of the layer have added so far: they come in parts, as they arrive."""

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the kernels have
        """Return what is not looked at, as the kernels have it."""
        return getattr(self._kernels, name)

    def watch(self, found: Calibration, spec: ModelSpec, matrices: Mapping[str, Matrix]) -> None:
        """Add what is computed from now on to sums."""
        self.found = found
        self._names = {matrix.address: name for name, matrix in matrices.items()}
        self._moe_index = {layer: index for index, layer in enumerate(spec.moe_layers)}
        self._hidden_size, self._vocabulary_size = spec.hidden_size, spec.vocabulary_size

    def enter(self, layer: int) -> None:
        """Note which layer comes next; the one before it is done."""
        self._add_up_experts()
        self.layer = layer
        self._is_stream_due = True

    def linear(
        self, x: torch.Tensor, matrix: Matrix, bias: torch.Tensor | None = None
    ) -> torch.Tensor:
        """Return the product, and add both sides up."""
        result = self._kernels.linear(x, matrix, bias)
        name = self._names.get(matrix.address)
        if name is not None and self.found is not None:
            sums = self.found.dense.setdefault(name, np.zeros(matrix.columns + 1))
            is_added = any(end in name for end in BLOCK_ENDS)
            shares = self._shares_of(x, _energies(result) if is_added else None)
            sums[:-1] += _squares(x, shares)
            sums[-1] += _squares(result, shares).sum()
        return result

    def gated(
        self,
        x: torch.Tensor,
        gate: Matrix,
        up: Matrix,
        down: Matrix,
        activation: Activation = SILU,
    ) -> torch.Tensor:
        """Return the gated block, its three matrices one by one."""
        return gated(cast("Kernels", self), x, gate, up, down, activation)

    def rms_norm(self, x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
        """Return the rows normalised; the first of a layer are its stream."""
        self._note_stream(x)
        return self._kernels.rms_norm(x, weight, eps)

    def layer_norm(
        self, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float
    ) -> torch.Tensor:
        """Return the rows normalised; the first of a layer are its stream."""
        self._note_stream(x)
        return self._kernels.layer_norm(x, weight, bias, eps)

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
        """Add the results to ``out``; their sizes go into the sums at the end of the layer."""
        if self.found is None or self.layer not in self._moe_index:
            self._kernels.experts(x, layout, experts, ids, weights, out, style)
            return
        for number, parts in matrices_of(layout, experts):
            rows, places = torch.nonzero(ids == number, as_tuple=True)
            if len(rows) == 0:
                continue
            gate_bias, up_bias, down_bias = (
                style.biases.of(number) if style.biases is not None else (None, None, None)
            )
            chosen, shares = x[rows].contiguous(), weights[rows, places].unsqueeze(1)
            gate = self._kernels.linear(chosen, parts[ExpertPart.GATE], gate_bias)
            up = self._kernels.linear(chosen, parts[ExpertPart.UP], up_bias)
            hidden = glu(gate, up, style.activation)
            added = shares * self._kernels.linear(hidden, parts[ExpertPart.DOWN], down_bias)
            out[rows] += added
            self._added.append(_Added(number, rows, x, shares * hidden, added))

    def _add_up_experts(self) -> None:
        """Count what the experts of a layer were given and gave, when all have."""
        parts, self._added = self._added, []
        if self.found is None or not parts:
            return
        index = self._moe_index[self.layer]
        added_energies = torch.zeros(len(parts[0].x))
        for part in parts:
            added_energies[part.rows] += _energies(part.added)
        counts = self._shares_of(parts[0].x, added_energies)
        for part in parts:
            own = None if counts is None else counts[part.rows]
            self.found.uses[index, part.number] += np.uint64(len(part.rows))
            self.found.inputs[index] += _squares(part.x[part.rows], own)
            self.found.hidden[index, part.number] += _squares(part.hidden, own).astype(np.float32)
            self.found.outputs[index, part.number] += _squares(part.added, own).sum()

    def _shares_of(
        self, x: torch.Tensor, added_energies: torch.Tensor | None
    ) -> torch.Tensor | None:
        """Return what each row counts, given the square of what is added to it.

        None if they are not those of the layer's stream.
        """
        if x.reshape(-1, x.shape[-1]).shape[0] != len(self._energies):
            return None
        energies = self._energies
        if added_energies is not None:
            energies = energies + added_energies
        return torch.where(energies > 0, 1 / energies, 0.0)

    def _note_stream(self, x: torch.Tensor) -> None:
        if self.found is None or not self._is_stream_due or x.shape[-1] != self._hidden_size:
            return
        self._energies = torch.empty(0)
        if self.layer < len(self.found.stream):
            self._energies = _energies(x)
            self.found.stream[self.layer] += len(self._energies)
        self._is_stream_due = False


def calibrate(
    plan: PlacementPlan,
    text: str,
    max_tokens: int,
    path: Path,
    report: CalibrationReport,
    cancel: CancelToken,
    text_file: Path | str = "What was given",
) -> Calibration:
    """Read a text with the published model of a plan, try groups, keep what was found in a file.

    What was begun and cut off goes on; what was finished with the same text is returned at once.
    The plan uses no device: what it computes there would not be seen. Raises ``CancelledError``
    after keeping what was done, or ``LarderError``: with ``TEXT_INVALID``, which names
    ``text_file``, where the text is too short.
    """
    assert plan.device == CPU, "only the processor's kernels are watched"
    trying = TryingKernels(choose_kernels())
    kernels = WatchingKernels(cast("Kernels", trying))
    tools = Tools.alone(cast("Kernels", kernels))
    parts = load_parts(plan, tools, lambda *_: None, cancel)
    try:
        ids = _first_ids(parts.tokenizer, text, max(max_tokens, MIN_TEXT_TOKENS))
        if len(ids) < MIN_TEXT_TOKENS:
            reason = f"it has {len(ids)} tokens, too few of them to tell anything"
            raise unfit_text(text_file, reason)
        if max_tokens < MIN_TEXT_TOKENS:
            raise LarderError(
                ErrorCode.SETTING_INVALID,
                name="--tokens",
                found=str(max_tokens),
                expected=f"at least {MIN_TEXT_TOKENS}",
            )
        ids = ids[:max_tokens]
        identity = _identity_of(plan.model_fingerprint, ids)
        work = Work(_begun(path, identity) or _nothing(identity, parts.spec), path, report, cancel)
        kernels.watch(work.found, parts.spec, parts.home.matrices())
        _read(parts, kernels, ids, work)
        kernels.found = None
        if not work.found.is_tried:
            _try_groups(parts, trying, ids, work)
        return work.found
    finally:
        parts.close()


@dataclasses.dataclass(slots=True, eq=False)
class Work:
    """A calibration that is under way, and how it is kept, told and stopped."""

    found: Calibration
    path: Path
    report: CalibrationReport
    cancel: CancelToken

    def keep(self) -> None:
        """Write what was found so far."""
        write_calibration(self.path, self.found)

    def tell_read(self, per_s: float) -> None:
        """Tell how much of the text was read."""
        done, total = self.found.num_tokens, self.found.identity.total_tokens
        self.report(CalibrationStep(PreparePhase.READING_TEXT, done, total, per_s))


def _read(parts: LoadedParts, kernels: WatchingKernels, ids: Sequence[int], work: Work) -> None:
    """Read what is left of a text, segment after segment; keep it now and then and at the end.

    Of a segment that is broken off, by a drive or a person, the sums hold a part: then what was
    kept before it counts. A person's wish waits for the segment's end where that would lose some.
    """
    found, begun_s, is_kept = work.found, time.monotonic(), True
    kept_s, first_tokens = begun_s, found.num_tokens
    segment_tokens = min(SEGMENT_TOKENS, parts.kv.context_tokens)
    work.tell_read(0.0)
    while not found.is_read:
        if work.cancel.is_cancelled:
            if found.num_tokens:
                work.keep()
            raise CancelledError
        segment = ids[found.num_tokens : found.num_tokens + segment_tokens]
        _read_segment(parts, kernels, segment, work.cancel if is_kept else CancelToken())
        found.num_tokens += len(segment)
        now_s = time.monotonic()
        # A clock may be too coarse for a small model.
        work.tell_read((found.num_tokens - first_tokens) / max(now_s - begun_s, 1e-6))
        is_last = found.num_tokens == len(ids)
        is_kept = is_last or now_s - kept_s >= KEEP_EVERY_S
        if is_kept:
            work.keep()
            kept_s = time.monotonic()


def _try_groups(parts: LoadedParts, trying: TryingKernels, ids: Sequence[int], work: Work) -> None:
    """Try what was not tried yet, and keep each result."""
    told_s = 0.0

    def tell() -> None:
        nonlocal told_s
        told_s = time.monotonic()
        done, total = trials.num_done, len(trials.groups)
        work.report(CalibrationStep(PreparePhase.TRYING_PARTS, done, total, trials.per_s))

    def enter(layer: int) -> None:
        work.cancel.check()
        trying.layer = layer
        if time.monotonic() - told_s >= TELL_EVERY_S:
            tell()

    trials = Trials(parts, trying, work.found, ids, enter)
    if trials.groups:
        tell()
    for _ in trials.run():
        work.keep()
        tell()
    work.keep()


def _read_segment(
    parts: LoadedParts, kernels: WatchingKernels, ids: Sequence[int], cancel: CancelToken
) -> None:
    """Put some tokens through all layers, from an empty memory."""

    def enter(layer: int) -> None:
        cancel.check()
        kernels.enter(layer)

    parts.kv.truncate(0)
    for first in range(0, len(ids), parts.home.chunk_tokens):
        chunk = ids[first : first + parts.home.chunk_tokens]
        parts.experts.begin_step()
        parts.kv.reserve(len(chunk))
        enter(0)
        hidden = parts.model.forward(
            chunk, parts.kv.num_tokens, parts.kv.layers, lambda layer: enter(layer + 1)
        )
        parts.kv.commit(chunk)
        parts.model.logits(hidden[-OUTPUT_ROWS:])


def _first_ids(tokenizer: ChatTokenizer, text: str, num_tokens: int) -> Sequence[int]:
    """Return the first ids of a text; all of a large one would take gigabytes and minutes."""
    num_characters = num_tokens * _CHARACTERS_PER_TOKEN
    while True:
        ids = tokenizer.encode_text(text[:num_characters])
        # Where the text is cut the last ids may be others than those of the whole.
        if num_characters >= len(text) or len(ids) >= num_tokens + _SPARE_TOKENS:
            return ids[:num_tokens]
        num_characters *= 4


def _identity_of(fingerprint: str, ids: Sequence[int]) -> Identity:
    data = np.asarray(ids, np.int64).tobytes()
    return Identity(fingerprint, hashlib.sha256(data).hexdigest(), len(ids))


def _begun(path: Path, identity: Identity) -> Calibration | None:
    """Return what is kept of the same work."""
    found = read_calibration(path, identity.fingerprint)
    if found is None or (found.identity.text, found.identity.total_tokens) != (
        identity.text,
        identity.total_tokens,
    ):
        return None
    return found


def _nothing(identity: Identity, spec: ModelSpec) -> Calibration:
    num_layers = len(spec.moe_layers)
    return Calibration(
        identity=identity,
        num_tokens=0,
        uses=np.zeros((num_layers, spec.num_experts), np.uint64),
        inputs=np.zeros((num_layers, spec.hidden_size)),
        hidden=np.zeros((num_layers, spec.num_experts, spec.expert_width), np.float32),
        outputs=np.zeros((num_layers, spec.num_experts)),
        stream=np.zeros(spec.num_layers),
        dense={},
        trials={},
    )


def _energies(x: torch.Tensor) -> torch.Tensor:
    """Return the sum of squares of each row."""
    flat = x.reshape(-1, x.shape[-1])
    return torch.einsum("nc,nc->n", flat, flat)


def _squares(x: torch.Tensor, shares: torch.Tensor | None) -> np.ndarray:
    """Return the sums of squares of each channel, each row as often as it counts."""
    flat = x.reshape(-1, x.shape[-1])
    if shares is None:
        return torch.einsum("nc,nc->c", flat, flat).double().numpy()
    return torch.einsum("n,nc,nc->c", shares, flat, flat).double().numpy()
