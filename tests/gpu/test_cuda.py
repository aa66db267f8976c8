"""A real accelerator: the contract of devices, and the engine on it."""

import os
from collections.abc import Callable, Iterator

import pytest
import torch

from runtime.device.base import Device
from runtime.device.cards import see_cards
from runtime.device.modules import KINDS, module_of
from runtime.device.torch_device import TorchDevice
from runtime.engine.base import CancelToken
from runtime.generate.engine import TieredEngine
from runtime.hardware.cards import MAX_GAP_RATIO, with_seen
from runtime.hardware.gpus import read_gpus
from runtime.hardware.system_files import SystemFiles
from runtime.kernels.dispatch import choose_kernels
from runtime.kernels.reference import ReferenceKernels
from runtime.protocol.chat import SamplingSettings
from runtime.protocol.plan import PlacementPlan
from tests.support.device_checks import ALL_CHECKS, BUDGET_BYTES, check_experts_here_and_there
from tests.support.engine_runs import answer, ignore_load_progress, user
from tests.support.hand_made_plans import device_plan, exact_plan
from tests.support.tiny_checkpoints import tiny_checkpoint
from tests.support.tiny_variants import VARIANTS

pytestmark = pytest.mark.gpu
KIND = next((kind for kind in KINDS if module_of(kind) is not None), KINDS[0])
CARD = f"{KIND}:0"
LONG = SamplingSettings(temperature=0.0, max_tokens=40)
QUESTION = [user("What is the capital of France?")]


@pytest.fixture
def device() -> Iterator[Device]:
    card = TorchDevice(CARD, BUDGET_BYTES)
    yield card
    card.close()


def ids_of(plan: PlacementPlan) -> tuple[list[int], int]:
    """Return the tokens of an answer, and the look-ups that the device answered."""
    engine = TieredEngine()
    engine.load(plan, ignore_load_progress, CancelToken())
    assert engine.wait_filled(60)
    run = answer(engine, QUESTION)
    engine.close()
    return run.token_ids, run.stats.tiers[0].hits


@pytest.mark.parametrize("check", ALL_CHECKS, ids=lambda check: check.__name__)
def test_cuda_device_keeps_its_promise(device: Device, check: Callable[[Device], None]) -> None:
    check(device)


def test_cuda_card_is_seen_by_torch_and_compared_with_nvml(device: Device) -> None:
    (seen, *_) = see_cards(CARD)
    told = read_gpus(SystemFiles(), os.environ)

    card = with_seen(told, [seen])[0]

    assert (seen.device, seen.name) == (CARD, device.name)
    assert seen.free_bytes is not None
    assert 0 < seen.free_bytes <= seen.total_bytes
    assert card.total_bytes <= seen.total_bytes * (1 + MAX_GAP_RATIO)
    assert "torch" in card.note


@pytest.mark.parametrize("kernels", [choose_kernels(), ReferenceKernels()], ids=lambda k: k.name)
def test_cuda_experts_here_and_there_give_what_the_host_gives(
    device: Device, kernels: ReferenceKernels
) -> None:
    check_experts_here_and_there(device, kernels)


@pytest.mark.parametrize("name", VARIANTS)
@pytest.mark.parametrize("vram_slots", [0, 2, 4])
def test_cuda_engine_answers_as_the_processor_does(
    tmp_path_factory: pytest.TempPathFactory, name: str, vram_slots: int
) -> None:
    """Between processor and card results differ by rounding; a tiny model's choice does not."""
    folder = tiny_checkpoint(tmp_path_factory.getbasetemp() / "tiny-checkpoints", name)
    expected, _ = ids_of(exact_plan(folder))

    found, device_hits = ids_of(device_plan(folder, 4, vram_slots, CARD))

    assert found == expected
    assert (device_hits > 0) == (vram_slots > 0)


@pytest.mark.parametrize("name", ["qwen3_moe", "gpt_oss", "deepseek_v2"])
def test_cuda_recorded_layers_answer_as_those_computed_piece_by_piece(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    folder = tiny_checkpoint(tmp_path_factory.getbasetemp() / "tiny-checkpoints", name)
    answers = []
    for is_recorded in (True, False):
        if not is_recorded:
            monkeypatch.setattr("runtime.device.torch_device.recorder_of", lambda device: None)
        engine = TieredEngine()
        engine.load(device_plan(folder, 4, 2, CARD), ignore_load_progress, CancelToken())
        answers.append(answer(engine, QUESTION, LONG).token_ids)
        graphs = engine._parts.home.graphs  # type: ignore[union-attr]
        if graphs is not None:
            assert graphs.failure is None
            assert graphs.num_recorded > 0
        engine.close()

    assert answers[0] == answers[1]


def test_cuda_keys_and_values_in_ram_answer_as_those_on_the_card(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder = tiny_checkpoint(tmp_path_factory.getbasetemp() / "tiny-checkpoints", "gpt_oss")
    expected, _ = ids_of(device_plan(folder, 4, 2, CARD))

    found, _ = ids_of(device_plan(folder, 4, 2, CARD, ram_kv_layers=(0,)))

    assert found == expected


def test_cuda_device_gives_its_memory_back(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tiny_checkpoint(tmp_path_factory.getbasetemp() / "tiny-checkpoints", "qwen2_moe")
    ids_of(device_plan(folder, 3, 3, CARD))
    before = torch.get_device_module(KIND).memory_allocated()

    ids_of(device_plan(folder, 3, 3, CARD))

    assert torch.get_device_module(KIND).memory_allocated() <= before
