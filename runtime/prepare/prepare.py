"""Writing the prepared copy of a model: layer by layer, resumable, cancellable."""

from pathlib import Path

from runtime.errors import LarderError
from runtime.inspect.files import is_unicode, shown
from runtime.inspect.inspection import Inspection
from runtime.inspect.manifest import (
    MANIFEST_NAME,
    Manifest,
    PreparedFile,
    read_manifest,
    write_manifest,
)
from runtime.inspect.prepared import describe_copy
from runtime.prepare import journal
from runtime.prepare.copying import copy_small_files, small_files
from runtime.prepare.disk import PART_ENDING, disk_error, free_bytes, replacing, sync_folder
from runtime.prepare.journal import place_refused
from runtime.prepare.lock import FolderBusyError, FolderLock
from runtime.prepare.progress import Progress, ProgressReport, Stopper
from runtime.prepare.recipe import Recipe, make_manifest, make_recipe
from runtime.prepare.sources import Sources
from runtime.prepare.weight_file import verified_file, write_file
from runtime.protocol.errors import ErrorCode
from runtime.protocol.model import PreparedCopy
from runtime.protocol.values import WeightFormat
from runtime.spec.mix import Mix
from runtime.spec.tensors import AFFINE_FORMATS, PLAIN_FORMATS
from runtime.store.prepared import PreparedStore

SPARE_BYTES = 16 << 20
"""Room beside the weights: tokenizer, manifest, and what the file system itself needs."""


class NeverStops:
    """The stopper of work that nobody can cancel."""

    def check(self) -> None:
        """Do nothing."""


def prepare_model(
    inspection: Inspection,
    expert_format: WeightFormat,
    output_folder: str,
    progress: ProgressReport | None = None,
    cancel: Stopper | None = None,
    mix: Mix | None = None,
) -> PreparedCopy:
    """Write the copy of an inspected model into ``output_folder``, or finish one begun earlier.

    ``progress`` is called with bytes done and bytes in total, many times a second and at the end.
    Finished files survive a cancel, a kill, a full disk and a power cut; the next call reads them,
    compares their checksums and goes on from there. The manifest is written last. With a ``mix``
    each part has the format that it says, and ``expert_format`` is the most common one.

    Raises ``CancelledError``, or ``LarderError`` with ``DISK_FULL``, ``DISK_NOT_WRITABLE``,
    ``COPY_PLACE_REFUSED``, ``COPY_BUSY``, ``COPY_WRITE_FAILED``, ``COPY_MISWRITTEN``,
    ``SETTING_INVALID``, ``FILE_UNREADABLE``, ``DRIVE_READ_FAILED``, ``NOTHING_TO_PREPARE``,
    ``WEIGHTS_NOT_FINITE`` or the first problem of the inspection.
    """
    _require_readable(inspection, expert_format)
    folder = Path(output_folder).absolute()
    if folder == Path(inspection.report.folder):
        raise place_refused(folder, "it is the folder of the model itself")
    recipe = make_recipe(inspection, expert_format, mix)
    work = Progress(recipe.size_bytes, progress, cancel or NeverStops())
    try:
        _require_folder(folder)
        _require_files(folder, recipe)
        # A copy that is complete needs no lock, and may lie where nothing can be written.
        manifest = _finished_copy(folder, recipe)
        if manifest is None:
            if not (journal.is_unfinished(folder) or (folder / MANIFEST_NAME).exists()):
                _require_room(folder, recipe.size_bytes)
            folder.mkdir(parents=True, exist_ok=True)
            with FolderLock(folder):
                manifest = _finished_copy(folder, recipe)
                manifest = manifest or _write_copy(inspection, recipe, folder, work)
    except FolderBusyError as cause:
        raise LarderError(ErrorCode.COPY_BUSY, folder=shown(str(folder))) from cause
    except OSError as cause:
        kept = journal.kept_bytes(str(folder))
        raise disk_error(folder, cause, recipe.size_bytes - kept + SPARE_BYTES, kept) from cause
    work.finish()
    return describe_copy(folder, manifest)


def _finished_copy(folder: Path, recipe: Recipe) -> Manifest | None:
    """Return the manifest of a copy that is complete already; raise if it is another model's."""
    try:
        manifest = read_manifest(folder)
    except FileNotFoundError:
        return None
    except LarderError as cause:
        if cause.code is not ErrorCode.STORE_INVALID:
            raise
        return None
    if (manifest.source_fingerprint, manifest.expert_format, manifest.mix) != (
        recipe.identity["source"],
        recipe.expert_format,
        recipe.identity.get("mix", ""),
    ):
        raise place_refused(folder, f"it holds a prepared copy of {manifest.source_name}")
    try:
        PreparedStore(folder).close()
    except LarderError as cause:
        if cause.code is not ErrorCode.STORE_INVALID:
            raise
        # A file was lost or cut: what is left is checked in full and the rest is written again.
        return None
    if journal.is_unfinished(folder):
        journal.end(folder)
    return manifest


