"""Our side of `make bench-drive` in its own process, driven by lines on standard input.

The model is random, of a shape, with the program's own reader, expert cache, model code and
kernels; its records and its dense part lie in files that are made beforehand, so that nothing of
making them counts (`drive_models.py`). Each line is a JSON object; each answer is one line of JSON:

    {"load": folder, "limit_bytes": n, "threads": n}    within so much memory       -> {"slots": n}
    {"prompt": [ids]}                                   from nothing, in chunks     -> {...}
    {"feed": [ids]}                                     one by one                  -> {...}
    {"limits": true}                                    what the machine allows     -> {...}
    {"close": true}

With "hints": false no guess of the next layer is listened to: the stream of a calibrated model does
not change from layer to layer, so that every guess would be right. "context_tokens" makes room for
other numbers of tokens, "is_prompt": true for the work of a prompt's chunks.
"""

import json
import mmap
import sys
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import torch
from model_shapes import CONTEXT_TOKENS, QWEN3_30B, Bytes, RandomWeights, Shape, random_record

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from runtime.generate.kv_cache import KvCache  # noqa: E402
from runtime.generate.long_prompts import MAX_CHUNK_TOKENS  # noqa: E402
from runtime.kernels.dispatch import choose_kernels  # noqa: E402
from runtime.kernels.formats import pack  # noqa: E402
from runtime.kernels.matrix import Matrix, Slot  # noqa: E402
from runtime.memory.ledger import Ledger  # noqa: E402
from runtime.models.families import build_model  # noqa: E402
from runtime.native.loader import read_bandwidth  # noqa: E402
from runtime.policy.split import even_split  # noqa: E402
from runtime.protocol.values import WeightFormat  # noqa: E402
from runtime.residency.books import Books  # noqa: E402
from runtime.residency.experts import ExpertCache  # noqa: E402
from runtime.residency.shape import CacheShape  # noqa: E402
from runtime.residency.trial import HintMode  # noqa: E402
from runtime.spec.footprint import staging_slots, work_bytes  # noqa: E402
from runtime.spec.ram_slots import Records, ram_slots_within  # noqa: E402
from runtime.spec.tensors import (  # noqa: E402
    STORED_BITS,
    ExpertId,
    ExpertLayout,
    MatrixLayout,
    TensorEntry,
    expert_layout,
)
from runtime.store.drive_rate import measure_drive_rate  # noqa: E402
from runtime.store.files import WeightFiles  # noqa: E402
from runtime.store.halves import HalvedRecord  # noqa: E402
from runtime.telemetry.expert_tally import ExpertTally  # noqa: E402
from runtime.telemetry.recorder import Counters  # noqa: E402

FORMAT = WeightFormat.Q4_G32
RECORDS = "experts.bin"
EMBEDDING_SCALE = 500.0
"""So much larger than other weights: each token's stream then stays its own, and routing is as
near to uniform as that of a random model can be."""
SPARE_BYTES = 96 << 20
"""What the process may grow by while it computes: work buffers, and pages of libraries."""
_PLAIN_READ_BYTES = 64 << 20
_NUM_PLAIN_READS = 5


class RecordFile:
    """All experts one after the other in a file, read as a prepared copy is."""

    def __init__(self, path: Path, shape: Shape) -> None:
        self.layout = expert_layout(FORMAT, shape.hidden, shape.width)
        self.dense_tensors: Mapping[str, TensorEntry] = {}
        self._path = str(path)
        self._num_experts = shape.num_experts
        self._files = WeightFiles([self._path])

    @property
    def num_bytes_read(self) -> int:
        """Bytes read so far."""
        return self._files.num_bytes_read

    @property
    def is_direct(self) -> bool:
        """Whether reads go past the system's cache."""
        return self._files.is_direct

    def layout_of(self, expert: ExpertId) -> ExpertLayout:
        """How one expert lies there: as all do."""
        del expert
        return self.layout

    def place_of(self, expert: ExpertId) -> tuple[str, int]:
        """Return where a record lies."""
        number = expert.layer * self._num_experts + expert.expert
        return self._path, number * self.layout.record_bytes

    def read_expert(self, expert: ExpertId, target: memoryview) -> None:
        """Read one record."""
        _, offset = self.place_of(expert)
        self._files.read(self._path, offset, [target.cast("B")[: self.layout.record_bytes]])

    def halved(self, expert: ExpertId, target: memoryview) -> HalvedRecord:
        """Return how to read one record in halves."""
        path, offset = self.place_of(expert)
        place = target.cast("B")[: self.layout.record_bytes]
        return HalvedRecord(self._files, path, offset, place, lambda: None)

    def read_tensor(self, entry: TensorEntry, target: memoryview) -> None:
        """The dense part lies elsewhere."""
        raise NotImplementedError(entry.name, len(target))

    def tensor_pieces(self, entry: TensorEntry, room: memoryview) -> Iterator[memoryview]:
        """The dense part lies elsewhere."""
        raise NotImplementedError(entry.name, len(room))

    def close(self) -> None:
        """Close the file."""
        self._files.close()


