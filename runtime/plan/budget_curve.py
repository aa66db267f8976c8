"""What one kind of plan does under a grid of budgets, for sliders while they move."""

import dataclasses
from collections.abc import Callable

from runtime.plan.kv_split import Worth
from runtime.plan.memory import Needs, Room, room_of
from runtime.plan.placement import (
    CPU,
    Placement,
    Share,
    beside_card,
    card_under,
    ram_beside,
    split_kv,
    usable_device,
)
from runtime.protocol.machine import DeviceReport, MachineReport
from runtime.protocol.plan import BudgetCurve, PlanKind
from runtime.protocol.values import Forecast

NUM_VRAM_BUDGETS = 33
NUM_RAM_BUDGETS = 9


@dataclasses.dataclass(frozen=True, slots=True)
class Grid:
    """The budgets and the placements under them, all RAM budgets under the first VRAM budget."""

    device: str
    num_experts: int
    vram_budgets: tuple[int, ...]
    ram_budgets: tuple[int, ...]
    automatic_vram: int
    automatic_ram: tuple[int, ...]
    placements: tuple[Placement, ...]


def grid_of(needs: Needs, machine: MachineReport, worth: Worth | None = None) -> Grid:
    """Place a model under 33 VRAM and 9 RAM budgets, from the least to all that is of use.

    ``needs`` is what RAM alone would have to hold. What RAM holds depends on the card only in
    whether it is used, so that 51 divisions are enough for all pairs; what of keys and values RAM
    takes is found anew for each.
    """
    report = usable_device(machine.devices)
    room = room_of(machine)
    vram_budgets = _vram_budgets(needs, report, room, worth)
    least = needs.min_bytes
    if len(vram_budgets) > 1:
        least = min(least, beside_card(needs).min_bytes)
    ram_budgets = _steps(least, min(needs.all_bytes, room.largest_bytes), NUM_RAM_BUDGETS)
    shares: dict[tuple[bool, int], Share] = {}
    automatic, placements = [], []
    for vram_bytes in vram_budgets:
        card = card_under(needs, report, vram_bytes) if report is not None else None
        alone = Placement(ram_beside(needs, room, card, None), card)
        automatic.append(split_kv(alone, worth, None).ram.budget_bytes)
        for ram_bytes in ram_budgets:
            key = (card is not None and card.is_used, ram_bytes)
            if key not in shares:
                shares[key] = ram_beside(needs, room, card, ram_bytes)
            placements.append(split_kv(Placement(shares[key], card), worth, ram_bytes))
    return Grid(
        device=report.device if report is not None else CPU,
        num_experts=needs.num_all_slots,
        vram_budgets=vram_budgets,
        ram_budgets=ram_budgets,
        automatic_vram=(
            card_under(needs, report, None).share.budget_bytes if report is not None else 0
        ),
        automatic_ram=tuple(automatic),
        placements=tuple(placements),
    )


def curve_over(
    kind: PlanKind, grid: Grid, forecast: Callable[[Placement], Forecast]
) -> BudgetCurve:
    """Return the grid with what is predicted for each placement that can be loaded."""
    loadable = [place if place.ram.is_large_enough else None for place in grid.placements]
    predicted = [forecast(place) if place is not None else None for place in loadable]
    return BudgetCurve(
        kind=kind,
        device=grid.device,
        num_experts=grid.num_experts,
        vram_budgets=list(grid.vram_budgets),
        ram_budgets=list(grid.ram_budgets),
        automatic_vram=grid.automatic_vram,
        automatic_ram=list(grid.automatic_ram),
        num_in_vram=[place.num_in_vram if place is not None else 0 for place in loadable],
        num_in_ram=[place.num_in_ram if place is not None else 0 for place in loadable],
        context_tokens=[
            place.home.division.context_tokens if place is not None else 0 for place in loadable
        ],
        prompt_tokens_per_s_low=_column(predicted, lambda each: each.prompt_tokens_per_s_low),
        prompt_tokens_per_s_high=_column(predicted, lambda each: each.prompt_tokens_per_s_high),
        decode_tokens_per_s_low=_column(predicted, lambda each: each.decode_tokens_per_s_low),
        decode_tokens_per_s_high=_column(predicted, lambda each: each.decode_tokens_per_s_high),
        drive_bytes_per_token=_column(predicted, lambda each: each.drive_bytes_per_token),
    )


def _column(predicted: list[Forecast | None], value: Callable[[Forecast], float]) -> list[float]:
    return [value(each) if each is not None else 0.0 for each in predicted]


def _vram_budgets(
    needs: Needs, report: DeviceReport | None, room: Room, worth: Worth | None
) -> tuple[int, ...]:
    """Return 0 and, where the device can be of use, steps from the least to the most."""
    if report is None:
        return (0,)
    card = card_under(needs, report, None)
    alone = split_kv(Placement(ram_beside(needs, room, card, None), card), worth, None)
    share, least = card.share, alone.card.least_bytes if alone.card else 0
    most = min(share.needs.all_bytes, share.room.largest_bytes)
    return (0,) if most < least else (0, *_steps(least, most, NUM_VRAM_BUDGETS - 1))


def _steps(least: int, most: int, number: int) -> tuple[int, ...]:
    """Return ascending budgets at equal distances; one where there is no more than the least."""
    span = most - least
    if span <= 0:
        return (least,)
    return tuple(least + span * step // (number - 1) for step in range(number))
