"""Words of the memory map, of reading ahead, and of saving what was measured."""

from app.graphs.series import WINDOW_S
from app.state.memory_map import MemoryKind
from app.text.drive_phrases import gigabytes
from app.text.monitor_words import DriveWords
from app.text.phrases import DOT
from app.text.translate import tr, trn
from app.text.units import count, percent, size
from app.text.words import Word


class MemoryWords:
    """The memory map."""

    TITLE = Word("Who holds the memory")
    EXPERTS = Word("experts")
    DENSE = Word("what every token uses")
    KV_CACHE = Word("the chat so far")
    WORK = Word("for computing")
    PROGRAM = Word("the program itself")
    OTHERS = Word("other programs, at the start")
    RESERVE = Word("left to the system")
    FREE = Word("free")


class ReadingWords:
    """What was read, and reading ahead."""

    TITLE = Word("Reading ahead")
    NOTHING = Word("No expert was read before it was needed in the last ten seconds.")
    EXPLAINED = Word(
        "Experts that the next layer will probably need are read while the drive has nothing else "
        "to do. Late: still being read when needed. Wasted: not needed."
    )


class SaveWords:
    """Saving what was measured."""

    MORE = Word("More for this page")
    WINDOW = Word("How far back the curves go")
    AS_TABLE = Word("Save the curves as a table…")
    AS_PICTURE = Word("Save this page as a picture…")
    TABLES = Word("Tables (*.csv)")
    PICTURES = Word("Pictures (*.png)")


def kind_name(kind: MemoryKind) -> str:
    """Who holds a part of a memory."""
    names = {
        MemoryKind.EXPERTS: MemoryWords.EXPERTS,
        MemoryKind.DENSE: MemoryWords.DENSE,
        MemoryKind.KV_CACHE: MemoryWords.KV_CACHE,
        MemoryKind.WORK: MemoryWords.WORK,
        MemoryKind.PROGRAM: MemoryWords.PROGRAM,
        MemoryKind.OTHERS: MemoryWords.OTHERS,
        MemoryKind.RESERVE: MemoryWords.RESERVE,
        MemoryKind.FREE: MemoryWords.FREE,
    }
    return names[kind]


def memory_part(kind: MemoryKind, num_bytes: int) -> str:
    """For example ``experts 8.6 GiB``."""
    return f"{kind_name(kind)} {size(num_bytes)}"


def memory_title(place: str, total_bytes: int) -> str:
    """For example ``RAM, 32.0 GiB``."""
    return tr("{place}, {size}").format(place=place, size=size(total_bytes))


def hints_line(useful: int, late: int, wasted: int) -> str:
    """For example ``412 experts · useful 61 % · late 30 % · wasted 9 %``."""
    total = useful + late + wasted
    if not total:
        return ReadingWords.NOTHING
    return DOT.join(
        (
            trn("{count} expert", "{count} experts", total).format(count=count(total)),
            tr("useful {share}").format(share=percent(useful / total)),
            tr("late {share}").format(share=percent(late / total)),
            tr("wasted {share}").format(share=percent(wasted / total)),
        )
    )


def read_line(num_bytes: float, window_s: float) -> str:
    """For example ``8.4 GB read from the drive in the last minute``."""
    if num_bytes <= 0:
        return DriveWords.NOTHING
    minutes = round(window_s / WINDOW_S)
    text = trn(
        "{amount} read from the drive in the last minute",
        "{amount} read from the drive in the last {count} minutes",
        minutes,
    )
    return text.format(amount=gigabytes(num_bytes / 1e9), count=minutes)


def window_name(window_s: float) -> str:
    """For example ``5 min``."""
    return tr("{minutes} min").format(minutes=round(window_s / WINDOW_S))
