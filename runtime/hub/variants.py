"""The models of a page in GGUF: the same weights in other bits, each one file or a set of them."""

import dataclasses
from collections.abc import Sequence

from runtime.errors import LarderError
from runtime.hub.repo import Repo, RepoFile
from runtime.inspect.gguf.labels import bits_of, is_readable, label_of
from runtime.inspect.gguf.parts import model_name, models_among, part_names
from runtime.protocol.errors import ErrorCode

_USUAL_BITS = 4.8
"""What most people take of a model in files of many sizes."""
_LICENCES = ("license", "licence", "notice")


@dataclasses.dataclass(frozen=True, slots=True)
class Variant:
    """One model of a page: its name among the others, and its files in their order."""

    name: str
    label: str
    """What the names of its files call its numbers; empty if they do not."""
    files: tuple[RepoFile, ...]

    @property
    def size_bytes(self) -> int:
        """Of all its files."""
        return sum(file.size_bytes for file in self.files)

    @property
    def is_readable(self) -> bool:
        """Whether its numbers can be read, as far as names tell."""
        return is_readable(self.label)


def variants_of(repo: Repo) -> list[Variant]:
    """Return the models of a page, largest first; a set of which a file is missing is none."""
    by_folder: dict[str, dict[str, RepoFile]] = {}
    for file in repo.gguf_files:
        by_folder.setdefault(file.folder, {})[file.name] = file
    found: list[tuple[str, tuple[RepoFile, ...]]] = []
    for there in by_folder.values():
        for first in models_among(there):
            names = part_names(first)
            if all(name in there for name in names):
                found.append((model_name(first), tuple(there[name] for name in names)))
    labels = [label_of(stem) or label_of(files[0].folder) for stem, files in found]
    stems = [stem for stem, _ in found]
    variants = []
    for label, (stem, files) in zip(labels, found, strict=True):
        # A page may hold several models, or the same file in several folders.
        name = label if label and labels.count(label) == 1 else stem
        if name == stem and stems.count(stem) > 1:
            name = f"{files[0].folder.replace('/', '-')}-{stem}"
        variants.append(Variant(name, label, files))
    return sorted(variants, key=lambda each: (-each.size_bytes, each.name))


def usual_variant(variants: Sequence[Variant]) -> Variant | None:
    """Return the one to look at first; None if none can be read."""
    readable = [each for each in variants if each.is_readable]
    return min(readable, key=lambda each: _distance(each.label), default=None)


def usual_label(names: Sequence[str]) -> str:
    """Return the numbers to tell of first, by the names of a page's files alone."""
    labels = {label_of(name) for name in names} - {""}
    return min(filter(is_readable, labels), key=_distance, default="")


def find_variant(repo: Repo, name: str) -> Variant:
    """Return the model of a page that goes by a name; raises ``LarderError`` without one."""
    variants = variants_of(repo)
    for each in variants:
        if each.name.lower() == name.lower():
            return each
    names = ", ".join(each.name for each in variants[:20])
    there = f"it has {names}" if names else "it has none"
    raise LarderError(
        ErrorCode.HUB_MODEL_UNUSABLE,
        model=repo.model_id,
        reason=f"it has no GGUF files named {name[:80]}; {there}",
    )


def files_of(repo: Repo, variant: Variant) -> list[RepoFile]:
    """Return what running a model needs: its files, and the licence that goes with them."""
    licences = [file for file in repo.files if file.name.lower().startswith(_LICENCES)]
    return [*(file for file in licences if file.size_bytes < 1 << 20), *variant.files]


def _distance(label: str) -> tuple[bool, float, str]:
    bits = bits_of(label)
    return not bits, abs(bits - _USUAL_BITS), label
