"""What `tests/gpu/run.sh` measures, with torch's processor in the place of a card."""

import sys
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

from card import PARTS, QUICK, ROOM_BYTES, STAND_IN, measure
from card_fixed import FORMATS

from runtime.device.torch_device import TorchDevice
from runtime.hardware.profile import MACHINE_VARIABLE
from runtime.kernels.activations import GROUPED
from tests.support.pretended_graphs import PretendedGraphs
from tests.support.tiny_checkpoints import tiny_checkpoint


@pytest.mark.timeout(120)
def test_card_script_measures_everything_and_all_budgets_agree(
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    profile = tmp_path / "machine.json"
    profile.write_text('{"devices": [{"total_gib": 1, "link_gb_per_s": 12}]}')
    monkeypatch.setenv(MACHINE_VARIABLE, str(profile))
    model = tiny_checkpoint(tmp_path_factory.getbasetemp() / "tiny-checkpoints", "qwen3_moe")
    device = TorchDevice(STAND_IN, ROOM_BYTES, torch.device("cpu"))

    recorder = PretendedGraphs()
    device.recorder = recorder

    found = measure(device, QUICK, model, "simulated:0")

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
    fixed = [line["ms"] for line in found["fixed"]]
    assert len(fixed) == 2 * len(FORMATS)
    assert all(milliseconds > 0 for milliseconds in fixed)
    assert recorder.num_recorded > 0
    assert not any("failure" in line for line in found["fixed"])
    assert [set(line) for line in found["peer"]] == [{"what", "not_compared"}]
    assert [line["same_tokens"] for line in found["answers"]] == [1.0] * len(PARTS)
    assert {line["tokens"] for line in found["agreement"]} == {QUICK.compared_tokens}
