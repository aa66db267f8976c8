"""What waits to be written to the channel.

The queue never refuses and never blocks, and does not grow with time while nobody reads: runs of
tokens and of progress join, and of heartbeats and samples only the newest is kept. Notes of a
sample that is lost go with the next. Of expert maps, what the other side knows already is left out;
that is decided when a sample leaves, so that a lost one takes no change with it.
"""

import collections
import dataclasses
import threading

import msgspec

from runtime.protocol.messages import (
    AnyEvent,
    HeartbeatSent,
    LoadProgressed,
    PrefillProgressed,
    PrepareProgressed,
    TelemetrySampled,
    TelemetryWatched,
    TokensGenerated,
)
from runtime.protocol.telemetry import ExpertMap, RuntimeNote

MAX_NOTES = 100
"""Notes that wait at most; the oldest are lost first."""
_PROGRESS = (LoadProgressed, PrefillProgressed, PrepareProgressed)


@dataclasses.dataclass(slots=True)
class _TokenRun:
    """Tokens of one request that will be sent as one message."""

    request_id: int
    token_ids: list[int]
    texts: list[str]
    thoughts: list[str]

    def joined(self) -> TokensGenerated:
        return TokensGenerated(
            request_id=self.request_id,
            token_ids=self.token_ids,
            text="".join(self.texts),
            thinking="".join(self.thoughts),
        )


class Outbox:
    """Events on their way to the pipe: replies and tokens first, telemetry last.

    Threads: any thread may ``put``; one, the writer, may ``take``.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._queue: collections.deque[AnyEvent | _TokenRun] = collections.deque()
        self._heartbeat: HeartbeatSent | None = None
        self._sample: TelemetrySampled | None = None
        self._num_dropped = 0
        self._notes: collections.deque[RuntimeNote] = collections.deque(maxlen=MAX_NOTES)
        self._known_map: ExpertMap | None = None
        """What the other side knows; None if it has to be told everything."""
        self._is_finished = False

    def put(self, event: AnyEvent) -> None:
        """Add an event; after ``finish`` it is thrown away."""
        with self._changed:
            if self._is_finished:
                return
            match event:
                case TelemetrySampled():
                    self._num_dropped += self._sample is not None
                    self._sample = event
                    self._notes.extend(event.sample.notes)
                case HeartbeatSent():
                    self._heartbeat = event
                case _:
                    if isinstance(event, TelemetryWatched):
                        self._known_map = None
                    self._append(event)
            self._changed.notify()

    def _append(self, event: AnyEvent) -> None:
        """Add to the first lane, joining with its last entry where nothing is lost by it."""
        last = self._queue[-1] if self._queue else None
        if isinstance(event, TokensGenerated):
            if isinstance(last, _TokenRun) and last.request_id == event.request_id:
                last.token_ids.extend(event.token_ids)
                last.texts.append(event.text)
                last.thoughts.append(event.thinking)
            else:
                run = _TokenRun(
                    event.request_id, [*event.token_ids], [event.text], [event.thinking]
                )
                self._queue.append(run)
            return
        if (
            isinstance(event, _PROGRESS)
            and isinstance(last, _PROGRESS)
            and type(last) is type(event)
            and last.request_id == event.request_id
        ):
            self._queue.pop()
        self._queue.append(event)

    def take(self) -> AnyEvent | None:
        """Wait for the next event and return it; None when finished and empty."""
        with self._changed:
            while True:
                if self._queue:
                    entry = self._queue.popleft()
                    return entry.joined() if isinstance(entry, _TokenRun) else entry
                if self._heartbeat is not None and not self._is_finished:
                    heartbeat, self._heartbeat = self._heartbeat, None
                    return heartbeat
                if self._sample is not None and not self._is_finished:
                    return self._take_sample(self._sample)
                if self._is_finished:
                    return None
                self._changed.wait()

    def _take_sample(self, event: TelemetrySampled) -> TelemetrySampled:
        """Return the newest sample with the number of those it replaced."""
        whole = event.sample
        sample = msgspec.structs.replace(
            whole,
            num_dropped=whole.num_dropped + self._num_dropped,
            notes=list(self._notes),
            experts=_without_known(whole.experts, self._known_map),
        )
        self._sample, self._num_dropped, self._known_map = None, 0, whole.experts
        self._notes.clear()
        return TelemetrySampled(sample=sample)

    def finish(self) -> None:
        """Accept nothing more; what is queued in the first lane is still handed out."""
        with self._changed:
            self._is_finished = True
            self._changed.notify()

    @property
    def num_waiting(self) -> int:
        """Messages waiting in the first lane."""
        with self._changed:
            return len(self._queue)


def _without_known(experts: ExpertMap | None, known: ExpertMap | None) -> ExpertMap | None:
    """Return a map without the tiers and bits that are as they were."""
    if experts is None or known is None:
        return experts
    if (experts.num_layers, experts.num_experts) != (known.num_layers, known.num_experts):
        return experts
    return msgspec.structs.replace(
        experts,
        tier=b"" if experts.tier == known.tier else experts.tier,
        bits=b"" if experts.bits == known.bits else experts.bits,
    )
