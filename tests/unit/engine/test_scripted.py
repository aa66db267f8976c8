"""The scripted engine: its answers, times, faults and figures."""

import dataclasses
from pathlib import Path

import pytest

from runtime.engine.base import CancelToken, EngineEvent
from runtime.engine.script import Fault, FaultKind, FaultPlace, Pieces, read_script
from runtime.engine.scripted import ScriptedEngine
from runtime.errors import CancelledError, LarderError
from runtime.protocol.chat import ChatMessage, FinishReason, Role, SamplingSettings
from runtime.protocol.errors import ErrorCode
from runtime.protocol.messages import (
    GenerationCancelled,
    GenerationFinished,
    GenerationStarted,
    PrefillProgressed,
    TokensGenerated,
)
from runtime.protocol.model import LoadStage
from tests.support.scripted import FAST, some_plan

HELLO = [ChatMessage(role=Role.USER, text="hello")]


def run(
    engine: ScriptedEngine,
    conversation: list[ChatMessage] = HELLO,
    sampling: SamplingSettings | None = None,
    cancel: CancelToken | None = None,
) -> list[EngineEvent]:
    return list(
        engine.start(1, conversation, sampling or SamplingSettings(), cancel or CancelToken())
    )


def text_of(events: list[EngineEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, TokensGenerated))


def thinking_of(events: list[EngineEvent]) -> str:
    return "".join(event.thinking for event in events if isinstance(event, TokensGenerated))


def finished(events: list[EngineEvent]) -> GenerationFinished:
    closing = events[-1]
    assert isinstance(closing, GenerationFinished)
    return closing


def said(text: str) -> list[ChatMessage]:
    return [ChatMessage(role=Role.USER, text=text)]


def test_engine_load_tells_every_step_and_ends_complete(tmp_path: Path) -> None:
    steps: list[tuple[LoadStage, int, int]] = []
    model = ScriptedEngine(FAST).load(
        some_plan(tmp_path), lambda *step: steps.append(step), CancelToken()
    )
    assert model.name == tmp_path.name
    assert [done for _, done, _ in steps] == sorted(done for _, done, _ in steps)
    assert steps[-1][1] == steps[-1][2] == some_plan(tmp_path).ram_bytes
    assert {stage for stage, _, _ in steps} == {LoadStage.DENSE, LoadStage.EXPERTS}


def test_engine_load_cancelled_raises_at_the_next_step(tmp_path: Path) -> None:
    engine = ScriptedEngine(dataclasses.replace(FAST, load_s=600.0))
    cancel = CancelToken()
    steps: list[int] = []

    def progress(_: LoadStage, done: int, __: int) -> None:
        steps.append(done)
        cancel.cancel()

    with pytest.raises(CancelledError):
        engine.load(some_plan(tmp_path), progress, cancel)
    assert steps == [0]


def test_engine_answer_has_its_events_in_order_and_adds_up() -> None:
    events = run(ScriptedEngine(FAST))
    kinds = [type(event) for event in events]
    assert kinds == [
        GenerationStarted,
        PrefillProgressed,
        *[TokensGenerated] * 3,
        GenerationFinished,
    ]
    assert text_of(events) == "one two three"
    stats = finished(events).stats
    assert stats.generated_tokens == 3
    assert stats.context_used_tokens == stats.prompt_tokens + 3
    assert finished(events).reason is FinishReason.STOP
    assert [part.source for part in stats.energy.parts] == ["scripted"]
    assert not stats.energy.parts[0].is_measured


@pytest.mark.parametrize("pieces", Pieces)
@pytest.mark.parametrize("text", ["", " ", "a  b\n\nc", "line\nline\n", "日本語 🥐 naïve"])
def test_engine_answer_cut_in_any_way_is_the_text(pieces: Pieces, text: str) -> None:
    engine = ScriptedEngine(dataclasses.replace(FAST, answers=(text,), pieces=pieces))
    assert text_of(run(engine)) == text


@pytest.mark.parametrize("tokens_per_s", [40.0, 100.0])
def test_engine_answer_comes_at_the_rate_that_the_script_says(tokens_per_s: float) -> None:
    script = dataclasses.replace(
        FAST,
        answers=("word " * 19 + "word",),
        decode_tokens_per_s=tokens_per_s,
        prompt_tokens_per_s=10 * tokens_per_s,
    )
    stats = finished(run(ScriptedEngine(script))).stats
    decode_s = stats.generated_tokens / tokens_per_s
    prefill_s = stats.prompt_tokens / (10 * tokens_per_s)
    assert stats.generated_tokens == 20
    # Never faster; slower only by what a busy machine takes.
    assert 0.98 * decode_s <= stats.decode_s <= 3 * decode_s
    assert 0.98 * prefill_s <= stats.prefill_s
    assert stats.decode_tokens_per_s <= 1.02 * tokens_per_s


