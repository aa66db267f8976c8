"""Frames to Qt signals and back: request ids, the handshake, silence and every malformed frame."""

import dataclasses
import time
from collections.abc import Callable

from PySide6.QtCore import QObject, QTimer, Signal

from app.link.process import ProcessOutcome, RuntimeProcess, RuntimeState
from runtime.protocol.errors import ErrorCode, ErrorReport, Severity
from runtime.protocol.framing import FrameError, FrameSplitter, decode_event, encode
from runtime.protocol.messages import (
    AnyCommand,
    AnyEvent,
    ClosingEvent,
    CommandFailed,
    OpenSession,
    Reply,
    RuntimeFailed,
    SessionOpened,
)
from runtime.protocol.version import PROTOCOL_VERSION

CLIENT_NAME = "larder-window"
MAX_SILENCE_S = 10.0
"""Heartbeats come every two seconds, so five are missing by then."""
MAX_START_S = 30.0
"""A cold interpreter on a slow drive may take long to its first frame."""
_TICK_S = 1.0
ReplyListener = Callable[[Reply], None]


@dataclasses.dataclass(frozen=True, slots=True)
class RuntimeEnd:
    """Why there is no runtime any more: no error exactly if the window had wanted the end."""

    error: ErrorReport | None
    outcome: ProcessOutcome


def is_closing(event: Reply) -> bool:
    """Whether an event is the last one of its command."""
    return isinstance(event, ClosingEvent)


