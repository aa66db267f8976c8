"""Where the parts of a model go: the device first, then RAM, the rest stays on the drive."""

import dataclasses
from collections.abc import Sequence

from runtime.plan.kv_split import Contest, Worth, layers_in_ram
from runtime.plan.memory import (
    Division,
    Needs,
    Room,
    divide,
    moved_kv_bytes,
    parts_of,
    room_of,
    smallest,
    vram_room_of,
)
from runtime.protocol.machine import DeviceReport, MachineReport
from runtime.protocol.model import TierShare
from runtime.protocol.plan import MemoryPart
from runtime.protocol.values import Budgets, Tier
from runtime.spec.ram_slots import even_slots

CPU = "cpu"


@dataclasses.dataclass(frozen=True, slots=True)
class Share:
    """What a plan takes of one memory: its needs there, the budget in force, the division."""

    needs: Needs
    room: Room
    budget_bytes: int
    division: Division

    @property
    def parts(self) -> dict[MemoryPart, int]:
        """What each part takes."""
        return parts_of(self.needs, self.division)

    @property
    def num_bytes(self) -> int:
        """What all parts take together."""
        return sum(self.parts.values())

    @property
    def num_slots(self) -> int:
        """Expert slots of all layers."""
        return sum(self.division.slots_per_layer)

    @property
    def is_large_enough(self) -> bool:
        """Whether the budget reaches the smallest division."""
        return self.budget_bytes >= self.needs.min_bytes

    @property
    def is_shortened(self) -> bool:
        """Whether the context that lies here is shorter than wanted."""
        return self.division.context_tokens < self.needs.wanted_context_tokens


@dataclasses.dataclass(frozen=True, slots=True)
class Card:
    """A device that plans may use, with its share of the model."""

    report: DeviceReport
    share: Share
    is_used: bool
    """Whether the budget is not 0 and holds at least what every token uses."""
    least_bytes: int
    """The smallest budget with which it is of use."""


@dataclasses.dataclass(frozen=True, slots=True)
class Placement:
    """The shares of RAM and, if there is one, of the device.

    VRAM is a cache above RAM: what it holds was copied from RAM slots and may lie there too, until
    the slot is wanted for an expert that lies nowhere else.
    """

    ram: Share
    card: Card | None

    @property
    def used(self) -> Card | None:
        """The device if it is used."""
        return self.card if self.card is not None and self.card.is_used else None

    @property
    def home(self) -> Share:
        """The share that holds the dense part and the context."""
        return self.used.share if self.used else self.ram

    @property
    def device(self) -> str:
        """Where the dense part and the KV cache lie."""
        return self.used.report.device if self.used else CPU

    @property
    def num_in_vram(self) -> int:
        """Experts on the device."""
        return self.used.share.num_slots if self.used else 0

    @property
    def num_in_ram(self) -> int:
        """Experts that RAM holds beside those on the device."""
        slots = self.ram.division.slots_per_layer
        if self.used is None:
            return sum(slots)
        num_experts = self.ram.needs.spec.num_experts
        above = self.used.share.division.slots_per_layer
        return sum(
            min(here, num_experts - hotter) for here, hotter in zip(slots, above, strict=True)
        )

    def tiers(self, drive_bytes: int, folder: str) -> list[TierShare]:
        """Return what each tier holds, each expert counted once, where it is hottest.

        ``drive_bytes`` is what one expert takes on the drive, whose tier is shown only if it holds
        something that no other does.
        """
        record_bytes = self.ram.needs.mean_record_bytes
        num_absent = self.ram.needs.num_all_slots - self.num_in_vram - self.num_in_ram
        shares = [(Tier.RAM, CPU, self.num_in_ram, record_bytes)]
        if self.used:
            shares.insert(0, (Tier.VRAM, self.device, self.num_in_vram, record_bytes))
        if num_absent:
            shares.append((Tier.DRIVE, folder, num_absent, drive_bytes))
        return [
            TierShare(tier=tier, device=device, num_experts=number, bytes=number * expert_bytes)
            for tier, device, number, expert_bytes in shares
        ]


def place(
    needs: Needs, machine: MachineReport, budgets: Budgets, worth: Worth | None = None
) -> Placement:
    """Place a model of which ``needs`` says what RAM alone would have to hold.

    A share whose budget is too small shows its smallest division. ``worth`` tells what a token
    saves by what lies on the device; without it all keys and values lie there.
    """
    report = usable_device(machine.devices)
    card = (
        None if report is None else card_under(needs, report, budgets.vram_bytes.get(report.device))
    )
    ram = ram_beside(needs, room_of(machine), card, budgets.ram_bytes)
    return split_kv(Placement(ram, card), worth, budgets.ram_bytes)


def split_kv(placement: Placement, worth: Worth | None, given_bytes: int | None) -> Placement:
    """Return a placement with keys and values in RAM where experts are worth more on the device.

    So they are too where the device has room for what every token uses, and not for a context: it
    is used then. RAM takes keys and values only beside all experts: reading those from the drive
    would cost more than is saved. ``given_bytes`` is the person's budget of RAM.
    """
    card = placement.card
    if worth is None or card is None:
        return placement
    ram = placement.ram
    if not card.is_used:
        ram = _share(beside_card(ram.needs), ram.room, given_bytes)
    needs = card.share.needs
    spare_bytes = _contest(ram, card.share, given_bytes).spare_bytes
    least_kv_bytes = needs.kv_bytes(needs.min_context_tokens)
    if least_kv_bytes <= spare_bytes:
        card = dataclasses.replace(card, least_bytes=needs.min_bytes - least_kv_bytes)
    if not card.is_used:
        return _with_room_made(Placement(placement.ram, card), card, ram, worth, given_bytes)
    contest = _contest(ram, card.share, given_bytes)
    layers = layers_in_ram(worth, contest)
    placement = Placement(ram, card)
    return _with_kv_in_ram(placement, card, contest, layers, given_bytes) if layers else placement


