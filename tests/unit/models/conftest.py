from pathlib import Path

import pytest
import torch

from runtime.kernels.base import Kernels
from runtime.kernels.dispatch import choose_kernels


@pytest.fixture(scope="session", autouse=True)
def _one_torch_thread() -> None:
    """Tiny matrices gain nothing from more, and lose much where others use the cores."""
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def tiny_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where tiny checkpoints are made, one place for the whole session."""
    return tmp_path_factory.getbasetemp() / "tiny-checkpoints"


@pytest.fixture(scope="session")
def kernels() -> Kernels:
    """The kernels that this machine runs on."""
    return choose_kernels()
