"""Telemetry is asked for while somebody looks, and only then."""

from app.state.session import Session

INTERVAL_S = 0.1


class TelemetryWatch:
    """Keeps the set of those who look at measurements, and tells the session when it matters.

    Threads: window thread.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._watchers: set[str] = set()
        self._is_window_seen = True
        self._is_watching = False

    @property
    def is_watching(self) -> bool:
        """Whether samples are asked for."""
        return self._is_watching

    def set_watching(self, watcher: str, *, is_watching: bool) -> None:
        """Take note that a part of the window shows measurements, or does not any more."""
        if is_watching:
            self._watchers.add(watcher)
        else:
            self._watchers.discard(watcher)
        self._tell()

    def set_window_seen(self, *, is_seen: bool) -> None:
        """Take note that the window is on the screen, or minimised."""
        self._is_window_seen = is_seen
        self._tell()

    def _tell(self) -> None:
        is_watching = bool(self._watchers) and self._is_window_seen
        if is_watching != self._is_watching:
            self._is_watching = is_watching
            self._session.watch_telemetry(INTERVAL_S if is_watching else 0.0)