def test_engine_answers_come_one_after_the_other_and_again() -> None:
    engine = ScriptedEngine(dataclasses.replace(FAST, answers=("a", "b")))
    assert [text_of(run(engine)) for _ in range(3)] == ["a", "b", "a"]


def test_engine_with_max_tokens_ends_there() -> None:
    closing = finished(run(ScriptedEngine(FAST), sampling=SamplingSettings(max_tokens=2)))
    assert closing.reason is FinishReason.LENGTH
    assert closing.stats.generated_tokens == 2


def test_engine_with_a_full_context_ends_there_and_cuts_nothing() -> None:
    events = run(ScriptedEngine(dataclasses.replace(FAST, context_tokens=9)))
    assert text_of(events) == "one"
    assert finished(events).reason is FinishReason.CONTEXT_FULL


def test_engine_with_a_prompt_beyond_the_context_refuses_it() -> None:
    with pytest.raises(LarderError) as raised:
        run(ScriptedEngine(dataclasses.replace(FAST, context_tokens=8)), said("word " * 10))
    assert raised.value.code is ErrorCode.PROMPT_TOO_LONG


@pytest.mark.parametrize("conversation", [[], [ChatMessage(role=Role.ASSISTANT, text="hm")]])
def test_engine_with_a_conversation_not_ended_by_the_person_refuses_it(
    conversation: list[ChatMessage],
) -> None:
    with pytest.raises(LarderError) as raised:
        run(ScriptedEngine(FAST), conversation)
    assert raised.value.code is ErrorCode.CONVERSATION_INVALID


def test_engine_answer_that_was_cut_goes_on_with_what_follows() -> None:
    engine = ScriptedEngine(FAST)
    talk = said("script: say one two three four")
    cut = run(engine, talk, SamplingSettings(max_tokens=2))
    assert finished(cut).reason is FinishReason.LENGTH
    ids = [each for event in cut if isinstance(event, TokensGenerated) for each in event.token_ids]
    begun = ChatMessage(role=Role.ASSISTANT, text=text_of(cut), token_ids=ids)
    rest = run(engine, [*talk, begun])
    assert text_of(rest) == "one two three four"
    assert finished(rest).stats.generated_tokens == 2
    started = rest[0]
    assert isinstance(started, GenerationStarted)
    assert started.reused_tokens == started.prompt_tokens - 1
    assert engine.count_tokens([*talk, begun]) == engine.count_tokens(talk) + 2


def test_engine_unknown_answer_is_followed_by_another() -> None:
    engine = ScriptedEngine(FAST)
    begun = ChatMessage(role=Role.ASSISTANT, text="Of old. ")
    rest = run(engine, [*said("script: say new words"), begun])
    assert text_of(rest) == "Of old. new words"
    silent = ScriptedEngine(dataclasses.replace(FAST, answers=()))
    assert text_of(run(silent, [*HELLO, begun])) == "Of old. "


def test_engine_with_a_second_turn_reuses_the_first() -> None:
    engine = ScriptedEngine(FAST)
    first = run(engine)
    token_ids = [
        token for event in first if isinstance(event, TokensGenerated) for token in event.token_ids
    ]
    answer = ChatMessage(role=Role.ASSISTANT, text=text_of(first), token_ids=token_ids)
    second = run(engine, [*HELLO, answer, *said("more")])
    stats = finished(second).stats
    assert stats.reused_tokens == finished(first).stats.context_used_tokens
    assert stats.prompt_tokens == engine.count_tokens([*HELLO, answer, *said("more")])


def test_engine_cancelled_before_the_first_token_says_so_with_statistics() -> None:
    cancel = CancelToken()
    cancel.cancel()
    events = run(ScriptedEngine(FAST), cancel=cancel)
    closing = events[-1]
    assert isinstance(closing, GenerationCancelled)
    assert closing.stats.generated_tokens == 0
    assert text_of(events) == ""


def test_engine_cancelled_after_a_token_stops_within_the_next() -> None:
    cancel = CancelToken()
    events: list[EngineEvent] = []
    for event in ScriptedEngine(FAST).start(1, HELLO, SamplingSettings(), cancel):
        events.append(event)
        if isinstance(event, TokensGenerated):
            cancel.cancel()
    assert text_of(events) == "one"
    assert isinstance(events[-1], GenerationCancelled)


