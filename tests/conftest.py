"""What holds for every test: no network, no real home folder, no unexpected log line."""

from __future__ import annotations

import gc
import logging
import os
import signal
import socket
import tempfile
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import coverage
import hypothesis
import pytest

ROOT = Path(__file__).resolve().parent.parent
_HOME_NAMES = ("HOME", "USERPROFILE", "LARDER_HOME")
_HOME_FOLDERS = {
    "XDG_CACHE_HOME": "cache",
    "XDG_CONFIG_HOME": "config",
    "XDG_DATA_HOME": "data",
    "XDG_STATE_HOME": "state",
    "APPDATA": "roaming",
    "LOCALAPPDATA": "local",
}
_OFFLINE = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}
_ENGLISH = {"LC_ALL": "C.UTF-8", "LANGUAGE": ""}

_UNCOUNTED = tuple(filter(None, os.environ.get("LARDER_TEST_UNCOUNTED", "").split(os.pathsep)))
"""Patterns of files with tests during which no line is counted."""

hypothesis.settings.register_profile("ci", derandomize=True, deadline=None, database=None)
hypothesis.settings.register_profile("deep", max_examples=2000, deadline=None, database=None)
hypothesis.settings.load_profile(os.environ.get("LARDER_TEST_PROFILE", "ci"))


def _home_variables(home: Path) -> dict[str, str]:
    """Every variable that decides where a program keeps its things."""
    folders = {name: str(home / part) for name, part in _HOME_FOLDERS.items()}
    return {**dict.fromkeys(_HOME_NAMES, str(home)), **folders}


def pytest_configure(config: pytest.Config) -> None:
    """Leave the real home behind before anything is collected or a wide fixture starts."""
    scratch = tempfile.TemporaryDirectory(prefix="larder-tests-")
    config.add_cleanup(scratch.cleanup)
    os.environ.update(_home_variables(Path(scratch.name)))
    os.environ.update(_OFFLINE)
    os.environ.update(_ENGLISH)
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # Started in the background of a shell: programs under test would inherit the deafness.
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish() -> None:
    """Take what is there for good out of what each later collection of garbage looks at.

    All modules and all tests stay until the end; walking them took half of a window's tests.
    """
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Leave out counting lines where the job says that a test is about something else.

    pytest-cov's own mark goes on leaving it out after a test that was skipped.
    """
    counting = coverage.Coverage.current() if is_uncounted(item.path) else None
    if counting is None:
        return (yield)
    counting.stop()
    try:
        return (yield)
    finally:
        counting.start()


def is_uncounted(path: Path, patterns: tuple[str, ...] = _UNCOUNTED) -> bool:
    """Whether a file of tests is one of those during which no line is counted."""
    return any(fnmatch(path.as_posix(), f"{ROOT.as_posix()}/{pattern}") for pattern in patterns)


@pytest.fixture
def tmp_home(tmp_path: Path) -> Path:
    """A home folder of this test's own; what the program keeps goes below it."""
    home = tmp_path / "home"
    home.mkdir(exist_ok=True)
    return home


@pytest.fixture(autouse=True)
def _own_home(tmp_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test sees or touches the home folder of whoever runs it."""
    for name, value in _home_variables(tmp_home).items():
        monkeypatch.setenv(name, value)


@pytest.fixture(scope="session")
def demo_folder() -> Path:
    """The demo model that set-up built."""
    folder = ROOT / "build" / "demo" / "larder-demo"
    assert (folder / "config.json").exists(), "the demo model is not built: run make setup"
    return folder


class NetworkUsedError(Exception):
    """A test tried to reach something outside this machine."""


def _is_local(address: object) -> bool:
    """Whether an address stays on this machine."""
    if not isinstance(address, tuple):
        return True  # a path of a Unix socket
    host = str(address[0])
    return host in ("localhost", "::1", "") or host.startswith("127.")


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection or a look-up beyond the loopback addresses fails the test."""
    connect, connect_ex, look_up = (
        socket.socket.connect,
        socket.socket.connect_ex,
        socket.getaddrinfo,
    )

    def guarded(address: object) -> None:
        if not _is_local(address):
            raise NetworkUsedError(f"a test tried to reach {address!r}")

    def guarded_connect(self: socket.socket, address: Any) -> None:
        guarded(address)
        connect(self, address)

    def guarded_connect_ex(self: socket.socket, address: Any) -> int:
        guarded(address)
        return connect_ex(self, address)

    def guarded_look_up(host: Any, *rest: Any, **named: Any) -> Any:
        guarded((host,))
        return look_up(host, *rest, **named)

    monkeypatch.setattr(socket.socket, "connect", guarded_connect)
    monkeypatch.setattr(socket.socket, "connect_ex", guarded_connect_ex)
    monkeypatch.setattr(socket, "getaddrinfo", guarded_look_up)


@dataclass(frozen=True)
class ExpectedLog:
    """A record that a test says it provokes: of this logger or one below, at least this level."""

    logger: str
    level: int

    def covers(self, record: logging.LogRecord) -> bool:
        """Whether a record is the one that was announced."""
        named = record.name == self.logger or record.name.startswith(f"{self.logger}.")
        return named and record.levelno >= self.level


_REFERENCE = "transformers."
"""The library that models are compared with warns of what their configs say; that is not ours."""


class UnexpectedLogs(logging.Handler):
    """Keeps every record of level WARNING and above that nobody announced."""

    def __init__(self, expected: list[ExpectedLog]) -> None:
        super().__init__(logging.WARNING)
        self.expected = expected
        self.unexpected: list[str] = []
        self.seen: set[ExpectedLog] = set()

    def emit(self, record: logging.LogRecord) -> None:
        matching = [entry for entry in self.expected if entry.covers(record)]
        self.seen.update(matching)
        is_remark = record.name.startswith(_REFERENCE) and record.levelno < logging.ERROR
        if not matching and not is_remark:
            self.unexpected.append(f"{record.name} {record.levelname}: {record.getMessage()}")

    def absent(self) -> list[ExpectedLog]:
        """Announced records that never came."""
        return [entry for entry in self.expected if entry not in self.seen]


def _expected_logs(node: pytest.Item) -> list[ExpectedLog]:
    """What the test's `expects_log` marks announce."""
    found = []
    for mark in node.iter_markers("expects_log"):
        level = mark.args[1] if len(mark.args) > 1 else mark.kwargs.get("level", "WARNING")
        found.append(ExpectedLog(mark.args[0], logging.getLevelNamesMapping()[level]))
    return found


@pytest.fixture(autouse=True)
def _no_unexpected_log(request: pytest.FixtureRequest) -> Iterator[None]:
    """A warning or error in the log fails the test that provoked it, unless it is announced."""
    handler = UnexpectedLogs(_expected_logs(request.node))
    logging.getLogger().addHandler(handler)
    yield
    logging.getLogger().removeHandler(handler)
    if handler.unexpected:
        pytest.fail("unexpected in the log:\n" + "\n".join(handler.unexpected))
    if handler.absent():
        pytest.fail(f"announced and never logged: {handler.absent()}")
