"""Builders around the scripted engine: fast scripts, services without a process, plans."""

import queue
from collections.abc import Iterable
from pathlib import Path
from typing import TypeVar

from runtime.engine.script import Script
from runtime.engine.scripted import ScriptedEngine
from runtime.protocol.chat import ChatMessage, Role, SamplingSettings
from runtime.protocol.messages import (
    AnyEvent,
    ClosingEvent,
    Event,
    LoadModel,
    ModelLoaded,
    Reply,
    StartGeneration,
)
from runtime.protocol.plan import PlacementPlan
from runtime.protocol.values import Budgets
from runtime.service.log import ErrorLog
from runtime.service.scripted import ScriptedPlanning
from runtime.service.service import Service

FAST = Script(
    answers=("one two three",),
    decode_tokens_per_s=0,
    prompt_tokens_per_s=0,
    load_s=0,
    load_steps=3,
    prepare_s=0,
)
"""A script that waits for nothing."""
ENDLESS = Script(
    answers=("word " * 100_000,),
    decode_tokens_per_s=1000,
    prompt_tokens_per_s=0,
    load_s=0,
    load_steps=1,
    prepare_s=600,
    context_tokens=1_000_000,
)
"""A script whose answer and preparation end by cancelling only."""
TIMEOUT_S = 20.0
"""How long anything may take before a test fails; nothing takes that long."""


def some_plan(folder: Path, script: Script = FAST) -> PlacementPlan:
    """Return a plan that the scripted engine can load."""
    return ScriptedPlanning(script).plan(str(folder), Budgets(), 0).plans[0]


def ask(request_id: int, text: str = "hello", max_tokens: int = 0) -> StartGeneration:
    """Return a question."""
    return StartGeneration(
        request_id=request_id,
        conversation=[ChatMessage(role=Role.USER, text=text)],
        sampling=SamplingSettings(max_tokens=max_tokens),
    )


_Kind = TypeVar("_Kind", bound=Event)


class ScriptedService:
    """A service in this process with a queue as its sink.

    ``events`` holds what was taken from the queue so far, in order.
    """

    def __init__(self, script: Script = FAST, planning: ScriptedPlanning | None = None) -> None:
        self._queue: queue.SimpleQueue[AnyEvent] = queue.SimpleQueue()
        self.events: list[AnyEvent] = []
        planning = planning or ScriptedPlanning(script)
        self.service = Service(
            lambda: ScriptedEngine(script),
            self._queue.put,
            planning,
            planning.prepare,
            ErrorLog(),
        )

    def next_event(self) -> AnyEvent:
        """Return the next event, waiting for it."""
        event = self._queue.get(timeout=TIMEOUT_S)
        self.events.append(event)
        return event

    def wait_for(self, kind: type[_Kind]) -> _Kind:
        """Return the next event of a kind."""
        while True:
            event: Event = self.next_event()
            if isinstance(event, kind):
                return event

    def wait_until_closed(self, request_id: int) -> ClosingEvent:
        """Return the closing event of a command, seen already or still to come."""
        for event in self.events:
            if is_closing(event, request_id):
                return event  # type: ignore[return-value]
        while not is_closing(event := self.next_event(), request_id):
            pass
        return event  # type: ignore[return-value]

    def load(self, request_id: int, folder: Path, script: Script = FAST) -> ModelLoaded:
        """Load the scripted model and return what was loaded."""
        self.service.handle(LoadModel(request_id=request_id, plan=some_plan(folder, script)))
        closing = self.wait_until_closed(request_id)
        assert isinstance(closing, ModelLoaded)
        return closing

    def drain(self) -> list[AnyEvent]:
        """Return all events so far, those not looked at yet included."""
        while not self._queue.empty():
            self.events.append(self._queue.get())
        return self.events


def is_closing(event: AnyEvent, request_id: int) -> bool:
    """Whether an event closes the command of this id."""
    return (
        isinstance(event, Reply)
        and isinstance(event, ClosingEvent)
        and event.request_id == request_id
    )


def closing_events(events: Iterable[AnyEvent], request_id: int) -> list[AnyEvent]:
    """Return the events that close the command of this id; there has to be one."""
    return [event for event in events if is_closing(event, request_id)]
