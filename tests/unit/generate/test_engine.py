"""The tiered engine on tiny checkpoints: answers, turns, cancel, limits."""

import itertools
import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from runtime.engine.base import CancelToken, Engine
from runtime.errors import LarderError
from runtime.generate.engine import TieredEngine
from runtime.kernels.base import Kernels
from runtime.protocol.chat import ChatMessage, FinishReason, Role, SamplingSettings
from runtime.protocol.errors import ErrorCode
from runtime.protocol.messages import GenerationCancelled, GenerationFinished, TokensGenerated
from runtime.protocol.values import Tier
from runtime.telemetry.expert_tally import IN_RAM
from tests.support.engine_runs import (
    GREEDY,
    CancelAtCheck,
    Run,
    answer,
    answer_cancelled_after,
    ignore_load_progress,
    user,
)
from tests.support.hand_made_plans import FORECAST, exact_plan
from tests.support.model_bench import open_bench
from tests.support.tiny_checkpoints import tiny_checkpoint
from tests.support.tiny_variants import VARIANTS
from tests.unit.generate.conftest import DRAWN_SEED, OpenEngine

QUESTION = [user("What is the capital of France?")]


def fresh_answer(
    open_engine: OpenEngine,
    folder: Path,
    conversation: list[ChatMessage],
    sampling: SamplingSettings = GREEDY,
) -> Run:
    return answer(open_engine(exact_plan(folder)), conversation, sampling)


@pytest.mark.parametrize("name", VARIANTS)
def test_engine_greedy_answer_equals_the_bare_model(
    open_engine: OpenEngine, kernels: Kernels, tiny_root: Path, name: str
) -> None:
    folder = tiny_checkpoint(tiny_root, name)
    engine: Engine = open_engine(exact_plan(folder))
    run = answer(engine, QUESTION)
    assert isinstance(engine, TieredEngine)
    assert engine._parts is not None
    tokenizer = engine._parts.tokenizer
    with open_bench(folder, kernels) as bench:
        expected = bench.greedy(tokenizer.encode_conversation(QUESTION), 24)
    if 1 in expected:
        expected = expected[: expected.index(1) + 1]

    assert run.token_ids == expected
    assert run.text == tokenizer.decode(expected)
    assert run.reason is (FinishReason.STOP if 1 in expected else FinishReason.LENGTH)


def test_engine_events_come_in_order_and_statistics_are_complete(engine: TieredEngine) -> None:
    run = answer(engine, QUESTION)
    stats = run.stats

    kinds = [type(event).__name__ for event in run.events]
    assert kinds[:2] == ["GenerationStarted", "PrefillProgressed"]
    assert set(kinds[2:-1]) == {"TokensGenerated"}
    assert isinstance(run.events[-1], GenerationFinished)
    assert run.started.prompt_tokens == stats.prompt_tokens == engine.count_tokens(QUESTION)
    assert run.prefill[-1].done_tokens == run.prefill[-1].total_tokens == stats.prompt_tokens
    assert stats.reused_tokens == 0
    assert stats.generated_tokens == len(run.token_ids)
    assert stats.context_tokens == 192
    assert stats.context_used_tokens == stats.prompt_tokens + stats.generated_tokens
    assert 0 < stats.prefill_s <= stats.ttft_s
    assert stats.decode_tokens_per_s == pytest.approx((stats.generated_tokens - 1) / stats.decode_s)
    assert stats.prompt_tokens_per_s == pytest.approx(stats.prompt_tokens / stats.prefill_s)
    assert set(stats.seconds) == {"compute", "drive_wait", "other"}
    assert stats.seconds["drive_wait"] == 0
    assert sum(stats.seconds.values()) >= stats.prefill_s
    assert [tier.tier for tier in stats.tiers] == [Tier.RAM, Tier.DRIVE]
    assert stats.tiers[0].hits > 0
    assert stats.tiers[0].misses == stats.drive_bytes_read == 0
    assert stats.seed == DRAWN_SEED
    assert stats.peak_bytes >= stats.base_bytes > 0
    assert stats.energy.total_j is not None
    assert stats.energy.total_j > 0
    assert stats.predicted == FORECAST


@pytest.mark.parametrize("num_slots", [3, 4, 5])
def test_engine_small_budget_gives_the_same_answer_and_counts_reads(
    open_engine: OpenEngine, qwen2_folder: Path, num_slots: int
) -> None:
    expected = fresh_answer(open_engine, qwen2_folder, QUESTION)
    run = answer(open_engine(exact_plan(qwen2_folder, num_slots)), QUESTION)
    ram, drive = run.stats.tiers

    assert run.token_ids == expected.token_ids
    assert ram.misses == drive.hits > 0
    assert drive.bytes > 0
    assert run.stats.drive_bytes_read > 0
    assert run.stats.seconds["drive_wait"] > 0


