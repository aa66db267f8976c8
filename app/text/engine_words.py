"""Words about the engine for graphics cards."""

from app.text import units
from app.text.translate import tr
from app.text.words import Word


class EngineWords:
    """Fixed words."""

    TITLE = Word("Graphics card")
    FETCH = Word("Download the engine for the card")
    STOP = Word("Stop")
    GIVE_BACK = Word("Remove it again")
    SHOW = Word("What it takes")
    PREPARING = Word("Unpacking it and trying it on the card…")
    READY = Word(
        "The engine for graphics cards is here. It is used from the next start of Larder on."
    )
    GIVEN_BACK = Word(
        "The engine for graphics cards is removed at the next start; Larder then computes on the "
        "processor again."
    )


def found(card: str) -> str:
    """Say that a card is not used."""
    return tr(
        "{card} is not used yet: the engine that came with Larder computes on the processor."
    ).format(card=card)


def offered(card: str, size_bytes: int, source: str) -> str:
    """Say what it would take to use a card."""
    return tr(
        "{card} is not used yet: the engine that came with Larder computes on the processor. The "
        "one for graphics cards is {size} from {source}. Each of its files is compared with what "
        "the makers of this program wrote down, it is tried before it is used, and it can be "
        "removed again."
    ).format(card=card, size=units.size(size_bytes), source=source)


def fetching(done_bytes: int, size_bytes: int) -> str:
    """Say how far the download is."""
    if done_bytes >= size_bytes:
        return EngineWords.PREPARING
    return tr("Downloading: {amount}").format(amount=units.size_of(done_bytes, size_bytes))
