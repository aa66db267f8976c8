"""Downloads that are killed at random: a model is whole or not there, and what came is used."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from runtime.hub.places import final_folder, part_folder
from tests.support.fake_hub import COMMIT, FakeHub
from tests.unit.hub.conftest import MODEL
from tests.unit.hub.test_download import assert_whole

ROOT = Path(__file__).parents[3]
NUM_KILLS = 50 if os.environ.get("LARDER_TEST_PROFILE") == "deep" else 4
MAX_CALLS = 5
Record = Callable[[str, object], None]


def download(hub: FakeHub, root: Path, point: str, number: int) -> int:
    """Download in a process of its own, and return how it ended."""
    module = [sys.executable, "-m", "tests.support.download_process"]
    cache = str(root.with_name("cache"))
    arguments = [MODEL, COMMIT, hub.address, str(root), cache, point, str(number)]
    ended = subprocess.run(
        [*module, *arguments], cwd=ROOT, capture_output=True, text=True, check=False, timeout=60
    )
    assert ended.returncode in (0, -signal.SIGKILL), ended.stderr
    return ended.returncode


@pytest.mark.timeout(60 + 10 * NUM_KILLS)
def test_download_killed_at_random_is_whole_in_the_end_and_never_there_before(
    hub: FakeHub, published: Path, tmp_path: Path, record_property: Record
) -> None:
    chance = random.Random(13)
    needed = sum(
        path.stat().st_size
        for path in published.iterdir()
        if path.is_file() and path.name not in {"pytorch_model.bin", "consolidated.safetensors"}
    )
    num_kills = num_models = 0
    while num_kills < NUM_KILLS:
        root = tmp_path / f"models-{num_models}"
        # At least one death of each model comes while its bytes do.
        point, number = "bytes", chance.randint(1, needed - 1)
        while download(hub, root, point, number):
            num_kills += 1
            final = final_folder(root, MODEL)
            assert final.exists() != part_folder(root, MODEL).exists()
            if final.exists():
                # It died when all that was left was to have the system write the name down.
                assert_whole(final, published)
            point = chance.choice(["bytes", "sync", "rename"])
            most = needed if point == "bytes" else MAX_CALLS
            number = chance.randint(1, most)
            if num_kills >= NUM_KILLS:
                point = "none"
        assert_whole(final_folder(root, MODEL), published)
        num_models += 1
    record_property("num_kills", num_kills)
