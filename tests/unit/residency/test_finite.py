"""Finding weights that are not numbers, wherever they stand."""

import pytest
import torch

from runtime.residency import finite
from runtime.residency.finite import is_finite


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_is_finite_finds_one_number_that_is_none_at_any_place(
    dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(finite, "_CHUNK", 8)
    good = torch.linspace(-3, 3, 21).to(dtype)
    assert is_finite(good)
    assert is_finite(good.reshape(3, 7))
    for place in range(21):
        for value in (float("nan"), float("inf"), float("-inf")):
            bad = good.clone()
            bad[place] = value
            assert not is_finite(bad)


def test_is_finite_of_nothing_and_of_the_largest_numbers() -> None:
    assert is_finite(torch.empty(0))
    assert is_finite(torch.tensor([65504.0, -65504.0], dtype=torch.float16))
