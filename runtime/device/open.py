"""The one place that chooses how a device is driven."""

import os
from collections.abc import Mapping

from runtime.device.base import Device
from runtime.device.modules import module_of
from runtime.device.simulated import SimulatedDevice
from runtime.device.torch_device import TorchDevice
from runtime.errors import LarderError
from runtime.hardware.profile import profile_of
from runtime.protocol.errors import ErrorCode

CPU = "cpu"


def open_device(device: str, budget_bytes: int, env: Mapping[str, str] | None = None) -> Device:
    """Return a device of this PC, or a simulated one of the machine profile in force.

    Raises ``VRAM_NOT_THERE`` for one that is neither.
    """
    profile = profile_of(os.environ if env is None else env)
    for simulated in profile.devices if profile is not None else ():
        if simulated.device == device:
            return SimulatedDevice(device, simulated.name, budget_bytes, simulated.link_bytes_per_s)
    kind, _, index = device.partition(":")
    module = module_of(kind)
    if module is None or not (index.isdecimal() and int(index) < module.device_count()):
        raise LarderError(ErrorCode.VRAM_NOT_THERE, device=device)
    return TorchDevice(device, budget_bytes)
