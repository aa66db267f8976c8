from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

from runtime.engine.base import CancelToken
from runtime.generate.engine import TieredEngine
from runtime.kernels.base import Kernels
from runtime.kernels.dispatch import choose_kernels
from runtime.protocol.plan import PlacementPlan
from tests.support.engine_runs import ignore_load_progress
from tests.support.hand_made_plans import exact_plan
from tests.support.tiny_checkpoints import tiny_checkpoint

OpenEngine = Callable[[PlacementPlan], TieredEngine]
DRAWN_SEED = 77


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


@pytest.fixture(scope="session")
def qwen2_folder(tiny_root: Path) -> Path:
    """A tiny checkpoint with a shared expert."""
    return tiny_checkpoint(tiny_root, "qwen2_moe")


@pytest.fixture
def open_engine(kernels: Kernels) -> Iterator[OpenEngine]:
    """Loads plans into engines, all slots filled, and closes them when the test ends."""
    engines: list[TieredEngine] = []

    def open_one(plan: PlacementPlan) -> TieredEngine:
        engine = TieredEngine(kernels, draw_seed=lambda: DRAWN_SEED)
        engines.append(engine)
        engine.load(plan, ignore_load_progress, CancelToken())
        assert engine.wait_filled(60)
        return engine

    yield open_one
    for engine in engines:
        engine.close()


@pytest.fixture
def engine(open_engine: OpenEngine, qwen2_folder: Path) -> TieredEngine:
    """A loaded engine with every expert in RAM."""
    return open_engine(exact_plan(qwen2_folder))
