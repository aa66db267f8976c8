"""What every device promises, the simulated one and torch's; torch's processor stands in for a card
so that the same code runs everywhere."""

from collections.abc import Callable, Iterator

import pytest
import torch

from runtime.device.base import Device
from runtime.device.simulated import SimulatedDevice
from runtime.device.torch_device import TorchDevice
from runtime.kernels.dispatch import choose_kernels
from runtime.kernels.reference import ReferenceKernels
from tests.support.device_checks import ALL_CHECKS, BUDGET_BYTES, check_experts_here_and_there
from tests.support.pretended_queues import PretendedModule


def simulated() -> Device:
    return SimulatedDevice("simulated:0", "a card", BUDGET_BYTES, 1e12)


def ordinary_staging(num_bytes: int, *, is_locked: bool) -> torch.Tensor:
    """Nothing can be page-locked without a card."""
    del is_locked
    return torch.empty(num_bytes, dtype=torch.uint8)


def torch_processor() -> Device:
    return TorchDevice("torch:0", BUDGET_BYTES, torch.device("cpu"))


def with_queues() -> Device:
    return TorchDevice("xpu:0", BUDGET_BYTES, torch.device("cpu"), PretendedModule())


@pytest.fixture(params=[simulated, torch_processor, with_queues])
def device(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Device]:
    monkeypatch.setattr("runtime.device.torch_device.staging_of", ordinary_staging)
    make: Callable[[], Device] = request.param
    made = make()
    yield made
    made.close()


@pytest.mark.parametrize("check", ALL_CHECKS, ids=lambda check: check.__name__)
def test_device_keeps_its_promise(device: Device, check: Callable[[Device], None]) -> None:
    check(device)


@pytest.mark.parametrize("kernels", [choose_kernels(), ReferenceKernels()], ids=lambda k: k.name)
def test_device_experts_here_and_there_give_what_the_host_gives(
    device: Device, kernels: ReferenceKernels
) -> None:
    check_experts_here_and_there(device, kernels)
