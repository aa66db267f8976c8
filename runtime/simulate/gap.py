"""How good a policy is between plain LRU and the clairvoyant bound."""

import dataclasses
from collections.abc import Sequence

from runtime.policy.catalogue import POLICIES, PolicyKind
from runtime.policy.split import even_split
from runtime.simulate.records import LayerBytes
from runtime.simulate.replay import Entry, Replay, replay
from runtime.simulate.trace import Trace

BASE = "lru"
BOUND = "clairvoyant"


@dataclasses.dataclass(frozen=True, slots=True)
class Judgement:
    """One policy beside even LRU and the even clairvoyant, with the same number of slots."""

    replay: Replay
    base: Replay
    bound: Replay

    @property
    def gap_closed_ratio(self) -> float:
        """Share of the missed bytes between base and bound that the policy saves.

        Above 1 where slots that layers exchange beat a clairvoyant with even slots.
        """
        gap = self.base.miss_bytes - self.bound.miss_bytes
        return (self.base.miss_bytes - self.replay.miss_bytes) / gap if gap else 0.0

    @property
    def points_above_base(self) -> float:
        """Hit rate above that of the base, in percentage points."""
        return 100 * (self.replay.hit_ratio - self.base.hit_ratio)


def judge(
    trace: Trace,
    kinds: Sequence[PolicyKind],
    total_slots: int,
    entry: Entry = Entry.OPTIONAL,
    record_bytes: Sequence[LayerBytes] | None = None,
) -> list[Judgement]:
    """Replay kinds of policies, each beginning with evenly split slots.

    Asserts that none that keeps them so beats the bound.
    """
    slots = even_split(trace.num_layers, total_slots, trace.num_experts)
    base = replay(trace, POLICIES[BASE], slots, entry, record_bytes)
    bound = replay(trace, POLICIES[BOUND], slots, Entry.OPTIONAL, record_bytes)
    found = []
    for kind in kinds:
        known = {BASE: base} if entry is Entry.REQUIRED else {BASE: base, BOUND: bound}
        done = known.get(kind.name) or replay(trace, kind, slots, entry, record_bytes)
        if not kind.is_shared and not kind.is_split_by_gain:
            _check_bound(done, bound)
        found.append(Judgement(done, base, bound))
    return found


def _check_bound(done: Replay, bound: Replay) -> None:
    """Assert that no layer missed less than the clairvoyant with as many slots."""
    pairs = zip(done.layers, bound.layers, strict=True)
    assert all(layer.misses >= least.misses for layer, least in pairs), done.policy


def slots_of_share(trace: Trace, share: float) -> int:
    """Return the slots of all layers that hold a share of each layer's experts."""
    return int(trace.num_experts * share) * trace.num_layers
