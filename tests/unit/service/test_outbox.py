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
    TelemetryWatched,
    TokensGenerated,
)
from runtime.protocol.model import LoadStage
from runtime.protocol.telemetry import ExpertMap, NoteCode, RuntimeNote, TelemetrySample
from runtime.service.outbox import MAX_NOTES, Outbox
from tests.protocol.examples import EVENTS

SAMPLE = next(event for event in EVENTS if isinstance(event, TelemetrySampled))
QUIET = TelemetrySampled(
    sample=msgspec.structs.replace(SAMPLE.sample, num_dropped=0, notes=[], experts=None)
)


def mapped(use: int, tier: int, bits: int = 4, num_experts: int = 2) -> TelemetrySampled:
    experts = ExpertMap(
        num_layers=1,
        num_experts=num_experts,
        use=bytes([use]) * num_experts,
        tier=bytes([tier]) * num_experts,
        bits=bytes([bits]) * num_experts,
    )
    return TelemetrySampled(sample=msgspec.structs.replace(QUIET.sample, experts=experts))


def noted(seconds: float) -> TelemetrySampled:
    note = RuntimeNote(code=NoteCode.EXPERTS_LOADED, parameters={"seconds": seconds})
    return TelemetrySampled(sample=msgspec.structs.replace(QUIET.sample, notes=[note]))


def taken(outbox: Outbox) -> TelemetrySample:
    event = outbox.take()
    assert isinstance(event, TelemetrySampled)
    return event.sample


def taken_map(outbox: Outbox) -> ExpertMap:
    experts = taken(outbox).experts
    assert experts is not None
    return experts


def tokens(request_id: int, *token_ids: int) -> TokensGenerated:
    text = "".join(map(str, token_ids))
    return TokensGenerated(request_id=request_id, token_ids=[*token_ids], text=text, thinking=text)


def everything(outbox: Outbox) -> list[AnyEvent]:
    """Take all that is left, telemetry excepted."""
    outbox.finish()
    return list(iter(outbox.take, None))


def test_outbox_with_tokens_of_one_request_joins_them() -> None:
    outbox = Outbox()
    for token in range(1000):
        outbox.put(tokens(1, token))
    assert outbox.num_waiting == 1
    (joined,) = everything(outbox)
    assert isinstance(joined, TokensGenerated)
    assert joined.token_ids == [*range(1000)]
    assert joined.text == "".join(map(str, range(1000)))
    assert joined.thinking == joined.text


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


def test_outbox_with_maps_sends_tiers_and_bits_when_they_change() -> None:
    outbox = Outbox()
    outbox.put(mapped(1, 0))
    assert taken_map(outbox) == mapped(1, 0).sample.experts
    outbox.put(mapped(2, 0))
    second = taken_map(outbox)
    assert (second.use, second.tier, second.bits) == (b"\2\2", b"", b"")
    outbox.put(mapped(3, 1))
    third = taken_map(outbox)
    assert (third.use, third.tier, third.bits) == (b"\3\3", b"\1\1", b"")
    outbox.put(mapped(4, 1, bits=8))
    fourth = taken_map(outbox)
    assert (fourth.use, fourth.tier, fourth.bits) == (b"\4\4", b"", b"\x08\x08")


def test_outbox_with_a_dropped_map_loses_no_change_of_tiers() -> None:
    outbox = Outbox()
    outbox.put(mapped(1, 0))
    taken_map(outbox)
    outbox.put(mapped(2, 1))
    outbox.put(mapped(3, 1))
    after = taken_map(outbox)
    assert (after.use, after.tier) == (b"\3\3", b"\1\1")


def test_outbox_with_a_watch_or_another_model_sends_the_map_whole() -> None:
    outbox = Outbox()
    outbox.put(mapped(1, 0))
    taken_map(outbox)
    outbox.put(TelemetryWatched(request_id=1, interval_s=0.1))
    outbox.put(mapped(1, 0))
    assert isinstance(outbox.take(), TelemetryWatched)
    assert taken_map(outbox) == mapped(1, 0).sample.experts
    larger = mapped(1, 0, num_experts=3)
    outbox.put(larger)
    assert taken_map(outbox) == larger.sample.experts


def test_outbox_with_dropped_samples_keeps_their_notes_up_to_a_limit() -> None:
    outbox = Outbox()
    for number in range(MAX_NOTES + 5):
        outbox.put(noted(number))
    kept = [note.parameters["seconds"] for note in taken(outbox).notes]
    assert kept == list(range(5, MAX_NOTES + 5))
    outbox.put(QUIET)
    assert taken(outbox).notes == []


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
