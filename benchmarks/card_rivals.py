"""Other ways to use a card, to compare the engine's choice with."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from runtime.policy.device_choice import Upload
from runtime.policy.lru import LruPolicy
from runtime.simulate.card_run import Flags
from runtime.simulate.trace import Trace

Counts = npt.NDArray[np.int64]


def uses_of(trace: Trace, num_tokens: int | None = None) -> Counts:
    """Return how often each expert of each layer is needed by the first tokens."""
    return np.stack(
        [
            np.bincount(trace.ids[:num_tokens, layer].reshape(-1), minlength=trace.num_experts)
            for layer in range(trace.num_layers)
        ]
    )


def most_used(uses: Counts, slots: int) -> Flags:
    """Return residents that stay: in each layer so many that were used most."""
    residents = np.zeros(uses.shape, np.bool_)
    first = np.argsort(-uses, axis=1, kind="stable")[:, :slots]
    np.put_along_axis(residents, first, values=True, axis=1)
    return residents


def whole_layers(trace: Trace, share: float) -> Flags:
    """Return residents that stay: all experts of the last layers, none of the others."""
    residents = np.zeros((trace.num_layers, trace.num_experts), np.bool_)
    residents[trace.num_layers - int(trace.num_layers * share) :] = True
    return residents


def lru_hits(trace: Trace, slots: int) -> Counts:
    """Return what each token hits of each layer if every missed expert takes the oldest's slot."""
    hits = np.zeros((trace.num_tokens, trace.num_layers), np.int64)
    for layer in range(trace.num_layers):
        # The last of the keys is the newest.
        here: dict[int, None] = {}
        for token, row in enumerate(trace.rows(layer)):
            found = [expert for expert in row if expert in here]
            hits[token, layer] = len(found)
            for expert in found:
                del here[expert]
            for expert in row:
                if len(here) == slots:
                    del here[next(iter(here))]
                here[expert] = None
    return hits


class LruUploads:
    """The least recently used one of a layer leaves for each expert that the processor computed.

    With ``memory_steps`` an expert comes to a full layer only if it was needed in so many steps
    before too. ``max_per_layer`` bounds the uploads of a layer on their way.
    """

    def __init__(
        self,
        num_layers: int,
        num_experts: int,
        slots: int,
        *,
        memory_steps: int,
        max_per_layer: int,
    ) -> None:
        self.residents: Flags = np.zeros((num_layers, num_experts), np.bool_)
        self._coming: Flags = np.zeros_like(self.residents)
        self._policies = [LruPolicy(slots) for _ in range(num_layers)]
        self._slots = slots
        self._memory_steps = memory_steps
        self._max_per_layer = max_per_layer
        self._seen = np.full(self.residents.shape, -(1 << 30), np.int64)
        self._wanted: list[tuple[int, int, bool]] = []
        self._now = 0

    def need(self, layer: int, experts: Sequence[int]) -> None:
        """Note the distinct experts that one token needs of a layer."""
        here = self.residents[layer]
        self._policies[layer].touch([expert for expert in experts if here[expert]], self._now)
        for expert in experts:
            if not here[expert]:
                is_recent = self._now - self._seen[layer, expert] <= self._memory_steps
                self._wanted.append((layer, expert, bool(is_recent) or not self._memory_steps))
                self._seen[layer, expert] = self._now

    def need_rows(self, layer: int, counts: npt.NDArray[np.integer], num_rows: int) -> None:
        """Let a prompt pass: nothing is learnt of it."""

    def end_step(self) -> None:
        """Count the step."""
        self._now += 1

    def choose(self) -> list[Upload]:
        """Return what is to be uploaded now."""
        chosen: list[Upload] = []
        coming = np.count_nonzero(self._coming, axis=1)
        for layer, expert, is_admitted in self._wanted:
            is_there = self.residents[layer, expert] or self._coming[layer, expert]
            if is_there or coming[layer] >= self._max_per_layer:
                continue
            left = None
            if np.count_nonzero(self.residents[layer]) + coming[layer] >= self._slots:
                victim = self._policies[layer].victim((), self._now) if is_admitted else None
                if victim is None:
                    continue
                left = (layer, victim)
                self._policies[layer].remove(victim)
                self.residents[left] = False
            self._coming[layer, expert] = True
            coming[layer] += 1
            chosen.append(Upload(layer, expert, left))
        self._wanted.clear()
        return chosen

    def publish(self, layer: int, expert: int) -> None:
        """Note that an expert has come and is resident."""
        self._coming[layer, expert] = False
        self.residents[layer, expert] = True
        self._policies[layer].insert(expert, self._now)

    def check(self) -> None:
        """Assert that no layer holds more than its slots."""
        taken = np.count_nonzero(self.residents | self._coming, axis=1)
        assert taken.max(initial=0) <= self._slots
