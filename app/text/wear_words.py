"""Words of what was read from and written to drives, and what that does to them."""

from app.state.drive_wear import TYPICAL_ENDURANCE_TB, wear_ratio
from app.state.energy_book import EnergySum
from app.text.drive_phrases import gigabytes
from app.text.translate import tr
from app.text.words import Word

_SPACE = "\N{NO-BREAK SPACE}"
_LEAST_RATIO = 0.000005


class WearWords:
    """The setting."""

    ENDURANCE = Word("What your drive is made to bear, in TB written")
    ENDURANCE_HINT = Word(
        "TBW in its data sheet. 0 takes 300, which is typical of a drive of 500 GB; shares of it "
        "are then marked as estimated."
    )


def moved(num_bytes: float) -> str:
    """An amount of bytes in GB or MB, ``nothing`` for none."""
    return gigabytes(num_bytes / 1e9) if num_bytes else tr("nothing")


def wear_lines(session: EnergySum, month: EnergySum, endurance_tb: float) -> str:
    """What session and month read and wrote, and what the writing does to the drive."""
    if not month.num_answers and not month.drive_bytes_written:
        return ""
    texts = [
        name.format(read=moved(each.drive_bytes_read), written=moved(each.drive_bytes_written))
        for name, each in (
            (tr("This session read {read} from drives and wrote {written}"), session),
            (tr("this month {read} and {written}"), month),
        )
    ]
    return f"{', '.join(texts)}. {wear_line(month.drive_bytes_written, endurance_tb)}"


def wear_line(num_bytes: int, endurance_tb: float) -> str:
    """For example ``Reading wears no drive. Written was 0.002 % of the 300 TB it is made to …``."""
    if not num_bytes:
        return tr("Reading does not wear a drive.")
    text = (
        tr("Reading does not wear a drive; what was written is {share} of the {total} TB it bears")
        if endurance_tb
        else tr(
            "Reading does not wear a drive; what was written is about {share} of the {total} TB"
            " that a typical one bears (estimated)"
        )
    )
    total = endurance_tb or TYPICAL_ENDURANCE_TB
    return text.format(share=share(wear_ratio(num_bytes, endurance_tb)), total=f"{total:g}") + "."


def share(ratio: float) -> str:
    """A small part: ``0.002 %``; below that it says so."""
    if ratio < _LEAST_RATIO:
        return f"<0.001{_SPACE}%"
    digits = 3 if ratio < 0.001 else 2 if ratio < 0.1 else 0
    return f"{ratio * 100:.{digits}f}{_SPACE}%"
