"""Graphics cards, as far as the system tells without a graphics library of its own."""

from runtime.hardware.system_files import SystemFiles
from runtime.protocol.machine import DeviceReport

_AMD_VENDOR = "0x1002"


def read_gpus(files: SystemFiles) -> list[DeviceReport]:
    """Return the graphics cards; none where nothing tells about them. Never fails."""
    return [*_nvidia_cards(), *_amd_cards(files)]


def _nvidia_cards() -> list[DeviceReport]:
    """Return NVIDIA's cards by NVML, the library of their driver."""
    try:
        import pynvml
    except ImportError:
        return []
    try:
        pynvml.nvmlInit()
        try:
            return [_nvidia_card(index) for index in range(pynvml.nvmlDeviceGetCount())]
        finally:
            pynvml.nvmlShutdown()
    except (pynvml.NVMLError, OSError):
        return []


def _nvidia_card(index: int) -> DeviceReport:
    import pynvml

    handle = pynvml.nvmlDeviceGetHandleByIndex(index)
    name = pynvml.nvmlDeviceGetName(handle)
    memory = pynvml.nvmlDeviceGetMemoryInfo(handle)
    return DeviceReport(
        device=f"cuda:{index}",
        name=name.decode("utf-8", "replace") if isinstance(name, bytes) else str(name),
        total_bytes=int(memory.total),
        free_bytes=int(memory.free),
        note="NVML",
    )


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
            )
        )
    return cards
