"""What budgets between those of a curve would do, as sliders move. Pure."""

import bisect
import dataclasses
from collections.abc import Sequence

from runtime.protocol.plan import BudgetCurve
from runtime.protocol.values import Forecast, Tier


@dataclasses.dataclass(frozen=True, slots=True)
class Estimate:
    """What lies where and how fast that is, until the exact plan comes."""

    ratios: tuple[tuple[Tier, float], ...]
    """Part of all experts that each tier holds."""
    context_tokens: int
    forecast: Forecast
    is_device_used: bool


@dataclasses.dataclass(frozen=True, slots=True)
class _Place:
    """A value between two of a list."""

    before: int
    after: int
    part: float
    """How far it is from the one before to the one after."""

    def mixed(self, one: float, other: float) -> float:
        return one + (other - one) * self.part


def estimate_at(
    curve: BudgetCurve, *, ram_bytes: int | None, vram_bytes: int | None
) -> Estimate | None:
    """Return what a curve says about budgets, None lets the planner choose.

    Bilinear between the four budgets around them; None where one of those cannot be loaded.
    """
    row = _row(curve, vram_bytes)
    if ram_bytes is None:
        automatic = curve.automatic_ram
        ram_bytes = round(row.mixed(automatic[row.before], automatic[row.after]))
    column = _place(curve.ram_budgets, ram_bytes)
    width = len(curve.ram_budgets)
    corners = [
        line * width + each
        for line in (row.before, row.after)
        for each in (column.before, column.after)
    ]
    if ram_bytes < curve.ram_budgets[0] or not all(curve.context_tokens[each] for each in corners):
        return None

    def at(values: Sequence[float]) -> float:
        first, second, third, fourth = (values[each] for each in corners)
        return row.mixed(column.mixed(first, second), column.mixed(third, fourth))

    in_vram, in_ram = at(curve.num_in_vram), at(curve.num_in_ram)
    num_all = max(1, curve.num_experts)
    on_drive = max(0.0, curve.num_experts - in_vram - in_ram)
    return Estimate(
        ratios=(
            (Tier.VRAM, in_vram / num_all),
            (Tier.RAM, in_ram / num_all),
            (Tier.DRIVE, on_drive / num_all),
        ),
        context_tokens=round(at(curve.context_tokens)),
        forecast=Forecast(
            prompt_tokens_per_s_low=at(curve.prompt_tokens_per_s_low),
            prompt_tokens_per_s_high=at(curve.prompt_tokens_per_s_high),
            decode_tokens_per_s_low=at(curve.decode_tokens_per_s_low),
            decode_tokens_per_s_high=at(curve.decode_tokens_per_s_high),
            drive_bytes_per_token=at(curve.drive_bytes_per_token),
            basis="interpolated",
        ),
        is_device_used=row.after > 0,
    )


def _row(curve: BudgetCurve, vram_bytes: int | None) -> _Place:
    """Return the place among the VRAM budgets; below the least of use the device is not used."""
    budgets = curve.vram_budgets
    vram_bytes = curve.automatic_vram if vram_bytes is None else vram_bytes
    if len(budgets) == 1 or vram_bytes < budgets[1]:
        return _Place(0, 0, 0.0)
    place = _place(budgets[1:], vram_bytes)
    return _Place(place.before + 1, place.after + 1, place.part)


def _place(budgets: Sequence[int], value: int) -> _Place:
    """Return the place of a value among ascending budgets, which it is held within."""
    value = min(max(value, budgets[0]), budgets[-1])
    after = bisect.bisect_left(budgets, value)
    if budgets[after] == value:
        return _Place(after, after, 0.0)
    before = after - 1
    return _Place(before, after, (value - budgets[before]) / (budgets[after] - budgets[before]))
