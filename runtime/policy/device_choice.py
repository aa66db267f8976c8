"""Which experts lie on a device: chosen for all layers at once, between two steps."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
Flags = npt.NDArray[np.bool_]
IsAvailable = Callable[[int, int], bool]
"""Whether an expert (layer index, number) can be uploaded now."""
MIN_COMING = 4
"""So many uploads may always be on their way, however slow the link."""
_LOOKED_AT = 16
"""So many of the most wanted are looked at for each upload that may begin."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class UploadTerms:
    """When an upload pays; one set of numbers for all models."""

    decays: tuple[float, ...] = (0.9, 0.97, 0.997)
    """Paces, quick to slow: what is left of the share of recent uses after a step."""
    weights: tuple[float, ...] = (0.05, 0.15, 0.8)
    """What each pace counts; they sum to 1, so that a worth is a number of uses in a step."""
    min_gain: float = 0.03
    """An expert takes the place of another if it is expected so many more times in a step."""
    max_per_layer: int = 2
    """Uploads of a layer that may be on their way at once."""
    is_shared: bool = True
    """Whether layers exchange slots, each slot going where it is used most."""
    follows_prompts: bool = True
    """Whether what a prompt needs counts as much as if it had been generated."""


class Upload(NamedTuple):
    """An expert that is to come, and the one that leaves for it, if no slot is free."""

    layer: int
    expert: int
    left: tuple[int, int] | None
    """Layer index and number."""


class DeviceChoice:
    """Chooses for all layers of a model which experts lie in the slots of a device.

    The engine and the laboratory run this same object. A step is any number of ``need`` and
    ``need_rows``, then ``end_step`` and ``choose``; what was chosen is on its way, and neither it
    nor what left for it is resident, until ``publish``. Layers are named by their index.
    """

    def __init__(
        self, slots: Sequence[int], num_experts: int, terms: UploadTerms | None = None
    ) -> None:
        chosen = UploadTerms() if terms is None else terms
        shape = (len(slots), num_experts)
        self._terms = chosen
        self._slots = list(slots)
        self._shares: Floats = np.zeros((len(chosen.decays), *shape), np.float32)
        self._used: Floats = np.zeros(shape, np.float32)
        self._needs: list[tuple[int, Sequence[int]]] = []
        self._num_rows = 0
        self._weights = np.array(chosen.weights, np.float64)
        self._unseen = np.ones(len(chosen.decays), np.float64)
        """Which part of each share stems from before the first step."""
        self._residents: Flags = np.zeros(shape, np.bool_)
        self._coming: Flags = np.zeros(shape, np.bool_)
        self._num_published = 0
        self._worths: Floats = np.zeros(shape, np.float32)

    @property
    def slots(self) -> tuple[int, ...]:
        """Slots of each layer now."""
        return tuple(self._slots)

    @property
    def num_coming(self) -> int:
        """How many experts are on their way."""
        return int(np.count_nonzero(self._coming))

    @property
    def residents(self) -> Flags:
        """Whether each expert of each layer is resident; not to be written to."""
        return self._residents

    def need(self, layer: int, experts: Sequence[int]) -> None:
        """Note the distinct experts that one token needs of a layer."""
        self._needs.append((layer, experts))

    def need_rows(self, layer: int, counts: npt.NDArray[np.integer], num_rows: int) -> None:
        """Note how many of the rows of a prompt need each expert of a layer."""
        if self._terms.follows_prompts:
            self._num_rows = max(num_rows, self._num_rows)
            self._used[layer] += counts

    def end_step(self) -> None:
        """Let the past fade by the step that ends; a prompt of many rows counts as many steps."""
        rows = max(self._num_rows, len(self._needs) > 0)
        if not rows:
            return
        for layer, experts in self._needs:
            self._used[layer, experts] += 1
        self._needs.clear()
        used = self._used if rows == 1 else self._used / np.float32(rows)
        for pace, decay in enumerate(self._terms.decays):
            left = decay**rows
            self._unseen[pace] *= left
            self._shares[pace] *= np.float32(left)
            self._shares[pace] += np.float32(1 - left) * used
        self._used.fill(0)
        self._num_rows = 0
        # Of what was seen so far, and in sums of fixed order, so that every machine decides alike.
        factors = (self._weights / (1 - self._unseen)).astype(np.float32)
        self._worths = np.add.reduce(self._shares * factors[:, None, None], axis=0)

    def choose(self, is_available: IsAvailable | None = None) -> list[Upload]:
        """Return what is to be uploaded now, the most wanted first.

        While uploads take longer than steps, as many begin as end.
        """
        num_more = self._max_more()
        self._num_published = 0
        free = [slots - used for slots, used in zip(self._slots, self._num_taken(), strict=True)]
        chosen: list[Upload] = []
        if num_more <= 0 or not any(self._slots):
            return chosen
        victims = _Victims(self._worths, self._residents, num_more, is_shared=self._terms.is_shared)
        least = 0.0 if any(free) else victims.lowest + self._terms.min_gain
        rooms = (self._terms.max_per_layer - np.count_nonzero(self._coming, axis=1)).tolist()
        for worth, layer, expert in self._candidates(least, _LOOKED_AT * num_more):
            if len(chosen) == num_more:
                break
            if rooms[layer] <= 0 or not (is_available is None or is_available(layer, expert)):
                continue
            left = None
            giver = layer if free[layer] else _most(free) if self._terms.is_shared else None
            if giver is not None:
                free[giver] -= 1
            else:
                left = victims.take(layer, worth - self._terms.min_gain)
                if left is None:
                    continue
                giver = left[0]
                self._residents[left] = False
            self._slots[giver] -= 1
            self._slots[layer] += 1
            self._coming[layer, expert] = True
            rooms[layer] -= 1
            chosen.append(Upload(layer, expert, left))
        return chosen

    def publish(self, layer: int, expert: int) -> None:
        """Note that an expert has come and is resident."""
        self._coming[layer, expert] = False
        self._residents[layer, expert] = True
        self._num_published += 1

    def forget(self, layer: int, expert: int) -> None:
        """Note that an expert does not come, or has left; its slot is free."""
        self._coming[layer, expert] = False
        self._residents[layer, expert] = False

    def shrink(self, num_slots: int) -> list[tuple[int, int]]:
        """Give up slots until there are so many; return who left, as layer index and expert.

        Nothing may be on its way.
        """
        number = max(0, sum(self._slots) - num_slots)
        left: list[tuple[int, int]] = []
        victims = _Victims(self._worths, self._residents, number, is_shared=True)
        free = [slots - used for slots, used in zip(self._slots, self._num_taken(), strict=True)]
        for _ in range(number):
            giver = _most(free)
            if giver is not None:
                free[giver] -= 1
            else:
                gone = victims.take(0, np.inf)
                assert gone is not None, "slots that are not free have residents"
                self._residents[gone] = False
                left.append(gone)
                giver = gone[0]
            self._slots[giver] -= 1
        return left

    def grow(self, num_slots: int) -> None:
        """Add free slots until there are so many, where there are fewest."""
        num_experts = self._residents.shape[1]
        if num_slots > len(self._slots) * num_experts:
            raise ValueError(f"{num_slots} slots for {len(self._slots)} x {num_experts}")
        for _ in range(num_slots - sum(self._slots)):
            self._slots[self._slots.index(min(self._slots))] += 1

    def check(self) -> None:
        """Assert that slots, residents and what is coming add up."""
        assert not (self._residents & self._coming).any()
        taken = self._num_taken()
        assert all(used <= slots for slots, used in zip(self._slots, taken, strict=True))

    def _num_taken(self) -> list[int]:
        """Return how many slots of each layer hold somebody or wait for somebody."""
        taken: list[int] = np.count_nonzero(self._residents | self._coming, axis=1).tolist()
        return taken

    def _max_more(self) -> int:
        """Return how many uploads may begin now."""
        num_coming = self.num_coming
        if not num_coming:
            return len(self._slots) * self._terms.max_per_layer
        return max(MIN_COMING, 2 * self._num_published) - num_coming

    def _candidates(self, least: float, number: int) -> list[tuple[float, int, int]]:
        """Return worth, layer and number of who is worth more, the most wanted first, not all."""
        absent = np.where(self._residents | self._coming, np.float32(0), self._worths)
        layers, experts = np.nonzero(absent > least)
        found = absent[layers, experts]
        order = np.argsort(-found, kind="stable")[:number]
        columns = (found[order].tolist(), layers[order].tolist(), experts[order].tolist())
        return list(zip(*columns, strict=True))


