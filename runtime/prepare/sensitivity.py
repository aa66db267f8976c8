"""How much an error counts for answers, by groups of matrices, as trials with a text have shown.

A trial (``runtime.generate.trials``) rounds one group and leaves all else as published. The groups
are small enough in number that each can be tried, and large enough that it shows.
"""

import dataclasses
import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from runtime.plan.mix import Part
from runtime.prepare.calibration import Calibration
from runtime.protocol.values import WeightFormat
from runtime.spec.model import ModelSpec
from runtime.spec.tensors import PLAIN_FORMATS, ExpertId, TensorEntry

TRIED_FORMAT = WeightFormat.Q2_G16
"""What a group is rounded to. So large an error that what any error brings, since routers then
choose others where two are nearly equal, is small beside it."""
FINEST_FORMAT = WeightFormat.Q8_G32
EVERYTHING = "everything, finely"
"""All groups, rounded to eight bits: what even the smallest change brings."""
EMBEDDING = "embed_tokens.weight"
NUM_BANDS = 3
"""Layers after the first are tried in so many groups."""
_LAYER = re.compile(r"\blayers\.(\d+)\.")
_ROUTERS = re.compile(r"router|\bgate\.|_gate\.weight$")
"""Few weights that decide much: they stay as published."""
_LOOKING = re.compile(r"\.[qk](_[ab])?_proj\.")
"""Matrices that say where attention looks; the others of its block say what it finds there."""
Name = ExpertId | str


def layer_of(name: str) -> int | None:
    """Return the layer of a dense matrix; None of the embedding and the output matrix."""
    found = _LAYER.search(name)
    return int(found.group(1)) if found else None


def is_mixable(entry: TensorEntry) -> bool:
    """Whether a dense tensor is a matrix that could be rounded; a table of biases is none."""
    is_plain_table = len(entry.shape) == 2 and entry.format in PLAIN_FORMATS
    is_bias = entry.name.endswith("bias")
    return is_plain_table and not is_bias and not _ROUTERS.search(entry.name)


def is_mixed(entry: TensorEntry, found: Calibration) -> bool:
    """Whether a mix chooses the format of a dense tensor: a text has shown what it is given."""
    is_known = entry.name in found.dense or entry.name.endswith(EMBEDDING)
    return is_known and is_mixable(entry)


def group_of(name: Name, spec: ModelSpec) -> str:
    """Return the group in which a part is tried."""
    if isinstance(name, ExpertId):
        return f"experts, {_band(name.layer, spec)}"
    layer = layer_of(name)
    if layer is None:
        return name
    block = _LAYER.split(name)[-1].rsplit(".", 2)[0]
    kind = f"{block}, looking" if _LOOKING.search(name) else block
    return f"{kind}, {_band(layer, spec)}"


def groups_of(names: Iterable[Name], spec: ModelSpec) -> Sequence[str]:
    """Return the groups of some parts, each once."""
    return list(dict.fromkeys(group_of(name, spec) for name in names))


def _band(layer: int, spec: ModelSpec) -> int:
    """Return 0 for the first layer, and growing numbers for equal shares of the others."""
    if layer == 0:
        return 0
    return 1 + min(NUM_BANDS - 1, (layer - 1) * NUM_BANDS // max(1, spec.num_layers - 1))


def weighed(
    parts: Sequence[Part[Name]], spec: ModelSpec, trials: Mapping[str, float]
) -> Sequence[Part[Name]]:
    """Return parts whose errors are parts of what answers changed by when groups were tried.

    A group that was not tried, or showed nothing, counts as the others do in the middle.
    """
    spoilt: dict[str, float] = defaultdict(float)
    for part in parts:
        spoilt[group_of(part.name, spec)] += _error_in(part, TRIED_FORMAT)
    known = {
        group: trials[group] / error
        for group, error in spoilt.items()
        if trials.get(group, 0.0) > 0 and error > 0 and math.isfinite(trials[group])
    }
    usual = sorted(known.values())[len(known) // 2] if known else 1.0
    return [_times(part, known.get(group_of(part.name, spec), usual)) for part in parts]


def unavoidable(trials: Mapping[str, float]) -> float:
    """Return what even the smallest change brings; 0 where no trial has told it."""
    found = trials.get(EVERYTHING, 0.0)
    return found if math.isfinite(found) else 0.0


def _error_in(part: Part[Any], wanted: WeightFormat) -> float:
    return next(one.error for one in part.choices if one.format is wanted)


def _times(part: Part[Name], factor: float) -> Part[Name]:
    choices = [dataclasses.replace(one, error=one.error * factor) for one in part.choices]
    return Part(part.name, choices)
