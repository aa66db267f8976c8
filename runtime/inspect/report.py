"""The report of a folder, put together from what was found."""

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from runtime.inspect.roles import Roles
from runtime.inspect.shards import Shards
from runtime.protocol.model import ModelReport
from runtime.protocol.values import WeightFormat
from runtime.spec.footprint import KV_PAGE_TOKENS, kv_cache_bytes
from runtime.spec.mix import PartFormats, mixed_experts
from runtime.spec.model import ModelSpec
from runtime.spec.tensors import ExpertPart, TensorEntry, matrix_bytes


def describe_spec(report: ModelReport, spec: ModelSpec) -> ModelReport:
    """Return ``report`` with what the config says."""
    return msgspec.structs.replace(
        report,
        num_layers=spec.num_layers,
        num_moe_layers=len(spec.moe_layers),
        num_experts=spec.num_experts,
        top_k=spec.top_k,
        hidden_size=spec.hidden_size,
        vocabulary_size=spec.vocabulary_size,
        max_context_tokens=spec.max_context_tokens,
        kv_bytes_per_token=kv_cache_bytes(spec, KV_PAGE_TOKENS) // KV_PAGE_TOKENS,
    )


def describe_weights(report: ModelReport, spec: ModelSpec, roles: Roles) -> ModelReport:
    """Return ``report`` with what the tensors say; call it only if all were found."""
    formats = {entry.format for entry in roles.dense.values() if len(entry.shape) == 2}
    experts = list(roles.experts.values())
    expert = experts[0] if experts else {}
    numbers: dict[int, Counter[PartFormats]] = {layer: Counter() for layer in spec.moe_layers}
    for each, parts in roles.experts.items():
        numbers[each.layer][tuple(parts[part].format for part in ExpertPart)] += 1
    expert_formats = set(itertools.chain.from_iterable(itertools.chain(*numbers.values())))
    mixed = None
    if len(expert_formats) <= 1:
        stored_format = min(expert_formats, default=min(formats))
        # Of one format, matrices of GGUF files may still be of several kinds.
        experts = experts if report.gguf_kinds else experts[:1]
    elif report.gguf_kinds:
        mixed = mixed_experts(numbers.values(), spec.hidden_size, spec.expert_width)
        stored_format = next(iter(mixed.format_bytes))
    else:
        stored_format = WeightFormat.F32
    dense_parameters = _count(roles.dense.values())
    expert_parameters = _count(expert.values())
    num_layers = len(spec.moe_layers)
    return msgspec.structs.replace(
        report,
        num_parameters=dense_parameters + num_layers * spec.num_experts * expert_parameters,
        num_active_parameters=dense_parameters + num_layers * spec.top_k * expert_parameters,
        stored_format=stored_format,
        mixed_experts=mixed,
        published_bits=_published_bits([*expert.values(), *roles.dense.values()]),
        dense_bytes=sum(entry.num_bytes for entry in roles.dense.values()),
        expert_bytes=_mean_bytes(experts),
    )


def describe_files(report: ModelReport, shards: Shards) -> ModelReport:
    """Return ``report`` with what the files say."""
    return msgspec.structs.replace(
        report,
        file_bytes=sum(header.file_bytes for header in shards.headers.values()),
        num_shards=len(shards.headers),
    )


def _published_bits(entries: Iterable[TensorEntry]) -> int:
    """Return the bits of the first matrix that is widened, 0 if there is none."""
    return next((entry.blocks.bits for entry in entries if entry.blocks is not None), 0)


def _mean_bytes(experts: Sequence[Mapping[ExpertPart, TensorEntry]]) -> int:
    """Return what one of the experts takes in the published files."""
    num_bytes = sum(_published_bytes(entry) for parts in experts for entry in parts.values())
    return -(-num_bytes // max(1, len(experts)))


def _published_bytes(entry: TensorEntry) -> int:
    """Return what one matrix takes in the published files."""
    if entry.gguf is not None:
        return entry.gguf.stored_bytes(entry.shape)
    if entry.blocks is not None:
        rows, columns = entry.shape
        return rows * entry.blocks.row_bytes(columns) + entry.blocks.scales.num_bytes
    if entry.levels is not None:
        levels = entry.levels
        return sum(each.num_bytes for each in (levels.words, levels.scales, levels.zeros))
    return matrix_bytes(entry.format, *entry.shape)


def _count(entries: Iterable[TensorEntry]) -> int:
    return sum(math.prod(entry.shape) for entry in entries)
