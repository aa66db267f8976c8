"""The stages of runtime and model, computed from facts so that no impossible mix can be shown."""

import dataclasses
import enum


class Stage(enum.Enum):
    """Where the runtime and the model are; a window shows exactly one."""

    NO_RUNTIME = "no_runtime"
    """Not started, or on its way up with nothing asked of it."""
    IDLE = "idle"
    INSPECTING = "inspecting"
    PLANNING = "planning"
    PLANNED = "planned"
    PREPARING = "preparing"
    LOADING = "loading"
    READY = "ready"
    ANSWERING = "answering"
    STOPPING = "stopping"
    """A load, a preparation or a loaded model is being ended."""
    FAILED = "failed"
    """The runtime is dead; ``Session.error`` says why and ``restart_runtime`` goes on."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class StageFacts:
    """What the stage is computed from."""

    is_failed: bool
    is_open: bool
    """The handshake with the runtime is done."""
    is_ending: bool
    is_preparing: bool
    wants_load: bool
    is_loaded: bool
    is_answering: bool
    is_inspecting: bool
    is_planning: bool
    has_plans: bool


def stage_of(facts: StageFacts) -> Stage:
    """Return the one stage of these facts; the model comes before a dropped folder."""
    order = (
        (facts.is_failed, Stage.FAILED),
        (facts.is_ending, Stage.STOPPING),
        (facts.is_preparing, Stage.PREPARING),
        (facts.wants_load, Stage.LOADING),
        (facts.is_answering, Stage.ANSWERING),
        (facts.is_loaded, Stage.READY),
        (facts.is_inspecting, Stage.INSPECTING),
        (facts.is_planning, Stage.PLANNING),
        (not facts.is_open, Stage.NO_RUNTIME),
        (facts.has_plans, Stage.PLANNED),
    )
    return next((stage for holds, stage in order if holds), Stage.IDLE)
