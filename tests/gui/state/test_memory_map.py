"""Who holds what of a memory, and the curves as a table."""

import csv
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from app.graphs.series import SampleSeries
from app.state.budget_range import BudgetRange
from app.state.curve_table import COLUMNS, curve_table
from app.state.memory_map import MemoryKind, memory_map
from tests.support.monitor_stage import GIB, live_sample, ready_stage
from tests.support.window_values import some_plan


def bounds(*, total: int = 32, others: int = 8, reserve: int = 2) -> BudgetRange:
    return BudgetRange(
        total_bytes=total * GIB, least_bytes=0, most_bytes=0,
        others_bytes=others * GIB, reserve_bytes=reserve * GIB,
    )  # fmt: skip


def in_gib(parts: dict[MemoryKind, int]) -> dict[str, float]:
    return {kind.value: amount / GIB for kind, amount in parts.items() if amount}


def test_memory_is_ours_by_kind_then_others_reserve_and_free() -> None:
    held = {"experts": 9 * GIB, "dense": 2 * GIB, "kv_cache": GIB, "work": GIB}
    memory = memory_map(bounds(), held, GIB)
    assert in_gib(memory.parts) == {
        "experts": 9, "dense": 2, "kv_cache": 1, "work": 1, "program": 1,
        "others": 8, "reserve": 2, "free": 8,
    }  # fmt: skip
    assert list(memory.parts) == list(MemoryKind)
    assert sum(memory.parts.values()) == memory.total_bytes


def test_memory_that_is_full_leaves_others_what_there_is_and_nothing_free() -> None:
    memory = memory_map(bounds(total=16), {"experts": 14 * GIB})
    assert in_gib(memory.parts) == {"experts": 14, "others": 2}
    overdrawn = memory_map(bounds(total=16), {"experts": 17 * GIB})
    assert in_gib(overdrawn.parts) == {"experts": 17}


def test_monitor_knows_both_memories_once_something_was_measured(
    qtbot: QtBot, tmp_path: Path
) -> None:
    stage = ready_stage(tmp_path)
    try:
        assert stage.monitor.memory_maps() == (None, None)
        stage.play(1)
        ram, vram = stage.monitor.memory_maps()
        assert ram is not None
        assert vram is not None
        assert ram.parts[MemoryKind.EXPERTS] == 8 * GIB
        assert ram.parts[MemoryKind.OTHERS] == 8 * GIB
        assert vram.parts[MemoryKind.EXPERTS] == 5 * GIB
        assert vram.total_bytes == 12 * GIB
        assert stage.monitor.expert_bytes > 0
    finally:
        stage.close()


def test_monitor_without_a_model_knows_no_expert(qtbot: QtBot, tmp_path: Path) -> None:
    stage = ready_stage(tmp_path, is_loaded=False)
    try:
        assert stage.monitor.expert_bytes == 0
    finally:
        stage.close()


def test_monitor_without_a_device_has_one_memory(qtbot: QtBot, tmp_path: Path) -> None:
    stage = ready_stage(tmp_path, plan=some_plan())
    try:
        stage.play(1)
        ram, vram = stage.monitor.memory_maps()
        assert ram is not None
        assert vram is None
    finally:
        stage.close()


def test_curves_become_a_table_with_a_row_for_each_point() -> None:
    series = SampleSeries()
    for step in range(100):
        series.add(100 + step * 0.1, live_sample(step))
    head, *rows = csv.reader(curve_table(series, 110.0).splitlines())
    assert head == ["seconds", *COLUMNS.values()]
    assert len(rows) == 40
    assert float(rows[0][0]) < float(rows[-1][0]) <= 0
    assert float(rows[5][1]) == pytest.approx(34e9, rel=0.3)
    assert float(rows[5][4]) == pytest.approx(130, rel=0.3)
