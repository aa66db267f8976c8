"""The small files that make a prepared copy complete in itself."""

import filecmp
import shutil
from collections.abc import Iterable
from pathlib import Path

from runtime.inspect.files import open_regular, unreadable
from runtime.prepare.disk import replacing
from runtime.prepare.recipe import is_copied


def small_files(source: Path) -> list[str]:
    """Return the files of a model folder that make its copy complete in itself.

    Raises ``LarderError`` with ``FILE_UNREADABLE`` if the folder is gone.
    """
    try:
        return sorted(path.name for path in source.iterdir() if is_copied(path))
    except OSError as cause:
        raise unreadable(source, cause) from cause


def copy_small_files(source: Path, target: Path, names: Iterable[str]) -> None:
    """Copy config, tokenizer, template and licence files, each whole or not at all.

    Raises ``LarderError`` with ``FILE_UNREADABLE`` for one that is gone, ``OSError`` where the
    copy cannot be written.
    """
    for name in names:
        try:
            original = open_regular(source / name)
        except FileNotFoundError as cause:
            raise unreadable(source / name, cause) from cause
        with original:
            if (target / name).is_file() and filecmp.cmp(
                source / name, target / name, shallow=False
            ):
                continue
            with replacing(target / name) as copy:
                shutil.copyfileobj(original, copy)
