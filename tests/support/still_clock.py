"""A clock for paths that are made up."""


class StillClock:
    """Time that passes only where somebody sleeps."""

    def __init__(self) -> None:
        self.time_s = 100.0

    def now_s(self) -> float:
        """Return its seconds."""
        return self.time_s

    def sleep(self, seconds: float) -> None:
        """Let so much pass."""
        assert seconds > 0
        self.time_s += seconds
