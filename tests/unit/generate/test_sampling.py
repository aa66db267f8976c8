import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.errors import LarderError
from runtime.generate.sampling import (
    Floats,
    RepetitionPenalty,
    check_settings,
    choose_token,
    distribution,
)
from runtime.protocol.chat import SamplingSettings
from runtime.protocol.errors import ErrorCode

LOGITS = st.lists(st.integers(-12, 12).map(lambda value: value / 2), min_size=1, max_size=40)
SETTINGS = st.builds(
    SamplingSettings,
    temperature=st.sampled_from([0.25, 0.5, 1.0, 2.0]),
    top_k=st.integers(0, 12),
    top_p=st.sampled_from([1e-6, 0.3, 0.71, 0.9, 1.0]),
    min_p=st.sampled_from([0.0, 0.05, 0.5, 1.0]),
)


def as_floats(values: list[float]) -> Floats:
    return np.array(values, np.float32)


def reference(logits: list[float], settings: SamplingSettings) -> dict[int, float]:
    """The filters one after another, by sorting lists."""
    weights = {i: math.exp(value / settings.temperature) for i, value in enumerate(logits)}
    order = sorted(weights, key=lambda i: (-logits[i], i))
    if settings.top_k:
        order = order[: settings.top_k]
    total = sum(weights[i] for i in order)
    kept: list[int] = []
    mass = 0.0
    for i in order:
        if kept and settings.top_p < 1 and mass >= settings.top_p * (1 - 1e-12):
            break
        kept.append(i)
        mass += weights[i] / total
    kept = [i for i in kept if weights[i] >= settings.min_p * weights[kept[0]] * (1 - 1e-12)]
    total = sum(weights[i] for i in kept)
    return {i: weights[i] / total for i in kept}


@given(logits=LOGITS, settings=SETTINGS)
def test_distribution_any_settings_equals_the_reference(
    logits: list[float], settings: SamplingSettings
) -> None:
    expected = reference(logits, settings)

    ids, probabilities = distribution(as_floats(logits), settings)

    assert dict(zip(ids.tolist(), probabilities.tolist(), strict=True)) == pytest.approx(expected)
    assert ids.tolist() == sorted(ids.tolist())


@given(seed=st.integers(0, 1000), top_p=st.sampled_from([0.05, 0.5, 0.99, 0.99999]))
def test_distribution_large_vocabulary_nucleus_equals_the_reference(
    seed: int, top_p: float
) -> None:
    logits = np.random.default_rng(seed).normal(0, 2, 3000).astype(np.float32)
    settings = SamplingSettings(temperature=1.0, top_p=top_p)

    ids, _ = distribution(logits, settings)

    assert ids.tolist() == sorted(reference(logits.tolist(), settings))


@given(logits=LOGITS)
def test_choose_token_greedy_takes_the_first_largest(logits: list[float]) -> None:
    token_id = choose_token(as_floats(logits), SamplingSettings(temperature=0), 0.99)

    assert token_id == logits.index(max(logits))


@given(logits=LOGITS, settings=SETTINGS, draw=st.floats(0, 1, exclude_max=True))
def test_choose_token_any_draw_takes_the_share_it_falls_into(
    logits: list[float], settings: SamplingSettings, draw: float
) -> None:
    shares = reference(logits, settings)
    token_id = choose_token(as_floats(logits), settings, draw)
    below = sum(share for other, share in shares.items() if other < token_id)

    assert token_id in shares
    assert below - 1e-9 <= draw <= below + shares[token_id] + 1e-9


def test_repetition_penalty_seen_tokens_become_less_likely() -> None:
    penalty = RepetitionPenalty(2.0, [0, 1])
    penalty.note(3)
    logits = as_floats([4.0, -4.0, 4.0, 0.5])

    penalty.apply(logits)

    assert logits.tolist() == [2.0, -8.0, 4.0, 0.25]


def test_repetition_penalty_of_one_changes_nothing() -> None:
    penalty = RepetitionPenalty(1.0, [0, 1])
    penalty.note(0)
    logits = as_floats([4.0, -4.0])

    penalty.apply(logits)

    assert logits.tolist() == [4.0, -4.0]


@pytest.mark.parametrize(
    "settings",
    [
        SamplingSettings(temperature=-0.1),
        SamplingSettings(temperature=math.nan),
        SamplingSettings(top_k=-1),
        SamplingSettings(top_p=0.0),
        SamplingSettings(top_p=1.1),
        SamplingSettings(min_p=-0.1),
        SamplingSettings(repetition_penalty=0.0),
        SamplingSettings(max_tokens=-1),
        SamplingSettings(seed=-1),
        SamplingSettings(stop=["ok", ""]),
    ],
)
def test_check_settings_senseless_value_is_named(settings: SamplingSettings) -> None:
    with pytest.raises(LarderError) as refused:
        check_settings(settings)

    assert refused.value.code is ErrorCode.SETTING_INVALID
    name = str(refused.value.parameters["name"])
    assert getattr(settings, name) != getattr(SamplingSettings(), name)


def test_check_settings_sensible_values_pass() -> None:
    check_settings(SamplingSettings())
    check_settings(SamplingSettings(temperature=0, top_k=40, top_p=0.9, min_p=0.1, seed=0))


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_choose_token_among_logits_that_are_no_numbers_is_refused(
    value: float, temperature: float
) -> None:
    settings = SamplingSettings(temperature=temperature)

    with pytest.raises(LarderError) as refused:
        choose_token(as_floats([1.0, value, 2.0]), settings, 0.5)

    assert refused.value.code is ErrorCode.WEIGHTS_NOT_FINITE
    assert choose_token(as_floats([1.0, -math.inf, 2.0]), settings, 0.99) == 2
