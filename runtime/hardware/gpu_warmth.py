"""How warm NVIDIA's cards are, by the library of their driver."""


class GpuWarmth:
    """The sensors of all cards; of none where there is no such library.

    The library stays open until ``close``, because opening it takes longer than reading.

    Threads: any may read; ``close`` must not run beside it.
    """

    def __init__(self) -> None:
        self._handles: list[object] = []
        try:
            import pynvml
        except ImportError:
            return
        try:
            pynvml.nvmlInit()
        except (pynvml.NVMLError, OSError):
            return
        try:
            self._handles = [
                pynvml.nvmlDeviceGetHandleByIndex(index)
                for index in range(pynvml.nvmlDeviceGetCount())
            ]
        except pynvml.NVMLError:
            self._handles = []
        if not self._handles:
            pynvml.nvmlShutdown()

    def read(self) -> float | None:
        """Return the degrees Celsius of the warmest card, None where none answers."""
        told = [each for handle in self._handles if (each := _degrees(handle)) is not None]
        return max(told, default=None)

    def close(self) -> None:
        """Close the library; may be called twice."""
        if self._handles:
            import pynvml

            self._handles = []
            pynvml.nvmlShutdown()


def _degrees(handle: object) -> float | None:
    import pynvml

    try:
        return float(pynvml.nvmlDeviceGetTemperature(handle, pynvml.NVML_TEMPERATURE_GPU))
    except pynvml.NVMLError:
        return None
