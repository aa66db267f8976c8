"""What a prepared copy consists of, known before a byte is written."""

import dataclasses
from collections.abc import Iterator
from pathlib import Path

from runtime.inspect.chat_files import OTHER_TOKENIZER_NAMES, TIKTOKEN_ENDING
from runtime.inspect.inspection import Inspection
from runtime.inspect.manifest import (
    MANIFEST_VERSION,
    MIX_VERSION,
    DenseForm,
    Manifest,
    PreparedFile,
)
from runtime.inspect.roles import FORMATS
from runtime.prepare.weight_file import TensorPlan, file_bytes
from runtime.protocol.values import WeightFormat
from runtime.spec.footprint import dense_bytes
from runtime.spec.mix import Mix, layouts_of
from runtime.spec.tensors import ExpertId, ExpertLayout, TensorEntry, matrix_bytes
from runtime.store.prepared import record_name

DENSE_NAME = "dense.safetensors"
_DTYPES = {weight_format: dtype for dtype, weight_format in FORMATS.items()}
_COPIED_NAMES = frozenset(
    {
        "config.json",
        "generation_config.json",
        "tokenizer.json",
        *OTHER_TOKENIZER_NAMES,
        "tokenizer_config.json",
        "special_tokens_map.json",
        "added_tokens.json",
        "chat_template.jinja",
        "chat_template.json",
        "README.md",
    }
)
_COPIED_STARTS = ("LICENSE", "LICENCE", "NOTICE", "COPYING")


@dataclasses.dataclass(frozen=True, slots=True)
class WeightFile:
    """One file to be written; ``layer`` is None for the dense part."""

    name: str
    layer: int | None
    tensors: tuple[TensorPlan, ...]
    size_bytes: int


@dataclasses.dataclass(frozen=True, slots=True)
class Recipe:
    """The files of one prepared copy, in the order of writing."""

    expert_format: WeightFormat
    layouts: dict[WeightFormat, ExpertLayout]
    identity: dict[str, str]
    """Goes into every file, so that files of different copies are never mixed."""
    files: tuple[WeightFile, ...]
    mix: Mix | None = None

    def format_of(self, expert: ExpertId) -> WeightFormat:
        """Return the format of one expert."""
        return self.expert_format if self.mix is None else self.mix.experts[expert]

    @property
    def size_bytes(self) -> int:
        """What all weight files take."""
        return sum(file.size_bytes for file in self.files)


def make_recipe(
    inspection: Inspection, expert_format: WeightFormat, mix: Mix | None = None
) -> Recipe:
    """Return the recipe of an inspected model without problems."""
    spec, report = inspection.spec, inspection.report
    assert spec is not None
    formats = {expert_format} if mix is None else {expert_format, *mix.experts.values()}
    layouts = layouts_of(formats, spec.hidden_size, spec.expert_width)
    identity = {
        "larder": str(MANIFEST_VERSION),
        "source": report.fingerprint,
        "expert_format": str(expert_format),
    }
    if mix is not None:
        identity["mix"] = mix.identity
    recipe = Recipe(expert_format, layouts, identity, (), mix)
    dense = tuple(_dense_plan(entry, mix) for entry in inspection.tensors.values())

    def size_of(expert: ExpertId) -> int:
        return layouts[recipe.format_of(expert)].record_bytes

    files = [WeightFile(DENSE_NAME, None, dense, file_bytes(dense, identity))]
    for layer in spec.moe_layers:
        records = tuple(
            TensorPlan(record_name(layer, expert), "U8", (size_of(ExpertId(layer, expert)),))
            for expert in range(spec.num_experts)
        )
        name = f"experts-{layer:05d}.safetensors"
        files.append(WeightFile(name, layer, records, file_bytes(records, identity)))
    return dataclasses.replace(recipe, files=tuple(files))


def _dense_plan(entry: TensorEntry, mix: Mix | None) -> TensorPlan:
    kept = None if mix is None else mix.dense.get(entry.name)
    if kept is None:
        return TensorPlan(entry.name, _DTYPES[entry.format], entry.shape)
    return TensorPlan(entry.name, "U8", (matrix_bytes(kept, *entry.shape),))


def make_manifest(
    inspection: Inspection, recipe: Recipe, finished: dict[str, PreparedFile]
) -> Manifest:
    """Return the manifest of a copy whose files are all finished."""
    spec = inspection.spec
    assert spec is not None
    mix = recipe.mix
    layers = spec.moe_layers if mix else ()
    return Manifest(
        version=MIX_VERSION if mix else MANIFEST_VERSION,
        source_name=inspection.report.name,
        source_fingerprint=inspection.report.fingerprint,
        source_folder=inspection.report.folder,
        expert_format=recipe.expert_format,
        hidden_size=spec.hidden_size,
        expert_width=spec.expert_width,
        record_bytes=max(
            plan.num_bytes
            for file in recipe.files
            if file.layer is not None
            for plan in file.tensors
        ),
        num_experts=spec.num_experts,
        dense=finished[DENSE_NAME],
        layers={file.layer: finished[file.name] for file in recipe.files if file.layer is not None},
        formats={
            layer: [recipe.format_of(ExpertId(layer, each)) for each in range(spec.num_experts)]
            for layer in layers
        },
        dense_formats=_dense_forms(inspection, mix) if mix else {},
        mix=mix.identity if mix else "",
        dense_ram_bytes=dense_bytes(_kept(inspection, mix)) if mix else 0,
    )


def _dense_forms(inspection: Inspection, mix: Mix) -> dict[str, DenseForm]:
    forms: dict[str, DenseForm] = {}
    for name, kept in mix.dense.items():
        rows, columns = inspection.tensors[name].shape
        forms[name] = DenseForm(format=kept, shape=(rows, columns))
    return forms


def _kept(inspection: Inspection, mix: Mix) -> Iterator[TensorEntry]:
    """Yield the dense tensors as they lie in the copy."""
    for name, entry in inspection.tensors.items():
        kept = mix.dense.get(name)
        if kept is None:
            yield entry
        else:
            num_bytes = matrix_bytes(kept, *entry.shape)
            yield dataclasses.replace(entry, format=kept, num_bytes=num_bytes)


def is_copied(path: Path) -> bool:
    """Whether a file of a model folder is one that its copy needs to be complete in itself."""
    name = path.name
    is_named = name in _COPIED_NAMES or name.upper().startswith(_COPIED_STARTS)
    return (is_named or name.endswith(TIKTOKEN_ENDING)) and path.is_file()
