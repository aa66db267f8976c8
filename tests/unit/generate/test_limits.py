"""Limits of a loaded model: what was measured of this PC is what the Monitor shows beside it."""

from pathlib import Path

import pytest

from runtime.generate.limits import rate_limits
from runtime.hardware.machine import describe_machine
from runtime.hardware.profile import MACHINE_VARIABLE
from runtime.hardware.rates import RAM, RateCache
from runtime.protocol.machine import Measured
from runtime.service.drive_rates import DriveRates
from tests.support.hand_made_plans import exact_plan


def test_limits_are_the_measured_rates_whatever_the_size_of_reads(
    qwen2_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(MACHINE_VARIABLE, raising=False)
    rates_path = tmp_path / "rates.json"
    plan = exact_plan(qwen2_folder)
    assert rate_limits(plan, rates_path).drive == 0.0

    def measured(place: Path, read_bytes: int) -> Measured:
        return Measured(value=read_bytes * 1e3, method="made up")

    drives = describe_machine([qwen2_folder]).drives
    for read_bytes in (1 << 20, 8 << 20, 4 << 20):
        DriveRates(rates_path, measured).complete(drives, read_bytes)
    RateCache(rates_path).record(RAM, 2e10, "made up")

    limits = rate_limits(plan, rates_path)

    assert limits.drive == (8 << 20) * 1e3
    assert limits.ram_read == 2e10
    assert rate_limits(plan, None).drive == 0.0
