"""A drive that is made out to be slow takes its time, and gives what it holds."""

import contextlib
import json
import mmap
from collections.abc import Iterator
from pathlib import Path

import pytest

from runtime.hardware.profile import MACHINE_VARIABLE
from runtime.inspect.folder import inspect_folder
from runtime.spec.tensors import ExpertId
from runtime.store.base import ExpertStore
from runtime.store.open import open_store
from runtime.store.throttled import ThrottledStore, throttled
from tests.support.checkpoint_folders import TinyModel, write_checkpoint
from tests.support.still_clock import StillClock

BYTES_PER_S = 1000


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ExpertStore]:
    inspection = inspect_folder(str(write_checkpoint(tmp_path / "m", TinyModel())))
    with contextlib.closing(open_store(inspection, "", prefers_direct=False)) as opened:
        yield opened


def test_throttled_reads_give_the_same_bytes_at_the_stated_rate(store: ExpertStore) -> None:
    clock = StillClock()
    slow = ThrottledStore(store, BYTES_PER_S, clock)
    record_bytes = slow.layout.record_bytes
    with mmap.mmap(-1, record_bytes) as expected, mmap.mmap(-1, record_bytes) as found:
        with memoryview(expected) as own, memoryview(found) as slowly:
            begin_s = clock.time_s
            for expert in (ExpertId(0, 1), ExpertId(1, 0)):
                store.read_expert(expert, own)
                slow.read_expert(expert, slowly)
                assert own == slowly
        assert clock.time_s - begin_s == pytest.approx(2 * record_bytes / BYTES_PER_S)
    entry = next(iter(slow.dense_tensors.values()))
    whole = bytearray(entry.num_bytes)
    begin_s = clock.time_s
    slow.read_tensor(entry, memoryview(whole))
    pieces = slow.tensor_pieces(entry, memoryview(bytearray(64)))
    again = b"".join(bytes(piece) for piece in pieces)
    assert whole == again
    assert clock.time_s - begin_s == pytest.approx(2 * entry.num_bytes / BYTES_PER_S)


def test_throttled_store_tells_what_the_store_within_does(store: ExpertStore) -> None:
    slow = ThrottledStore(store, BYTES_PER_S, StillClock())
    assert slow.num_bytes_read == store.num_bytes_read
    assert slow.is_direct is store.is_direct
    assert slow.place_of(ExpertId(0, 0)) == store.place_of(ExpertId(0, 0))


def test_only_a_profile_holds_reads_back(store: ExpertStore, tmp_path: Path) -> None:
    path = tmp_path / "profile.json"
    env = {MACHINE_VARIABLE: str(path)}
    assert throttled(store, {}) is store
    path.write_text(json.dumps({"drive": {"read_gb_per_s": 1}}), encoding="utf-8")
    assert throttled(store, env) is store
    path.write_text(json.dumps({"drive": {"most_gb_per_s": 1}}), encoding="utf-8")
    assert isinstance(throttled(store, env), ThrottledStore)
