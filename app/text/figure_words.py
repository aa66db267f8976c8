"""Words of the figures of this PC and of stating others."""

from app.text.figure_hints import word_of
from app.text.method_words import method_name, not_measured
from app.text.phrases import DOT
from app.text.translate import tr, trn
from app.text.words import Word
from runtime.protocol.figure_messages import Figure, FigureUnit, StatedFigures

_SPACE = "\N{NO-BREAK SPACE}"
_WHOLE_FROM = 1000
"""From here on four digits are a whole number, which is written out."""


class FigureWords:
    """The card."""

    TITLE = Word("This PC")
    EXPLAINED = Word(
        "What was found and measured here. Where a figure is wrong, type a better one: it counts "
        "from the next plan and the next load on. An empty field takes what was found."
    )
    AGAIN = Word("Measure again")
    MEASURING = Word("Measuring, a few seconds…")
    RESET = Word("Use what was found")
    EMPTY = Word("as found")
    A_NUMBER = Word("a number")
    NOT_FOUND = Word("not found")
    NOT_MEASURED = Word("not measured yet")
    NO_LIMIT = Word("no limit")
    CHOSEN = Word("chosen while loading")
    KEPT_IN = Word("What you type is kept in")
    FIXED = Word("A machine profile was named for this run, so nothing can be changed here:")
    RAM_TOTAL = Word("RAM")
    RAM_AVAILABLE = Word("RAM that models may take now")
    RAM_LIMIT = Word("Limit of RAM for this program")
    RAM_READ = Word("Speed of reading RAM")
    DRIVE_TOTAL = Word("Size of the drive")
    DRIVE_FREE = Word("Free on the drive")
    DRIVE_READ = Word("Speed of reading the drive")
    DRIVE_MOST = Word("Read the drive no faster than")
    DRIVE_READERS = Word("Reads of the drive at the same time")
    DRIVE_JOULES = Word("Energy of reading from the drive")
    CORES = Word("Processor cores that compute")
    THREADS = Word("Threads that compute")
    INSTRUCTIONS = Word("Arithmetic of the processor")
    PC_WATTS = Word("Power of the whole PC, without its graphics card")
    REST_WATTS = Word("Power of all but processor, memory and graphics card")
    SOURCES = Word("Energy meters that count")
    CARD_TOTAL = Word("VRAM")
    CARD_FREE = Word("VRAM that models may take now")
    CARD_LINK = Word("Speed of copying to the graphics card")
    CARD_LINK_BACK = Word("Speed of copying back from the graphics card")
    CARD_READ = Word("Speed of the graphics card's own memory")
    CARD_WATTS = Word("Power of the graphics card at work")


def figure_name(name: str) -> str:
    """What a figure is called; a card's says which."""
    word = word_of(name)
    if not word:
        return name
    text = str(getattr(FigureWords, word))
    device = name.removeprefix("cards[").partition("].")[0]
    return f"{text} ({device})" if name.startswith("cards[") else text


def unit_name(unit: FigureUnit) -> str:
    """GiB, GB/s, nothing."""
    names = {
        FigureUnit.GIB: "GiB",
        FigureUnit.GB_PER_S: "GB/s",
        FigureUnit.WATT: "W",
        FigureUnit.J_PER_GB: "J/GB",
    }
    return names.get(unit, "")


def figure_amount(value: float, unit: FigureUnit) -> str:
    """For example ``29.5 GB/s``."""
    return f"{figure_number(value, unit)}{_SPACE}{unit_name(unit)}".strip()


def stated_line(stated: StatedFigures) -> str:
    """Below plans: how many figures are not those that were found, and where they are stated."""
    number = len(stated.figures)
    if stated.is_fixed:
        text = trn(
            "{count} figure of this PC is stated in {file} and counts in place of what was found.",
            "{count} figures of this PC are stated in {file} and count in place of what was found.",
            number,
        )
    else:
        text = trn(
            "{count} figure of this PC is stated in the settings and counts in place of what was "
            "found.",
            "{count} figures of this PC are stated in the settings and count in place of what was "
            "found.",
            number,
        )
    return text.format(count=number, file=stated.file)


def stated_list(stated: StatedFigures) -> str:
    """Which they are, a line each: ``Speed of reading RAM: 40 GB/s; found: 29.5 GB/s``."""
    return "\n".join(
        tr("{figure}: {stated}; found: {found}").format(
            figure=figure_name(each.name), stated=_stated(each), found=figure_found(each)
        )
        for each in stated.figures
    )


def _stated(figure: Figure) -> str:
    if figure.stated is None:
        return figure.stated_text
    return figure_amount(figure.stated, figure.unit)


def figure_found(figure: Figure) -> str:
    """For example ``29.5 GB/s · measured, 2 threads, 256 MiB · 2 hours ago``."""
    if figure.unit is FigureUnit.TEXT:
        return figure.found_text or FigureWords.NOT_FOUND
    if figure.problem:
        return not_measured(figure.problem)
    if figure.found is None:
        absent = {
            "ram.limit_gib": FigureWords.NO_LIMIT,
            "drive.most_gb_per_s": FigureWords.NO_LIMIT,
            "drive.num_readers": FigureWords.CHOSEN,
        }
        is_rate = figure.unit is FigureUnit.GB_PER_S
        nothing = FigureWords.NOT_MEASURED if is_rate else FigureWords.NOT_FOUND
        return absent.get(figure.name, nothing)
    parts = [
        figure_amount(figure.found.value, figure.unit),
        method_name(figure.found.method),
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
