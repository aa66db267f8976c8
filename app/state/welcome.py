"""The first start: what this is, what the PC has, the first model; shown once."""

from collections.abc import Sequence

from PySide6.QtCore import QObject, Signal

from app.link.client import RuntimeClient
from app.state.session import Session
from app.state.settings import SettingsState
from runtime.protocol.machine import MachineReport
from runtime.protocol.messages import DescribeMachine, MachineDescribed, Reply

NUM_STEPS = 3


class Welcome(QObject):
    """Where a person is in the first start, and what was measured of the PC meanwhile.

    Threads: window thread.
    """

    changed = Signal()
    ended = Signal()
    """The person is through, or goes on without; it is not shown again."""

    def __init__(
        self,
        client: RuntimeClient,
        session: Session,
        settings: SettingsState,
        folders: Sequence[str],
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._client = client
        self._session = session
        self._settings = settings
        self._folders = list(folders)
        self._measured: MachineReport | None = None
        self._is_failed = False
        self._is_open = False
        self._step = 0
        client.opened.connect(self._measure)
        session.changed.connect(self._on_session_changed)

    @property
    def is_open(self) -> bool:
        """Whether it is shown."""
        return self._is_open

    @property
    def step(self) -> int:
        """Which of the ``NUM_STEPS`` steps is shown, from 0."""
        return self._step

    @property
    def is_measured(self) -> bool:
        """Whether nothing more will become known: all was measured, or could not be."""
        return self._measured is not None or self._is_failed

    @property
    def machine(self) -> MachineReport | None:
        """What is known of this PC so far."""
        return self._measured or self._session.machine

    def begin(self) -> None:
        """Show the first step; measure as soon as the runtime answers."""
        self._is_open = True
        self._step = 0
        self._measure()
        self.changed.emit()

    def go(self, step: int) -> None:
        """Show another step; behind the last it ends."""
        if step >= NUM_STEPS:
            self.finish()
        elif self._is_open:
            self._step = max(0, step)
            self.changed.emit()

    def finish(self) -> None:
        """Be shown no more, now and at later starts."""
        if self._is_open:
            self._is_open = False
            self._settings.change(is_welcomed=True)
            self.ended.emit()

    def _measure(self) -> None:
        if self._is_open and self._measured is None:
            self._client.send(
                lambda request_id: DescribeMachine(request_id=request_id, folders=self._folders),
                self._on_described,
            )

    def _on_described(self, event: Reply) -> None:
        if isinstance(event, MachineDescribed):
            self._measured = event.machine
        else:
            self._is_failed = True
        self._on_session_changed()

    def _on_session_changed(self) -> None:
        if self._is_open:
            self.changed.emit()
