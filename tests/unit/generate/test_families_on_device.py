"""Families answer on a card as they do on the processor, those with blocks of their own too."""

import json
from pathlib import Path

import pytest

from runtime.hardware.profile import MACHINE_VARIABLE
from runtime.protocol.values import Tier
from tests.support.engine_runs import answer, user
from tests.support.hand_made_plans import device_plan, exact_plan
from tests.support.tiny_checkpoints import tiny_checkpoint
from tests.unit.generate.conftest import OpenEngine

QUESTION = [user("What is the capital of France?")]


@pytest.mark.parametrize(
    "name", ["ernie4_5_moe", "gemma4", "minimax_m2", "mixtral", "qwen3_moe", "qwen3_vl_moe"]
)
def test_family_on_a_card_answers_as_on_the_processor(
    open_engine: OpenEngine,
    tiny_root: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
) -> None:
    machine = tmp_path / "machine.json"
    machine.write_text(json.dumps({"devices": [{"total_gib": 1, "link_gb_per_s": 1000}]}))
    monkeypatch.setenv(MACHINE_VARIABLE, str(machine))
    folder = tiny_checkpoint(tiny_root, name)
    expected = answer(open_engine(exact_plan(folder)), QUESTION).token_ids

    engine = open_engine(device_plan(folder, 4, 2))

    assert len(expected) > 1
    # Copies go on beside the answer, which may end before the first is there.
    for _ in range(10):
        run = answer(engine, QUESTION)
        assert run.token_ids == expected
        vram = run.stats.tiers[0]
        assert vram.tier is Tier.VRAM
        if vram.hits:
            break
    assert vram.hits > 0
