"""What the config of a model alone says: enough to forecast it, before any of its files is here."""

import math

from runtime.inspect.bounded_json import JsonRefusedError, parse_object
from runtime.inspect.config import ConfigReader
from runtime.inspect.families.registry import find_family
from runtime.inspect.families.wrapped import with_text_part
from runtime.inspect.levels import read_levels
from runtime.inspect.listing import CONFIG_NAME
from runtime.inspect.quantization import quantization_problems
from runtime.inspect.report import describe_spec
from runtime.inspect.scaled import read_scheme
from runtime.protocol.model import ModelReport
from runtime.protocol.values import WeightFormat
from runtime.spec.facts import ModelFacts
from runtime.spec.footprint import dense_bytes
from runtime.spec.tensors import STORED_BITS, TensorEntry, matrix_bytes

_DTYPES = {"float32": WeightFormat.F32, "float16": WeightFormat.F16, "bfloat16": WeightFormat.BF16}


def outlook(config_text: str, folder: str) -> ModelFacts | None:
    """Return the facts of a model as it would lie in a folder; None where that is not known.

    The names and shapes of all tensors follow from the config; that they are really there is seen
    once their headers are. Models in whole levels are left out, whose formats the headers say.
    """
    try:
        config = with_text_part(ConfigReader(parse_object(config_text.encode()), CONFIG_NAME))
    except (JsonRefusedError, UnicodeEncodeError):
        return None
    family = find_family(config["model_type"], config["architectures"])
    if family is None or read_levels(config) is not None:
        return None
    spec = family.read_spec(config)
    refused = quantization_problems(config, readable=family.quant_methods)
    if config.problems or next(iter(refused), None) is not None:
        return None
    scheme = read_scheme(config)
    stated = config["torch_dtype"] or config["dtype"]
    plain = _DTYPES.get(stated, WeightFormat.BF16) if isinstance(stated, str) else WeightFormat.BF16
    # What is published in eight or four bits with scales counts as what it is widened to.
    plain = plain if scheme is None else WeightFormat.BF16
    dense = [
        TensorEntry(name, "", 0, math.prod(shape) * STORED_BITS[plain] // 8, plain, tuple(shape))
        for name, shape in family.dense_shapes(spec).items()
    ]
    stored = spec.packed_experts or plain
    matrix = spec.hidden_size * spec.expert_width
    expert_bytes = 3 * matrix_bytes(stored, spec.expert_width, spec.hidden_size)
    num_experts = len(spec.moe_layers) * spec.num_experts
    num_dense = sum(math.prod(entry.shape) for entry in dense)
    num_dense_bytes = sum(entry.num_bytes for entry in dense)
    report = ModelReport(
        folder=folder,
        name="",
        model_type=family.model_type,
        fingerprint="",
        licence="",
        problems=[],
        num_parameters=num_dense + num_experts * 3 * matrix,
        num_active_parameters=num_dense + len(spec.moe_layers) * spec.top_k * 3 * matrix,
        stored_format=stored,
        published_bits=0 if scheme is None else scheme.bits,
        file_bytes=num_dense_bytes + num_experts * expert_bytes,
        dense_bytes=num_dense_bytes,
        expert_bytes=expert_bytes if scheme is None else 3 * matrix * scheme.bits // 8,
    )
    return ModelFacts(
        report=describe_spec(report, spec), spec=spec, dense_ram_bytes=dense_bytes(dense)
    )
