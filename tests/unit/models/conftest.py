from pathlib import Path

import pytest

from runtime.kernels.base import Kernels
from runtime.kernels.dispatch import choose_kernels


@pytest.fixture(scope="session")
def tiny_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where tiny checkpoints are made, one place for the whole session."""
    return tmp_path_factory.getbasetemp() / "tiny-checkpoints"


@pytest.fixture(scope="session")
def kernels() -> Kernels:
    """The kernels that this machine runs on."""
    return choose_kernels()
