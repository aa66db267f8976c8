"""What each figure of this PC means: what to type, for example, and what holds without it."""

from app.text.words import Word


class FigureHints:
    """One hint for each figure."""

    RAM_TOTAL = Word(
        "Memory of the whole PC, for example 32. Empty: as the system tells it. Where you type it, "
        "the system's own limit no longer counts."
    )
    RAM_AVAILABLE = Word(
        "What of the memory models may take, for example 20. Empty: looked up for every plan."
    )
    RAM_LIMIT = Word(
        "The most that this program may take of the memory, as in a container, for example 12. "
        "Empty: the system's own limit, if it has one."
    )
    RAM_READ = Word(
        "How fast the processor reads memory, for example 40. Experts in RAM answer no faster. "
        "Empty: as measured."
    )
    DRIVE_TOTAL = Word(
        "Size of the drive that models lie on, for example 1000. Empty: as the system tells it."
    )
    DRIVE_FREE = Word(
        "Room that is left on it for copies, for example 200. Empty: looked up for every plan."
    )
    DRIVE_READ = Word(
        "How fast the drive gives parts of a model, for example 3.5. Empty: as measured."
    )
    DRIVE_MOST = Word(
        "Models are really read no faster than this, for example 2, so that the drive stays cool "
        "or has time for other programs. Empty: as fast as it can."
    )
    DRIVE_READERS = Word(
        "How many parts of a model are read at the same time while an answer waits for them: 1 to "
        "8, for example 4. Empty: tried out while a model loads."
    )
    DRIVE_JOULES = Word(
        "Joules for 1 GB that is read (a joule is a watt for a second). Solid-state drives take "
        "0.7 to 2.2, so for example 1.5. Empty: as assumed at the right."
    )
    CORES = Word("Cores that plans count with, for example 8. Empty: all that this PC has.")
    THREADS = Word(
        "How many threads compute at once, for example 6. Fewer leave more of the processor to "
        "other programs. Empty: one for each core."
    )
    INSTRUCTIONS = Word(
        "Which arithmetic of the processor is used: type avx512, avx2 or portable; the last runs "
        "everywhere and is the slowest. Empty: the fastest that this processor has."
    )
    PC_WATTS = Word(
        "What a meter at the socket shows while an answer is written, less the graphics card, for "
        "example 90. It counts where nothing in the PC measures the processor. Empty: as assumed "
        "at the right."
    )
    REST_WATTS = Word(
        "Mainboard, fans, drives and what the power supply loses, together, for example 30. It is "
        "added where the processor measures itself, since that leaves these out. Empty: as assumed "
        "at the right, or less where the whole PC takes less."
    )
    SOURCES = Word(
        "Meters built into this PC that tell the energy of an answer. Type those that are right, "
        "with commas between them, by the names at the right, for example rapl:package-0 or "
        "battery. Type none where all are wrong: then the power of the whole PC is assumed. Empty: "
        "all that are there. Graphics cards always count."
    )
    CARD_TOTAL = Word("Memory of the graphics card, for example 8. Empty: as its driver tells it.")
    CARD_FREE = Word("What of it models may take, for example 7. Empty: looked up for every plan.")
    CARD_LINK = Word(
        "How fast data goes from RAM to the graphics card, for example 12. Empty: as measured "
        "at the first start and whenever a model is loaded there."
    )
    CARD_LINK_BACK = Word(
        "How fast data comes back from the graphics card to RAM, for example 12. Empty: as "
        "measured at the first start and whenever a model is loaded there."
    )
    CARD_READ = Word(
        "How fast the graphics card reads its own memory, for example 400; its data sheet calls it "
        "bandwidth. Empty: as found."
    )
    CARD_WATTS = Word(
        "What the graphics card takes while it computes, for example 170. Forecasts count with it; "
        "answers are measured where the card can. Empty: as assumed at the right."
    )


_NAMES = {
    "ram.total_gib": "RAM_TOTAL",
    "ram.available_gib": "RAM_AVAILABLE",
    "ram.limit_gib": "RAM_LIMIT",
    "ram.read_gb_per_s": "RAM_READ",
    "drive.total_gib": "DRIVE_TOTAL",
    "drive.free_gib": "DRIVE_FREE",
    "drive.read_gb_per_s": "DRIVE_READ",
    "drive.most_gb_per_s": "DRIVE_MOST",
    "drive.num_readers": "DRIVE_READERS",
    "drive.joules_per_gb": "DRIVE_JOULES",
    "num_physical_cores": "CORES",
    "num_threads": "THREADS",
    "instruction_set": "INSTRUCTIONS",
    "pc_watts": "PC_WATTS",
    "rest_watts": "REST_WATTS",
    "energy_sources": "SOURCES",
}
_CARD_NAMES = {
    "total_gib": "CARD_TOTAL",
    "free_gib": "CARD_FREE",
    "link_gb_per_s": "CARD_LINK",
    "link_back_gb_per_s": "CARD_LINK_BACK",
    "read_gb_per_s": "CARD_READ",
    "work_watts": "CARD_WATTS",
}
_ALWAYS_SHOWN = frozenset(
    {
        *("drive.most_gb_per_s", "drive.num_readers", "drive.joules_per_gb"),
        *("num_threads", "instruction_set", "energy_sources", "pc_watts", "rest_watts"),
    }
)
"""Figures whose names alone would not be understood."""


def word_of(name: str) -> str:
    """Return the word that a figure goes by in ``FigureWords`` and here; none for another name."""
    if name.startswith("cards["):
        return _CARD_NAMES.get(name.rpartition(".")[2], "")
    return _NAMES.get(name, "")


def figure_hint(name: str) -> str:
    """What a figure means, with an example, and what holds where nothing is typed."""
    word = word_of(name)
    return str(getattr(FigureHints, word)) if word else ""


def is_hint_shown(name: str) -> bool:
    """Whether a hint stands below its field, and not in the tooltip alone."""
    return name in _ALWAYS_SHOWN
