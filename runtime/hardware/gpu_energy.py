"""Energy counters of NVIDIA's cards, by the library of their driver."""


class GpuEnergy:
    """The counters of all cards that have one; of none where there is no such library.

    The library stays open until ``close``, because opening it takes longer than reading.

    Threads: any may read; ``close`` must not run beside it.
    """

    def __init__(self) -> None:
        self._handles: dict[str, object] = {}
        try:
            import pynvml
        except ImportError:
            return
        try:
            pynvml.nvmlInit()
        except (pynvml.NVMLError, OSError):
            return
        try:
            handles = {
                f"nvml:{index}": pynvml.nvmlDeviceGetHandleByIndex(index)
                for index in range(pynvml.nvmlDeviceGetCount())
            }
        except pynvml.NVMLError:
            handles = {}
        self._handles = {
            source: handle for source, handle in handles.items() if _energy_uj(handle) is not None
        }
        if not self._handles:
            pynvml.nvmlShutdown()

    def read(self) -> dict[str, int]:
        """Return the counters of now in microjoules; cards that do not answer are left out."""
        return {
            source: value
            for source, handle in self._handles.items()
            if (value := _energy_uj(handle)) is not None
        }

    def close(self) -> None:
        """Close the library; may be called twice."""
        if self._handles:
            import pynvml

            self._handles = {}
            pynvml.nvmlShutdown()


def _energy_uj(handle: object) -> int | None:
    """Return a card's energy since its driver was loaded, None if it does not count it."""
    import pynvml

    try:
        return int(pynvml.nvmlDeviceGetTotalEnergyConsumption(handle)) * 1000
    except pynvml.NVMLError:
        return None
