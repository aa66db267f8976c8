"""What the config of a model alone says: enough to forecast it, before any of its files is here."""

import dataclasses
import math

from runtime.inspect.bounded_json import JsonRefusedError, parse_object
from runtime.inspect.config import ConfigReader
from runtime.inspect.families.base import Family
from runtime.inspect.families.registry import FAMILIES, find_family
from runtime.inspect.families.wrapped import with_text_part
from runtime.inspect.folder import inspect_folder
from runtime.inspect.gguf.labels import bits_of, dense_home, expert_kinds, kind_of
from runtime.inspect.gguf.roles import MAX_PLAIN_WEIGHTS
from runtime.inspect.levels import read_levels
from runtime.inspect.listing import CONFIG_NAME
from runtime.inspect.quantization import quantization_problems
from runtime.inspect.report import describe_spec
from runtime.inspect.scaled import read_scheme
from runtime.protocol.hub import HubSketch
from runtime.protocol.model import MixedExperts, ModelReport
from runtime.protocol.values import WeightFormat
from runtime.spec.facts import ModelFacts
from runtime.spec.footprint import dense_bytes
from runtime.spec.gguf import HOME, GgufKind
from runtime.spec.mix import mixed_experts
from runtime.spec.model import ModelSpec
from runtime.spec.tensors import PLAIN_FORMATS, STORED_BITS, TensorEntry, matrix_bytes

_KEPT_IN_FP4 = "gpt_oss"
"""Experts that were trained in MXFP4 stay so in files of any name."""
_DTYPES = {"float32": WeightFormat.F32, "float16": WeightFormat.F16, "bfloat16": WeightFormat.BF16}


@dataclasses.dataclass(frozen=True, slots=True)
class _Stored:
    """How a model lies in its files, as far as that is known without them."""

    experts: WeightFormat
    dense: WeightFormat
    vectors: WeightFormat
    expert_bytes: int
    """Of one expert, as it is published."""
    published_bits: int = 0
    file_bytes: int = 0
    """0: what the rest adds up to."""
    gguf_kinds: tuple[str, ...] = ()
    mixed: MixedExperts | None = None
    """What experts take if they have several formats; else None."""


def outlook(sketch: HubSketch, folder: str) -> ModelFacts | None:
    """Return the facts of a model as it would lie in a folder; None where that is not known.

    The names and shapes of all tensors follow from a config or from another model's headers; that
    they are really there is seen once their own are. Models in whole levels are left out, whose
    formats the headers say; of GGUF files the name alone says what they hold.
    """
    if sketch.outline:
        spec = inspect_folder(sketch.outline).spec
        if spec is None:
            return None
        family = FAMILIES[spec.model_type]
        return _gguf_facts(family, spec, sketch, folder)
    try:
        config = with_text_part(ConfigReader(parse_object(sketch.config.encode()), CONFIG_NAME))
    except (JsonRefusedError, UnicodeEncodeError):
        return None
    family_found = find_family(config["model_type"], config["architectures"])
    if family_found is None or (read_levels(config) is not None and not sketch.gguf_label):
        return None
    spec = family_found.read_spec(config)
    if sketch.gguf_label:
        return None if config.problems else _gguf_facts(family_found, spec, sketch, folder)
    refused = quantization_problems(config, readable=family_found.quant_methods)
    if config.problems or next(iter(refused), None) is not None:
        return None
    scheme = read_scheme(config)
    stated = config["torch_dtype"] or config["dtype"]
    plain = _DTYPES.get(stated, WeightFormat.BF16) if isinstance(stated, str) else WeightFormat.BF16
    # What is published in eight or four bits with scales counts as what it is widened to.
    plain = plain if scheme is None else WeightFormat.BF16
    experts = spec.packed_experts or plain
    num_weights = 3 * spec.hidden_size * spec.expert_width
    expert_bytes = 3 * matrix_bytes(experts, spec.expert_width, spec.hidden_size)
    if scheme is not None:
        expert_bytes = num_weights * scheme.bits // 8
    bits = 0 if scheme is None else scheme.bits
    return _facts(family_found, spec, folder, _Stored(experts, plain, plain, expert_bytes, bits))


