"""Answers, samples and plans that read from the drive as much as a test wants."""

import msgspec

from runtime.protocol.chat import GenerationStats
from runtime.protocol.plan import PlacementPlan, PlanKind
from runtime.protocol.telemetry import TelemetrySample
from runtime.protocol.values import EnergyEstimate, EnergyPart
from tests.support.window_values import some_forecast, some_plan, some_sample, some_stats


def some_parts(drive_j: float, rest_j: float) -> list[EnergyPart]:
    """Return an energy estimate in two parts."""
    return [
        EnergyPart(source="assumed-watts", joules=rest_j, is_measured=False),
        EnergyPart(source="drive-reads", joules=drive_j, is_measured=False),
    ]


def answer_with(
    wait_ratio: float, *, drive_j: float = 0.0, rest_j: float = 100.0
) -> GenerationStats:
    """Return an answer of 20 tokens in 10 seconds that read 4 GB."""
    changed: GenerationStats = msgspec.structs.replace(
        some_stats(),
        drive_bytes_read=4_000_000_000,
        seconds={"compute": 10 * (1 - wait_ratio), "drive_wait": 10 * wait_ratio},
        energy=EnergyEstimate(total_j=drive_j + rest_j, parts=some_parts(drive_j, rest_j)),
    )
    return changed


def sample_with(wait_ratio: float, *, num_tokens: int = 10) -> TelemetrySample:
    """Return a sample of 0.1 s."""
    changed: TelemetrySample = msgspec.structs.replace(
        some_sample(num_tokens),
        drive_bytes_read=1_000_000,
        seconds={"compute": 0.1 * (1 - wait_ratio), "drive_wait": 0.1 * wait_ratio},
    )
    return changed


def plan_that_reads(
    bytes_per_token: float, kind: PlanKind = PlanKind.EXACT, *, rate: float = 10.0
) -> PlacementPlan:
    """Return a plan with a forecast of its reads and its rate."""
    forecast = msgspec.structs.replace(
        some_forecast(rate, rate), drive_bytes_per_token=bytes_per_token
    )
    return some_plan(kind, forecast=forecast)
