"""Which of several files of one model is advised."""

import pytest

from runtime.plan.recommendation import advise
from runtime.protocol.hub import HubOutlook
from tests.support.window_values import some_forecast

BITS = [16.0, 8.5, 6.5, 4.8, 2.9]


def outlook(rate: float | None, *, is_on_drive: bool = False) -> HubOutlook:
    if rate is None:
        return HubOutlook(is_too_large=True)
    return HubOutlook(forecast=some_forecast(rate, rate + 1), is_on_drive=is_on_drive)


@pytest.mark.parametrize(
    ("rates", "on_drive", "expected"),
    [
        ([5, 9, 11, 14, 20], 0, 1),
        ([5, 9, 11, 14, 20], 2, 2),
        ([5, 9, 11, 14, 20], 4, 3),
        ([5, 9, 11, 14, 20], 5, 3),
        ([None, None, None, None, 2], 4, 4),
        ([1, None, None, None, None], 5, 0),
        ([None] * 5, 5, None),
    ],
)
def test_advised_is_the_most_exact_that_stays_in_memory_else_the_fastest(
    rates: list[float | None], on_drive: int, expected: int | None
) -> None:
    outlooks = [outlook(rate, is_on_drive=index < on_drive) for index, rate in enumerate(rates)]
    assert advise(outlooks, BITS) == expected


def test_nothing_is_advised_of_nothing() -> None:
    assert advise([], []) is None