def _gguf_facts(
    family: Family, spec: ModelSpec, sketch: HubSketch, folder: str
) -> ModelFacts | None:
    """Return the facts of a model in files whose numbers are called something."""
    if kind_of(sketch.gguf_label) is None:
        return None
    num_weights = 3 * spec.hidden_size * spec.expert_width
    num_dense = sum(map(math.prod, family.dense_shapes(spec).values()))
    num_all = num_dense + len(spec.moe_layers) * spec.num_experts * num_weights
    size_bytes = sketch.size_bytes or round(num_all * bits_of(sketch.gguf_label) / 8)
    # So do older files that hold more than the model, such as layers that guess later tokens.
    label = GgufKind.MXFP4.name if family.model_type == _KEPT_IN_FP4 else sketch.gguf_label
    bits = min(size_bytes * 8 / num_all, 1.1 * bits_of(label))
    kinds = [
        expert_kinds(label, layer, spec.num_layers, spec.hidden_size, spec.expert_width)
        for layer in spec.moe_layers or range(spec.num_layers)
    ]
    homes = {HOME[each] for parts in kinds for each in parts}
    mixed = None
    if spec.moe_layers and len(homes) > 1:
        layers = [{tuple(HOME[each] for each in parts): spec.num_experts} for parts in kinds]
        mixed = mixed_experts(layers, spec.hidden_size, spec.expert_width)
    stored = _Stored(
        experts=HOME[kinds[0][0]] if mixed is None else next(iter(mixed.format_bytes)),
        mixed=mixed,
        dense=dense_home(sketch.gguf_label, is_plain=num_dense <= MAX_PLAIN_WEIGHTS),
        vectors=WeightFormat.F32,
        expert_bytes=round(num_weights * bits / 8),
        file_bytes=size_bytes,
        gguf_kinds=tuple(dict.fromkeys(each.name for parts in kinds for each in parts)),
    )
    return _facts(family, spec, folder, stored)


def _facts(family: Family, spec: ModelSpec, folder: str, stored: _Stored) -> ModelFacts:
    dense = [
        _entry(name, tuple(shape), stored.dense if len(shape) == 2 else stored.vectors)
        for name, shape in family.dense_shapes(spec).items()
    ]
    matrix = spec.hidden_size * spec.expert_width
    num_experts = len(spec.moe_layers) * spec.num_experts
    num_dense = sum(math.prod(entry.shape) for entry in dense)
    num_dense_bytes = sum(entry.num_bytes for entry in dense)
    whole_bytes = 3 * matrix_bytes(stored.experts, spec.expert_width, spec.hidden_size)
    report = ModelReport(
        folder=folder,
        name="",
        model_type=family.model_type,
        fingerprint="",
        licence="",
        problems=[],
        num_parameters=num_dense + num_experts * 3 * matrix,
        num_active_parameters=num_dense + len(spec.moe_layers) * spec.top_k * 3 * matrix,
        stored_format=stored.experts,
        mixed_experts=stored.mixed,
        published_bits=stored.published_bits,
        file_bytes=stored.file_bytes or num_dense_bytes + num_experts * whole_bytes,
        dense_bytes=num_dense_bytes,
        expert_bytes=stored.expert_bytes,
        gguf_kinds=list(stored.gguf_kinds),
    )
    return ModelFacts(
        report=describe_spec(report, spec), spec=spec, dense_ram_bytes=dense_bytes(dense)
    )


def _entry(name: str, shape: tuple[int, ...], form: WeightFormat) -> TensorEntry:
    if form in PLAIN_FORMATS:
        num_bytes = math.prod(shape) * STORED_BITS[form] // 8
    else:
        num_bytes = matrix_bytes(form, *shape)
    return TensorEntry(name, "", 0, num_bytes, form, shape)
