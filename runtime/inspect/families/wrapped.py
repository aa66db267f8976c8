"""The language model inside a checkpoint that also sees or hears; the other parts stay unread."""

import dataclasses

from runtime.inspect.config import ConfigReader, spelled
from runtime.inspect.families.base import Family, PartPlace, Shape, refuse_variant
from runtime.spec.model import ModelSpec
from runtime.spec.naming import Naming
from runtime.spec.tensors import ExpertId, ExpertPart

_TEXT = "text_config"
_OWN = ("architectures", "model_type")
"""Fields that the whole config keeps."""


def with_text_part(config: ConfigReader) -> ConfigReader:
    """Return a config with the fields of its ``text_config`` laid over its own, if it has one.

    A null in there takes away nothing that is stated outside.
    """
    inner = config[_TEXT]
    if not isinstance(inner, dict):
        return config
    stated = {
        name: value
        for name, value in inner.items()
        if name not in _OWN and not (value is None and config[name] is not None)
    }
    laid = config.with_values(stated)
    outer_tie, tie = config["tie_word_embeddings"], stated.get("tie_word_embeddings")
    if None not in (outer_tie, tie) and outer_tie != tie:
        expected = f"{spelled(outer_tie)} as outside of {_TEXT}"
        laid.refuse(f"{_TEXT}.tie_word_embeddings", tie, expected)
    return laid


def wrapped(
    family: Family,
    *,
    model_type: str,
    architectures: tuple[str, ...],
    text_types: tuple[str, ...],
    naming: Naming,
) -> Family:
    """Return the family of checkpoints in which ``family`` is the language model.

    ``text_types`` are what ``text_config`` may call it.
    """

    def read_spec(reader: ConfigReader) -> ModelSpec:
        text_type = reader.table(_TEXT).get("model_type")
        if text_type not in text_types:
            refuse_variant(reader, f"the language model {spelled(text_type)}", text_types[0])
        return dataclasses.replace(family.read_spec(reader), naming=naming)

    def dense_shapes(spec: ModelSpec) -> dict[str, Shape]:
        shapes = family.dense_shapes(spec)
        return {naming.published(name): shape for name, shape in shapes.items()}

    def expert_part(spec: ModelSpec, expert: ExpertId, part: ExpertPart) -> PartPlace:
        place = family.expert_part(spec, expert, part)
        other = place.otherwise
        if other is not None:
            other = dataclasses.replace(other, name=naming.published(other.name))
        return dataclasses.replace(place, name=naming.published(place.name), otherwise=other)

    return Family(
        model_type=model_type,
        architectures=frozenset(architectures),
        read_spec=read_spec,
        dense_shapes=dense_shapes,
        expert_part=expert_part,
        quant_methods=family.quant_methods,
    )
