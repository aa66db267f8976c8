"""What a token costs on a pretended PC with a card: the dense part and some experts lie on it."""

import dataclasses

import numpy as np
import numpy.typing as npt

from runtime.simulate.resources import AffineCost

Seconds = npt.NDArray[np.float64]
Counts = npt.NDArray[np.integer]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CardMachine:
    """Rates of a PC with a card, in bytes per second."""

    name: str
    ram_per_s: float
    """What all cores together read, without computing."""
    link_per_s: float
    """From page-locked RAM to the card."""
    card_per_s: float
    """What the card reads of its own memory."""
    kernel_ratio: float = 0.875
    """Part of the plain rate of RAM that kernels reach."""
    card_ratio: float = 0.75
    """The same of the card's memory."""
    layer_s: float = 15e-6
    """Starts and waits of a layer on the card."""
    hop_s: float = 10e-6
    """A hidden state goes to the processor or back."""
    copy_s: float = 10e-6
    """Part of a copy of weights that does not depend on its size."""
    begin_s: float = 15e-6
    """Work of the processor to begin an upload, for which everything waits."""
    chunk_bytes: int = 256 << 10
    """Copies of weights go in pieces; a hidden state waits for one of them at most."""
    is_overlapped: bool = True
    """Whether processor and card compute experts of a layer at the same time."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ModelBytes:
    """Bytes that a token reads of a model."""

    record: int
    """Of one expert."""
    layer: int
    """Of the rest of a layer."""
    token: int = 0
    """Of what comes once in a token, as the output matrix."""


@dataclasses.dataclass(frozen=True, slots=True)
class LayerCosts:
    """Seconds of the pieces of a layer."""

    dense_s: float
    hit_s: float
    """The card computes one expert."""
    miss_s: float
    """The processor computes one expert, alone."""
    hop_s: float
    chunk_s: float
    copy: AffineCost
    copy_s: float
    """One expert goes over the link."""
    begin_s: float
    token_s: float
    slowed_ratio: float
    """What is left of the processor's pace while weights are copied out of its RAM."""
    is_overlapped: bool

    @classmethod
    def of(cls, machine: CardMachine, model: ModelBytes) -> "LayerCosts":
        """Return the costs of a model on a machine."""
        card_per_s = machine.card_per_s * machine.card_ratio
        kernel_per_s = machine.ram_per_s * machine.kernel_ratio
        copy = AffineCost(machine.copy_s, 1 / machine.link_per_s)
        left_per_s = max(0.1 * machine.ram_per_s, machine.ram_per_s - machine.link_per_s)
        return cls(
            dense_s=machine.layer_s + model.layer / card_per_s,
            hit_s=model.record / card_per_s,
            miss_s=model.record / kernel_per_s,
            hop_s=machine.hop_s,
            chunk_s=machine.chunk_bytes / machine.link_per_s,
            copy=copy,
            copy_s=copy.seconds(model.record),
            begin_s=machine.begin_s,
            token_s=model.token / card_per_s,
            slowed_ratio=min(1.0, left_per_s / kernel_per_s),
            is_overlapped=machine.is_overlapped,
        )

    def split(self, hits: Counts, misses: Counts) -> Seconds:
        """Return seconds of layers whose misses the processor computes and whose hits the card."""
        there = hits * self.hit_s
        here = np.where(misses > 0, 2 * self.hop_s + misses * self.miss_s, 0.0)
        both = np.maximum(there, here) if self.is_overlapped else there + here
        return np.asarray(self.dense_s + both, dtype=np.float64)

    def copied(self, hits: Counts, misses: Counts) -> Seconds:
        """Return seconds of layers whose misses are copied to the card, which computes all.

        Copies pass one by one while the card computes hits; each is computed when it is there.
        """
        there = hits * self.hit_s
        arrived = np.where(misses > 0, self.hop_s + misses * self.copy_s, 0.0)
        ends = np.maximum(
            there + misses * self.hit_s, arrived + np.where(misses > 0, self.hit_s, 0)
        )
        seconds: Seconds = self.dense_s + ends
        return seconds

    def beside_copies(self, begin_s: float, hits: int, misses: int, link_free_s: float) -> float:
        """Return when a layer ends that begins while uploads occupy the link until a time."""
        dense_end_s = begin_s + self.dense_s
        card_end_s = dense_end_s + hits * self.hit_s
        if not misses:
            return card_end_s
        start_s = dense_end_s + self.hop_s
        if start_s < link_free_s:
            start_s += self.chunk_s
        work_s = misses * self.miss_s
        slowed_s = max(0.0, link_free_s - start_s)
        if work_s > slowed_s * self.slowed_ratio:
            end_s = start_s + slowed_s + (work_s - slowed_s * self.slowed_ratio)
        else:
            end_s = start_s + work_s / self.slowed_ratio + self.chunk_s
        end_s += self.hop_s
        return max(card_end_s, end_s) if self.is_overlapped else end_s + hits * self.hit_s
