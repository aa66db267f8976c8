"""One model of a hub as its interface describes it: commit, licence, and the files with sizes."""

import dataclasses
import re
from collections.abc import Sequence

from runtime.errors import LarderError
from runtime.inspect.gguf.parts import is_gguf_name
from runtime.inspect.shards import INDEX_NAME, SINGLE_NAME, weight_files
from runtime.prepare.disk import PART_ENDING
from runtime.protocol.errors import ErrorCode

MAX_SMALL_BYTES = 128_000_000
"""No file beside the weights is larger; a tokenizer has at most some ten million bytes."""
MAX_FILES = 20_000
_ID = re.compile(r"[A-Za-z0-9][\w.-]{0,95}(/[A-Za-z0-9][\w.-]{0,95})?")
_COMMIT = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_SHA1 = re.compile(r"[0-9a-f]{40}")
_RESERVED = frozenset({"con", "prn", "aux", "nul"})
_SMALL_ENDINGS = (".json", ".model", ".txt", ".jinja", ".tiktoken")
_SMALL_STARTS = ("license", "licence", "notice", "readme")
_CONFIG = "config.json"


@dataclasses.dataclass(frozen=True, slots=True)
class RepoFile:
    """One file, with what its bytes have to hash to."""

    name: str
    size_bytes: int
    sha256: str = ""
    git_sha1: str = ""
    """Of git, which puts the size before the bytes; for files that are not large."""
    folder: str = ""
    """Where on the page it lies; here it lies beside the others."""

    @property
    def is_weights(self) -> bool:
        """Whether it holds matrices."""
        return self.name.endswith(".safetensors") or is_gguf_name(self.name)

    @property
    def path(self) -> str:
        """Its name with its folder, as the hub has it."""
        return f"{self.folder}/{self.name}" if self.folder else self.name


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Repo:
    """What the hub says of a model at one commit."""

    model_id: str
    revision: str
    licence: str = ""
    is_gated: bool = False
    base_model: str = ""
    languages: tuple[str, ...] = ()
    last_modified: str = ""
    num_downloads: int = 0
    files: tuple[RepoFile, ...] = ()
    """Those at the top of the page that can be a name here."""
    gguf_files: tuple[RepoFile, ...] = ()
    """Models in GGUF and parts of them, wherever on the page they lie."""
    all_bytes: int = 0
    """Of every file of the page."""


def is_model_id(text: str) -> bool:
    """Whether a text can name a model, and so a folder that leads nowhere else."""
    parts = text.split("/")
    return (
        _ID.fullmatch(text) is not None
        and ".." not in text
        and not any(part.endswith(".") for part in parts)
        and not any(part.partition(".")[0].lower() in _RESERVED for part in parts)
    )


def check_model_id(text: str) -> None:
    """Raise ``LarderError`` unless a text can name a model."""
    if not is_model_id(text):
        raise LarderError(
            ErrorCode.SETTING_INVALID,
            name="model",
            found=text[:120],
            expected="a name like owner/model",
        )


def check_revision(text: str) -> None:
    """Raise ``LarderError`` unless a text can be a commit."""
    if _COMMIT.fullmatch(text) is None:
        raise LarderError(
            ErrorCode.SETTING_INVALID,
            name="revision",
            found=text[:80],
            expected="the 40 digits of a commit",
        )


def read_repo(answer: object, model_id: str) -> Repo:
    """Return what the hub's answer says; raises ``ValueError`` with what is wrong with it."""
    if not isinstance(answer, dict):
        raise ValueError("the model is not an object")  # noqa: TRY004 - of what was sent
    revision = answer.get("sha")
    if not (isinstance(revision, str) and _COMMIT.fullmatch(revision)):
        raise ValueError("the model has no commit")
    siblings = answer.get("siblings")
    if not isinstance(siblings, list) or len(siblings) > MAX_FILES:
        raise ValueError("the model has no list of files")
    files = [_read_file(each) for each in siblings]
    all_bytes = sum(file.size_bytes for file in files)
    top = {file.name: file for file in files if not file.folder and is_plain_name(file.name)}
    gguf_files = [
        file for file in files if is_gguf_name(file.name) and all(map(is_plain_name, _parts(file)))
    ]
    card = answer.get("cardData")
    card = card if isinstance(card, dict) else {}
    return Repo(
        model_id=model_id,
        revision=revision,
        licence=licence_of(answer),
        is_gated=bool(answer.get("gated")),
        base_model=_first_text(card.get("base_model")),
        languages=tuple(texts_of(card.get("language"))[:8]),
        last_modified=str(answer.get("lastModified") or "")[:10],
        num_downloads=count_of(answer.get("downloads")),
        files=tuple(sorted(top.values(), key=lambda file: file.name)),
        gguf_files=tuple(sorted(gguf_files, key=lambda file: file.path)),
        all_bytes=all_bytes,
    )


