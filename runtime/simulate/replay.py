"""Runs a policy over a trace and counts what it would have hit, by number and by bytes."""

import dataclasses
import enum
from collections.abc import Sequence

from runtime.policy.base import Policy
from runtime.policy.catalogue import Foreteller, LayerFacts, PolicyKind
from runtime.policy.keeper import SlotKeeper
from runtime.policy.score import LayerPosition
from runtime.policy.split import split_by_gain
from runtime.simulate.curves import lru_hits
from runtime.simulate.hygiene import uses
from runtime.simulate.records import LayerBytes, sizes_of
from runtime.simulate.trace import MAX_SCORE, Trace


class Entry(enum.StrEnum):
    """What becomes of an expert that is missed."""

    REQUIRED = "required"
    """It takes a slot, and nobody leaves who is needed in the same step: as in RAM."""
    OPTIONAL = "optional"
    """It is used where it lies or from a staging buffer; the policy decides whether it enters."""


@dataclasses.dataclass(frozen=True, slots=True)
class LayerCounts:
    """What happened in one layer; every need is a hit or a miss, every miss enters or not."""

    hits: int = 0
    misses: int = 0
    entered: int = 0
    left: int = 0
    num_resident: int = 0


@dataclasses.dataclass(frozen=True, slots=True)
class Replay:
    """What one policy did on one trace."""

    trace: str
    policy: str
    entry: Entry
    slots: tuple[int, ...]
    """Slots of each layer at the beginning."""
    layers: tuple[LayerCounts, ...]
    needed_bytes: tuple[int, ...]
    """Of all needs of each layer."""
    missed_bytes: tuple[int, ...]
    """Of those that were not resident."""

    @property
    def hits(self) -> int:
        """Needs that were resident."""
        return sum(layer.hits for layer in self.layers)

    @property
    def misses(self) -> int:
        """Needs that were not."""
        return sum(layer.misses for layer in self.layers)

    @property
    def entered(self) -> int:
        """Experts that took a slot: reads into RAM, or uploads."""
        return sum(layer.entered for layer in self.layers)

    @property
    def hit_ratio(self) -> float:
        """Share of needs that were resident."""
        return self.hits / max(1, self.hits + self.misses)

    @property
    def hit_bytes(self) -> int:
        """Bytes of needs that were resident."""
        return sum(self.needed_bytes) - self.miss_bytes

    @property
    def miss_bytes(self) -> int:
        """Bytes of needs that were not."""
        return sum(self.missed_bytes)


def replay(
    trace: Trace,
    kind: PolicyKind,
    slots: Sequence[int],
    entry: Entry = Entry.OPTIONAL,
    record_bytes: Sequence[LayerBytes] | None = None,
    profile: Trace | None = None,
) -> Replay:
    """Run a kind of policy over a trace, beginning with empty slots.

    ``record_bytes`` are the bytes of the experts of each layer; layers exchange slots only with
    others of the same slots. A static policy takes its list from ``profile``, else from the trace.
    """
    sizes = sizes_of(trace, record_bytes)
    if len(slots) != trace.num_layers:
        raise ValueError(f"slots of {len(slots)} layers, and {trace.num_layers} are replayed")
    if entry is Entry.REQUIRED and min(slots) < trace.top_k:
        raise ValueError(f"{min(slots)} slots, and a token needs {trace.top_k}")
    if kind.is_split_by_gain:
        curves = lru_hits(trace if profile is None else profile)
        slots = split_by_gain(curves, sum(slots), trace.top_k if entry is Entry.REQUIRED else 0)
    rows = [trace.rows(layer) for layer in range(trace.num_layers)]
    policies = policies_of(trace, kind, slots, rows, profile)
    found = [LayerCounts()] * trace.num_layers
    missed_bytes = [0] * trace.num_layers
    for group in sizes.groups() if kind.is_shared else [range(trace.num_layers)]:
        keeper = SlotKeeper(
            [policies[layer] for layer in group],
            [slots[layer] for layer in group],
            is_shared=kind.is_shared,
            min_slots=trace.top_k if entry is Entry.REQUIRED else 0,
            max_age_steps=kind.max_age_steps,
        )
        foreteller = kind.foreteller and kind.foreteller([policies[layer] for layer in group])
        done = _replay_group(keeper, trace.only_layers(group), entry, foreteller)
        for layer, (layer_counts, missed) in zip(group, done, strict=True):
            found[layer] = layer_counts
            missed_bytes[layer] = sizes.bytes_of(layer, missed)
    result = Replay(
        trace=trace.name,
        policy=kind.name,
        entry=entry,
        slots=tuple(slots),
        layers=tuple(found),
        needed_bytes=sizes.needed(trace),
        missed_bytes=tuple(missed_bytes),
    )
    _check(result, trace)
    return result


