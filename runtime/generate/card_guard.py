"""A card that has no memory left, or does not answer any more, while a model is loaded."""

import logging
import traceback
from collections.abc import Callable
from typing import TypeVar

from runtime.device.faults import fault_of
from runtime.errors import LarderError
from runtime.generate.loading import LoadedParts
from runtime.generate.plan_terms import above_of, fewer_in_vram, ram_limit_bytes, vram_limit_bytes
from runtime.policy.spill import SpillWatch
from runtime.protocol.errors import ErrorCode
from runtime.protocol.plan import PlacementPlan
from runtime.telemetry.recorder import Counters

_LOG = logging.getLogger(__name__)
T = TypeVar("T")
FULL_BYTES = 256 << 20
"""A card with less than this left counts as full: systems keep some of it for themselves."""
CROWDED_BYTES = 128 << 20
"""With less than this left, another program has taken what was to stay free."""
LOOK_TOKENS = 32
"""So often the free memory is asked for while nothing is wrong."""
MAX_GIVEN = 3
"""So often experts give way because others need the card."""
SteppedDown = Callable[[PlacementPlan, PlacementPlan], None]
"""Hears of the plan before and the one that is in force now."""


class CardGuard:
    """Runs pieces of a step on behalf of answers.

    Where torch finds no memory on the card, a part of the experts there gives way, once for a
    loaded model, and the piece is run again; whoever watches is told. Other errors of the card, and
    the second of these, become errors that a person can read. A full card that has become several
    times slower gives experts back too: its memory is in RAM then, behind the link. So does one on
    which another program has taken what was to stay free.

    Threads: used by the engine thread.
    """

    def __init__(self, parts: LoadedParts, counters: Counters, stepped_down: SteppedDown) -> None:
        self._parts = parts
        self._counters = counters
        self._stepped_down = stepped_down
        self._may_step_down = True
        self._gives_left = MAX_GIVEN
        self._num_looks = 0
        self._watch = SpillWatch()
        self._before = (counters.num_decoded_tokens, counters.device_s)

    def look(self) -> None:
        """See whether others need the card's memory; called between two steps."""
        num_before, before_s = self._before
        counters, device = self._counters, self._parts.device
        self._before = (counters.num_decoded_tokens, counters.device_s)
        if device is None or counters.num_decoded_tokens != num_before + 1:
            # Of a prompt, or of another device, nothing is compared.
            return
        is_slow = self._watch.note(counters.device_s - before_s)
        self._num_looks += 1
        if not self._gives_left or not (is_slow or self._num_looks % LOOK_TOKENS == 0):
            return
        free_bytes = device.free_bytes
        least_bytes = FULL_BYTES if is_slow else CROWDED_BYTES
        if free_bytes is not None and free_bytes < least_bytes and self._step_down():
            self._gives_left -= 1
            how = "full and slow" if is_slow else "crowded"
            _LOG.warning("the card is %s, with %d bytes left", how, free_bytes)

    def forget(self) -> None:
        """Learn anew how fast the card is: other experts lie there now."""
        self._watch.restart()

    def settle(self) -> bool:
        """Have a plan of what is left where the card refused the room of slots that moved.

        Returns whether there is less than the plan in force says.
        """
        parts = self._parts
        num_left = parts.experts.num_device_slots
        plan = fewer_in_vram(parts.plan, parts.experts.layout.record_bytes, num_left)
        if plan is parts.plan:
            return False
        self._resize(plan)
        self._enforce(plan)
        return True

    def run(self, piece: Callable[[], T]) -> T:
        """Return what a piece of a step returns; it can be run twice, and nothing is in use."""
        try:
            return piece()
        except RuntimeError as error:
            fault = self._fault(error)
            if fault is None:
                raise
            is_full = fault.code is ErrorCode.VRAM_FULL and self._may_step_down
            # What failed had looked slots up, and a slot that is held keeps its memory.
            traceback.clear_frames(error.__traceback__)
            if not is_full or not self._step_down():
                raise fault from error
            self._may_step_down = False
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
        if plan is before:
            return False
        self._watch.restart()
        try:
            self._resize(plan)
        except LarderError as error:
            if error.code is not ErrorCode.VRAM_FULL:
                raise
            # It refuses even what it was just given back.
            return self.settle()
        self._enforce(plan)
        return True

    def _enforce(self, plan: PlacementPlan) -> None:
        """Have a plan in force that the card follows already, and tell of it."""
        parts = self._parts
        if parts.device is not None:
            parts.device.trim()
        before, parts.plan = parts.plan, plan
        self._stepped_down(before, plan)

    def _resize(self, plan: PlacementPlan) -> None:
        self._parts.experts.resize(
            plan.slots_per_layer,
            ram_limit_bytes(plan),
            above_of(plan, self._parts.spec),
            vram_limit_bytes(plan),
        )
