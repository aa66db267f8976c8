"""Running an engine to the end of an answer, and wishes to stop that come at a known point."""

import dataclasses
from collections.abc import Iterator, Sequence

from runtime.engine.base import CancelToken, Engine, EngineEvent
from runtime.errors import CancelledError
from runtime.protocol.chat import (
    ChatMessage,
    FinishReason,
    GenerationStats,
    Role,
    SamplingSettings,
)
from runtime.protocol.messages import (
    GenerationCancelled,
    GenerationFinished,
    GenerationStarted,
    PrefillProgressed,
    TokensGenerated,
)
from runtime.protocol.model import LoadStage

GREEDY = SamplingSettings(temperature=0, max_tokens=24)


@dataclasses.dataclass
class Run:
    """Everything that one answer said."""

    events: list[EngineEvent]

    @property
    def token_ids(self) -> list[int]:
        return [
            token_id
            for event in self.events
            if isinstance(event, TokensGenerated)
            for token_id in event.token_ids
        ]

    @property
    def text(self) -> str:
        return "".join(event.text for event in self.events if isinstance(event, TokensGenerated))

    @property
    def thinking(self) -> str:
        return "".join(
            event.thinking for event in self.events if isinstance(event, TokensGenerated)
        )

    @property
    def started(self) -> GenerationStarted:
        first = self.events[0]
        assert isinstance(first, GenerationStarted)
        return first

    @property
    def prefill(self) -> list[PrefillProgressed]:
        return [event for event in self.events if isinstance(event, PrefillProgressed)]

    @property
    def stats(self) -> GenerationStats:
        last = self.events[-1]
        assert isinstance(last, GenerationFinished | GenerationCancelled)
        return last.stats

    @property
    def reason(self) -> FinishReason | None:
        """Why it ended by itself, None if it was cancelled."""
        last = self.events[-1]
        return last.reason if isinstance(last, GenerationFinished) else None

    def as_message(self) -> ChatMessage:
        return ChatMessage(role=Role.ASSISTANT, text=self.text, token_ids=self.token_ids)


class CancelAtCheck(CancelToken):
    """Cancels itself at the given test of it, counted from 1."""

    def __init__(self, at_check: int) -> None:
        super().__init__()
        self.num_checks = 0
        self._at_check = at_check

    def check(self) -> None:
        self.num_checks += 1
        if self.num_checks >= self._at_check:
            self.cancel()
            raise CancelledError


def answer(
    engine: Engine,
    conversation: Sequence[ChatMessage],
    sampling: SamplingSettings = GREEDY,
    cancel: CancelToken | None = None,
) -> Run:
    """Return one answer, run to its end."""
    return Run(list(engine.start(1, conversation, sampling, cancel or CancelToken())))


def answer_cancelled_after(
    engine: Engine, conversation: Sequence[ChatMessage], num_tokens: int, sampling: SamplingSettings
) -> Run:
    """Return an answer that is cancelled when at least ``num_tokens`` were seen."""
    cancel = CancelToken()
    run = Run([])
    events: Iterator[EngineEvent] = engine.start(1, conversation, sampling, cancel)
    for event in events:
        run.events.append(event)
        if len(run.token_ids) >= num_tokens:
            cancel.cancel()
    return run


def ignore_load_progress(stage: LoadStage, done_bytes: int, total_bytes: int) -> None:
    """Take progress and do nothing with it."""
    assert 0 <= done_bytes <= total_bytes, stage


def user(text: str) -> ChatMessage:
    """Return what a person typed."""
    return ChatMessage(role=Role.USER, text=text)
