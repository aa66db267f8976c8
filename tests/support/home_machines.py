"""Home PCs as the planner sees them, measured as such PCs usually are."""

import dataclasses

import msgspec

from runtime.protocol.machine import DeviceReport, MachineReport, Measured
from tests.support.plan_cases import GIB, machine
from tests.support.published_facts import FOLDER


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Home:
    """One PC: sizes in GiB, rates in GB/s, and what a good plan for it is."""

    about: str
    """What is expected of plans here, for whoever reviews them."""
    total: float
    available: float
    limit: float | None = None
    ram_rate: float
    cores: int
    drive_rate: float
    cards: tuple["Card", ...] = ()
    instruction_set: str = "avx2"

    def machine(self) -> MachineReport:
        """Return its report."""
        here = machine(
            total_gib=self.total,
            available_gib=self.available,
            limit_gib=self.limit,
            ram_gb_per_s=self.ram_rate,
            drive_gb_per_s=self.drive_rate,
            kernels=f"native-{self.instruction_set}",
            devices=tuple(card.device(index) for index, card in enumerate(self.cards)),
        )
        (drive,) = here.drives
        roomy = msgspec.structs.replace(
            drive, folder=FOLDER, free_bytes=4000 * GIB, total_bytes=8000 * GIB
        )
        return msgspec.structs.replace(
            here,
            num_physical_cores=self.cores,
            num_logical_cores=2 * self.cores,
            instruction_set=self.instruction_set,
            drives=[roomy],
        )


@dataclasses.dataclass(frozen=True, slots=True)
class Card:
    """A graphics card: GiB in all and free, GB/s of its memory and of the link."""

    name: str
    total: float
    free: float
    rate: float
    link: float

    def device(self, index: int) -> DeviceReport:
        """Return its report; the first one is that which plans use."""
        return DeviceReport(
            device=f"cuda:{index}",
            name=self.name,
            total_bytes=int(self.total * GIB),
            free_bytes=int(self.free * GIB),
            link_bytes_per_s=_measured(self.link * 1e9),
            read_bytes_per_s=_measured(self.rate * 1e9),
            is_used=index == 0,
        )


def _measured(value: float) -> Measured:
    return Measured(value=value, method="stated")


HOMES = {
    "laptop-8": Home(
        about="A small model whole, one of 30 billions read in few bits; all others are refused.",
        total=8, available=5, ram_rate=25, cores=4, drive_rate=1.8,
    ),
    "laptop-16-gpu-6": Home(
        about="The card takes the dense part of middling models and some experts.",
        total=16, available=11, ram_rate=40, cores=6, drive_rate=3.0,
        cards=(Card("Laptop card", 6, 5.3, 336, 11.8),),
    ),
    "desktop-32-gpu-8": Home(
        about="A model of 30 billions hardly reads, its dense part and hot experts on the card.",
        total=32, available=26, ram_rate=45, cores=8, drive_rate=3.2,
        cards=(Card("Card of 8", 8, 7.2, 448, 25),),
    ),
    "desktop-32-gpu-12": Home(
        about="As with 8, more experts on the card.",
        total=32, available=26, ram_rate=45, cores=8, drive_rate=3.2,
        cards=(Card("Card of 12", 12, 11.2, 360, 25),),
    ),
    "desktop-64-gpu-16": Home(
        about="Of the models of 100 billions, that whose dense part the card takes needs no drive.",
        total=64, available=56, ram_rate=70, cores=8, drive_rate=5.9,
        cards=(Card("Card of 16", 16, 15.2, 896, 50),),
    ),
    "desktop-64-gpu-24": Home(
        about="Small models live on the card alone.",
        total=64, available=56, ram_rate=70, cores=12, drive_rate=7.0,
        cards=(Card("Card of 24", 24, 22.8, 1008, 25),),
    ),
    "apple-16": Home(
        about="One memory, no card of its own: nothing is called VRAM and nothing counts twice.",
        total=16, available=10, ram_rate=60, cores=8, drive_rate=2.9, instruction_set="neon",
    ),
    "apple-64": Home(
        about="As with 16, with room for a model of 47 billions in 4 bits; larger ones read.",
        total=64, available=52, ram_rate=250, cores=12, drive_rate=6.0, instruction_set="neon",
    ),
    "apu-128": Home(
        about="128 GiB shared with integrated graphics, which is no card: all of it counts as RAM.",
        total=124, available=114, ram_rate=110, cores=16, drive_rate=6.5, instruction_set="avx512",
    ),
    "wsl-limit": Home(
        about="Half of a PC's memory is given to the guest; only that counts.",
        total=15.6, available=14.2, ram_rate=45, cores=8, drive_rate=1.2,
    ),
    "container-3": Home(
        about="A control group of 3 GiB on a large machine: the limit counts, not the machine.",
        total=64, available=2.8, limit=3, ram_rate=20, cores=2, drive_rate=0.6,
    ),
    "two-gpus": Home(
        about="The first card is used, the other is named.",
        total=64, available=56, ram_rate=60, cores=8, drive_rate=5.0,
        cards=(Card("First card", 12, 11.2, 360, 25), Card("Second card", 8, 7.5, 448, 12)),
    ),
    "usb-drive": Home(
        about="The drive is so slow that few bits in RAM are better than exact weights on it.",
        total=32, available=26, ram_rate=45, cores=8, drive_rate=0.4,
    ),
}  # fmt: skip
