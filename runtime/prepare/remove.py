"""Removing a prepared copy, finished or not."""

import contextlib
from pathlib import Path

from runtime.errors import LarderError
from runtime.inspect.files import shown
from runtime.inspect.manifest import JOURNAL_NAME, MANIFEST_NAME
from runtime.prepare.disk import disk_error, sync_folder
from runtime.prepare.journal import is_unfinished
from runtime.prepare.lock import LOCK_NAME, FolderBusyError, FolderLock
from runtime.protocol.errors import ErrorCode


def remove_prepared(folder: str) -> int:
    """Remove a prepared copy and return the bytes that became free.

    The manifest becomes the note of an unfinished copy first, so that a half-removed folder is
    never taken for a copy and can be removed again. Only folders with a manifest or a note are
    touched, and only files, which is all they hold.
    Raises ``LarderError`` with ``NOT_PREPARED``, ``COPY_BUSY``, ``DISK_NOT_WRITABLE`` or
    ``COPY_WRITE_FAILED``.
    """
    root = Path(folder).absolute()
    if not ((root / MANIFEST_NAME).is_file() or is_unfinished(root)):
        raise LarderError(ErrorCode.NOT_PREPARED, folder=shown(folder))
    try:
        with FolderLock(root):
            num_bytes = _remove_files(root)
    except FolderBusyError as cause:
        raise LarderError(ErrorCode.COPY_BUSY, folder=shown(folder)) from cause
    except OSError as cause:
        raise disk_error(root, cause, 0, 0) from cause
    # What cannot be removed any more, because somebody just began anew, is theirs.
    with contextlib.suppress(OSError):
        (root / LOCK_NAME).unlink(missing_ok=True)
        root.rmdir()
        sync_folder(root.parent)
    return num_bytes


def _remove_files(root: Path) -> int:
    if (root / MANIFEST_NAME).is_file():
        (root / MANIFEST_NAME).replace(root / JOURNAL_NAME)
        sync_folder(root)
    others = [path for path in root.iterdir() if path.is_file()]
    others = [path for path in others if path.name not in (JOURNAL_NAME, LOCK_NAME)]
    num_bytes = 0
    for path in (*others, root / JOURNAL_NAME):
        num_bytes += path.stat().st_size
        path.unlink()
    sync_folder(root)
    return num_bytes