def test_engine_told_what_to_say_says_it() -> None:
    assert text_of(run(ScriptedEngine(FAST), said("script: say Paris, of course"))) == (
        "Paris, of course"
    )


IN_CHANNELS = (
    "<|channel|>analysis<|message|>We think.<|end|><|start|>assistant"
    "<|channel|>final<|message|>It is **Paris**.<|return|>"
)


@pytest.mark.parametrize("pieces", Pieces)
@pytest.mark.parametrize(
    ("text", "thinking", "answer"),
    [
        (IN_CHANNELS, "We think.", "It is **Paris**."),
        (IN_CHANNELS[:42], "We think.", ""),
        ("<think>\nhm, so\n</think>\n\nParis.", "hm, so", "Paris."),
        ("<think>\nhm, so", "hm, so", ""),
        ("1 <", "", "1 <"),
    ],
)
def test_engine_parts_thinking_from_the_answer_however_it_is_cut(
    pieces: Pieces, text: str, thinking: str, answer: str
) -> None:
    script = dataclasses.replace(FAST, answers=(text,), pieces=pieces)
    events = run(ScriptedEngine(script))
    assert (thinking_of(events), text_of(events)) == (thinking, answer)
    if pieces is Pieces.CHARACTERS or not thinking:
        assert (finished(events).stats.thinking_s > 0) == bool(thinking)


def test_engine_cancelled_while_thinking_sends_what_was_held_back() -> None:
    cancel = CancelToken()
    script = dataclasses.replace(FAST, answers=("<think>hm< and more",))
    events: list[EngineEvent] = []
    for event in ScriptedEngine(script).start(1, HELLO, SamplingSettings(), cancel):
        events.append(event)
        if sum(isinstance(each, TokensGenerated) for each in events) == 1:
            cancel.cancel()
    assert thinking_of(events) == "hm<"
    assert isinstance(events[-1], GenerationCancelled)


def test_engine_told_to_crash_calls_for_it_after_that_many_tokens() -> None:
    class CrashError(Exception):
        pass

    def crash() -> None:
        raise CrashError

    events: list[EngineEvent] = []
    with pytest.raises(CrashError):
        events.extend(
            ScriptedEngine(FAST, crash).start(
                1, said("script: crash 2"), SamplingSettings(), CancelToken()
            )
        )
    assert text_of(events) == "one two"


@pytest.mark.parametrize("place", FaultPlace)
def test_engine_with_a_fault_fails_at_its_place(place: FaultPlace, tmp_path: Path) -> None:
    engine = ScriptedEngine(dataclasses.replace(FAST, fault=Fault(FaultKind.FAIL, place)))

    def load_and_run() -> None:
        engine.load(some_plan(tmp_path), lambda *_: None, CancelToken())
        run(engine)

    with pytest.raises(LarderError) as raised:
        load_and_run()
    assert raised.value.code is ErrorCode.DRIVE_READ_FAILED
    with pytest.raises(ZeroDivisionError):
        run(engine, said("script: bug"))


def test_engine_sample_counts_the_tokens_since_the_last(tmp_path: Path) -> None:
    engine = ScriptedEngine(FAST)
    engine.load(some_plan(tmp_path), lambda *_: None, CancelToken())
    run(engine)
    sample = engine.sample(0.5)
    assert (sample.num_tokens, sample.decode_tokens_per_s) == (3, 6.0)
    assert sum(sample.ram_by_kind.values()) == some_plan(tmp_path).ram_bytes
    assert engine.sample(0.5).num_tokens == 0


def test_read_script_of_a_file_takes_its_fields(tmp_path: Path) -> None:
    path = tmp_path / "script.json"
    path.write_text('{"answers": ["a"], "fault": {"kind": "hang", "after": 3}}', encoding="utf-8")
    read = read_script(path)
    assert read.answers == ("a",)
    assert read.fault == Fault(FaultKind.HANG, FaultPlace.DECODE, 3)


@pytest.mark.parametrize("text", [None, "{", '{"answers": 3}', '{"fault": {"kind": "x"}}'])
def test_read_script_of_anything_else_is_refused(tmp_path: Path, text: str | None) -> None:
    path = tmp_path / "script.json"
    if text is not None:
        path.write_text(text, encoding="utf-8")
    with pytest.raises(LarderError) as raised:
        read_script(path)
    assert raised.value.code is ErrorCode.SETTING_INVALID
