"""Counts, token by token, how recently the experts that a token needs were used before.

Beside that the experts of the first tokens of an answer are kept, to see how alike they are.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from runtime.simulate.consistency import count_routing
from runtime.simulate.whole_steps import WholeSteps
from runtime.spec.past import ReuseCounts, RoutingCounts

MAX_KEPT_TOKENS = 256
"""Of an answer: judging them takes a few hundredths of a second."""
_MAX_JUDGED = 1024
"""Experts of all layers that are judged; layers are left out evenly where there are more."""
_NEVER = -1


class ReuseMeter:
    """Ranks of recency in each MoE layer, and how often a need had each.

    Only steps of one token are counted: they need exactly ``top_k`` experts in each layer. Those of
    a prompt count as used at one moment. Steps are noted as ``WholeSteps`` takes them.

    Threads: used by the engine thread.
    """

    def __init__(self, num_experts: int, layers: Sequence[int], top_k: int) -> None:
        self._whole_steps = WholeSteps[Sequence[int]](layers)
        self._rows = np.arange(len(layers))[:, None]
        self._last_step = np.full((len(layers), num_experts), _NEVER, np.int32)
        self._top_k = top_k
        self._now = 0
        self._found = np.zeros(num_experts, np.int64)
        self._num_tokens = 0
        stride = -(-len(layers) * num_experts // _MAX_JUDGED)
        self._judged = slice(stride // 2, None, stride)
        self._kept: list[npt.NDArray[np.int64]] = []

    def note(self, layer: int, experts: Sequence[int]) -> None:
        """Note which different experts a step needs in a layer."""
        step = self._whole_steps.add(layer, experts)
        if step is not None:
            self._take(step)

    def take(self) -> ReuseCounts | None:
        """Return what was counted since the last call, None if nothing was."""
        if not self._num_tokens:
            return None
        counts = ReuseCounts(tuple(self._found.tolist()), self._num_tokens)
        self._found[:] = 0
        self._num_tokens = 0
        return counts

    def take_routing(self) -> RoutingCounts | None:
        """Return how alike tokens in a row were since the last call, None if too few were."""
        kept, self._kept = self._kept, []
        return count_routing(np.stack(kept), self._last_step.shape[1]) if kept else None

    def _take(self, step: Sequence[Sequence[int]]) -> None:
        """Take a whole step, the experts of each layer."""
        if all(len(experts) == self._top_k for experts in step):
            ids = np.array(step)
            if len(self._kept) < MAX_KEPT_TOKENS:
                self._kept.append(ids[self._judged])
            if self._now:
                self._count(ids)
                self._num_tokens += 1
            self._last_step[self._rows, ids] = self._now
        else:
            for index, experts in enumerate(step):
                self._last_step[index, list(experts)] = self._now
        self._now += 1

    def _count(self, ids: npt.NDArray[np.int64]) -> None:
        """Count the rank of each of one token's experts, [layers, top_k].

        Of experts that were used at one moment nobody knows which is more recent, nor of those that
        were not used since the model was loaded: the middle of them counts.
        """
        used = self._last_step[self._rows, ids][:, :, None]
        others = self._last_step[:, None, :]
        newer = (others > used).sum(axis=2)
        alike = (others == used).sum(axis=2)
        ranks = newer + (alike - 1) // 2
        self._found += np.bincount(ranks.ravel(), minlength=len(self._found))
