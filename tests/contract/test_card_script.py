"""What `tests/gpu/run.sh` measures, with torch's processor in the place of a card."""

import sys
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

from card import PARTS, QUICK, ROOM_BYTES, STAND_IN, measure

from runtime.device.torch_device import TorchDevice
from runtime.kernels.activations import GROUPED


@pytest.mark.timeout(120)
def test_card_script_measures_everything_and_all_budgets_agree() -> None:
    device = TorchDevice(STAND_IN, ROOM_BYTES, torch.device("cpu"))

    found = measure(device, QUICK)

    assert device.ledger.held_bytes == 0
    device.close()
    assert len(found["copies"]) == 4
    assert len(found["kernels"]) == len(QUICK.shapes) * len(GROUPED)
    assert all(line["share_of_memory"] > 0 for line in found["kernels"])
    speeds = [line["hit_ratio"] for line in found["synthetic"]]
    # How much arrives in so few tokens is the link's business; without slots nothing does.
    assert speeds[0] == 0
    assert all(0 <= speed <= 1 for speed in speeds)
    assert [line["is_reached"] for line in found["agreement"]] == [True] * len(PARTS)
    assert {line["tokens"] for line in found["agreement"]} == {QUICK.compared_tokens}
