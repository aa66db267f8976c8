"""Graphics cards, as far as the system tells without a graphics library of its own."""

import os
from collections.abc import Mapping, Sequence

import msgspec
import psutil

from runtime.hardware.system_files import SystemFiles
from runtime.protocol.machine import DeviceReport, Measured, MemoryHolder

VISIBLE_VARIABLE = "CUDA_VISIBLE_DEVICES"
"""CUDA's own list of the cards that a process sees, which also numbers them anew."""
AMD_NOTE = "used once the engine has seen it; one whose memory is the PC's RAM never"
_AMD_VENDOR = "0x1002"
_TRANSFERS_PER_CLOCK = 2
_MAX_HOLDERS = 16


def read_gpus(files: SystemFiles, env: Mapping[str, str]) -> list[DeviceReport]:
    """Return the graphics cards; none where nothing tells about them. Never fails."""
    return [*_nvidia_cards(env.get(VISIBLE_VARIABLE)), *_amd_cards(files)]


def mark_used(
    devices: Sequence[DeviceReport], torch_kinds: frozenset[str] = frozenset()
) -> list[DeviceReport]:
    """Return the devices with the one that plans use marked, and why the others are not.

    It is the first that the engine can drive: a simulated one, or a card of a kind that torch was
    built for.
    """
    driven = [
        device
        for device in devices
        if device.is_simulated or device.device.partition(":")[0] in torch_kinds
    ]
    marked: list[DeviceReport] = []
    for device in devices:
        if driven and device is driven[0]:
            marked.append(msgspec.structs.replace(device, is_used=True))
        elif device in driven:
            marked.append(noted(device, "another device is used"))
        elif device.device.startswith("cuda:"):
            marked.append(noted(device, "the installed engine was built without CUDA"))
        elif device.device.startswith("xpu:"):
            marked.append(noted(device, "the installed engine was built without XPU"))
        elif device.device.startswith("amd:") and "cuda" in torch_kinds:
            # ROCm's torch counts cards in its own way, and passes over what it cannot drive.
            marked.append(noted(device, AMD_NOTE))
        else:
            marked.append(noted(device, "needs an engine built for ROCm"))
    return marked


def noted(device: DeviceReport, note: str) -> DeviceReport:
    """Return a device with one note more."""
    joined = f"{device.note}; {note}" if device.note else note
    return msgspec.structs.replace(device, note=joined)


def _nvidia_cards(visible: str | None) -> list[DeviceReport]:
    """Return NVIDIA's cards by NVML, the library of their driver, numbered as CUDA does."""
    try:
        import pynvml
    except ImportError:
        return []
    try:
        pynvml.nvmlInit()
        try:
            indices = range(pynvml.nvmlDeviceGetCount())
            shown = indices if visible is None else _visible(visible, indices)
            return [_nvidia_card(index, number) for number, index in enumerate(shown)]
        finally:
            pynvml.nvmlShutdown()
    except (pynvml.NVMLError, OSError):
        return []


def _visible(listed: str, indices: range) -> list[int]:
    """Return which cards CUDA shows: those listed, up to the first entry that is none."""
    shown: list[int] = []
    for entry in (part.strip() for part in listed.split(",")):
        if entry.isdecimal():
            found = int(entry) if int(entry) in indices else None
        else:
            found = next((index for index in indices if _has_uuid(index, entry)), None)
        if found is None:
            break
        shown.append(found)
    return shown


def _has_uuid(index: int, beginning: str) -> bool:
    import pynvml

    uuid = _text(pynvml.nvmlDeviceGetUUID(pynvml.nvmlDeviceGetHandleByIndex(index)))
    return bool(beginning) and uuid.startswith(beginning)


def _nvidia_card(index: int, number: int) -> DeviceReport:
    import pynvml

    handle = pynvml.nvmlDeviceGetHandleByIndex(index)
    memory = pynvml.nvmlDeviceGetMemoryInfo(handle)
    return DeviceReport(
        device=f"cuda:{number}",
        name=_text(pynvml.nvmlDeviceGetName(handle)),
        total_bytes=int(memory.total),
        free_bytes=int(memory.free),
        read_bytes_per_s=_read_rate(handle),
        note="NVML",
        held_by=_holders(handle),
    )


def _holders(handle: object) -> list[MemoryHolder]:
    """Return the programs on a card, the largest first; this process is not another one."""
    import pynvml

    held: dict[int, int | None] = {}
    for name in (
        "nvmlDeviceGetComputeRunningProcesses",
        "nvmlDeviceGetGraphicsRunningProcesses",
    ):
        try:
            for process in getattr(pynvml, name)(handle):
                held[int(process.pid)] = process.usedGpuMemory
        except (pynvml.NVMLError, AttributeError):
            continue
    held.pop(os.getpid(), None)
    holders = [
        MemoryHolder(
            name=_process_name(number),
            process_id=number,
            held_bytes=None if num_bytes is None else int(num_bytes),
        )
        for number, num_bytes in held.items()
    ]
    return sorted(holders, key=lambda holder: -(holder.held_bytes or 0))[:_MAX_HOLDERS]


def _process_name(number: int) -> str:
    try:
        return psutil.Process(number).name()
    except (psutil.Error, ValueError):
        # Of another person, or of another container.
        return f"process {number}"


def _read_rate(handle: object) -> Measured | None:
    """Return what a card's memory can read at most, by its clock and width; None if not told."""
    import pynvml

    try:
        clock_mhz = pynvml.nvmlDeviceGetMaxClockInfo(handle, pynvml.NVML_CLOCK_MEM)
        width_bits = pynvml.nvmlDeviceGetMemoryBusWidth(handle)
    except pynvml.NVMLError:
        return None
    rate = _TRANSFERS_PER_CLOCK * clock_mhz * 1e6 * width_bits / 8
    return Measured(value=rate, method="NVML clock and width") if rate > 0 else None


def _text(value: object) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _amd_cards(files: SystemFiles) -> list[DeviceReport]:
    """Return AMD's cards by the files of their kernel driver."""
    cards: list[DeviceReport] = []
    for entry in files.folders("/sys/class/drm", "card[0-9]*"):
        folder = f"/sys/class/drm/{entry}/device"
        total = files.number(f"{folder}/mem_info_vram_total")
        if files.text(f"{folder}/vendor").strip() != _AMD_VENDOR or not total:
            continue
        used = files.number(f"{folder}/mem_info_vram_used") or 0
        cards.append(
            DeviceReport(
                device=f"amd:{len(cards)}",
                name=files.text(f"{folder}/product_name").strip() or "AMD graphics",
                total_bytes=total,
                free_bytes=max(0, total - used),
                note="amdgpu",
                shared_bytes=files.number(f"{folder}/mem_info_gtt_total") or 0,
            )
        )
    return cards
