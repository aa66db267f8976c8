"""The archive of a newer version, unpacked beside the folder of the one that runs."""

import lzma
import shutil
import tarfile
from pathlib import Path, PurePosixPath

from runtime.engine.base import CancelToken
from runtime.errors import LarderError
from runtime.prepare.disk import disk_error, sync_folder
from runtime.protocol.errors import ErrorCode

NEW = ".new"
"""What the unpacked folder is called behind the name of the program's own."""
READY = ".ready"
"""The last file that is written: the folder is whole."""
PROGRAM = "larder"


def unpack_beside(archive: Path, place: Path, cancel: CancelToken) -> Path:
    """Unpack into a folder beside ``place``, and delete the archive; return the folder.

    The one folder that an archive holds is left out of the paths. Raises ``CancelledError`` or
    ``LarderError``, and leaves nothing then.
    """
    fresh = place.with_name(place.name + NEW)
    try:
        shutil.rmtree(fresh, ignore_errors=True)
        try:
            _unpack(archive, fresh, cancel)
            (fresh / READY).touch()
            sync_folder(fresh)
        except BaseException:
            shutil.rmtree(fresh, ignore_errors=True)
            raise
        archive.unlink()
    except OSError as cause:
        failed = ErrorCode.DOWNLOAD_WRITE_FAILED
        raise disk_error(place.parent, cause, 0, 0, failed) from cause
    return fresh


def _unpack(archive: Path, fresh: Path, cancel: CancelToken) -> None:
    fresh.mkdir(parents=True)
    try:
        with tarfile.open(archive) as packed:
            for entry in packed:
                cancel.check()
                target = _place(fresh, entry.name)
                if target == fresh:
                    continue
                if entry.isdir():
                    target.mkdir(exist_ok=True)
                elif entry.issym():
                    _place(fresh, entry.linkname)
                    target.symlink_to(entry.linkname)
                elif entry.isreg():
                    _write(packed, entry, target)
                else:
                    raise _unusable(f"{entry.name} is neither a file nor a folder")
    except (tarfile.TarError, lzma.LZMAError, EOFError) as cause:
        raise _unusable(str(cause)) from cause
    if not (fresh / PROGRAM).is_file():
        raise _unusable(f"it holds no {PROGRAM}")


def _place(fresh: Path, name: str) -> Path:
    """Return where an entry goes, which is below the new folder."""
    parts = PurePosixPath(name).parts
    if ".." in parts or PurePosixPath(name).is_absolute():
        raise _unusable(f"{name} leads out of its folder")
    return fresh.joinpath(*parts[1:])


def _write(packed: tarfile.TarFile, entry: tarfile.TarInfo, target: Path) -> None:
    source = packed.extractfile(entry)
    assert source is not None
    with source, target.open("xb") as file:
        shutil.copyfileobj(source, file, 1 << 20)
    target.chmod(0o755 if entry.mode & 0o100 else 0o644)


def _unusable(reason: str) -> LarderError:
    return LarderError(ErrorCode.FILE_INVALID, file="the new version", reason=reason)
