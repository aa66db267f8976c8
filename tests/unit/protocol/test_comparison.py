"""What a person is told of an answer that was not as fast as expected."""

import msgspec
import pytest

from runtime.protocol.chat import GenerationStats
from runtime.protocol.comparison import MIN_TOKENS, notes_of
from runtime.protocol.plan import ReasonCode
from runtime.protocol.sentences import reason_sentence
from tests.protocol.examples import EXAMPLE_STATS


def stats(
    measured: float, predicted: float | None = None, usual: float = 0.0, num_tokens: int = 100
) -> GenerationStats:
    plain = EXAMPLE_STATS
    forecast = plain.predicted
    assert forecast is not None
    likeliest = msgspec.structs.replace(forecast, decode_tokens_per_s=predicted or 0.0)
    return msgspec.structs.replace(
        plain,
        decode_tokens_per_s=measured,
        generated_tokens=num_tokens,
        predicted=None if predicted is None else likeliest,
        usual_tokens_per_s=usual,
    )


@pytest.mark.parametrize(
    ("measured", "code", "text"),
    [
        (11.6, ReasonCode.FASTER_THAN_FORECAST, "This was 16 % faster than the forecast, 10.0"),
        (8.4, ReasonCode.SLOWER_THAN_FORECAST, "This was 16 % slower than the forecast, 10.0"),
    ],
)
def test_notes_of_an_answer_far_from_its_forecast(
    measured: float, code: ReasonCode, text: str
) -> None:
    (note,) = notes_of(stats(measured, 10.0))
    assert note.code is code
    assert reason_sentence(note).startswith(text)


def test_notes_of_an_answer_far_below_what_is_usual() -> None:
    (note,) = notes_of(stats(8.0, 9.0, usual=10.0))
    assert note.code is ReasonCode.SLOWER_THAN_USUAL
    assert reason_sentence(note).startswith("This was 20 % slower than this model usually is")


@pytest.mark.parametrize(
    "fine",
    [
        stats(11.4, 10.0),
        stats(8.6, 10.0),
        stats(20.0, usual=10.0),
        stats(8.6, usual=10.0),
        stats(5.0),
        stats(5.0, 0.0),
        stats(0.0, 10.0, usual=10.0),
        stats(5.0, 10.0, usual=10.0, num_tokens=MIN_TOKENS - 1),
    ],
)
def test_notes_of_an_answer_as_expected_or_too_short_to_say_are_none(
    fine: GenerationStats,
) -> None:
    assert notes_of(fine) == []
