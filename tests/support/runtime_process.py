"""A real background process as the other side of its channel."""

import contextlib
import os
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

from runtime.protocol.framing import FrameSplitter, decode_event, encode
from runtime.protocol.messages import (
    AnyCommand,
    AnyEvent,
    CommandFailed,
    Event,
    LoadModel,
    ModelLoaded,
    ModelPlanned,
    OpenSession,
    PlanModel,
    RuntimeFailed,
    SessionOpened,
)
from runtime.protocol.model import LoadedModel
from runtime.protocol.plan import PlacementPlan
from runtime.protocol.values import Budgets
from runtime.protocol.version import PROTOCOL_VERSION

ROOT = Path(__file__).resolve().parents[2]
TIMEOUT_S = 30.0
"""How long a single event may take; far more than it does."""

_Kind = TypeVar("_Kind", bound=Event)


class RuntimeProcess:
    """The runtime, with the scripted engine unless told otherwise, as the window starts it."""

    def __init__(self, folder: Path, *arguments: str, command: list[str] | None = None) -> None:
        self.log_path = folder / "runtime.log"
        self.process = subprocess.Popen(
            command or service_command(self.log_path, *arguments),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=ROOT,
            bufsize=0,
        )
        self._splitter = FrameSplitter()
        self._payloads: list[bytes] = []

    def send(self, command: AnyCommand) -> None:
        """Write a command."""
        self.send_bytes(encode(command))

    def send_bytes(self, data: bytes) -> None:
        """Write whatever there is to be written."""
        assert self.process.stdin is not None
        self.process.stdin.write(data)

    def next_event(self) -> AnyEvent | None:
        """Return the next event, None at the end of the channel."""
        assert self.process.stdout is not None
        while not self._payloads:
            ready, _, _ = select.select([self.process.stdout], [], [], TIMEOUT_S)
            assert ready, "the runtime says nothing"
            data = os.read(self.process.stdout.fileno(), 65536)
            if not data:
                return None
            self._payloads += self._splitter.feed(data)
        return decode_event(self._payloads.pop(0))

    def wait_for(self, kind: type[_Kind]) -> _Kind:
        """Return the next event of a kind; fail at once when anything else failed."""
        event: Event | None
        while (event := self.next_event()) is not None:
            if isinstance(event, kind):
                return event
            assert not isinstance(event, CommandFailed | RuntimeFailed), event.error
        raise AssertionError(f"the channel ended before {kind.__name__}")

    def rest(self) -> list[AnyEvent]:
        """Return all events up to the end of the channel."""
        events = []
        while (event := self.next_event()) is not None:
            events.append(event)
        return events

    def open(self) -> SessionOpened:
        """Exchange the first frames."""
        self.send(OpenSession(request_id=1, protocol_version=PROTOCOL_VERSION, client_name="test"))
        event = self.next_event()
        assert isinstance(event, SessionOpened)
        return event

    def plans(
        self, folder: Path, budgets: Budgets | None = None, context_tokens: int = 0
    ) -> list[PlacementPlan]:
        """Return the plans of a model."""
        self.send(
            PlanModel(
                request_id=2,
                folder=str(folder),
                budgets=budgets or Budgets(),
                context_tokens=context_tokens,
            )
        )
        return list(self.wait_for(ModelPlanned).plans)

    def load(self, plan: PlacementPlan) -> LoadedModel:
        """Load a model by one of its plans."""
        self.send(LoadModel(request_id=3, plan=plan))
        return self.wait_for(ModelLoaded).model

    def load_first(self, folder: Path) -> LoadedModel:
        """Load a model by the first of its plans."""
        return self.load(self.plans(folder)[0])

    def close_input(self) -> None:
        """Close the channel towards the runtime."""
        assert self.process.stdin is not None
        self.process.stdin.close()

    def wait(self, timeout_s: float = TIMEOUT_S) -> int:
        """Return the exit status of the process, which has to end in time."""
        return self.process.wait(timeout_s)

    def log(self) -> str:
        """Return what the log holds."""
        return self.log_path.read_text(encoding="utf-8")


def service_command(log_path: Path, *arguments: str) -> list[str]:
    """Return the command line of a runtime with the scripted engine."""
    return [
        *(sys.executable, "-m", "runtime.service"),
        *("--engine", "scripted", "--log", str(log_path), *arguments),
    ]


@contextlib.contextmanager
def running_runtime(
    folder: Path, *arguments: str, command: list[str] | None = None
) -> Iterator[RuntimeProcess]:
    """Start a runtime and see that it is gone afterwards."""
    runtime = RuntimeProcess(folder, *arguments, command=command)
    try:
        yield runtime
    finally:
        runtime.process.kill()
        runtime.process.wait()
        for pipe in (runtime.process.stdin, runtime.process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()


def is_alive(process_id: int) -> bool:
    """Whether a process exists and is not merely waiting to be collected."""
    try:
        status = Path(f"/proc/{process_id}/stat").read_text(encoding="utf-8")
    except (FileNotFoundError, ProcessLookupError):
        return False
    return status.rpartition(")")[2].split()[0] not in {"Z", "X"}


def wait_until_gone(process_id: int, timeout_s: float) -> float:
    """Return the seconds until a process that is not our child has ended; fail when it does not."""
    started_s = time.monotonic()
    try:
        descriptor = os.pidfd_open(process_id)
    except ProcessLookupError:
        return 0.0
    try:
        ready, _, _ = select.select([descriptor], [], [], timeout_s)
    finally:
        os.close(descriptor)
    assert ready, f"process {process_id} is still there after {timeout_s} s"
    return time.monotonic() - started_s
