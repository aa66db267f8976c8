"""A card that has no memory left, or does not answer any more, while a model is loaded."""

import logging
from collections.abc import Callable
from typing import TypeVar

from runtime.device.faults import fault_of
from runtime.errors import LarderError
from runtime.generate.loading import LoadedParts
from runtime.generate.plan_terms import above_of, fewer_in_vram, ram_limit_bytes, vram_limit_bytes
from runtime.protocol.errors import ErrorCode
from runtime.protocol.plan import PlacementPlan

_LOG = logging.getLogger(__name__)
T = TypeVar("T")
SteppedDown = Callable[[PlacementPlan, PlacementPlan], None]
"""Hears of the plan before and the one that is in force now."""


class CardGuard:
    """Runs pieces of a step on behalf of answers.

    Where torch finds no memory on the card, a part of the experts there gives way, once for a
    loaded model, and the piece is run again; whoever watches is told. Other errors of the card, and
    the second of these, become errors that a person can read.

    Threads: used by the engine thread.
    """

    def __init__(self, parts: LoadedParts, stepped_down: SteppedDown) -> None:
        self._parts = parts
        self._stepped_down = stepped_down
        self._may_step_down = True

    def run(self, piece: Callable[[], T]) -> T:
        """Return what a piece of a step returns; it can be run twice, and nothing is in use."""
        try:
            return piece()
        except RuntimeError as error:
            fault = self._fault(error)
            if fault is None:
                raise
            if fault.code is not ErrorCode.VRAM_FULL or not self._step_down():
                raise fault from error
            _LOG.warning("the card was full: %s", fault.detail)
        try:
            return piece()
        except RuntimeError as error:
            fault = self._fault(error)
            if fault is None:
                raise
            raise fault from error

    def _fault(self, error: RuntimeError) -> LarderError | None:
        device = self._parts.device
        return None if device is None else fault_of(error, device.device)

    def _step_down(self) -> bool:
        """Give a part of the experts' slots on the card back; return whether there were any."""
        parts = self._parts
        before = parts.plan
        plan = fewer_in_vram(before, parts.experts.layout.record_bytes)
        if not self._may_step_down or plan is before:
            return False
        self._may_step_down = False
        parts.experts.resize(
            plan.slots_per_layer,
            ram_limit_bytes(plan),
            above_of(plan, parts.spec),
            vram_limit_bytes(plan),
        )
        parts.plan = plan
        self._stepped_down(before, plan)
        return True
