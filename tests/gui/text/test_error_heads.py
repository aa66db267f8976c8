"""Every error has a headline and a step."""

from app.text.error_heads import HeadWords, NextStep, headline, next_step, step_name
from runtime.protocol.errors import ErrorCode


def test_every_error_has_a_headline_and_a_step_with_a_word() -> None:
    for code in ErrorCode:
        assert headline(code)
        assert step_name(next_step(code))
    assert headline(ErrorCode.RAM_NOT_FREE) == HeadWords.PLAN
    assert next_step(ErrorCode.RAM_NOT_FREE) is NextStep.PLANS
    assert headline(ErrorCode.SHARD_TRUNCATED) == HeadWords.MODEL
    assert next_step(ErrorCode.SHARD_TRUNCATED) is NextStep.MODELS


def test_steps_have_different_words_and_each_is_used() -> None:
    assert len({step_name(step) for step in NextStep}) == len(NextStep)
    assert {next_step(code) for code in ErrorCode} == set(NextStep)
