"""Where the dense part and the conversation of a model lie and are computed: RAM or a device."""

import contextlib
from collections.abc import Mapping, Sequence

from runtime.device.base import Device
from runtime.generate.kv_cache import KvCache
from runtime.kernels.base import Kernels
from runtime.kernels.layer_graphs import LayerGraphs
from runtime.kernels.matrix import Matrix
from runtime.kernels.tiered import TieredKernels
from runtime.memory.ledger import Ledger
from runtime.models.base import ExpertSource
from runtime.models.decoder import Decoder, is_embedding
from runtime.models.families import build_model
from runtime.protocol.plan import MemoryPart
from runtime.residency.dense import DensePart, ReadProgress
from runtime.spec.footprint import host_work_bytes, prefill_chunk_tokens, work_bytes
from runtime.spec.model import ModelSpec
from runtime.spec.tensors import TensorEntry
from runtime.store.base import ExpertStore
from runtime.telemetry.recorder import Counters


class Home:
    """Dense part, KV cache and work buffers in one memory, and what else they need of RAM.

    Beside a device, keys and values of some layers may lie in RAM.

    All memory is taken before anything is read.

    Threads: used by the engine thread.
    """

    def __init__(
        self,
        store: ExpertStore,
        spec: ModelSpec,
        context_tokens: int,
        ledger: Ledger,
        device: Device | None,
        ram_kv_layers: Sequence[int] = (),
    ) -> None:
        self.device = device
        self._store = store
        self._spec = spec
        self._ledger = ledger
        self._context_tokens = context_tokens
        self._resources = contextlib.ExitStack()
        self._chunk_tokens = 0
        self._usual_chunk_tokens = 0
        self.graphs: LayerGraphs | None = None
        """Recordings of what every token computes alike, where the device has such."""
        with contextlib.ExitStack() as stack:
            if device is not None:
                stack.callback(device.close)
            self._dense = DensePart(ledger, store.dense_tensors, device)
            stack.callback(self._dense.close)
            self.kv = KvCache(ledger, spec, context_tokens, device, ram_kv_layers)
            stack.callback(self.kv.close)
            self._resources = stack.pop_all()

    @property
    def chunk_tokens(self) -> int:
        """Prompt tokens that are computed together."""
        return self._chunk_tokens

    @property
    def dense_bytes_per_step(self) -> int:
        """Dense weights that the processor reads from RAM for each chunk or token."""
        entries = self._store.dense_tensors
        return 0 if self.device is not None else _looked_at_bytes(entries, self._spec)

    def take_work(self, room_bytes: int) -> None:
        """Take work buffers, as large as the room here allows; raises like ``Ledger.take``."""
        spec, context_tokens = self._spec, self._context_tokens
        ledger = self._ledger if self.device is None else self.device.ledger
        chunk_tokens = prefill_chunk_tokens(spec, context_tokens, room_bytes)
        self._take(ledger, work_bytes(spec, context_tokens, chunk_tokens))
        if self.device is not None:
            self._take(self._ledger, host_work_bytes(spec, chunk_tokens))
        self._chunk_tokens = self._usual_chunk_tokens = chunk_tokens

    def widen(self, chunk_tokens: int) -> None:
        """Take work buffers in RAM for more prompt tokens at once; raises like ``Ledger.take``."""
        self.narrow()
        self._ledger.take(MemoryPart.WORK, self._more_bytes(chunk_tokens))
        self._chunk_tokens = chunk_tokens

    def narrow(self) -> None:
        """Compute as many prompt tokens at once as usual; what was taken for more is free again."""
        self._ledger.give_back(MemoryPart.WORK, self._more_bytes(self._chunk_tokens))
        self._chunk_tokens = self._usual_chunk_tokens

    def read(self, progress: ReadProgress) -> None:
        """Read the dense part."""
        self._dense.read(self._store, progress)

    def build(self, kernels: Kernels, experts: ExpertSource, counters: Counters) -> Decoder:
        """Return the model over what lies here; ``kernels`` are the processor's."""
        device = self.device
        if device is None:
            return build_model(self._spec, kernels, self._dense, experts, self._context_tokens)
        tiered = TieredKernels(kernels, device, counters)
        if device.recorder is not None:
            self.graphs = LayerGraphs(tiered, device, device.recorder)
            self._resources.callback(self.graphs.close)
        return build_model(
            self._spec,
            tiered,
            self._dense,
            experts,
            self._context_tokens,
            device.torch_device,
            self.graphs,
        )

    def matrices(self) -> Mapping[str, Matrix]:
        """Return every dense tensor of two dimensions by its published name."""
        entries = self._store.dense_tensors
        return {
            name: self._dense.matrix(name)
            for name, entry in entries.items()
            if len(entry.shape) == 2
        }

    def close(self) -> None:
        """Give everything back; may be called twice."""
        self.narrow()
        self._resources.close()

    def _more_bytes(self, chunk_tokens: int) -> int:
        """Return what work takes more than usually with so many tokens at once."""
        if chunk_tokens == self._usual_chunk_tokens:
            return 0
        spec, context_tokens = self._spec, self._context_tokens
        usual_bytes = work_bytes(spec, context_tokens, self._usual_chunk_tokens)
        return work_bytes(spec, context_tokens, chunk_tokens) - usual_bytes

    def _take(self, ledger: Ledger, num_bytes: int) -> None:
        ledger.take(MemoryPart.WORK, num_bytes)
        self._resources.callback(ledger.give_back, MemoryPart.WORK, num_bytes)


def _looked_at_bytes(entries: Mapping[str, TensorEntry], spec: ModelSpec) -> int:
    """Return the bytes of all dense weights but an embedding of which rows are looked up alone."""
    return sum(
        entry.num_bytes for name, entry in entries.items() if not is_embedding(name) or spec.is_tied
    )
