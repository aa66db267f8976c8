"""Window and workers killed together while they save, download or prepare: whole, or as before."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from runtime.hub.places import final_folder
from runtime.inspect.folder import inspect_folder
from runtime.prepare.journal import is_unfinished
from runtime.prepare.lock import LOCK_NAME
from runtime.prepare.prepare import prepare_model
from runtime.protocol.values import WeightFormat
from tests.support.checkpoint_folders import TinyModel, write_checkpoint
from tests.support.fake_hub import COMMIT, FakeHub, fake_hub
from tests.support.saving_window import saved_numbers
from tests.support.window_process import WindowProcess, kill_all, running_window

IS_DEEP = os.environ.get("LARDER_TEST_PROFILE") == "deep"
NUM_KILLS = 50 if IS_DEEP else 1
MODEL = "maker/tiny-moe"
MAX_ROUNDS = 12
ROUND_S = 0.05
WAIT_S = 600.0
"""The runtime steps back behind all other programs of a busy machine."""
EMPTY = ("--no-demo",)
Record = Callable[[str, object], None]
MEDIUM = TinyModel(num_layers=4, num_experts=16, hidden_size=256, expert_width=256, num_shards=2)

_in_deep = pytest.mark.skipif(
    not IS_DEEP, reason="takes minutes; in the gate the processes that do the work are killed"
)


def wait_until(window: WindowProcess, is_true: Callable[[], bool]) -> None:
    """Look without a pause until something holds, so that a death can fall at any moment."""
    deadline_s = time.monotonic() + WAIT_S
    while not is_true():
        assert window.process.poll() is None, "the window ended"
        assert time.monotonic() < deadline_s
        time.sleep(0.002)


def bytes_below(folder: Path) -> int:
    """What the files below a folder hold; what goes meanwhile counts as nothing."""
    total = 0
    # A folder that is renamed while it is walked through is no error to os.walk.
    for place, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                total += (Path(place) / name).stat().st_size
    return total


@pytest.mark.timeout(60 + 30 * NUM_KILLS)
def test_killed_with_its_worker_while_saving_has_each_file_whole(
    tmp_home: Path, tmp_path: Path, record_property: Record
) -> None:
    model = tmp_path / "a model"
    model.mkdir()
    script = tmp_path / "script.json"
    script.write_text(json.dumps({"answers": ["a word"]}), encoding="utf-8")
    options = ("--engine", "scripted", "--script", str(script))
    chance = random.Random(13)
    last = num_rounds = 0
    for number in range(NUM_KILLS):
        record = tmp_path / f"saved-{number}"
        with running_window(tmp_home, model, *options, is_obedient=True) as window:
            window.wait_until_loaded()
            code = "from tests.support.saving_window import save_for_ever; save_for_ever"
            arguments = (str(model), str(record), last + 1)
            window.tell(f"run {code}(larder, *{arguments!r})")
            enough = chance.randint(1, MAX_ROUNDS)
            wait_until(window, lambda: lines(record) >= enough)  # noqa: B023 - at once
            time.sleep(chance.uniform(0.0, ROUND_S))
            kill_all(window, chance)
        before, last = last, int(record.read_text(encoding="ascii").split()[-1])
        assert before < last
        num_rounds += lines(record)
        found = saved_numbers(tmp_home)
        energy = found.pop("energy")
        assert set(found.values()) <= {last, last + 1}, found
        assert num_rounds <= energy <= last + 1
        last = max(found.values())
    record_property("num_kills", NUM_KILLS)


@pytest.fixture
def published(tmp_path: Path) -> Path:
    """A model of some megabytes."""
    return write_checkpoint(tmp_path / "published", MEDIUM)


@pytest.fixture
def hub(published: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    """A hub that takes a second and a half for all of it."""
    with fake_hub(monkeypatch) as served:
        served.add(MODEL, published)
        served.bytes_per_s = bytes_below(published) / 1.5
        yield served


@_in_deep
@pytest.mark.timeout(900 + 60 * NUM_KILLS)
def test_killed_with_its_workers_while_downloading_goes_on_to_the_same_bytes(
    tmp_home: Path, tmp_path: Path, published: Path, hub: FakeHub, record_property: Record
) -> None:
    chance = random.Random(13)
    needed = bytes_below(published)
    code = (
        "from runtime.protocol.hub import HubCard;"
        "from tests.support.saving_window import go_on_downloading;"
        f"go_on_downloading(larder, HubCard(model_id={MODEL!r}, revision={COMMIT!r},"
        f" size_bytes={needed}), {{root!r}}, {hub.address!r})"
    )
    for number in range(NUM_KILLS + 1):
        root = tmp_path / f"models-{number // 3}"
        # Each model dies twice, and is whole at the third start.
        is_last = number == NUM_KILLS or number % 3 == 2
        place = final_folder(root, MODEL)
        begun = bytes_below(root) if root.exists() else 0
        enough = chance.randint(min(begun, needed) - 1, needed - 1)
        with running_window(tmp_home, None, *EMPTY, is_obedient=True) as window:
            window.wait_until(lambda: bool(window.workers()))
            window.tell("run " + code.format(root=str(root)))
            if is_last:
                wait_until(window, place.exists)
            else:
                wait_until(window, lambda: bytes_below(root) > enough)  # noqa: B023 - at once
            kill_all(window, chance)
        assert place.exists() or not is_last
        if place.exists():
            for name in ("config.json", "tokenizer.json", *shards(published)):
                assert (place / name).read_bytes() == (published / name).read_bytes()
            if is_last:
                (tmp_home / "data" / "downloads.json").unlink(missing_ok=True)
    record_property("num_kills", NUM_KILLS)


def shards(folder: Path) -> list[str]:
    """The names of the files with weights."""
    return sorted(path.name for path in folder.glob("*.safetensors"))


@_in_deep
@pytest.mark.timeout(900 + 90 * NUM_KILLS)
def test_killed_with_its_workers_while_preparing_goes_on_to_the_same_bytes(
    tmp_home: Path, tmp_path: Path, published: Path, record_property: Record
) -> None:
    whole = tmp_path / "whole"
    prepare_model(inspect_folder(str(published)), WeightFormat.Q8_G32, str(whole))
    prepared = tmp_home / "data" / "prepared"
    chance = random.Random(13)
    needed = bytes_below(whole)
    code = (
        "from runtime.protocol.plan import PlanKind;"
        f"larder.session.load_folder({str(published)!r}, PlanKind.EIGHT_BIT)"
    )
    num_kills = 0
    while num_kills < NUM_KILLS:
        enough = chance.randint(1, needed - 1)
        with running_window(tmp_home, None, *EMPTY, is_obedient=True) as window:
            window.wait_until(lambda: bool(window.workers()))
            window.tell("run " + code)
            wait_until(window, lambda: bytes_below(prepared) >= enough)  # noqa: B023 - at once
            kill_all(window, chance)
        num_kills += 1
        (copy,) = prepared.iterdir()
        if not is_unfinished(copy):
            assert contents(copy) == contents(whole)
            shutil.rmtree(copy)
    record_property("num_kills", NUM_KILLS)


def contents(folder: Path) -> dict[str, bytes]:
    """The files of a prepared copy but its lock."""
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.name != LOCK_NAME}


def lines(record: Path) -> int:
    """How much is written down."""
    return record.read_bytes().count(b"\n") if record.exists() else 0
