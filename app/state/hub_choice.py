"""The model of a hub that a person looks at, as far as it is known."""

import dataclasses
from collections.abc import Mapping

from runtime.protocol.errors import ErrorReport
from runtime.protocol.hub import HubCard, HubOutlook, HubVariant
from runtime.protocol.model import ModelReport
from runtime.protocol.plan import PlacementPlan, PlanKind


@dataclasses.dataclass(frozen=True, slots=True)
class Choice:
    """The model of a hub that a person looks at."""

    model_id: str
    card: HubCard | None = None
    is_asking: bool = True
    """Whether its card or its plans are still to come."""
    report: ModelReport | None = None
    plans: tuple[PlacementPlan, ...] = ()
    recommended: PlanKind | None = None
    error: ErrorReport | None = None
    variant: str = ""
    """Which of its models in GGUF was asked for; empty: whichever comes first."""
    variants: tuple[HubVariant, ...] = ()
    outlooks: Mapping[str, HubOutlook] = dataclasses.field(default_factory=dict)
    """How its models in GGUF would do, by their names."""
    advised: str = ""
    """The one of them to take; empty while that is not known."""