class RuntimeClient(QObject):
    """Speaks the protocol with a child process; never blocks, restartable.

    The answers to a command go to its listener, in order, up to and with the closing one. A runtime
    that ends leaves commands unanswered: ``ended`` is their closing. Threads: window thread.
    """

    opened = Signal(object)
    """``SessionOpened``: commands may be sent."""
    event_received = Signal(object)
    """Each event that belongs to no command, and each other one before its listener gets it."""
    ended = Signal(object)
    """A ``RuntimeEnd``, once for each ``start``."""

    def __init__(
        self,
        process: RuntimeProcess,
        parent: QObject | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(parent)
        self._process = process
        self._clock = clock
        self._splitter = FrameSplitter()
        self._listeners: dict[int, ReplyListener] = {}
        self._last_id = 0
        self._is_open = False
        self._error: ErrorReport | None = None
        self._heard_s = 0.0
        self._ticked_s = 0.0
        self._watch = QTimer(self)
        self._watch.setInterval(round(_TICK_S * 1000))
        self._watch.timeout.connect(self._on_tick)
        process.bytes_received.connect(self._on_bytes)
        process.ended.connect(self._on_process_ended)

    @property
    def is_open(self) -> bool:
        """Whether the handshake is done and the runtime listens."""
        return self._is_open

    @property
    def is_stopped(self) -> bool:
        """Whether there is no child at all."""
        return self._process.state is RuntimeState.STOPPED

    def start(self) -> None:
        """Start a child and shake hands; does nothing unless stopped."""
        if not self.is_stopped:
            return
        self._splitter = FrameSplitter()
        self._error = None
        self._heard_s = self._ticked_s = self._clock()
        self._watch.start()
        self._process.start()
        self._send_now(
            lambda request_id: OpenSession(
                request_id=request_id, protocol_version=PROTOCOL_VERSION, client_name=CLIENT_NAME
            ),
            self._on_handshake,
        )

    def send(self, make: Callable[[int], AnyCommand], listener: ReplyListener) -> int | None:
        """Send the command that ``make`` returns for a new id; None if nobody listens.

        Raises ``FrameError`` for a command that is longer than a frame may be.
        """
        return self._send_now(make, listener) if self._is_open else None

    def stop(self, *, at_once: bool = False) -> None:
        """End the child, in an orderly way or by force; ``ended`` tells when it is done."""
        self._is_open = False
        self._process.stop()
        if at_once:
            self._process.kill()

    def end_now(self) -> None:
        """End the child and return when it is gone."""
        self._is_open = False
        self._process.end_now()

    def _send_now(self, make: Callable[[int], AnyCommand], listener: ReplyListener) -> int | None:
        request_id = self._last_id + 1
        frame = encode(make(request_id))
        if not self._process.send(frame):
            return None
        self._last_id = request_id
        self._listeners[request_id] = listener
        return request_id

    def _fail(self, code: ErrorCode, detail: str = "", **parameters: str | float) -> None:
        """Give up on a child that cannot be trusted; what comes first is the cause."""
        self._give_up(
            ErrorReport(code=code, severity=Severity.RUNTIME, parameters=parameters, detail=detail)
        )

    def _give_up(self, error: ErrorReport) -> None:
        if self._error is None:
            self._error = error
        self._is_open = False
        self._process.kill()

    def _on_bytes(self, data: bytes) -> None:
        self._heard_s = self._clock()
        try:
            for payload in self._splitter.feed(data):
                if self._error is not None:
                    return
                self._on_event(decode_event(payload))
        except FrameError as error:
            self._fail(ErrorCode.FRAME_INVALID, reason=str(error))

    def _on_event(self, event: AnyEvent) -> None:
        if isinstance(event, RuntimeFailed):
            # The process ends by itself after it; this is why.
            self._error = event.error
        self.event_received.emit(event)
        if isinstance(event, Reply):
            listener = self._listeners.get(event.request_id)
            if is_closing(event):
                self._listeners.pop(event.request_id, None)
            if listener is not None:
                listener(event)

    def _on_handshake(self, event: Reply) -> None:
        if isinstance(event, CommandFailed):
            self._give_up(event.error)
        elif not isinstance(event, SessionOpened):
            self._fail(ErrorCode.FRAME_INVALID, reason=f"{type(event).__name__} came first")
        elif event.protocol_version != PROTOCOL_VERSION:
            self._fail(
                ErrorCode.PROTOCOL_MISMATCHED,
                found=event.protocol_version,
                expected=PROTOCOL_VERSION,
            )
        elif self._process.state is RuntimeState.RUNNING:
            self._is_open = True
            self.opened.emit(event)

    def _on_tick(self) -> None:
        now_s = self._clock()
        was_asleep = now_s - self._ticked_s > 3 * _TICK_S
        self._ticked_s = now_s
        if was_asleep:
            # This process did not run for a while (sleep, debugger): what the runtime sent in the
            # meantime is still unread, so its silence is not known.
            self._heard_s = now_s
        silence_s = now_s - self._heard_s
        max_silence_s = MAX_SILENCE_S if self._is_open else MAX_START_S
        is_watched = self._process.state is RuntimeState.RUNNING and self._error is None
        if is_watched and silence_s > max_silence_s:
            self._fail(ErrorCode.RUNTIME_SILENT, seconds=round(silence_s))

    def _on_process_ended(self, outcome: ProcessOutcome) -> None:
        self._watch.stop()
        self._is_open = False
        self._listeners.clear()
        self.ended.emit(RuntimeEnd(self._cause(outcome), outcome))

    def _cause(self, outcome: ProcessOutcome) -> ErrorReport | None:
        """Return why the runtime is gone; None if that was wanted."""
        if outcome.was_expected:
            return None
        if self._error is not None:
            return self._error
        if outcome.exit_status is None:
            code, parameters = ErrorCode.RUNTIME_NOT_STARTED, {"reason": outcome.reason}
            return ErrorReport(code=code, severity=Severity.RUNTIME, parameters=dict(parameters))
        return ErrorReport(
            code=ErrorCode.RUNTIME_ENDED,
            severity=Severity.RUNTIME,
            parameters={"exit_status": outcome.exit_status, "reason": outcome.reason},
            detail="\n".join(outcome.log_lines),
            log_reference=outcome.log_path,
        )