def _write_copy(inspection: Inspection, recipe: Recipe, folder: Path, work: Progress) -> Manifest:
    source = Path(inspection.report.folder)
    # Listed first, so that one that goes away meanwhile is missed.
    names = small_files(source)
    journal.begin(folder, recipe.identity)
    (folder / MANIFEST_NAME).unlink(missing_ok=True)
    for leftover in folder.glob("*" + PART_ENDING):
        leftover.unlink()
    finished: dict[str, PreparedFile] = {}
    for file in recipe.files:
        found = verified_file(folder / file.name, file.tensors, recipe.identity, work.check)
        if found is not None:
            finished[file.name] = found
            work.add(file.size_bytes)
    _require_room(folder, work.remaining_bytes)
    with Sources(inspection, recipe, work) as sources:
        for file in recipe.files:
            if file.name in finished:
                continue
            path = folder / file.name
            pieces = sources.pieces(file)
            finished[file.name] = write_file(path, file.tensors, recipe.identity, pieces)
            work.check()
            if verified_file(path, file.tensors, recipe.identity, work.check) is None:
                path.unlink(missing_ok=True)
                raise LarderError(ErrorCode.COPY_MISWRITTEN, file=shown(str(path)))
    copy_small_files(source, folder, names)
    manifest = make_manifest(inspection, recipe, finished)
    with replacing(folder / MANIFEST_NAME) as written:
        written.write(write_manifest(manifest))
    journal.end(folder)
    sync_folder(folder)
    return manifest


def require_mixable(inspection: Inspection) -> None:
    """Raise unless a mix could be made of a model: its experts are published in plain numbers."""
    _require_readable(inspection, WeightFormat.Q4A_G32)
    stored = inspection.report.stored_format
    if stored not in PLAIN_FORMATS:
        raise LarderError(
            ErrorCode.SETTING_INVALID,
            name="mix",
            found=f"a model in {stored}",
            expected="a model published in 16 or 32 bits",
        )


def _require_readable(inspection: Inspection, expert_format: WeightFormat) -> None:
    report = inspection.report
    if report.problems:
        first = report.problems[0]
        raise LarderError(first.code, first.detail, **first.parameters)
    if report.gguf_kinds:
        raise LarderError(ErrorCode.USED_IN_PLACE, folder=report.folder)
    if not report.num_experts:
        raise LarderError(ErrorCode.NOTHING_TO_PREPARE, folder=report.folder)
    stored = report.stored_format
    is_possible = expert_format is stored or (
        # Packed experts are copied as they are, those of eight bits turned into fewer as well.
        expert_format in AFFINE_FORMATS
        if stored is WeightFormat.Q8_G32
        else stored in PLAIN_FORMATS and expert_format not in PLAIN_FORMATS
    )
    if not is_possible:
        raise LarderError(
            ErrorCode.SETTING_INVALID,
            f"the experts of {report.folder} are published in {stored}",
            name="expert_format",
            found=expert_format,
            expected=str(stored),
        )


def _require_folder(folder: Path) -> None:
    """Raise unless ``folder`` is one, or can become one, and its name can travel in a message."""
    if not is_unicode(str(folder)):
        raise place_refused(folder, "its name holds signs that are not Unicode text")
    nearest = next(path for path in (folder, *folder.parents) if path.exists())
    if not nearest.is_dir():
        is_itself = nearest == folder
        reason = (
            "it is a file and not a folder" if is_itself else f"{shown(nearest.name)} is a file"
        )
        raise place_refused(folder, reason)


def _require_files(folder: Path, recipe: Recipe) -> None:
    """Raise if something that is no file lies where a file of the copy goes."""
    for name in (MANIFEST_NAME, *(file.name for file in recipe.files)):
        path = folder / name
        if path.exists() and not path.is_file():
            raise place_refused(folder, f"{name} in it is not a file")


def _require_room(folder: Path, remaining_bytes: int) -> None:
    if not remaining_bytes:
        return
    needed, free = remaining_bytes + SPARE_BYTES, free_bytes(folder)
    if needed > free:
        raise LarderError(
            ErrorCode.DISK_FULL,
            folder=shown(str(folder)),
            needed_bytes=needed,
            free_bytes=free,
        )