class KeptWeights(RandomWeights):
    """Random dense weights that are kept in files: making them takes more memory than having."""

    def __init__(self, folder: Path, shape: Shape) -> None:
        super().__init__(FORMAT, shape)
        self._folder = folder
        self._kept: dict[str, Matrix] = {}
        self.num_bytes = 0

    def matrix(self, name: str) -> Matrix:
        """Return the matrix of a name, made at the first time of all."""
        if name not in self._kept:
            path, layout = self._folder / f"{name}.bin", self.layout(name)
            if not path.exists():
                path.write_bytes(self._made(name, layout).tobytes())
            room = mmap.mmap(-1, layout.num_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
            files = WeightFiles([str(path)])
            files.read(str(path), 0, [memoryview(room)])
            files.close()
            self._kept[name] = Matrix.from_buffer(layout, np.frombuffer(room, np.uint8))
            self.num_bytes += layout.num_bytes
        return self._kept[name]

    def _made(self, name: str, layout: MatrixLayout) -> Bytes:
        if "embed_tokens" not in name:
            return self.packed(name)
        shape = (layout.rows, layout.columns)
        weights = self._random.standard_normal(shape, dtype=np.float32)
        return pack(layout.format, weights * np.float32(0.02 * EMBEDDING_SCALE))


class Ours:
    """One loaded model within a limit."""

    def __init__(
        self,
        folder: Path,
        limit_bytes: int,
        threads: int,
        *,
        has_hints: bool,
        context_tokens: int = CONTEXT_TOKENS,
        is_prompt: bool = False,
    ) -> None:
        shape = QWEN3_30B
        spec = shape.spec()
        self.store = RecordFile(folder / RECORDS, shape)
        self.record_bytes = self.store.layout.record_bytes
        self.counters = Counters()
        ledger = Ledger(1 << 40)
        weights = KeptWeights(folder, shape)
        self._context_tokens = context_tokens
        self._kv = KvCache(ledger, spec, context_tokens)
        kernels = choose_kernels(threads)
        # What the process holds with the dense part in it is not there for experts.
        build_model(spec, kernels, weights, _NoExperts(self.store), context_tokens)
        self.dense_bytes = weights.num_bytes
        held = psutil.Process().memory_full_info().uss
        work = work_bytes(spec, context_tokens, MAX_CHUNK_TOKENS) if is_prompt else 0
        room = limit_bytes - held - SPARE_BYTES - work
        num_layers, num_staging = shape.num_layers, staging_slots(spec)
        num_slots = ram_slots_within(spec, Records.alike(self.record_bytes, spec), room)
        num_slots = min(num_slots, num_layers * shape.num_experts)
        if num_slots < num_layers:
            sys.exit(f"{limit_bytes} bytes hold {held} of the process and no experts")
        slots = even_split(num_layers, num_slots, shape.num_experts)
        cache_shape = CacheShape(spec.moe_layers, slots, shape.num_experts, num_staging=num_staging)
        tally = ExpertTally(num_layers, shape.num_experts, STORED_BITS[FORMAT])
        self.experts = ExpertCache(self.store, cache_shape, ledger, Books(self.counters, tally))
        if not has_hints:
            self.experts.set_hints(HintMode.NEVER)
        self.num_slots = num_slots
        self._model = build_model(spec, kernels, weights, self.experts, context_tokens)
        self.experts.fill(shape.top_k, _ignore)
        self.experts.fill_behind()
        assert self.experts.wait_filled(600)

    def feed(self, ids: Sequence[int]) -> dict[str, Any]:
        """Put tokens through the model one by one."""
        return self._put([[token] for token in ids], is_prompt=False)

    def prompt(self, ids: Sequence[int]) -> dict[str, Any]:
        """Put a prompt through the model, from an empty cache of keys and values."""
        self._kv.truncate(0)
        size = MAX_CHUNK_TOKENS
        chunks = [list(ids[first : first + size]) for first in range(0, len(ids), size)]
        return self._put(chunks, is_prompt=True) | {"chunk_tokens": size}

    def _put(self, pieces: Sequence[list[int]], *, is_prompt: bool) -> dict[str, Any]:
        """Put tokens through the model; of a prompt only the last one is asked what follows."""
        before, bytes_before = self.counters.copy(), self.store.num_bytes_read
        started_s = time.perf_counter()
        for number, piece in enumerate(pieces, 1):
            if self._kv.num_tokens + len(piece) > self._context_tokens:
                self._kv.truncate(0)
            self.experts.begin_step()
            self._kv.reserve(len(piece))
            hidden = self._model.forward(piece, self._kv.num_tokens, self._kv.layers)
            self._kv.commit(piece)
            if not is_prompt or number == len(pieces):
                self._model.logits(hidden[-1:])
        seconds = time.perf_counter() - started_s
        spent = self.counters.since(before)
        return {
            "seconds": seconds,
            "missed_bytes": spent.expert_miss_bytes,
            "read_bytes": self.store.num_bytes_read - bytes_before,
            "touched_bytes": spent.ram_bytes_read + len(pieces) * self.dense_bytes,
            "hits": spent.expert_hits / max(1, spent.expert_hits + spent.expert_misses),
            "wait_s": spent.drive_wait_s,
        }

    def limits(self, folder: Path, threads: int) -> dict[str, Any]:
        """Return what memory and drive give at most, measured now."""
        data = np.ones(_PLAIN_READ_BYTES, np.uint8)
        rates = [
            read_bandwidth(data.ctypes.data, data.size, threads) or 0.0
            for _ in range(_NUM_PLAIN_READS)
        ]
        drive = measure_drive_rate(folder / RECORDS, self.record_bytes)
        return {"plain_read": max(rates), "drive": 0.0 if drive is None else drive.value}


class _NoExperts:
    """Stands for the experts while the dense part is weighed."""

    def __init__(self, store: RecordFile) -> None:
        self.layout = store.layout
        self.takes_guesses = False

    def layout_of(self, layer: int, expert: int) -> ExpertLayout:
        """How one expert lies in its slot: as all do."""
        del layer, expert
        return self.layout

    def ordered(self, layer: int, experts: Sequence[int]) -> Sequence[int]:
        """Return experts in their order."""
        del layer
        return experts

    def note_routing(self, layer: int, ids: torch.Tensor, weights: torch.Tensor) -> None:
        """Nothing is computed."""

    def guess(self, layer: int, experts: Sequence[int]) -> None:
        """Nothing is computed."""

    def runs(
        self, layer: int, experts: Sequence[int]
    ) -> Generator[Sequence[tuple[int, Slot]], None, None]:
        """Nothing is computed."""
        raise NotImplementedError(layer, experts)


def make_random(folder: Path) -> None:
    """Write the records and the dense part of the random model, where they are not there yet."""
    shape, path = QWEN3_30B, folder / RECORDS
    layout = expert_layout(FORMAT, shape.hidden, shape.width)
    size = shape.num_layers * shape.num_experts * layout.record_bytes
    if not path.exists() or path.stat().st_size != size:
        record = random_record(layout).tobytes()
        with path.open("wb") as file:
            for _ in range(shape.num_layers * shape.num_experts):
                file.write(record)
    store = RecordFile(path, shape)
    weights = KeptWeights(folder, shape)
    build_model(shape.spec(), choose_kernels(), weights, _NoExperts(store), CONTEXT_TOKENS)
    store.close()


def main() -> None:
    """Answer lines until one says close."""
    ours: Ours | None = None
    folder, threads = Path(), 1
    for line in sys.stdin:
        wish = json.loads(line)
        if wish.get("close"):
            break
        answer: dict[str, Any]
        if "load" in wish:
            folder, threads = Path(wish["load"]), wish["threads"]
            ours = Ours(
                folder,
                wish["limit_bytes"],
                threads,
                has_hints=wish["hints"],
                context_tokens=wish.get("context_tokens", CONTEXT_TOKENS),
                is_prompt=wish.get("is_prompt", False),
            )
            answer = {"slots": ours.num_slots, "record_bytes": ours.record_bytes}
        else:
            assert ours is not None
            if "feed" in wish:
                answer = ours.feed(wish["feed"])
            elif "prompt" in wish:
                answer = ours.prompt(wish["prompt"])
            else:
                answer = ours.limits(folder, threads)
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


def _ignore(done_bytes: int, total_bytes: int) -> None:
    del done_bytes, total_bytes


if __name__ == "__main__":
    main()
