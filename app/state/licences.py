"""The licences of everything that came along in a packaged program, for the About page."""

from pathlib import Path

import msgspec

_LIST = Path(__file__).resolve().parents[2] / "resources" / "licences.json"


class Component(msgspec.Struct, frozen=True, kw_only=True):
    """One thing inside the program."""

    name: str
    version: str
    licence: str
    """An SPDX expression, or the words of its makers."""
    files: tuple[str, ...]
    """Its texts: in the file below the list's folder, as read absolute."""


def read_components(path: Path = _LIST) -> tuple[Component, ...]:
    """Return what is inside, ourselves first; nothing where the program runs from its source.

    `installers/licences.py` writes the list. A list that cannot be read is as good as none.
    """
    try:
        found = msgspec.json.decode(path.read_bytes(), type=tuple[Component, ...])
    except (OSError, msgspec.DecodeError):
        return ()
    folder = path.parent
    return tuple(
        msgspec.structs.replace(
            one, files=tuple(str((folder / file).resolve()) for file in one.files)
        )
        for one in found
    )