def _with_room_made(
    placement: Placement, card: Card, ram: Share, worth: Worth, given_bytes: int | None
) -> Placement:
    """Return a placement that uses a device whose budget holds no context, if RAM can hold it.

    ``ram`` is the share of RAM beside such a device. The context is the wanted one, else the
    shortest.
    """
    needs, budget_bytes = card.share.needs, card.share.budget_bytes
    if not budget_bytes or budget_bytes < card.least_bytes:
        return placement
    contest = _contest_with(ram, card, needs.wanted_context_tokens, given_bytes)
    is_short_of = needs.kv_bytes(contest.context_tokens) > contest.spare_bytes
    if contest.room_bytes < 0 or is_short_of:
        contest = _contest_with(ram, card, needs.min_context_tokens, given_bytes)
    division = Division(smallest(needs).slots_per_layer, contest.context_tokens)
    used = dataclasses.replace(
        card, share=dataclasses.replace(card.share, division=division), is_used=True
    )
    layers = layers_in_ram(worth, contest)
    return _with_kv_in_ram(Placement(ram, used), used, contest, layers, given_bytes)


def _contest_with(ram: Share, card: Card, context_tokens: int, given_bytes: int | None) -> Contest:
    """Return what is shared on a device if the context were so long."""
    division = Division(card.share.division.slots_per_layer, context_tokens)
    return _contest(ram, dataclasses.replace(card.share, division=division), given_bytes)


def _contest(ram: Share, device: Share, given_bytes: int | None) -> Contest:
    needs, context_tokens = device.needs, device.division.context_tokens
    most_bytes = ram.room.default_bytes if given_bytes is None else ram.budget_bytes
    fixed_bytes = needs.dense_bytes + needs.work_bytes(context_tokens)
    return Contest(
        spec=needs.spec,
        context_tokens=context_tokens,
        room_bytes=device.budget_bytes - fixed_bytes,
        record_bytes=needs.record_bytes,
        num_slots=needs.num_all_slots,
        spare_bytes=most_bytes - ram.needs.all_bytes,
    )


def _with_kv_in_ram(
    placement: Placement,
    card: Card,
    contest: Contest,
    layers: tuple[int, ...],
    given_bytes: int | None,
) -> Placement:
    """Return a placement whose device gives the room of some layers' keys and values to experts."""
    ram, share, tokens = placement.ram, card.share, contest.context_tokens
    division = dataclasses.replace(share.division, ram_kv_layers=layers)
    moved_bytes = moved_kv_bytes(share.needs, division)
    kv_bytes = share.needs.kv_bytes(tokens) - moved_bytes
    num_slots = share.needs.slots_within(contest.room_bytes - kv_bytes)
    slots = even_slots(min(contest.num_slots, num_slots), len(share.needs.spec.moe_layers))
    division = dataclasses.replace(division, slots_per_layer=tuple(slots))
    here = dataclasses.replace(ram.division, context_tokens=tokens, ram_kv_layers=layers)
    more_bytes = moved_bytes if given_bytes is None else 0
    return Placement(
        dataclasses.replace(ram, division=here, budget_bytes=ram.budget_bytes + more_bytes),
        dataclasses.replace(card, share=dataclasses.replace(share, division=division)),
    )


def card_under(needs: Needs, report: DeviceReport, given_bytes: int | None) -> Card:
    """Return what a device gets under a budget; None lets the planner choose."""
    on_device = dataclasses.replace(needs, num_min_slots=0, has_policy=False)
    share = _share(on_device, vram_room_of(report), given_bytes)
    is_used = share.is_large_enough and given_bytes != 0
    return Card(report, share, is_used, on_device.min_bytes)


def ram_beside(needs: Needs, room: Room, card: Card | None, given_bytes: int | None) -> Share:
    """Return what RAM gets under a budget, beside a card if one is used."""
    if card is not None and card.is_used:
        needs = beside_card(needs)
        if given_bytes is None and card.share.num_slots == needs.num_all_slots:
            # Nothing is ever missed: RAM is only the way to the device.
            return Share(needs, room, min(room.default_bytes, needs.min_bytes), smallest(needs))
    return _share(needs, room, given_bytes)


def card_that_helps(placement: Placement, ram_bytes: int) -> Card | None:
    """Return the unused card with which so much RAM would do, if its room allows that."""
    card = placement.card
    if card is None or card.is_used or beside_card(placement.ram.needs).min_bytes > ram_bytes:
        return None
    return card if card.share.room.largest_bytes >= card.least_bytes else None


def usable_device(devices: Sequence[DeviceReport]) -> DeviceReport | None:
    """Return the device that plans may use, None if the engine can drive none."""
    return next((device for device in devices if device.is_used), None)


def beside_card(needs: Needs) -> Needs:
    """Return what RAM has to hold beside a card in use."""
    return dataclasses.replace(needs, dense_bytes=0, has_context=False)


def _share(needs: Needs, room: Room, given_bytes: int | None) -> Share:
    budget = room.budget(given_bytes, needs)
    division = divide(needs, budget) if budget >= needs.min_bytes else smallest(needs)
    return Share(needs, room, budget, division)
