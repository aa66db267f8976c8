"""Energy counters of NVIDIA's cards, by the library of their driver."""

from runtime.hardware.nvml_cards import close_cards, open_cards


class GpuEnergy:
    """The counters of all cards that have one; of none where there is no such library.

    The library stays open until ``close``, because opening it takes longer than reading.

    Threads: any may read; ``close`` must not run beside it.
    """

    def __init__(self) -> None:
        cards = open_cards()
        self._handles = {
            f"nvml:{index}": card
            for index, card in enumerate(cards)
            if _energy_uj(card) is not None
        }
        if cards and not self._handles:
            close_cards()

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
            self._handles = {}
            close_cards()


def _energy_uj(handle: object) -> int | None:
    """Return a card's energy since its driver was loaded, None if it does not count it."""
    import pynvml

    try:
        return int(pynvml.nvmlDeviceGetTotalEnergyConsumption(handle)) * 1000
    except pynvml.NVMLError:
        return None
