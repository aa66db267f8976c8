"""NVIDIA's cards by the library of their driver, which stays open while they are read."""


def open_cards() -> list[object]:
    """Return the handles of all cards; with none, the library is not open.

    Opening takes longer than reading. Who gets handles calls ``close_cards`` in the end.
    """
    try:
        import pynvml
    except ImportError:
        return []
    try:
        pynvml.nvmlInit()
    except (pynvml.NVMLError, OSError):
        return []
    handles: list[object] = []
    try:
        handles = [
            pynvml.nvmlDeviceGetHandleByIndex(index) for index in range(pynvml.nvmlDeviceGetCount())
        ]
    except pynvml.NVMLError:
        handles = []
    if not handles:
        pynvml.nvmlShutdown()
    return handles


def close_cards() -> None:
    """Close the library."""
    import pynvml

    pynvml.nvmlShutdown()