def test_engine_second_turn_computes_new_tokens_only_and_equals_recomputing(
    open_engine: OpenEngine, qwen2_folder: Path
) -> None:
    engine = open_engine(exact_plan(qwen2_folder))
    first = answer(engine, QUESTION)
    conversation = [*QUESTION, first.as_message(), user("And of Italy?")]
    before = engine._counters.copy()

    second = answer(engine, conversation)

    computed = engine._counters.since(before).num_prompt_tokens
    # The last token of an answer is chosen and never put through the model.
    kept_answer = len(first.token_ids) - 1
    assert second.stats.reused_tokens == first.stats.prompt_tokens + kept_answer
    assert computed == second.stats.prompt_tokens - second.stats.reused_tokens
    assert second.prefill[-1].total_tokens == computed
    assert second.token_ids == fresh_answer(open_engine, qwen2_folder, conversation).token_ids


def test_engine_same_question_again_computes_one_token_and_answers_the_same(
    engine: TieredEngine,
) -> None:
    first = answer(engine, QUESTION)
    again = answer(engine, QUESTION)

    assert again.stats.reused_tokens == first.stats.prompt_tokens - 1
    assert again.token_ids == first.token_ids


@given(at_check=st.integers(1, 20))
@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_engine_cancelled_at_any_layer_goes_on_as_if_nothing_had_been(
    open_engine: OpenEngine, qwen2_folder: Path, at_check: int
) -> None:
    engine = open_engine(exact_plan(qwen2_folder, chunk_tokens=16))
    cancel = CancelAtCheck(at_check)

    stopped = answer(engine, QUESTION, cancel=cancel)

    assert cancel.num_checks == at_check
    assert stopped.reason is None
    # Each chunk is tested before its layers and after each of three.
    assert len(stopped.prefill) == min((at_check - 1) // 4, -(-stopped.stats.prompt_tokens // 16))
    resumed = answer(engine, QUESTION)
    assert resumed.stats.reused_tokens == min(
        16 * len(stopped.prefill), resumed.stats.prompt_tokens - 1
    )
    assert resumed.token_ids == fresh_answer(open_engine, qwen2_folder, QUESTION).token_ids
    engine.close()


@pytest.mark.parametrize("num_tokens", [1, 7])
def test_engine_cancelled_while_decoding_keeps_what_was_said(
    open_engine: OpenEngine, kernels: Kernels, qwen2_folder: Path, num_tokens: int
) -> None:
    # A clock that jumps with every look sends each token by itself.
    jumps = itertools.count(0.0, 1.0)
    engine = TieredEngine(kernels, clock=lambda: next(jumps))
    engine.load(exact_plan(qwen2_folder), ignore_load_progress, CancelToken())
    whole = fresh_answer(open_engine, qwen2_folder, QUESTION)

    stopped = answer_cancelled_after(engine, QUESTION, num_tokens, GREEDY)

    assert isinstance(stopped.events[-1], GenerationCancelled)
    assert len(stopped.token_ids) == num_tokens
    assert stopped.stats.generated_tokens == len(stopped.token_ids)
    assert whole.token_ids[: len(stopped.token_ids)] == stopped.token_ids
    conversation = [*QUESTION, stopped.as_message(), user("Go on.")]
    assert (
        answer(engine, conversation).token_ids
        == fresh_answer(open_engine, qwen2_folder, conversation).token_ids
    )
    engine.close()


@pytest.mark.parametrize("is_fresh", [False, True])
@pytest.mark.parametrize("num_kept", [1, 7, 23])
def test_engine_cut_answer_goes_on_as_if_it_had_never_been_cut(
    open_engine: OpenEngine, qwen2_folder: Path, num_kept: int, *, is_fresh: bool
) -> None:
    engine = open_engine(exact_plan(qwen2_folder))
    whole = answer(engine, QUESTION)
    assert len(whole.token_ids) == 24
    cut = answer(engine, QUESTION, SamplingSettings(temperature=0, max_tokens=num_kept))
    assert cut.reason is FinishReason.LENGTH
    if is_fresh:
        engine = open_engine(exact_plan(qwen2_folder))
    rest = SamplingSettings(temperature=0, max_tokens=24 - num_kept)
    conversation = [*QUESTION, cut.as_message()]
    assert engine.count_tokens(conversation) == engine.count_tokens(QUESTION) + num_kept
    goes_on = answer(engine, conversation, rest)
    assert [*cut.token_ids, *goes_on.token_ids] == whole.token_ids
    assert goes_on.text == whole.text
    assert goes_on.stats.generated_tokens == 24 - num_kept
    if not is_fresh:
        assert goes_on.started.reused_tokens == goes_on.started.prompt_tokens - 1


def test_engine_stopped_before_it_went_on_tells_what_it_had(engine: TieredEngine) -> None:
    cut = answer(engine, QUESTION, SamplingSettings(temperature=0, max_tokens=5))
    stopped = answer(engine, [*QUESTION, cut.as_message()], GREEDY, CancelAtCheck(1))
    assert isinstance(stopped.events[-1], GenerationCancelled)
    assert (stopped.text, stopped.token_ids) == (cut.text, [])


def test_engine_answer_without_a_question_refused(engine: TieredEngine) -> None:
    with pytest.raises(LarderError) as refused:
        answer(engine, [ChatMessage(role=Role.ASSISTANT, text="hm", token_ids=[3])])
    assert refused.value.code is ErrorCode.CONVERSATION_INVALID
    assert refused.value.parameters["reason"] == "it has no question"


def test_engine_answer_left_by_its_reader_leaves_the_engine_usable(
    open_engine: OpenEngine, qwen2_folder: Path
) -> None:
    engine = open_engine(exact_plan(qwen2_folder))
    events = engine.start(1, QUESTION, GREEDY, CancelToken())
    while not isinstance(next(events), TokensGenerated):
        pass
    del events

    assert (
        answer(engine, QUESTION).token_ids
        == fresh_answer(open_engine, qwen2_folder, QUESTION).token_ids
    )


def test_engine_seed_decides_a_sampled_answer(engine: TieredEngine) -> None:
    def sampled(seed: int | None) -> Run:
        sampling = SamplingSettings(temperature=1.5, max_tokens=12, seed=seed)
        return answer(engine, QUESTION, sampling)

    first, same, other, drawn = sampled(5), sampled(5), sampled(6), sampled(None)

    assert first.token_ids == same.token_ids != other.token_ids
    assert first.stats.seed == 5
    assert drawn.stats.seed == DRAWN_SEED
    assert drawn.token_ids == sampled(DRAWN_SEED).token_ids


def test_engine_stop_string_ends_the_text_before_it(engine: TieredEngine) -> None:
    whole = answer(engine, QUESTION)
    stop = whole.text[5:8]
    sampling = SamplingSettings(temperature=0, max_tokens=24, stop=["never there", stop])

    run = answer(engine, QUESTION, sampling)

    assert run.reason is FinishReason.STOP
    assert run.text == whole.text[: whole.text.index(stop)]
    assert whole.token_ids[: len(run.token_ids)] == run.token_ids


def test_engine_text_held_for_a_stop_string_comes_with_the_end(engine: TieredEngine) -> None:
    whole = answer(engine, QUESTION)
    sampling = SamplingSettings(
        temperature=0, max_tokens=24, stop=[whole.text[-2:] + "and something else"]
    )

    assert answer(engine, QUESTION, sampling).text == whole.text


def test_engine_prompt_that_opens_thinking_gets_its_answer_as_thinking(
    open_engine: OpenEngine, qwen2_folder: Path, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(qwen2_folder, tmp_path / "thinking"))
    (folder / "chat_template.jinja").write_text(
        "{% for m in messages %}{{ m.content }}{% endfor %}<think>\n", encoding="utf-8"
    )

    run = answer(open_engine(exact_plan(folder)), QUESTION)

    assert run.thinking
    assert run.text == ""
    assert run.stats.thinking_s > 0


def test_engine_answer_without_thinking_has_no_time_of_it(engine: TieredEngine) -> None:
    run = answer(engine, QUESTION)
    assert run.text
    assert run.thinking == ""
    assert run.stats.thinking_s == 0


def test_engine_stop_string_is_looked_for_in_the_answer_alone(
    open_engine: OpenEngine, qwen2_folder: Path, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(qwen2_folder, tmp_path / "thinking"))
    (folder / "chat_template.jinja").write_text("{{ messages[0].content }}<think>")
    engine = open_engine(exact_plan(folder))
    whole = answer(engine, QUESTION)
    sampling = SamplingSettings(temperature=0, max_tokens=24, stop=[whole.thinking[2:4]])

    assert answer(engine, QUESTION, sampling).token_ids == whole.token_ids


def test_engine_repetition_penalty_changes_a_repeating_answer(engine: TieredEngine) -> None:
    sampling = SamplingSettings(temperature=0, max_tokens=24, repetition_penalty=50.0)

    run = answer(engine, QUESTION, sampling)

    assert len(set(run.token_ids)) == len(run.token_ids)


def test_engine_full_context_ends_the_answer_there(
    open_engine: OpenEngine, qwen2_folder: Path
) -> None:
    num_prompt = open_engine(exact_plan(qwen2_folder)).count_tokens(QUESTION)
    engine = open_engine(exact_plan(qwen2_folder, context_tokens=num_prompt + 6))

    run = answer(engine, QUESTION, SamplingSettings(temperature=0))

    assert run.reason is FinishReason.CONTEXT_FULL
    assert run.stats.context_used_tokens == run.stats.context_tokens == num_prompt + 6
    assert len(run.token_ids) == 6


def test_engine_prompt_that_leaves_no_room_refused_before_computing(
    open_engine: OpenEngine, qwen2_folder: Path
) -> None:
    num_prompt = open_engine(exact_plan(qwen2_folder)).count_tokens(QUESTION)
    engine = open_engine(exact_plan(qwen2_folder, context_tokens=num_prompt))

    with pytest.raises(LarderError) as refused:
        engine.start(1, QUESTION, GREEDY, CancelToken())

    assert refused.value.code is ErrorCode.PROMPT_TOO_LONG
    assert refused.value.parameters == {
        "prompt_tokens": num_prompt,
        "context_tokens": num_prompt,
    }
    assert engine._counters.num_prompt_tokens == 0


def test_engine_senseless_setting_refused_before_computing(engine: TieredEngine) -> None:
    with pytest.raises(LarderError) as refused:
        engine.start(1, QUESTION, SamplingSettings(top_p=2.0), CancelToken())

    assert refused.value.code is ErrorCode.SETTING_INVALID
    assert engine._counters.num_prompt_tokens == 0


def test_engine_failing_drive_is_named_and_the_next_answer_works(
    open_engine: OpenEngine, qwen2_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = open_engine(exact_plan(qwen2_folder, 3))
    assert engine._parts is not None
    store = engine._parts.store

    def fail(*_: object) -> None:
        raise LarderError(ErrorCode.DRIVE_READ_FAILED, file="f", offset_bytes=0, reason="broken")

    with monkeypatch.context() as patch:
        patch.setattr(store, "read_expert", fail)
        with pytest.raises(LarderError) as failed:
            answer(engine, QUESTION)

    assert failed.value.code is ErrorCode.DRIVE_READ_FAILED
    engine._parts.experts.check()
    assert (
        answer(engine, QUESTION).token_ids
        == fresh_answer(open_engine, qwen2_folder, QUESTION).token_ids
    )


def test_engine_samples_show_each_interval_alone(engine: TieredEngine) -> None:
    engine.sample(1.0)
    run = answer(engine, QUESTION)
    busy, idle = engine.sample(1.0), engine.sample(1.0)

    assert busy.num_tokens == len(run.token_ids) - 1
    assert busy.tiers == run.stats.tiers
    assert busy.seconds["compute"] > 0
    assert busy.resident_bytes > 0
    assert busy.experts is not None
    assert busy.experts.num_layers * busy.experts.num_experts == len(busy.experts.use) == 18
    assert set(busy.experts.tier) == {IN_RAM}
    assert sum(busy.experts.use) > 0
    assert idle.num_tokens == idle.tiers[0].hits == 0


def test_engine_without_a_model_says_so(engine: TieredEngine) -> None:
    engine.close()
    engine.close()

    with pytest.raises(LarderError) as refused:
        engine.count_tokens(QUESTION)
    assert refused.value.code is ErrorCode.NO_MODEL_LOADED
    with pytest.raises(LarderError):
        engine.start(1, QUESTION, GREEDY, CancelToken())


def test_engine_empty_conversation_refused(engine: TieredEngine) -> None:
    with pytest.raises(LarderError) as refused:
        engine.start(1, [], GREEDY, CancelToken())

    assert refused.value.code is ErrorCode.CONVERSATION_INVALID


STEP = st.tuples(
    st.sampled_from(["Hello", "And of Italy?", "Go on, please."]),
    st.integers(0, 2),
    st.one_of(st.none(), st.integers(1, 60)),
)


@given(num_slots=st.integers(3, 6), steps=st.lists(STEP, min_size=1, max_size=4))
@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_engine_any_history_answers_as_if_computed_afresh(
    open_engine: OpenEngine,
    qwen2_folder: Path,
    num_slots: int,
    steps: list[tuple[str, int, int | None]],
) -> None:
    """Turns, edits of earlier turns and cancels at any layer, at any budget."""
    engine = open_engine(exact_plan(qwen2_folder, num_slots, context_tokens=256))
    sampling = SamplingSettings(temperature=0, max_tokens=6)
    conversation: list[ChatMessage] = []
    for text, num_forgotten_turns, cancel_at in steps:
        kept = max(0, len(conversation) - 2 * num_forgotten_turns)
        conversation = [*conversation[:kept], user(text)]
        if cancel_at is not None:
            answer(engine, conversation, sampling, CancelAtCheck(cancel_at))
        run = answer(engine, conversation, sampling)
        fresh = open_engine(exact_plan(qwen2_folder, context_tokens=256))
        assert run.token_ids == answer(fresh, conversation, sampling).token_ids
        conversation.append(run.as_message())
        fresh.close()
    assert engine._parts is not None
    engine._parts.kv.check()
    engine._parts.experts.check()
    engine.close()
