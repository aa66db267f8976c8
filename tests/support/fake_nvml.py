"""NVIDIA's management library as it would tell of two cards."""

import types

from tests.support.fake_systems import GIB


def fake_nvml(**changes: object) -> types.ModuleType:
    """Return a library that tells of a new card with 8 GiB and an old one with 9."""

    class NVMLError(Exception):
        pass

    def refuse(*_: object) -> None:
        raise NVMLError

    module = types.ModuleType("pynvml")
    members: dict[str, object] = {
        "NVMLError": NVMLError,
        "nvmlInit": lambda: None,
        "nvmlShutdown": lambda: None,
        "nvmlDeviceGetCount": lambda: 2,
        "nvmlDeviceGetHandleByIndex": lambda index: index,
        "nvmlDeviceGetName": lambda handle: b"Old Card" if handle else "New Card",
        "nvmlDeviceGetMemoryInfo": lambda handle: types.SimpleNamespace(
            total=(8 + handle) * GIB, free=7 * GIB
        ),
        "nvmlDeviceGetUUID": lambda handle: b"GPU-bbb" if handle else "GPU-aaa",
        "nvmlDeviceGetTotalEnergyConsumption": refuse,
        "NVML_CLOCK_MEM": 2,
        "nvmlDeviceGetMaxClockInfo": lambda handle, kind: 9751,
        "nvmlDeviceGetMemoryBusWidth": lambda handle: 384,
    }
    for name, member in (members | changes).items():
        setattr(module, name, member)
    return module