def policies_of(
    trace: Trace,
    kind: PolicyKind,
    slots: Sequence[int],
    rows: Sequence[Sequence[Sequence[int]]],
    profile: Trace | None = None,
) -> list[Policy]:
    """Return the policy of each layer, told what its kind may be told; ``rows[layer][token]``."""
    counts = uses(trace if profile is None else profile)
    position = LayerPosition()
    return [
        kind.make(
            slots[layer],
            LayerFacts(
                trace.num_experts,
                layer,
                trace.num_layers,
                dict(enumerate(counts[layer].tolist())),
                rows[layer],
                position,
            ),
        )
        for layer in range(trace.num_layers)
    ]


def tell_needs(keeper: SlotKeeper, foreteller: Foreteller | None, trace: Trace, token: int) -> None:
    """Tell the policies of all layers what they may know of a token before its first layer."""
    if foreteller is not None:
        foreteller.foretell(trace.ids[token])
    if keeper.takes_weights and trace.scores is not None:
        weights = (trace.scores[token] / MAX_SCORE).tolist()
        for layer, row in enumerate(trace.ids[token].tolist()):
            keeper.weigh(layer, row, weights[layer])


def _replay_group(
    keeper: SlotKeeper, trace: Trace, entry: Entry, foreteller: Foreteller | None
) -> list[tuple[LayerCounts, list[int]]]:
    """Run over a trace token by token; return what happened, and the misses of each expert."""
    is_required = entry is Entry.REQUIRED
    num_layers = trace.num_layers
    entered, left = [0] * num_layers, [0] * num_layers
    missed = [[0] * trace.num_experts for _ in range(num_layers)]
    for now, token in enumerate(trace.ids):
        tell_needs(keeper, foreteller, trace, now)
        for layer, row in enumerate(token.tolist()):
            missing = keeper.begin(layer, row, now)
            if missing:
                misses = missed[layer]
                locked: Sequence[int] = row if is_required else ()
                for expert in missing:
                    misses[expert] += 1
                    admission = keeper.admit(layer, expert, now, locked, is_required=is_required)
                    if admission is not None:
                        entered[layer] += 1
                        if admission.left is not None:
                            left[admission.left[0]] += 1
            keeper.end(layer, now, is_changed=bool(missing))
    keeper.check()
    num_needs = trace.num_tokens * trace.top_k
    found = []
    for layer, misses in enumerate(missed):
        num_misses = sum(misses)
        num_resident = len(keeper.residents(layer))
        counts = LayerCounts(
            num_needs - num_misses, num_misses, entered[layer], left[layer], num_resident
        )
        found.append((counts, misses))
    return found


def _check(result: Replay, trace: Trace) -> None:
    """Assert that nothing was lost: needs, entries, residents and bytes add up."""
    num_needs = trace.num_tokens * trace.top_k
    for layer in result.layers:
        assert layer.hits + layer.misses == num_needs
        assert layer.entered - layer.left == layer.num_resident
        assert layer.entered <= layer.misses
        if result.entry is Entry.REQUIRED:
            assert layer.entered == layer.misses
    assert sum(layer.num_resident for layer in result.layers) <= sum(result.slots)
    for needed, missed, layer in zip(
        result.needed_bytes, result.missed_bytes, result.layers, strict=True
    ):
        assert 0 <= missed <= needed
        assert (missed == needed) == (layer.misses == num_needs)
        assert (missed == 0) == (layer.misses == 0)
