"""What was installed here: which kind of package, where it lies, and where newer ones come from."""

import enum
from collections.abc import Mapping
from pathlib import Path

import msgspec

MARKER = Path(__file__).resolve().parents[2] / "resources" / "package.json"
"""Written by the recipes of installers; a program that runs from its source has none."""
PREVIOUS = ".previous"
"""What the version before is called beside a new one, until that has started once."""


class PackageKind(enum.StrEnum):
    """How the program came here."""

    APPIMAGE = "appimage"
    FOLDER = "folder"
    DEB = "deb"
    SETUP = "setup"
    """An installer of Windows, or a disk image of macOS."""


class Package(msgspec.Struct, frozen=True, kw_only=True):
    """The installed program."""

    kind: PackageKind
    place: Path
    """The file or folder that a newer version replaces."""
    system: str
    """As files are called: ``linux``, ``windows`` or ``macos``."""
    address: str = ""
    """Below it lie newer versions; empty where whoever made the package named none."""
    key: str = ""
    """The public key that signs them, as Base64."""

    @property
    def name(self) -> str:
        """What the list of versions calls this kind."""
        return f"{self.system}-{self.kind}"

    @property
    def can_look(self) -> bool:
        """Whether newer versions can be looked for."""
        return bool(self.address and self.key)

    @property
    def is_replaced_by_us(self) -> bool:
        """Whether a newer version is put in place here, and not by the system's own program."""
        return self.kind in (PackageKind.APPIMAGE, PackageKind.FOLDER)

    @property
    def keeps_previous(self) -> bool:
        """Whether the version before stays until a newer one has started once."""
        return self.kind is not PackageKind.DEB and self.system != "macos"

    @property
    def previous(self) -> Path:
        """Where the version before is kept."""
        if self.kind is PackageKind.SETUP:
            # Windows' installer puts it aside within the program's own folder.
            return self.place / PREVIOUS.removeprefix(".")
        return self.place.with_name(self.place.name + PREVIOUS)


class Replaced(msgspec.Struct, frozen=True, kw_only=True):
    """What was fetched or put in place and has not started yet, as it is kept in a file."""

    version: str
    previous: str
    """The version before, which goes once the new one has started; empty where none is kept."""


class _Marker(msgspec.Struct, frozen=True):
    system: str
    root: str
    """The folder of the whole program, from where the file lies."""
    address: str = ""
    key: str = ""


def replaced_file(data: Path) -> Path:
    """Return the file that tells of a new version that has not started yet."""
    return data / "update.json"


def read_replaced(path: Path) -> Replaced | None:
    """Return what was put in place; None where there is nothing, or it cannot be read."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Replaced)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def read_package(environment: Mapping[str, str], marker: Path = MARKER) -> Package | None:
    """Return what is installed; None where the program runs from its source."""
    try:
        found = msgspec.json.decode(marker.read_bytes(), type=_Marker)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    place = (marker.parent / found.root).resolve()
    kind = PackageKind.FOLDER
    if found.system != "linux":
        kind = PackageKind.SETUP
    elif environment.get("APPIMAGE") and environment.get("APPDIR") == str(place):
        kind, place = PackageKind.APPIMAGE, Path(environment["APPIMAGE"])
    elif place.is_relative_to("/usr"):
        kind = PackageKind.DEB
    return Package(
        kind=kind, place=place, system=found.system, address=found.address, key=found.key
    )
