"""Words about newer versions of the program."""

from app.text import units
from app.text.translate import tr
from app.text.words import Word


class UpdateWords:
    """Fixed words."""

    TITLE = Word("Newer versions")
    ALLOWED = Word("Look for newer versions at each start")
    LOOK = Word("Look now")
    FETCH = Word("Download")
    STOP = Word("Stop")
    OPEN = Word("Open the installer")
    SHOW = Word("What is new")
    NOTES = Word("What is new")
    NOT_LOOKED = Word("Nobody looked since the start.")
    LOOKING = Word("Looking…")
    NEWEST = Word("This is the newest version.")
    UNTOUCHED = Word("Models, chats and settings are never touched.")
    KEPT = Word("The version before is kept until the new one has started once.")


def explained(address: str) -> str:
    """Say what is asked, and of whom."""
    return tr(
        "{address} is asked for a list of versions, which is believed only if it is signed by "
        "those who made this program. Nothing about you or this PC is sent."
    ).format(address=address)


def found(version: str) -> str:
    """Say that there is a newer version."""
    return tr("Larder {version} is there.").format(version=version)


def offered(version: str, size_bytes: int) -> str:
    """Say which version could be downloaded."""
    return tr("Larder {version} is there, {size} to download.").format(
        version=version, size=units.size(size_bytes)
    )


def fetching(done_bytes: int, size_bytes: int) -> str:
    """Say how far the download is."""
    if done_bytes >= size_bytes:
        return tr("Unpacking and checking…")
    return tr("Downloading: {amount}").format(amount=units.size_of(done_bytes, size_bytes))


def fetched(version: str, file: str) -> str:
    """Say that the file is here, for the system's own program."""
    return tr(
        "Larder {version} is downloaded and checked: {file}. Open the installer and close Larder; "
        "that replaces this version."
    ).format(version=version, file=file)


def ready(version: str) -> str:
    """Say that the next start is the new version."""
    return tr(
        "Larder {version} is in place: it runs from the next start on. Until it has started once, "
        "this version is kept."
    ).format(version=version)
