"""The outbox: lanes, joining, dropping."""

import hypothesis
import hypothesis.strategies as st
import msgspec

from runtime.protocol.messages import (
    AnyEvent,
    CancelAccepted,
    HeartbeatSent,
    LoadProgressed,
    PrefillProgressed,
    TelemetrySampled,
    TokensGenerated,
)
from runtime.protocol.model import LoadStage
from runtime.service.outbox import Outbox
from tests.protocol.examples import EVENTS

SAMPLE = next(event for event in EVENTS if isinstance(event, TelemetrySampled))
QUIET = TelemetrySampled(sample=msgspec.structs.replace(SAMPLE.sample, num_dropped=0))


def tokens(request_id: int, *token_ids: int) -> TokensGenerated:
    return TokensGenerated(
        request_id=request_id, token_ids=[*token_ids], text="".join(map(str, token_ids))
    )


def everything(outbox: Outbox) -> list[AnyEvent]:
    """Take all that is left, telemetry excepted."""
    outbox.finish()
    return list(iter(outbox.take, None))


def test_outbox_with_tokens_of_one_request_joins_them() -> None:
    outbox = Outbox()
    for token in range(1000):
        outbox.put(tokens(1, token))
    assert outbox.num_waiting == 1
    assert everything(outbox) == [tokens(1, *range(1000))]


def test_outbox_with_tokens_of_two_requests_keeps_them_apart() -> None:
    outbox = Outbox()
    for event in (tokens(1, 5), tokens(2, 6), tokens(2, 7)):
        outbox.put(event)
    assert everything(outbox) == [tokens(1, 5), tokens(2, 6, 7)]


def test_outbox_does_not_join_tokens_over_another_reply() -> None:
    outbox = Outbox()
    reply = CancelAccepted(request_id=9, was_running=False)
    for event in (tokens(1, 5), reply, tokens(1, 6)):
        outbox.put(event)
    assert everything(outbox) == [tokens(1, 5), reply, tokens(1, 6)]


def test_outbox_with_progress_of_one_request_keeps_the_newest() -> None:
    outbox = Outbox()
    for done in (1, 2, 3):
        outbox.put(PrefillProgressed(request_id=1, done_tokens=done, total_tokens=3))
    other = PrefillProgressed(request_id=2, done_tokens=0, total_tokens=1)
    load = LoadProgressed(request_id=2, stage=LoadStage.START, done_bytes=0, total_bytes=1)
    outbox.put(other)
    outbox.put(load)
    newest = PrefillProgressed(request_id=1, done_tokens=3, total_tokens=3)
    assert everything(outbox) == [newest, other, load]


def test_outbox_with_telemetry_sends_the_newest_last_and_counts_the_others() -> None:
    outbox = Outbox()
    for _ in range(4):
        outbox.put(QUIET)
    outbox.put(HeartbeatSent(uptime_s=1.0))
    outbox.put(HeartbeatSent(uptime_s=2.0))
    outbox.put(tokens(1, 1))
    assert outbox.take() == tokens(1, 1)
    assert outbox.take() == HeartbeatSent(uptime_s=2.0)
    sample = outbox.take()
    assert isinstance(sample, TelemetrySampled)
    assert sample.sample.num_dropped == 3
    outbox.put(QUIET)
    assert outbox.take() == QUIET, "what was told once is not told again"


def test_outbox_after_finish_hands_out_replies_only() -> None:
    outbox = Outbox()
    outbox.put(SAMPLE)
    outbox.put(tokens(1, 1))
    outbox.finish()
    outbox.put(tokens(1, 2))
    assert outbox.take() == tokens(1, 1)
    assert outbox.take() is None


@hypothesis.given(
    st.lists(st.tuples(st.sampled_from(["tokens", "reply", "take"]), st.integers(1, 3)))
)
def test_outbox_with_any_traffic_loses_no_token_and_keeps_the_order(
    traffic: list[tuple[str, int]],
) -> None:
    outbox = Outbox()
    sent: dict[int, list[int]] = {1: [], 2: [], 3: []}
    got: list[AnyEvent] = []
    replies = 0
    for number, (kind, request_id) in enumerate(traffic):
        if kind == "take" and outbox.num_waiting:
            event = outbox.take()
            assert event is not None
            got.append(event)
        elif kind == "reply":
            replies += 1
            outbox.put(CancelAccepted(request_id=request_id, was_running=False))
        elif kind == "tokens":
            sent[request_id].append(number)
            outbox.put(tokens(request_id, number))
    got += everything(outbox)
    for request_id, token_ids in sent.items():
        of_request = [
            event
            for event in got
            if isinstance(event, TokensGenerated) and event.request_id == request_id
        ]
        assert [token for event in of_request for token in event.token_ids] == token_ids
        assert "".join(event.text for event in of_request) == "".join(map(str, token_ids))
    assert sum(isinstance(event, CancelAccepted) for event in got) == replies
