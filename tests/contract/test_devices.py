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


def simulated() -> Device:
    return SimulatedDevice("simulated:0", "a card", BUDGET_BYTES, 1e12)


def torch_processor() -> Device:
    return TorchDevice("torch:0", BUDGET_BYTES, torch.device("cpu"))


@pytest.fixture(params=[simulated, torch_processor])
def device(request: pytest.FixtureRequest) -> Iterator[Device]:
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
