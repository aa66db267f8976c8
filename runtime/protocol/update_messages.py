"""The messages about newer versions of the program itself; see ``messages``."""

from runtime.protocol.base import Command, Reply
from runtime.protocol.values import Value


class ProgramUpdate(Value):
    """A newer version, as its makers' signed list names it."""

    version: str
    notes: str
    """What changes for a person, as plain text."""
    file: str
    """Its name, below the list's address."""
    size_bytes: int
    sha256: str


class CheckForUpdate(Command):
    """Look for a newer version. Closed by ``UpdateChecked`` or ``HubCancelled``.

    ``address`` is the place of the list, ``key`` the public key that has to have signed it (32
    bytes as Base64), ``version`` the one that runs, and ``package`` the kind of file wanted.
    """

    address: str
    key: str
    version: str
    package: str


class FetchUpdate(Command):
    """Bring a newer version into a folder. Closed by ``UpdateFetched`` or ``DownloadPaused``.

    An archive is unpacked too where ``unpack_beside`` names the folder of the program: into one of
    that name with ``.new`` at its end, in which a file ``.ready`` is the last that is written.
    """

    address: str
    update: ProgramUpdate
    folder: str
    unpack_beside: str = ""


class UpdateChecked(Reply):
    """What was found: None where the version that runs is the newest of its kind."""

    update: ProgramUpdate | None = None


class UpdateFetched(Reply):
    """The file is there, as its makers signed it; or the folder that it was unpacked to."""

    path: str