class _Victims:
    """Residents in ascending order of their worth, of all layers or of each by itself."""

    def __init__(self, worths: Floats, residents: Flags, number: int, *, is_shared: bool) -> None:
        """``number`` says how many will be taken at most."""
        self._is_shared = is_shared
        self._queues: dict[int, list[tuple[float, tuple[int, int]]]] = {}
        here = np.where(residents, worths, np.float32(np.inf))
        self.lowest = float(here.min())
        """The worth of the least resident."""
        flat = here.reshape(-1)
        if is_shared and number < flat.size:
            # By value and in ascending places, so that of equals every machine takes the same.
            chosen = np.nonzero(flat <= np.partition(flat, number)[number])[0]
        else:
            chosen = np.arange(flat.size)
        order = chosen[np.argsort(flat[chosen], kind="stable")]
        for place in reversed(order.tolist()):
            worth = flat.item(place)
            if worth < np.inf:
                layer, expert = divmod(place, here.shape[1])
                queue = self._queues.setdefault(0 if is_shared else layer, [])
                queue.append((worth, (layer, expert)))

    def take(self, layer: int, limit: float) -> tuple[int, int] | None:
        """Return who leaves for an expert of a layer, None if nobody is worth less than a limit."""
        queue = self._queues.get(0 if self._is_shared else layer)
        if not queue or queue[-1][0] >= limit:
            return None
        return queue.pop()[1]


def _most(free: Sequence[int]) -> int | None:
    """Return the layer with the most free slots, None if there is none."""
    most = max(free, default=0)
    return free.index(most) if most > 0 else None
