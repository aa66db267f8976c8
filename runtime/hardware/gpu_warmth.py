"""How warm NVIDIA's cards are, by the library of their driver."""

from runtime.hardware.nvml_cards import close_cards, open_cards


class GpuWarmth:
    """The sensors of all cards; of none where there is no such library.

    The library stays open until ``close``, because opening it takes longer than reading.

    Threads: any may read; ``close`` must not run beside it.
    """

    def __init__(self) -> None:
        self._handles = open_cards()

    def read(self) -> float | None:
        """Return the degrees Celsius of the warmest card, None where none answers."""
        told = [each for handle in self._handles if (each := _degrees(handle)) is not None]
        return max(told, default=None)

    def close(self) -> None:
        """Close the library; may be called twice."""
        if self._handles:
            self._handles = []
            close_cards()


def _degrees(handle: object) -> float | None:
    import pynvml

    try:
        return float(pynvml.nvmlDeviceGetTemperature(handle, pynvml.NVML_TEMPERATURE_GPU))
    except pynvml.NVMLError:
        return None
