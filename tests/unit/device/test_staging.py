"""Room for bytes on their way to a card: page-locked, or not and said."""

import pytest
import torch

from runtime.device import torch_device


@pytest.mark.expects_log("runtime.device.torch_device", "WARNING")
def test_staging_that_cannot_be_locked_is_ordinary_and_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    empty = torch.empty

    def refuse(num_bytes: int, **more: object) -> torch.Tensor:
        if more.get("pin_memory"):
            raise RuntimeError("CUDA error: out of memory")
        return empty(num_bytes, dtype=torch.uint8)

    monkeypatch.setattr(torch, "empty", refuse)

    assert torch_device.staging_of(4096, is_locked=True).numel() == 4096


def test_staging_is_locked_only_where_a_card_wants_it(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted: list[object] = []
    empty = torch.empty

    def note(num_bytes: int, **more: object) -> torch.Tensor:
        wanted.append(more.get("pin_memory", False))
        return empty(num_bytes, dtype=torch.uint8)

    monkeypatch.setattr(torch, "empty", note)
    for is_locked in (False, True):
        torch_device.staging_of(64, is_locked=is_locked)

    assert wanted == [False, True]
