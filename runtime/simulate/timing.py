"""How long the tokens of a trace take on a machine: a discrete-event replay."""

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

from runtime.policy.catalogue import Foreteller, PolicyKind
from runtime.policy.keeper import SlotKeeper
from runtime.simulate.machine import MachineCosts
from runtime.simulate.prefetch import HintLane, HintOutcomes
from runtime.simulate.records import LayerBytes, sizes_of
from runtime.simulate.replay import policies_of, tell_needs
from runtime.simulate.resources import Drive, Server
from runtime.simulate.trace import Trace


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What the model of a trace moves, in bytes."""

    record_bytes: int | Sequence[LayerBytes]
    """Of one expert, the same for all or of each layer."""
    layer_bytes: int = 0
    """Of the dense part of one layer."""
    row_bytes: int = 0
    """Of a hidden state that goes to a device or back."""


@dataclasses.dataclass(frozen=True, slots=True)
class Timing:
    """What a policy's tokens took."""

    policy: str
    num_tokens: int
    seconds: float
    wait_s: float
    """Of these, the processor waited for the drive."""
    compute_s: float
    device_s: float
    link_s: float
    drive_s: float
    """The drive was reading."""
    drive_bytes: int
    hits: int
    misses: int
    hints: HintOutcomes

    @property
    def tokens_per_s(self) -> float:
        """Tokens by seconds."""
        return self.num_tokens / self.seconds if self.seconds else 0.0


def time_replay(
    trace: Trace,
    kind: PolicyKind,
    slots: Sequence[int],
    costs: MachineCosts,
    load: Load,
    *,
    follows_hints: bool = False,
) -> Timing:
    """Run a kind of policy over a trace, caches empty at first, and let time pass as it would.

    A layer asks for all its misses at once, computes its experts in ascending order, each when it
    is there, and decides afterwards who stays, as the engine does. With ``follows_hints``, the
    trace's guesses of the next layer are read while the drive has nothing else to do.
    """
    if follows_hints and trace.hints is None:
        raise ValueError(f"the trace {trace.name} has no hints")
    return _Run(trace, kind, slots, costs, load).run(follows_hints=follows_hints)


class _Group(NamedTuple):
    """Layers that may exchange slots, and who decides for them."""

    layers: Sequence[int]
    trace: Trace
    keeper: SlotKeeper
    foreteller: Foreteller | None


class _Run:
    """One replay with its clock."""

    def __init__(
        self,
        trace: Trace,
        kind: PolicyKind,
        slots: Sequence[int],
        costs: MachineCosts,
        load: Load,
    ) -> None:
        self._trace = trace
        self._kind = kind
        self._costs = costs
        self._load = load
        self._rows = [trace.rows(layer) for layer in range(trace.num_layers)]
        given = load.record_bytes
        self._sizes = sizes_of(
            trace, [given] * trace.num_layers if isinstance(given, int) else given
        )
        policies = policies_of(trace, kind, slots, self._rows)
        whole = [list(range(trace.num_layers))]
        self._groups = [
            _Group(
                layers,
                trace.only_layers(layers),
                SlotKeeper(
                    [policies[layer] for layer in layers],
                    [slots[layer] for layer in layers],
                    is_shared=kind.is_shared,
                    max_age_steps=kind.max_age_steps,
                ),
                kind.foreteller and kind.foreteller([policies[layer] for layer in layers]),
            )
            for layers in (self._sizes.groups() if kind.is_shared else whole)
        ]
        self._places = {
            layer: (group.keeper, index)
            for group in self._groups
            for index, layer in enumerate(group.layers)
        }
        self._processor = Server(costs.expert)
        self._dense = Server(costs.dense)
        self._link = None if costs.link is None else Server(costs.link)
        self._drive = Drive(costs.drive, costs.drive_depth)
        self._lane = HintLane(self._drive, self._sizes.layers)
        self._now_s = 0.0
        self._wait_s = 0.0
        self._misses = 0

    def run(self, *, follows_hints: bool) -> Timing:
        """Run all tokens."""
        trace = self._trace
        for token in range(trace.num_tokens):
            for group in self._groups:
                tell_needs(group.keeper, group.foreteller, group.trace, token)
            for layer in range(trace.num_layers):
                self._now_s = self._dense.work(self._now_s, self._load.layer_bytes)
                self._step(layer, self._rows[layer][token], token, follows_hints=follows_hints)
            self._now_s += self._costs.token_s
        for group in self._groups:
            group.keeper.check()
        num_needs = trace.num_tokens * trace.num_layers * trace.top_k
        has_device = self._link is not None
        return Timing(
            policy=self._kind.name,
            num_tokens=trace.num_tokens,
            seconds=self._now_s,
            wait_s=self._wait_s,
            compute_s=self._processor.busy_s + (0.0 if has_device else self._dense.busy_s),
            device_s=self._dense.busy_s if has_device else 0.0,
            link_s=self._link.busy_s if self._link is not None else 0.0,
            drive_s=self._drive.busy_s,
            drive_bytes=self._drive.num_bytes,
            hits=num_needs - self._misses,
            misses=self._misses,
            hints=self._lane.outcomes,
        )

    def _step(self, layer: int, row: Sequence[int], token: int, *, follows_hints: bool) -> None:
        """Compute the experts of one token in one layer."""
        keeper, place = self._places[layer]
        missing = keeper.begin(place, row, token)
        self._misses += len(missing)
        arrivals = self._lane.demand(layer, sorted(missing), self._now_s)
        following = layer + 1
        hints = self._trace.hints
        if follows_hints and hints is not None and following < self._trace.num_layers:
            next_keeper, next_place = self._places[following]
            resident = next_keeper.residents(next_place)
            guessed = hints[token, following].tolist()
            self._lane.hint(following, [e for e in guessed if e not in resident], self._now_s)
        if self._link is not None:
            self._now_s = self._link.work(self._now_s, self._load.row_bytes)
        for expert in sorted(row):
            arrived_s = arrivals.get(expert, self._now_s)
            self._wait_s += max(0.0, arrived_s - self._now_s)
            begin_s = max(self._now_s, arrived_s)
            self._now_s = self._processor.work(begin_s, self._sizes.layers[layer][expert])
        if self._link is not None:
            self._now_s = self._link.work(self._now_s, self._load.row_bytes)
        for expert in missing:
            keeper.admit(place, expert, token)
        keeper.end(place, token, is_changed=bool(missing))
