"""Cards of every kind that torch drives, by stand-ins: seen, opened, copied to, given back."""

import types

import pytest
import torch

from runtime.device.cards import see_cards
from runtime.device.faults import fault_of
from runtime.device.modules import KINDS, module_of
from runtime.device.open import open_device
from runtime.device.torch_device import TorchDevice
from runtime.errors import LarderError
from runtime.kernels.dispatch import choose_device_kernels
from runtime.protocol.errors import ErrorCode
from runtime.protocol.plan import MemoryPart
from runtime.spec.footprint import STAGING_BYTES
from tests.support.pretended_queues import FREE_BYTES, TOTAL_BYTES, PretendedModule

PROCESSOR = torch.device("cpu")


@pytest.fixture(autouse=True)
def _without_locking(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing can be page-locked here, which is no matter of these tests."""
    monkeypatch.setattr(
        "runtime.device.torch_device.staging_of",
        lambda num_bytes, *, is_locked: torch.empty(num_bytes, dtype=torch.uint8),
    )


def use_modules(monkeypatch: pytest.MonkeyPatch, **modules: object) -> None:
    """Let torch have these modules of accelerators, and none of other kinds."""
    absent = types.SimpleNamespace(is_available=lambda: False)
    for kind in KINDS:
        monkeypatch.setattr(f"runtime.device.modules.torch.{kind}", modules.get(kind, absent))


def test_cards_of_all_kinds_are_seen_and_only_the_used_one_is_asked_for_its_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    use_modules(monkeypatch, cuda=PretendedModule(), xpu=PretendedModule(num_cards=2))

    cards = see_cards("xpu:1")

    assert [(card.device, card.name, card.total_bytes) for card in cards] == [
        ("cuda:0", "Some Arc", TOTAL_BYTES),
        ("xpu:0", "Some Arc", TOTAL_BYTES),
        ("xpu:1", "Some Arc", TOTAL_BYTES),
    ]
    assert [card.free_bytes for card in cards] == [None, None, FREE_BYTES]


def test_what_shares_the_processors_memory_is_no_card(monkeypatch: pytest.MonkeyPatch) -> None:
    use_modules(monkeypatch, xpu=PretendedModule(is_integrated=True))

    assert see_cards("cpu") == []


@pytest.mark.parametrize("kind", KINDS)
def test_card_of_each_kind_is_opened_and_one_that_is_not_there_refused(
    monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    use_modules(monkeypatch, **{kind: PretendedModule()})
    opened: list[tuple[str, int]] = []
    monkeypatch.setattr("runtime.device.open.TorchDevice", lambda *asked: opened.append(asked))

    open_device(f"{kind}:0", 7, {})

    assert opened == [(f"{kind}:0", 7)]
    for device in (f"{kind}:1", f"{kind}:x", "mps:0", "amd:0"):
        with pytest.raises(LarderError) as refused:
            open_device(device, 7, {})
        assert refused.value.code is ErrorCode.VRAM_NOT_THERE


def test_kinds_without_memory_of_their_own_have_no_module() -> None:
    assert module_of("mps") is None
    assert module_of("cpu") is None
    assert module_of("xpu") is None or torch.xpu.is_available()


def test_copies_fill_a_half_again_only_when_it_has_left() -> None:
    module = PretendedModule()
    device = TorchDevice("xpu:0", 4 * STAGING_BYTES, PROCESSOR, module)
    arena = device.arena(MemoryPart.EXPERTS, 1, 3 * STAGING_BYTES)
    source = torch.arange(3 * STAGING_BYTES, dtype=torch.int64).to(torch.uint8)

    device.copy(source, arena.tensor(0)).wait()

    assert torch.equal(arena.tensor(0), source)
    # Six pieces through two halves: never more than two on their way.
    assert module.most_open == 2
    assert module.num_open == 2
    assert module.num_synchronised == 1
    device.close()


def test_device_of_another_kind_is_named_told_of_and_driven_by_torch() -> None:
    module = PretendedModule()
    device = TorchDevice("xpu:0", 1 << 20, PROCESSOR, module)

    assert (device.name, device.free_bytes) == ("Some Arc", FREE_BYTES)
    assert device.launch(lambda: 5) == 5
    assert module.num_launches == 1
    assert device.recorder is None
    assert choose_device_kernels(torch.device("xpu:0")).name == "reference"
    device.close()
    assert module.num_trimmed == 1


@pytest.mark.parametrize(
    "words", ["CUDA error: unknown", "HIP error: 719", "level_zero backend: UR_RESULT_ERROR_LOST"]
)
def test_errors_of_every_kind_mean_a_lost_card(words: str) -> None:
    fault = fault_of(RuntimeError(words), "xpu:0")

    assert fault is not None
    assert fault.code is ErrorCode.DEVICE_LOST
