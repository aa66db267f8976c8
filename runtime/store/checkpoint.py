"""The store of a published checkpoint, read where it lies; nothing is written."""

from collections.abc import Iterator, Mapping, Sequence

from runtime.errors import LarderError
from runtime.inspect.inspection import Inspection
from runtime.protocol.errors import ErrorCode
from runtime.protocol.values import WeightFormat
from runtime.spec.mix import PartFormats
from runtime.spec.model import ModelSpec
from runtime.spec.tensors import (
    ExpertId,
    ExpertLayout,
    ExpertPart,
    MatrixLayout,
    TensorEntry,
    expert_layout,
    layout_in,
)
from runtime.store.base import HalvedRead
from runtime.store.coalesce import MAX_GAP_BYTES
from runtime.store.expert_plan import GAP, ExpertPlan, is_converted, plan_expert
from runtime.store.files import WeightFiles
from runtime.store.gguf_rows import gguf_pieces, is_repacked, repack_into
from runtime.store.halves import MIN_HALVED_BYTES, HalvedMatrices
from runtime.store.levels import level_pieces
from runtime.store.packed import unpack_published
from runtime.store.plain import widen
from runtime.store.scaled import scaled_pieces
from runtime.store.unweave import unweave


class CheckpointStore:
    """Experts and dense tensors of an inspected folder without problems.

    Each expert is three extents, which go straight to the places of its parts in the target; how
    they are read is planned when they are read first. Parts that lie woven into a larger block,
    packed in another order or in fewer bits than those of other experts are put right on the way.
    Those of GGUF files become the format that holds their own kind.

    Threads: ``read_expert`` and ``read_tensor`` may be called from several threads at once.
    """

    def __init__(
        self, inspection: Inspection, *, prefers_direct: bool = True, is_widened: bool = False
    ) -> None:
        """Open the files; ``is_widened``: experts published in few bits come as f32, not bf16."""
        report, spec = inspection.report, inspection.spec
        if spec is None or report.stored_format is None or report.problems:
            reason = report.problems[0].code if report.problems else "it has no experts"
            raise LarderError(ErrorCode.STORE_INVALID, folder=report.folder, reason=reason)
        self._dense = inspection.tensors
        self._experts = inspection.experts
        entries = [entry for parts in self._experts.values() for entry in parts.values()]
        expert_format = report.stored_format
        if is_widened and entries and all(entry.blocks is not None for entry in entries):
            expert_format = WeightFormat.F32
        self._layouts: dict[ExpertId, ExpertLayout] = {}
        if report.mixed_experts is None:
            self._layout = expert_layout(expert_format, spec.hidden_size, spec.expert_width)
        else:
            self._layouts = _layouts_of(self._experts, spec)
            self._layout = max(self._layouts.values(), key=lambda each: each.record_bytes)
        every = [*entries, *self._dense.values()]
        paths = {each.file for entry in every for each in _made_of(entry)}
        self._plans: dict[ExpertId, ExpertPlan] = {}
        # Several reads may write here at once: nobody looks at it.
        self._thrown_away = memoryview(bytearray(MAX_GAP_BYTES))
        self._files = WeightFiles(sorted(paths), prefers_direct=prefers_direct)

    @property
    def layout(self) -> ExpertLayout:
        """How each expert lies in the buffers that ``read_expert`` fills, or the largest ones."""
        return self._layout

    def layout_of(self, expert: ExpertId) -> ExpertLayout:
        """How one expert lies there: as all do, where not each matrix has a format of its own."""
        return self._layouts.get(expert, self._layout)

    @property
    def dense_tensors(self) -> Mapping[str, TensorEntry]:
        """All tensors that are not routed experts, by their published name."""
        return self._dense

    @property
    def num_bytes_read(self) -> int:
        """Bytes read so far, gaps between parts included."""
        return self._files.num_bytes_read

    @property
    def is_direct(self) -> bool:
        """Whether every file is read past the cache."""
        return self._files.is_direct

    def place_of(self, expert: ExpertId) -> tuple[str, int]:
        """Return the file and the byte at which the first of an expert's parts begins."""
        return min((entry.file, entry.offset_bytes) for entry in self._experts[expert].values())

    def read_expert(self, expert: ExpertId, target: memoryview) -> None:
        """Fill the parts' places in ``target`` with one expert; what lies between is left alone."""
        target = target.cast("B")
        plan = self._plan_of(expert)
        for read in plan.reads:
            places = [
                self._thrown_away[:num_bytes] if begin == GAP else target[begin : begin + num_bytes]
                for begin, num_bytes in read.places
            ]
            self._files.read(read.file, read.offset_bytes, places)
        if plan.woven:
            self._read_woven(plan.woven, target)
        for entry, place in plan.converted:
            self._read_converted(entry, place.format, target[place.offset_bytes :])
        for entry, place in plan.widened:
            begin = place.offset_bytes
            widen(entry.format, target[begin : begin + place.num_bytes])

    def halved(self, expert: ExpertId, target: memoryview) -> HalvedRead | None:
        """Return how to fill ``target`` with one expert in halves.

        None for a small one, and where its matrices are not those that the extension puts right.
        """
        if self.layout_of(expert).record_bytes < MIN_HALVED_BYTES:
            return None
        plan = self._plan_of(expert)
        if plan.reads or plan.woven or not plan.converted:
            return None
        if not all(is_repacked(entry, place.format) for entry, place in plan.converted):
            return None

        def read_whole() -> None:
            self.read_expert(expert, target)

        return HalvedMatrices(self._files, plan.converted, target.cast("B"), read_whole)

    def _plan_of(self, expert: ExpertId) -> ExpertPlan:
        """Return how an expert is read, planned when that is asked first."""
        plan = self._plans.get(expert)
        if plan is None:
            layout = self.layout_of(expert)
            plan = self._plans[expert] = plan_expert(self._experts[expert], layout)
        return plan

    def _read_woven(
        self, woven: Sequence[tuple[TensorEntry, MatrixLayout]], target: memoryview
    ) -> None:
        """Read each block that holds woven parts once, and copy the parts to their places."""
        blocks: dict[tuple[str, int], bytearray] = {}

        def block_of(entry: TensorEntry) -> bytearray:
            key = (entry.file, entry.offset_bytes)
            if key not in blocks:
                blocks[key] = bytearray(entry.num_bytes)
                self._files.read(*key, [memoryview(blocks[key])])
            return blocks[key]

        for entry, layout in woven:
            begin = layout.offset_bytes
            place = target[begin : begin + layout.num_bytes]
            if entry.scales is None:
                unweave(block_of(entry), entry, place)
            else:
                unpack_published(block_of(entry), block_of(entry.scales), entry, place)

    def read_tensor(self, entry: TensorEntry, target: memoryview) -> None:
        """Fill ``target`` with a dense tensor's bytes."""
        if not is_converted(entry):
            self._files.read(entry.file, entry.offset_bytes, [target])
            return
        self._read_converted(entry, entry.format, target.cast("B"))

    def tensor_pieces(self, entry: TensorEntry, room: memoryview) -> Iterator[memoryview]:
        """Read a dense tensor in pieces through ``room``; yield each as a part of it."""
        if not is_converted(entry):
            yield from self._files.pieces(entry.file, entry.offset_bytes, entry.num_bytes, room)
            return
        room = room.cast("B")
        for stripe in self._stripes(entry, entry.format):
            for begin in range(0, stripe.nbytes, room.nbytes):
                piece = room[: min(room.nbytes, stripe.nbytes - begin)]
                piece[:] = stripe[begin : begin + piece.nbytes]
                yield piece

    def close(self) -> None:
        """Close all files; may be called twice."""
        self._files.close()

    def _stripes(self, entry: TensorEntry, weight_format: WeightFormat) -> Iterator[memoryview]:
        """Yield a matrix that is published in another way than kernels take, rows by rows."""
        if entry.gguf is not None:
            return gguf_pieces(self._files, entry, weight_format)
        if entry.levels is not None:
            return level_pieces(self._files, entry, weight_format)
        return scaled_pieces(self._files, entry, weight_format)

    def _read_converted(
        self, entry: TensorEntry, weight_format: WeightFormat, target: memoryview
    ) -> None:
        """Fill the beginning of ``target`` with a matrix that is put right on the way."""
        if repack_into(self._files, entry, weight_format, target):
            return
        begin = 0
        for piece in self._stripes(entry, weight_format):
            target[begin : begin + piece.nbytes] = piece
            begin += piece.nbytes


def _layouts_of(
    experts: Mapping[ExpertId, Mapping[ExpertPart, TensorEntry]], spec: ModelSpec
) -> dict[ExpertId, ExpertLayout]:
    """Return how experts lie whose matrices have formats of their own; equal ones share one."""
    made: dict[PartFormats, ExpertLayout] = {}
    layouts: dict[ExpertId, ExpertLayout] = {}
    for expert, parts in experts.items():
        formats = tuple(parts[part].format for part in ExpertPart)
        if formats not in made:
            made[formats] = layout_in(formats, spec.hidden_size, spec.expert_width)
        layouts[expert] = made[formats]
    return layouts


def _made_of(entry: TensorEntry) -> Iterator[TensorEntry]:
    """Yield all tensors of which a matrix consists."""
    yield entry
    if entry.blocks is not None:
        yield entry.blocks.scales
    if entry.scales is not None:
        yield entry.scales
    if entry.levels is not None:
        levels = entry.levels
        yield from (levels.scales, levels.zeros)
        yield from (each for each in (levels.groups, levels.bias) if each is not None)
    if entry.gguf is not None and entry.gguf.second is not None:
        yield entry.gguf.second
