"""Who is resident in which layer and who makes room for whom: all policies at work."""

from collections.abc import Collection, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from runtime.policy.base import DoubtedPolicy, Policy, RankingPolicy, WeighingPolicy
from runtime.policy.exchange import Eviction, SlotExchange
from runtime.policy.trust import Trust


class Admission(NamedTuple):
    """Why an expert may come in: a slot was free, or somebody has left for it."""

    left: tuple[int, int] | None = None
    """Layer index and number of the expert that left."""


_FREE_SLOT = Admission()


class SlotKeeper:
    """Counts slots and residents of all layers and asks the policies.

    The engine and the laboratory run this same object. With ``is_shared`` the layers exchange slots
    of one total, which needs ranking policies; else each keeps its own. A step of a layer is
    ``begin``, ``admit`` for each expert that is missing and was used all the same, and ``end``.
    Layers are named by their index.
    """

    def __init__(
        self,
        policies: Sequence[Policy],
        slots: Sequence[int],
        *,
        is_shared: bool,
        min_slots: int = 0,
        max_age_steps: int = 4,
    ) -> None:
        """Begin without residents; each policy was made for its number of ``slots``."""
        self._policies = tuple(policies)
        self._rankings = [
            policy if isinstance(policy, RankingPolicy) else None for policy in policies
        ]
        self._weighing = [
            policy if isinstance(policy, WeighingPolicy) else None for policy in policies
        ]
        self.takes_weights = any(policy is not None for policy in self._weighing)
        """Whether any policy looks at the router's weights."""
        ranking = [policy for policy in self._rankings if policy is not None]
        if is_shared and len(ranking) != len(self._policies):
            raise ValueError("only ranking policies can exchange slots")
        self._slots = list(slots)
        self._residents: list[set[int]] = [set() for _ in slots]
        self._num_all_free = sum(slots)
        self._refused_for: Eviction | None = None
        """Who would have left for the expert that was refused last in the present step."""
        self._exchange = SlotExchange(ranking, min_slots, max_age_steps) if is_shared else None
        self._doubted = [policy for policy in policies if isinstance(policy, DoubtedPolicy)]
        self._trust = Trust(len(policies)) if is_shared and self._doubted else None
        self._tell_slots()

    @property
    def slots(self) -> tuple[int, ...]:
        """Slots of each layer now."""
        return tuple(self._slots)

    def residents(self, layer: int) -> AbstractSet[int]:
        """Return the residents of a layer; the set follows what happens."""
        return self._residents[layer]

    @property
    def num_all_free(self) -> int:
        """How many slots of all layers hold nobody."""
        return self._num_all_free

    def num_free(self, layer: int) -> int:
        """Return how many slots of a layer hold nobody."""
        return self._slots[layer] - len(self._residents[layer])

    def weigh(self, layer: int, row: Sequence[int], weights: Sequence[float]) -> None:
        """Hear the router's weights of the experts that the next step of a layer needs."""
        policy = self._weighing[layer]
        if policy is not None:
            policy.weigh(row, weights)

    def begin(self, layer: int, row: Sequence[int], now: int) -> list[int]:
        """Begin a step that needs distinct experts; return those that are not resident."""
        resident, ranking = self._residents[layer], self._rankings[layer]
        missing = [expert for expert in row if expert not in resident]
        self._refused_for = None
        if ranking is not None:
            ranking.need(row, now)
        elif len(missing) < len(row):
            self._policies[layer].touch([expert for expert in row if expert in resident], now)
        if self._trust is not None:
            self._trust.note(layer, row, len(missing))
        return missing

    def admit(
        self,
        layer: int,
        expert: int,
        now: int,
        locked: Collection[int] = (),
        *,
        spare: Collection[int] = (),
        is_required: bool = False,
    ) -> Admission | None:
        """Let a missing expert of the step come in if it is worth it; None if it stays outside.

        ``locked`` residents of the layer stay. If no slot is free, ``spare`` residents of the layer
        leave before anybody else. With ``is_required`` the expert comes in if anybody can leave.
        """
        exchange = self._exchange
        if exchange is None:
            if not (is_required or spare or self._policies[layer].admit(expert, now)):
                return None
            admission = self._make_room(layer, now, locked, spare)
        else:
            admission = self._make_shared_room(
                exchange, layer, expert, now, locked, spare, is_required=is_required
            )
        if admission is not None:
            self._refused_for = None
            self._policies[layer].insert(expert, now)
            self._residents[layer].add(expert)
        return admission

    def end(self, layer: int, now: int, *, is_changed: bool) -> None:
        """End a step of a layer; ``is_changed`` says whether anybody was missing."""
        if self._exchange is None:
            return
        if is_changed:
            self._exchange.note_change(layer, self._slots[layer], now)
        else:
            self._exchange.note_step(layer, now)
        if layer == len(self._policies) - 1 and self._trust is not None and self._trust.settle():
            for policy in self._doubted:
                policy.believe(is_believed=self._trust.is_believed)

    def preload(self, layer: int, experts: Sequence[int], now: int) -> None:
        """Let experts come in that nobody needed yet; there must be free slots."""
        ranking = self._rankings[layer]
        for expert in experts:
            if ranking is not None:
                ranking.preload(expert)
            else:
                self._policies[layer].insert(expert, now)
        self._residents[layer].update(experts)
        self._num_all_free -= len(experts)
        self.end(layer, now, is_changed=True)

    def remove(self, layer: int, expert: int, now: int) -> None:
        """Note that an expert could not be kept; its slot is free."""
        self._leave(layer, expert)
        self._num_all_free += 1
        self.end(layer, now, is_changed=True)

    def shrink(self, total_slots: int, now: int) -> list[tuple[int, int]]:
        """Give up slots until there are so many; return who left, as layer index and expert."""
        left: list[tuple[int, int]] = []
        for layer in range(len(self._slots)):
            self.end(layer, now, is_changed=True)
        for _ in range(sum(self._slots) - total_slots):
            if self._num_all_free:
                giver = self._free_giver()
                self._num_all_free -= 1
            else:
                giver, expert = self._lowest(now)
                self._leave(giver, expert)
                left.append((giver, expert))
            self._change(giver, -1)
            self.end(giver, now, is_changed=True)
        self._tell_slots()
        return left

    def grow(self, total_slots: int, max_slots: int, now: int) -> None:
        """Add free slots until there are so many, where there are fewest, never above a maximum."""
        for _ in range(total_slots - sum(self._slots)):
            layer = min(range(len(self._slots)), key=self._slots.__getitem__)
            if self._slots[layer] >= max_slots:
                raise ValueError(f"{total_slots} slots for {len(self._slots)} x {max_slots}")
            self._change(layer, 1)
            self._num_all_free += 1
        for layer in range(len(self._slots)):
            self.end(layer, now, is_changed=True)
        self._tell_slots()

    def check(self) -> None:
        """Assert that slots and residents add up."""
        assert self._num_all_free == sum(map(self.num_free, range(len(self._slots))))
        assert all(self.num_free(layer) >= 0 for layer in range(len(self._slots)))

    def _tell_slots(self) -> None:
        if self._trust is not None:
            self._trust.resize(sum(self._slots))

    def _make_room(
        self, layer: int, now: int, locked: Collection[int], spare: Collection[int]
    ) -> Admission | None:
        """Free a slot of a layer that keeps its own."""
        if len(self._residents[layer]) < self._slots[layer]:
            self._num_all_free -= 1
            return _FREE_SLOT
        if spare:
            return self._replace_spare(layer, now, locked, spare)
        return self._replace_own(layer, now, locked)

    def _make_shared_room(
        self,
        exchange: SlotExchange,
        layer: int,
        expert: int,
        now: int,
        locked: Collection[int],
        spare: Collection[int],
        *,
        is_required: bool,
    ) -> Admission | None:
        """Free a slot of a layer for an expert, in that layer or in another one."""
        if len(self._residents[layer]) < self._slots[layer]:
            self._num_all_free -= 1
            return _FREE_SLOT
        if self._num_all_free:
            self._num_all_free -= 1
            self._move_slot(exchange, self._free_giver(), layer, now)
            return _FREE_SLOT
        if spare:
            return self._replace_spare(layer, now, locked, spare)
        # Within a step nothing changes while experts are refused, the one who would leave neither.
        victim = self._refused_for if not locked else None
        if victim is None:
            victim = exchange.victim(layer, locked, now)
        if victim is None:
            return None
        if not is_required and not exchange.admits(layer, expert, victim, now):
            self._refused_for = None if locked else victim
            return None
        giver = victim.layer_index
        self._leave(giver, victim.expert)
        if giver != layer:
            self._move_slot(exchange, giver, layer, now)
        return Admission((giver, victim.expert))

    def _replace_spare(
        self, layer: int, now: int, locked: Collection[int], spare: Collection[int]
    ) -> Admission | None:
        kept = {other for other in self._residents[layer] if other in locked or other not in spare}
        return self._replace_own(layer, now, kept)

    def _replace_own(self, layer: int, now: int, kept: Collection[int]) -> Admission | None:
        """Let the least of a layer leave that is not kept."""
        own = self._policies[layer].victim(kept, now)
        if own is None:
            return None
        self._leave(layer, own)
        return Admission((layer, own))

    def _lowest(self, now: int) -> tuple[int, int]:
        """Return who is worth least of all layers, as layer index and expert."""
        if self._exchange is not None:
            lowest = self._exchange.lowest()
            assert lowest is not None, "layers without free slots have residents"
            return lowest.layer_index, lowest.expert
        giver = max(range(len(self._slots)), key=self._slots.__getitem__)
        expert = self._policies[giver].victim((), now)
        assert expert is not None, "a layer without free slots has residents"
        return giver, expert

    def _free_giver(self) -> int:
        """Return the layer that has the most free slots."""
        free = [
            slots - len(resident)
            for slots, resident in zip(self._slots, self._residents, strict=True)
        ]
        return free.index(max(free))

    def _move_slot(self, exchange: SlotExchange, giver: int, taker: int, now: int) -> None:
        """Give a free slot of a layer to another one."""
        self._change(giver, -1)
        self._change(taker, 1)
        exchange.note_change(giver, self._slots[giver], now)

    def _change(self, layer: int, step: int) -> None:
        self._slots[layer] += step
        self._policies[layer].resize(self._slots[layer])

    def _leave(self, layer: int, expert: int) -> None:
        self._policies[layer].remove(expert)
        self._residents[layer].remove(expert)
