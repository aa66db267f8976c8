"""A hub on this machine with one tiny model, and the desk that asks it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from runtime.hub.desk import HubDesk
from tests.support.checkpoint_folders import TinyModel, write_checkpoint
from tests.support.fake_hub import FakeHub, fake_hub, moe_facts

MODEL = "maker/tiny-moe"


@pytest.fixture
def published(tmp_path: Path) -> Path:
    """The folder whose files the hub has: a model in two shards, with what is not needed."""
    folder = write_checkpoint(tmp_path / "published", TinyModel(num_shards=2))
    (folder / "pytorch_model.bin").write_bytes(b"x" * 5000)
    (folder / "consolidated.safetensors").write_bytes(b"x" * 4000)
    (folder / "original").mkdir()
    (folder / "original" / "weights.safetensors").write_bytes(b"x" * 3000)
    (folder / "added_tokens.json").touch()
    return folder


@pytest.fixture
def hub(published: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    """The hub."""
    with fake_hub(monkeypatch) as served:
        served.add(MODEL, published, **moe_facts())
        yield served


@pytest.fixture
def desk(tmp_path: Path) -> HubDesk:
    """A desk that does not wait long."""
    return HubDesk(tmp_path / "cache", stall_s=0.5, first_pause_s=0.0)
