"""What a hub's list says of a model in GGUF files."""

import re
from collections.abc import Sequence

from runtime.hub.repo import count_of, is_model_id, licence_of, texts_of
from runtime.hub.variants import usual_label
from runtime.inspect.gguf.labels import bits_of, label_of
from runtime.inspect.gguf.metadata import ARCHITECTURES
from runtime.inspect.gguf.parts import is_gguf_name
from runtime.protocol.hub import HubFit, HubModel

UNNAMED = "GGUF"
"""Stands for numbers of which the names of files do not tell."""
_MAX_NAMES = 2000
_BOTH = frozenset({"llama", "gemma4"})
"""Architectures of models with experts and without."""
_DENSE = frozenset({"qwen3"})
_MIXTURE = re.compile(r"\d+x\d+(\.\d+)?b|mixtral|-a\d+(\.\d+)?b|\bmoe\b", re.IGNORECASE)
"""What the names of models with experts have in them."""
_BASE = ("base_model:quantized:", "base_model:")


def gguf_names(answer: dict[object, object]) -> list[str]:
    """Return the names of a listed model's files in GGUF."""
    siblings = answer.get("siblings")
    rows = siblings[:_MAX_NAMES] if isinstance(siblings, list) else []
    paths = [row.get("rfilename") for row in rows if isinstance(row, dict)]
    return [
        path for path in paths if isinstance(path, str) and is_gguf_name(path.rpartition("/")[2])
    ]


def read_listed_gguf(
    answer: dict[object, object], model_id: str, names: Sequence[str], free_bytes: int
) -> HubModel:
    """Return a model of a list by the names of its files and what their headers were seen to say.

    Its size is about that of the usual one of its files: the list tells none.
    """
    label, tags = usual_label(names), texts_of(answer.get("tags"))
    can_read = bool(label) or not all(map(label_of, names))
    facts = answer.get("gguf")
    facts = facts if isinstance(facts, dict) else {}
    architecture = facts.get("architecture")
    architecture = architecture[:80] if isinstance(architecture, str) else ""
    num_parameters = count_of(facts.get("total"))
    size_bytes = round(num_parameters * bits_of(label) / 8)
    fit = _fit(architecture, [model_id, *tags]) if can_read else HubFit.NOT_RUNNABLE
    return HubModel(
        model_id=model_id,
        fit=HubFit.NO_ROOM if fit is HubFit.FITS and size_bytes > free_bytes else fit,
        model_type=architecture,
        licence=licence_of(answer),
        is_gated=bool(answer.get("gated")),
        num_parameters=num_parameters,
        size_bytes=size_bytes,
        num_downloads=count_of(answer.get("downloads")),
        num_likes=count_of(answer.get("likes")),
        gguf_label=label or UNNAMED,
        base_model=_base_of(tags),
    )


def _fit(architecture: str, words: Sequence[str]) -> HubFit:
    if not architecture:
        return HubFit.UNKNOWN
    if architecture not in ARCHITECTURES:
        return HubFit.NOT_RUNNABLE
    is_mixture = architecture not in _DENSE
    if architecture in _BOTH:
        is_mixture = any(_MIXTURE.search(word) for word in words)
    return HubFit.FITS if is_mixture else HubFit.DENSE


def _base_of(tags: Sequence[str]) -> str:
    """Return the model that the files were made from, whose config says what they are."""
    for start in _BASE:
        for tag in tags:
            name = tag.removeprefix(start)
            if name != tag and is_model_id(name):
                return name
    return ""
