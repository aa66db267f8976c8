"""A second start: what was resident comes first, read once, and the same question misses less."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.engine.base import CancelToken
from runtime.generate.engine import TieredEngine
from runtime.generate.last_use import LastUses
from runtime.kernels.base import Kernels
from runtime.protocol.chat import SamplingSettings
from runtime.protocol.plan import PlacementPlan
from runtime.residency.trial import HintMode
from runtime.spec.tensors import ExpertId
from runtime.store.checkpoint import CheckpointStore
from tests.support.engine_runs import answer, ignore_load_progress, user
from tests.support.hand_made_plans import exact_plan

QUESTION = [user("What is the capital of France?")]
GREEDY_ONE = SamplingSettings(temperature=0, max_tokens=1)
NUM_SLOTS = 3


def started(kernels: Kernels, plan: PlacementPlan, folder: Path | None) -> TieredEngine:
    last_uses = None if folder is None else LastUses(folder)
    engine = TieredEngine(kernels, last_uses=last_uses)
    engine.hints = HintMode.NEVER
    engine.load(plan, ignore_load_progress, CancelToken())
    assert engine.wait_filled(60)
    engine.apply()
    return engine


def test_second_start_reads_what_was_resident_once_and_nothing_else(
    kernels: Kernels, qwen2_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = exact_plan(qwen2_folder, NUM_SLOTS)
    first = started(kernels, plan, tmp_path / "uses")
    ids = answer(first, QUESTION).token_ids
    assert first._parts is not None
    resident = first._parts.experts.recall()
    spec, record_bytes = first._parts.spec, first._parts.experts.layout.record_bytes
    first.close()
    assert first._parts is None

    read: list[ExpertId] = []
    whole = CheckpointStore.read_expert

    def noted(self: CheckpointStore, expert: ExpertId, target: memoryview) -> None:
        read.append(expert)
        whole(self, expert, target)

    monkeypatch.setattr(CheckpointStore, "read_expert", noted)
    second = started(kernels, plan, tmp_path / "uses")
    assert second._parts is not None
    assert len(read) == len(set(read)) == NUM_SLOTS * len(spec.moe_layers)
    for layer in spec.moe_layers:
        here = {expert.expert for expert in read if expert.layer == layer}
        expected = set(resident[layer][:NUM_SLOTS])
        assert expected <= here
    dense_bytes = sum(entry.num_bytes for entry in second._parts.store.dense_tensors.values())
    num_tensors = len(second._parts.store.dense_tensors)
    assert second._parts.store.num_bytes_read <= (
        dense_bytes + len(read) * (record_bytes + 3 * 65536) + num_tensors * 2 * 4096
    )
    assert answer(second, QUESTION).token_ids == ids
    second.close()


def test_second_start_misses_less_at_the_first_question(
    kernels: Kernels, qwen2_folder: Path, tmp_path: Path
) -> None:
    plan = exact_plan(qwen2_folder, NUM_SLOTS)
    misses: list[int] = []
    for folder in (tmp_path / "uses", tmp_path / "uses", None):
        engine = started(kernels, plan, folder)
        before = engine.counters
        # The first token alone: later ones find what the first brought.
        list(engine.start(1, QUESTION, GREEDY_ONE, CancelToken()))
        misses.append(engine.counters.since(before).expert_misses)
        engine.close()
    cold, warm, without = misses
    assert cold == without
    assert warm <= cold


def test_engine_that_answered_nothing_keeps_the_use_before(
    kernels: Kernels, qwen2_folder: Path, tmp_path: Path
) -> None:
    plan, folder = exact_plan(qwen2_folder, NUM_SLOTS), tmp_path / "uses"
    engine = started(kernels, plan, folder)
    answer(engine, QUESTION)
    engine.close()
    (file,) = folder.iterdir()
    kept = file.read_bytes()
    started(kernels, plan, folder).close()
    assert file.read_bytes() == kept


orders = st.dictionaries(st.integers(0, 5), st.lists(st.integers(0, 7), unique=True), max_size=4)


@given(orders)
def test_last_use_comes_back_as_it_was_kept(
    tmp_path_factory: pytest.TempPathFactory, order: dict[int, list[int]]
) -> None:
    uses = LastUses(tmp_path_factory.getbasetemp() / "kept")
    uses.write("abc", 8, order)
    assert uses.read("abc", 8) == order
    assert uses.read("abc", 9) == uses.read("abd", 8) == {}


@pytest.mark.parametrize(
    "damage",
    [
        b"",
        b"{",
        b"[]",
        b'{"fingerprint":"abc","num_experts":8,"layers":{"0":[8]}}',
        b'{"fingerprint":"abc","num_experts":8,"layers":{"0":[-1]}}',
        b'{"fingerprint":"abc","num_experts":8,"layers":{"0":[1,1]}}',
        b'{"fingerprint":"abd","num_experts":8,"layers":{"0":[1]}}',
        b'{"fingerprint":"abc","num_experts":8,"layers":{"0":"x"}}',
        b'{"a":' * 100_000,
        b" " * (9 * 1024 * 1024),
    ],
)
def test_last_use_damaged_counts_as_nothing(tmp_path: Path, damage: bytes) -> None:
    uses = LastUses(tmp_path / "uses")
    uses.write("abc", 8, {0: [1]})
    (file,) = (tmp_path / "uses").iterdir()
    file.write_bytes(damage)
    assert uses.read("abc", 8) == {}


def test_last_use_that_cannot_be_written_is_told_in_the_log_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "uses").write_bytes(b"a file")
    with caplog.at_level("INFO", logger="runtime.hardware.kept_file"):
        LastUses(tmp_path / "uses").write("abc", 8, {0: [1]})
    assert "are not kept" in caplog.text
