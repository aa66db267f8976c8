"""A model over a folder without the engine: forward passes in any chunking at any budget."""

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch

from runtime.generate.kv_cache import KvCache
from runtime.inspect.folder import inspect_folder
from runtime.kernels.base import Kernels
from runtime.memory.ledger import Ledger
from runtime.models.base import AfterLayer
from runtime.models.families import build_model
from runtime.residency.books import Books
from runtime.residency.dense import DensePart
from runtime.residency.experts import ExpertCache
from runtime.residency.shape import CacheShape
from runtime.store.open import open_store
from runtime.telemetry.expert_tally import ExpertTally
from runtime.telemetry.recorder import Counters

CONTEXT_TOKENS = 192
_ROOM_BYTES = 256 * 1024 * 1024


class ModelBench:
    """One model with its caches, driven by hand."""

    def __init__(self, folder: Path, kernels: Kernels, num_slots: int | None = None) -> None:
        inspection = inspect_folder(str(folder))
        assert inspection.spec is not None, inspection.report.problems
        self.spec = inspection.spec
        self.counters = Counters()
        self.ledger = Ledger(_ROOM_BYTES)
        self._store = open_store(inspection, str(folder))
        self.dense = DensePart(self.ledger, self._store.dense_tensors)
        self.dense.read(self._store, lambda done, total: None)
        slots = self.spec.num_experts if num_slots is None else num_slots
        shape = CacheShape(
            self.spec.moe_layers, (slots,) * len(self.spec.moe_layers), self.spec.num_experts
        )
        tally = ExpertTally(len(self.spec.moe_layers), self.spec.num_experts, 32)
        self.experts = ExpertCache(self._store, shape, self.ledger, Books(self.counters, tally))
        self.kv = KvCache(self.ledger, self.spec, CONTEXT_TOKENS)
        self._model = build_model(self.spec, kernels, self.dense, self.experts, CONTEXT_TOKENS)

    @property
    def drive_bytes_read(self) -> int:
        """Bytes read from the drive so far."""
        return self._store.num_bytes_read

    def feed(self, token_ids: Sequence[int], after_layer: AfterLayer | None = None) -> torch.Tensor:
        """Put a chunk through the model; return the logits of all its tokens."""
        self.kv.reserve(len(token_ids))
        hidden = self._model.forward(token_ids, self.kv.num_tokens, self.kv.layers, after_layer)
        self.kv.commit(token_ids)
        return self._model.logits(hidden)

    def feed_in_chunks(self, token_ids: Sequence[int], sizes: Sequence[int]) -> torch.Tensor:
        """Start from nothing and feed chunks of these sizes, the rest in one; return all logits."""
        self.kv.truncate(0)
        rows: list[torch.Tensor] = []
        first = 0
        for size in (*sizes, len(token_ids)):
            chunk = token_ids[first : first + size]
            first += len(chunk)
            if chunk:
                rows.append(self.feed(chunk))
        return torch.cat(rows)

    def greedy(self, prompt_ids: Sequence[int], num_tokens: int) -> list[int]:
        """Return the likeliest continuation, token by token."""
        self.kv.truncate(0)
        logits = self.feed(prompt_ids)
        chosen: list[int] = []
        while True:
            chosen.append(int(logits[-1].argmax()))
            if len(chosen) == num_tokens:
                return chosen
            logits = self.feed(chosen[-1:])

    def close(self) -> None:
        """Give everything back and assert that it was everything."""
        self.kv.check()
        self.experts.check()
        self.kv.close()
        self.experts.close()
        self.dense.close()
        self._store.close()
        assert self.ledger.held_bytes == 0


@contextlib.contextmanager
def open_bench(
    folder: Path, kernels: Kernels, num_slots: int | None = None
) -> Iterator[ModelBench]:
    """Yield a bench and close it soundly."""
    bench = ModelBench(folder, kernels, num_slots)
    yield bench
    bench.close()
