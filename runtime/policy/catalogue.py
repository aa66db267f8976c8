"""Every policy by its name, made the same way for the engine, the laboratory and the tests.

A new policy is one file and one line here.
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, cast

import numpy as np
import numpy.typing as npt

from runtime.policy.admission import SecondTouch
from runtime.policy.base import Policy
from runtime.policy.clairvoyant import ClairvoyantPolicy
from runtime.policy.expected import ExpectedUsePolicy
from runtime.policy.fixed import NonePolicy, StaticPolicy
from runtime.policy.foretold import ForetoldUse
from runtime.policy.frequency import DecayedPolicy, LfuPolicy
from runtime.policy.lru import LruPolicy
from runtime.policy.recency import LfruPolicy, Lru2Policy
from runtime.policy.score import LayerPosition, ScoreAveragePolicy
from runtime.policy.segmented import SlruPolicy
from runtime.policy.window_swap import WindowSwapPolicy


@dataclasses.dataclass(frozen=True, slots=True)
class LayerFacts:
    """What a policy may be told about its layer when it is made."""

    num_experts: int
    layer_index: int = 0
    num_layers: int = 1
    profile: Mapping[int, float] = dataclasses.field(default_factory=dict)
    """Uses of each expert in earlier work; for policies that start from one."""
    future: Sequence[Sequence[int]] = ()
    """What each step will need; only a replay knows."""
    position: LayerPosition = dataclasses.field(default_factory=LayerPosition)
    """Which layer computes now; one for all layers of a model."""


class Foreteller(Protocol):
    """Tells the policies of all layers their next steps, which saves time and decides nothing."""

    def foretell(self, needs: npt.NDArray[np.integer]) -> None:
        """Tell each policy what its next step will need: distinct experts, [layers, experts]."""


@dataclasses.dataclass(frozen=True, slots=True)
class PolicyKind:
    """One kind of policy: its name, one line about it, and how to make it for a layer."""

    name: str
    about: str
    make: Callable[[int, LayerFacts], Policy]
    """From a number of slots and the facts of the layer."""
    is_shared: bool = False
    """Whether layers exchange slots, the policy being a ranking one."""
    is_split_by_gain: bool = False
    """Whether layers get their slots beforehand by what LRU would hit with them, not evenly."""
    max_age_steps: int = 4
    """How long an exchange trusts what it knows of a layer."""
    foreteller: Callable[[Sequence[Policy]], Foreteller] | None = None
    """From the policies of all layers, who tells them a step of all layers at once."""


DEFAULT_POLICY = "expected-shared"


def _foretold_use(policies: Sequence[Policy]) -> Foreteller:
    """Return who tells policies of expected use their steps."""
    return ForetoldUse(cast("Sequence[ExpectedUsePolicy]", policies))


_KINDS = (
    PolicyKind("none", "keeps nobody", lambda slots, _: NonePolicy(slots)),
    PolicyKind(
        "static",
        "keeps the most used of a profile",
        lambda slots, facts: StaticPolicy(slots, facts.profile),
    ),
    PolicyKind("lru", "last use", lambda slots, _: LruPolicy(slots)),
    PolicyKind(
        "lru-split",
        "the same, slots split beforehand by marginal gain",
        lambda slots, _: LruPolicy(slots),
        is_split_by_gain=True,
    ),
    PolicyKind("lru-2", "use before last", lambda slots, _: Lru2Policy(slots)),
    PolicyKind("lfu", "number of uses, halved now and then", lambda slots, _: LfuPolicy(slots)),
    PolicyKind("lfru", "uses by age of the last", lambda slots, _: LfruPolicy(slots)),
    PolicyKind("slru", "probation and protection", lambda slots, _: SlruPolicy(slots)),
    PolicyKind(
        "slru-second",
        "the same, admitted at the second need",
        lambda slots, _: SecondTouch(SlruPolicy(slots)),
    ),
    PolicyKind("window-swap", "two swaps after 16 steps", lambda slots, _: WindowSwapPolicy(slots)),
    PolicyKind("decayed", "share of recent steps", lambda slots, _: DecayedPolicy(slots)),
    PolicyKind(
        "decayed-shared",
        "the same, layers exchanging slots",
        lambda slots, _: DecayedPolicy(slots),
        is_shared=True,
    ),
    PolicyKind(
        "score-average",
        "moving average of the router's weights",
        lambda slots, _: ScoreAveragePolicy(slots),
    ),
    PolicyKind(
        "score-distance-shared",
        "the same, and how soon a layer comes, layers exchanging slots",
        lambda slots, facts: ScoreAveragePolicy(
            slots,
            layer_index=facts.layer_index,
            num_layers=facts.num_layers,
            position=facts.position,
            distance_weight=0.02,
        ),
        is_shared=True,
        max_age_steps=1,
    ),
    PolicyKind(
        "expected",
        "shares at three paces, and who follows whom",
        lambda slots, facts: ExpectedUsePolicy(slots, facts.num_experts),
        foreteller=_foretold_use,
    ),
    PolicyKind(
        "expected-shared",
        "the same, layers exchanging slots",
        lambda slots, facts: ExpectedUsePolicy(slots, facts.num_experts),
        is_shared=True,
        foreteller=_foretold_use,
    ),
    PolicyKind(
        "clairvoyant",
        "knows the future; the bound for even slots",
        lambda slots, facts: ClairvoyantPolicy(slots, facts.future),
    ),
    PolicyKind(
        "clairvoyant-shared",
        "knows the future; the bound for shared slots",
        lambda slots, facts: ClairvoyantPolicy(
            slots, facts.future, facts.layer_index, facts.num_layers
        ),
        is_shared=True,
        max_age_steps=1,
    ),
)
POLICIES: Mapping[str, PolicyKind] = {kind.name: kind for kind in _KINDS}
