"""Words of ordering a copy of mixed bits."""

from app.text.phrases import DOT, LEAST_LEFT_S
from app.text.translate import tr
from app.text.units import count, duration
from app.text.words import Word


class MixWords:
    """The card below the plans."""

    TITLE = Word("A copy of mixed bits")
    EXPLAINED = Word(
        "A text is read with the model, and parts are rounded one by one, to learn which experts "
        "and matrices count; they get more bits, the others fewer, so that all weights take the "
        "size you choose. How long that takes depends on the model and this PC: the time left is "
        "shown once it is known. It can be stopped at any moment and goes on where it was."
    )
    SIZE = Word("All weights in")
    TEXT = Word("Text that is read")
    OURS = Word("The one that comes with Larder")
    YOURS = Word("A text of yours…")
    FILES = Word("Texts (*.txt *.md);;All files (*)")
    ORDER = Word("Write the mix and start")
    READING_TEXT = Word("Reading the text")
    TRYING_PARTS = Word("Trying which parts answers depend on")
    TRYING_FORMATS = Word("Trying how many bits each part needs")


def bits_of(bits: float) -> str:
    """For example ``about 4.2 bits a weight``."""
    return tr("about {bits} bits a weight").format(bits=f"{bits:.1f}")


def tokens_read(done: int, total: int, seconds_left: float | None) -> str:
    """For example ``1,204 of 8,192 tokens · 2 min 10 s left for reading``."""
    parts = [tr("{used} of {total} tokens").format(used=count(done), total=count(total))]
    if seconds_left is not None and seconds_left >= LEAST_LEFT_S:
        parts.append(tr("{time} left for reading").format(time=duration(seconds_left)))
    return DOT.join(parts)


def parts_tried(done: int, total: int, seconds_left: float | None) -> str:
    """For example ``5 of 18 parts · 3 min left``."""
    parts = [tr("{used} of {total} parts").format(used=count(done), total=count(total))]
    if seconds_left is not None and seconds_left >= LEAST_LEFT_S:
        parts.append(tr("{time} left").format(time=duration(seconds_left)))
    return DOT.join(parts)
