"""The small files that make a prepared copy complete in itself."""

import filecmp
import shutil
from pathlib import Path

from runtime.prepare.disk import replacing
from runtime.prepare.recipe import copied_names


def copy_small_files(source: Path, target: Path) -> None:
    """Copy config, tokenizer, template and licence files, each whole or not at all."""
    for name in copied_names(source):
        if (target / name).is_file() and filecmp.cmp(source / name, target / name, shallow=False):
            continue
        with (source / name).open("rb") as original, replacing(target / name) as copy:
            shutil.copyfileobj(original, copy)
