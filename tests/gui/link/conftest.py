"""Real child processes, each ended with its test."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QCoreApplication

from app.link.interpreter import module_command
from app.link.process import RuntimeCommand, RuntimeProcess

MakeProcess = Callable[..., RuntimeProcess]


@pytest.fixture
def log_path(tmp_path: Path) -> Path:
    return tmp_path / "logs" / "runtime.log"


@pytest.fixture
def make_fake(qapp: QCoreApplication, log_path: Path) -> Iterator[MakeProcess]:
    """Return a function that makes a process of ``tests.support.fake_runtime``."""
    made: list[RuntimeProcess] = []

    def make(way: str) -> RuntimeProcess:
        command = RuntimeCommand(
            (way,), str(log_path), module_command("tests.support.fake_runtime")
        )
        made.append(RuntimeProcess(command))
        return made[-1]

    yield make
    for process in made:
        process.end_now(0)


@pytest.fixture
def make_scripted(qapp: QCoreApplication, log_path: Path) -> Iterator[MakeProcess]:
    """Return a function that makes a process of the service with the scripted engine."""
    made: list[RuntimeProcess] = []

    def make(*arguments: str) -> RuntimeProcess:
        words = ("--engine", "scripted", "--log", str(log_path), *arguments)
        made.append(RuntimeProcess(RuntimeCommand(words, str(log_path))))
        return made[-1]

    yield make
    for process in made:
        process.end_now(0)
