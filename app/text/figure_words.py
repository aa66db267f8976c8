"""Words of the figures of this PC and of stating others."""

from app.text.phrases import DOT
from app.text.translate import tr, trn
from app.text.words import Word
from runtime.protocol.figure_messages import Figure, FigureUnit

_SPACE = "\N{NO-BREAK SPACE}"
_WHOLE_FROM = 1000
"""From here on four digits are a whole number, which is written out."""


class FigureWords:
    """The card."""

    TITLE = Word("This PC")
    EXPLAINED = Word(
        "What was found and measured here, and what plans take instead where you state it. Changes "
        "count from the next plan and the next load on."
    )
    AGAIN = Word("Measure again")
    MEASURING = Word("Measuring, a few seconds…")
    RESET = Word("Take what was found")
    EMPTY = Word("as found")
    A_NUMBER = Word("a number")
    NOT_FOUND = Word("not found")
    NO_LIMIT = Word("no limit")
    CHOSEN = Word("chosen while loading")
    FIXED = Word("A machine profile was named for this run, so nothing can be changed here:")
    RAM_TOTAL = Word("RAM")
    RAM_AVAILABLE = Word("RAM that can be taken now")
    RAM_LIMIT = Word("Limit of RAM")
    RAM_READ = Word("Reading RAM")
    DRIVE_TOTAL = Word("Drive")
    DRIVE_FREE = Word("Free on the drive")
    DRIVE_READ = Word("Reading the drive")
    DRIVE_MOST = Word("Read the drive at most with")
    DRIVE_READERS = Word("Readers of the drive while an answer waits")
    DRIVE_JOULES = Word("Energy of reading the drive")
    CORES = Word("Cores that compute")
    THREADS = Word("Threads that compute")
    INSTRUCTIONS = Word("Instruction set")
    PC_WATTS = Word("Power of the PC at work, without its graphics card")
    REST_WATTS = Word("Power beside a measured processor")
    SOURCES = Word("Energy sources, cards aside (or none)")
    CARD_TOTAL = Word("VRAM")
    CARD_FREE = Word("VRAM that can be taken now")
    CARD_LINK = Word("Copying to the graphics card")
    CARD_LINK_BACK = Word("Copying back from the graphics card")
    CARD_READ = Word("The graphics card reading its memory")
    CARD_WATTS = Word("Power of the graphics card at work")


def figure_name(name: str) -> str:
    """What a figure is called; a card's says which."""
    names = {
        "ram.total_gib": FigureWords.RAM_TOTAL,
        "ram.available_gib": FigureWords.RAM_AVAILABLE,
        "ram.limit_gib": FigureWords.RAM_LIMIT,
        "ram.read_gb_per_s": FigureWords.RAM_READ,
        "drive.total_gib": FigureWords.DRIVE_TOTAL,
        "drive.free_gib": FigureWords.DRIVE_FREE,
        "drive.read_gb_per_s": FigureWords.DRIVE_READ,
        "drive.most_gb_per_s": FigureWords.DRIVE_MOST,
        "drive.num_readers": FigureWords.DRIVE_READERS,
        "drive.joules_per_gb": FigureWords.DRIVE_JOULES,
        "num_physical_cores": FigureWords.CORES,
        "num_threads": FigureWords.THREADS,
        "instruction_set": FigureWords.INSTRUCTIONS,
        "pc_watts": FigureWords.PC_WATTS,
        "rest_watts": FigureWords.REST_WATTS,
        "energy_sources": FigureWords.SOURCES,
    }
    cards = {
        "total_gib": FigureWords.CARD_TOTAL,
        "free_gib": FigureWords.CARD_FREE,
        "link_gb_per_s": FigureWords.CARD_LINK,
        "link_back_gb_per_s": FigureWords.CARD_LINK_BACK,
        "read_gb_per_s": FigureWords.CARD_READ,
        "work_watts": FigureWords.CARD_WATTS,
    }
    if name in names:
        return names[name]
    device, _, field = name.removeprefix("cards[").partition("].")
    return f"{cards[field]} ({device})" if field in cards else name


def unit_name(unit: FigureUnit) -> str:
    """GiB, GB/s, nothing."""
    names = {
        FigureUnit.GIB: "GiB",
        FigureUnit.GB_PER_S: "GB/s",
        FigureUnit.WATT: "W",
        FigureUnit.J_PER_GB: "J/GB",
    }
    return names.get(unit, "")


def figure_found(figure: Figure) -> str:
    """For example ``29.5 GB/s · measured, 2 threads, 256 MiB · 2 hours ago``."""
    if figure.unit is FigureUnit.TEXT:
        return figure.found_text or FigureWords.NOT_FOUND
    if figure.found is None:
        absent = {
            "ram.limit_gib": FigureWords.NO_LIMIT,
            "drive.most_gb_per_s": FigureWords.NO_LIMIT,
            "drive.num_readers": FigureWords.CHOSEN,
        }
        return absent.get(figure.name, FigureWords.NOT_FOUND)
    number = figure_number(figure.found.value, figure.unit)
    parts = [
        f"{number}{_SPACE}{unit_name(figure.unit)}".strip(),
        figure.found.method,
        "" if figure.found.age_s is None else age(figure.found.age_s),
    ]
    return DOT.join(part for part in parts if part)


def figure_number(value: float, unit: FigureUnit) -> str:
    """A number as it is typed: as many digits as matter."""
    if unit is FigureUnit.COUNT or abs(value) >= _WHOLE_FROM:
        return f"{value:.0f}"
    return f"{value:.4g}"


def age(seconds: float) -> str:
    """For example ``just now``, ``20 minutes ago``, ``3 days ago``."""
    minutes, hours, days = (int(seconds // unit) for unit in (60, 3600, 86_400))
    if days:
        return trn("{count} day ago", "{count} days ago", days).format(count=days)
    if hours:
        return trn("{count} hour ago", "{count} hours ago", hours).format(count=hours)
    if minutes:
        return trn("{count} minute ago", "{count} minutes ago", minutes).format(count=minutes)
    return tr("just now")
