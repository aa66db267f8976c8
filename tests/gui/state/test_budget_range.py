"""Bounds of the sliders."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.state.budget_range import (
    dense_bytes,
    expert_ratio,
    is_simulated,
    ram_range,
    used_device,
    vram_range,
)
from app.state.drive_warning import budgets_of
from app.state.monitor import Monitor
from runtime.protocol.machine import Measured
from runtime.protocol.plan import Reason, ReasonCode
from runtime.protocol.values import Budgets, Tier
from tests.support.monitor_stage import (
    DEVICE,
    GIB,
    MonitorStage,
    machine_with_device,
    plan_with_device,
    ready_stage,
)
from tests.support.window_values import some_machine, some_plan


def test_ram_range_ends_where_everything_fits() -> None:
    bounds = ram_range(machine_with_device(), plan_with_device())
    assert (bounds.least_bytes, bounds.most_bytes) == (2 * GIB, 18 * GIB)
    assert (bounds.total_bytes, bounds.others_bytes) == (32 * GIB, 8 * GIB)


def test_ram_range_ends_where_nothing_is_free_and_keeps_a_limit() -> None:
    reason = Reason(code=ReasonCode.RAM_LIMITED_BY_FREE, parameters={"reserve_bytes": 2 * GIB})
    plan = msgspec.structs.replace(plan_with_device(), all_ram_bytes=60 * GIB, reasons=[reason])
    bounds = ram_range(machine_with_device(), plan)
    assert (bounds.most_bytes, bounds.reserve_bytes) == (22 * GIB, 2 * GIB)
    limited = msgspec.structs.replace(
        machine_with_device(), ram_limit=Measured(value=10 * GIB, method="test")
    )
    bounds = ram_range(limited, plan)
    assert (bounds.total_bytes, bounds.others_bytes) == (10 * GIB, 0)
    assert bounds.most_bytes == plan.ram_bytes


def test_ranges_leave_the_reserve_whatever_limits_the_plan() -> None:
    """Also where a budget or the size of the model limits it, so that sliders keep still."""
    base = machine_with_device()
    device = msgspec.structs.replace(base.devices[0], reserve_bytes=GIB)
    machine = msgspec.structs.replace(base, ram_reserve_bytes=3 * GIB, devices=[device])
    reason = Reason(code=ReasonCode.RAM_LIMITED_BY_BUDGET, parameters={})
    plan = msgspec.structs.replace(
        plan_with_device(), all_ram_bytes=60 * GIB, all_vram_bytes=60 * GIB, reasons=[reason]
    )
    ram, vram = ram_range(machine, plan), vram_range(device, plan)
    assert (ram.most_bytes, ram.reserve_bytes) == (21 * GIB, 3 * GIB)
    assert (vram.most_bytes, vram.reserve_bytes) == (device.free_bytes - GIB, GIB)


def test_h07_slider_marks_what_other_programs_hold_of_a_full_card() -> None:
    device = msgspec.structs.replace(
        machine_with_device().devices[0], total_bytes=24 * GIB, free_bytes=GIB * 6 // 5
    )
    reason = Reason(code=ReasonCode.VRAM_LIMITED_BY_FREE, parameters={"reserve_bytes": GIB})
    plan = msgspec.structs.replace(plan_with_device(), vram_bytes=0, reasons=[reason])
    bounds = vram_range(device, plan)
    assert bounds.total_bytes == 24 * GIB
    assert bounds.others_bytes == 24 * GIB - GIB * 6 // 5
    assert (bounds.most_bytes, bounds.reserve_bytes) == (GIB * 6 // 5 - GIB, GIB)


def test_vram_range_leaves_others_and_the_reserve() -> None:
    device = machine_with_device().devices[0]
    bounds = vram_range(device, plan_with_device())
    assert bounds.others_bytes == device.total_bytes - device.free_bytes
    assert bounds.most_bytes == device.free_bytes - bounds.reserve_bytes
    small = msgspec.structs.replace(plan_with_device(), all_vram_bytes=8 * GIB)
    assert vram_range(device, small).most_bytes == 8 * GIB
    unknown = msgspec.structs.replace(plan_with_device(), all_vram_bytes=0, reasons=[])
    assert vram_range(device, unknown).most_bytes == device.free_bytes


@given(st.integers(0, 64), st.integers(0, 64), st.integers(0, 64))
def test_ranges_are_ordered_whatever_is_free(total: int, free: int, held: int) -> None:
    device = msgspec.structs.replace(
        machine_with_device().devices[0], total_bytes=total * GIB, free_bytes=free * GIB
    )
    plan = msgspec.structs.replace(plan_with_device(), vram_bytes=held * GIB)
    bounds = vram_range(device, plan)
    assert bounds.most_bytes >= 0
    assert bounds.others_bytes >= 0
    machine = msgspec.structs.replace(
        some_machine(),
        ram_total=Measured(value=total * GIB, method="test"),
        ram_available=Measured(value=free * GIB, method="test"),
    )
    ram = ram_range(machine, plan)
    assert ram.least_bytes <= ram.most_bytes
    assert 0 <= ram.others_bytes <= ram.total_bytes


def test_used_device_is_the_one_that_plans_use() -> None:
    assert used_device(None) is None
    assert used_device(some_machine()) is None
    device = used_device(machine_with_device())
    assert device is not None
    assert device.device == DEVICE
    assert is_simulated(DEVICE)
    assert not is_simulated("cuda:0")


def test_expert_ratio_counts_experts() -> None:
    assert expert_ratio(plan_with_device(), Tier.VRAM) == pytest.approx(1904 / 6144)
    assert expert_ratio(msgspec.structs.replace(some_plan(), tiers=[]), Tier.RAM) == 0


def test_dense_part_lies_where_the_device_is() -> None:
    assert dense_bytes(plan_with_device()) == (Tier.VRAM, GIB)
    assert dense_bytes(some_plan()) == (Tier.RAM, 70 << 20)


def test_budgets_of_a_plan_are_its_sizes() -> None:
    plan = plan_with_device()
    assert budgets_of(plan) == Budgets(
        ram_bytes=plan.ram_bytes, vram_bytes={DEVICE: plan.vram_bytes}
    )
    assert budgets_of(some_plan()) == Budgets(ram_bytes=200 << 20)


@pytest.fixture
def monitor(qapp: object, tmp_path: object) -> Monitor:
    from pathlib import Path

    stage: MonitorStage = ready_stage(Path(str(tmp_path)))
    stage.close()
    return stage.monitor


def test_monitor_knows_tariff_and_simulated_device(monitor: Monitor) -> None:
    assert monitor.tariff == (0.30, "€")
    assert monitor.is_device_simulated
