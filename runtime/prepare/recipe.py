"""What a prepared copy consists of, known before a byte is written."""

import dataclasses
from pathlib import Path

from runtime.inspect.chat_files import OTHER_TOKENIZER_NAMES, TIKTOKEN_ENDING
from runtime.inspect.inspection import Inspection
from runtime.inspect.manifest import MANIFEST_VERSION, Manifest, PreparedFile
from runtime.inspect.roles import FORMATS
from runtime.prepare.weight_file import TensorPlan, file_bytes
from runtime.protocol.values import WeightFormat
from runtime.spec.tensors import ExpertLayout, expert_layout
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
    layout: ExpertLayout
    identity: dict[str, str]
    """Goes into every file, so that files of different copies are never mixed."""
    files: tuple[WeightFile, ...]

    @property
    def size_bytes(self) -> int:
        """What all weight files take."""
        return sum(file.size_bytes for file in self.files)


def make_recipe(inspection: Inspection, expert_format: WeightFormat) -> Recipe:
    """Return the recipe of an inspected model without problems."""
    spec, report = inspection.spec, inspection.report
    assert spec is not None
    layout = expert_layout(expert_format, spec.hidden_size, spec.expert_width)
    identity = {
        "larder": str(MANIFEST_VERSION),
        "source": report.fingerprint,
        "expert_format": str(expert_format),
    }
    dense = tuple(
        TensorPlan(entry.name, _DTYPES[entry.format], entry.shape)
        for entry in inspection.tensors.values()
    )
    files = [WeightFile(DENSE_NAME, None, dense, file_bytes(dense, identity))]
    for layer in spec.moe_layers:
        records = tuple(
            TensorPlan(record_name(layer, expert), "U8", (layout.record_bytes,))
            for expert in range(spec.num_experts)
        )
        name = f"experts-{layer:05d}.safetensors"
        files.append(WeightFile(name, layer, records, file_bytes(records, identity)))
    return Recipe(expert_format, layout, identity, tuple(files))


def make_manifest(
    inspection: Inspection, recipe: Recipe, finished: dict[str, PreparedFile]
) -> Manifest:
    """Return the manifest of a copy whose files are all finished."""
    spec = inspection.spec
    assert spec is not None
    return Manifest(
        version=MANIFEST_VERSION,
        source_name=inspection.report.name,
        source_fingerprint=inspection.report.fingerprint,
        source_folder=inspection.report.folder,
        expert_format=recipe.expert_format,
        hidden_size=spec.hidden_size,
        expert_width=spec.expert_width,
        record_bytes=recipe.layout.record_bytes,
        num_experts=spec.num_experts,
        dense=finished[DENSE_NAME],
        layers={file.layer: finished[file.name] for file in recipe.files if file.layer is not None},
    )


def is_copied(path: Path) -> bool:
    """Whether a file of a model folder is one that its copy needs to be complete in itself."""
    name = path.name
    is_named = name in _COPIED_NAMES or name.upper().startswith(_COPIED_STARTS)
    return (is_named or name.endswith(TIKTOKEN_ENDING)) and path.is_file()
