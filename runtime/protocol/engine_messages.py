"""The messages about the engine for graphics cards, which packages lack; see ``messages``."""

from runtime.protocol.base import Command, Reply
from runtime.protocol.values import Value


class EnginePart(Value):
    """One Python package of the engine, as whoever made the program wrote it down."""

    file: str
    url: str
    size_bytes: int
    sha256: str


class FetchEngine(Command):
    """Bring the engine and try it. Closed by ``EngineFetched`` or ``DownloadPaused``.

    ``folder`` is there afterwards only if the engine starts and finds a card.
    """

    parts: list[EnginePart]
    folder: str


class EngineFetched(Reply):
    """The engine is there and works with this card."""

    folder: str
    version: str
    card: str