def needed_files(repo: Repo, index_files: Sequence[str] = ()) -> list[RepoFile]:
    """Return what running the model needs, small files first, the weights in their order.

    ``index_files`` are those that the index of the weights names; without an index the names
    decide. What is the same weights in another form is left out. Raises ``LarderError``.
    """
    by_name = {file.name: file for file in repo.files}
    if index_files:
        weights = sorted(set(index_files))
    elif SINGLE_NAME in by_name:
        weights = [SINGLE_NAME]
    else:
        weights = weight_files(list(by_name))
    missing = [name for name in weights if name not in by_name]
    reason = ""
    if _CONFIG not in by_name:
        reason = "it has no config.json"
    elif not weights:
        reason = "it has no safetensors files"
    elif missing:
        reason = f"its list of weights names {missing[0]}, which is not there"
    if reason:
        raise LarderError(ErrorCode.HUB_MODEL_UNUSABLE, model=repo.model_id, reason=reason)
    return [*filter(_is_small, repo.files), *(by_name[name] for name in weights)]


def licence_of(answer: dict[object, object]) -> str:
    """Return the licence that a model's card or tags name; empty without one."""
    card = answer.get("cardData")
    if isinstance(card, dict) and isinstance(card.get("license"), str):
        return str(card["license"])[:80]
    tags = texts_of(answer.get("tags"))
    return next((tag.partition(":")[2][:80] for tag in tags if tag.startswith("license:")), "")


def count_of(value: object) -> int:
    """Return a count that an answer names; 0 for anything else."""
    return value if type(value) is int and 0 <= value < 1 << 62 else 0


def _read_file(sibling: object) -> RepoFile:
    if not isinstance(sibling, dict) or not isinstance(sibling.get("rfilename"), str):
        raise ValueError("a file has no name")  # noqa: TRY004 - of what was sent
    size = sibling.get("size")
    if type(size) is not int or not 0 <= size < 1 << 50:
        raise ValueError(f"the file {sibling['rfilename'][:80]!r} has no size")
    lfs = sibling.get("lfs")
    sha256 = lfs.get("sha256") if isinstance(lfs, dict) else None
    git = sibling.get("blobId")
    is_sha256 = isinstance(sha256, str) and _SHA256.fullmatch(sha256)
    is_sha1 = isinstance(git, str) and _SHA1.fullmatch(git) and not isinstance(lfs, dict)
    folder, _, name = sibling["rfilename"].rpartition("/")
    return RepoFile(
        name=name,
        folder=folder,
        size_bytes=size,
        sha256=str(sha256) if is_sha256 else "",
        git_sha1=str(git) if is_sha1 else "",
    )


def _parts(file: RepoFile) -> list[str]:
    return file.path.split("/")


def is_plain_name(name: str) -> bool:
    """Whether a name is that of a file or folder on every system."""
    return (
        0 < len(name.encode("utf-8", "replace")) <= 200
        and name.isprintable()
        and not name.startswith((".", "larder-"))
        and not name.endswith((".", " ", PART_ENDING))
        and not any(letter in '/\\:*?"<>|' for letter in name)
        and name.partition(".")[0].lower() not in _RESERVED
    )


def _is_small(file: RepoFile) -> bool:
    """Whether a file beside the weights is wanted: configs, vocabularies, templates, licences."""
    name = file.name.lower()
    if file.size_bytes > MAX_SMALL_BYTES:
        return False
    if name.endswith(".index.json"):
        return file.name == INDEX_NAME
    return name.endswith(_SMALL_ENDINGS) or name.startswith(_SMALL_STARTS)


def texts_of(value: object) -> list[str]:
    """Return the texts of a list, or the one that an answer has in its place."""
    values = value if isinstance(value, list) else [value]
    return [text[:200] for text in values if isinstance(text, str)]


def _first_text(value: object) -> str:
    return next(iter(texts_of(value)), "")
