"""Inspecting a GGUF model: the same report and entries as of a folder."""

import dataclasses
from collections.abc import Iterable
from pathlib import Path

import msgspec

from runtime.errors import LarderError, report_of
from runtime.inspect.chat_files import usable_sampling
from runtime.inspect.config import ConfigReader, spelled
from runtime.inspect.families.base import Family
from runtime.inspect.families.registry import find_family
from runtime.inspect.files import shown
from runtime.inspect.gguf.header import GgufHeader, ListPlace
from runtime.inspect.gguf.metadata import SUPPORTED, TURNED_PAIRS, Metadata, config_of, meant
from runtime.inspect.gguf.parts import first_part, model_name, read_parts
from runtime.inspect.gguf.roles import assign_roles, role_problems
from runtime.inspect.inspection import Inspection
from runtime.inspect.report import describe_spec, describe_weights
from runtime.inspect.roles import Roles
from runtime.protocol.chat import SamplingSettings
from runtime.protocol.errors import ErrorCode
from runtime.protocol.model import ModelReport
from runtime.spec.model import ModelSpec

_REQUIRED = (
    "block_count",
    "context_length",
    "embedding_length",
    "attention.head_count",
    "attention.layer_norm_rms_epsilon",
)
TOKENIZERS = ("gpt2", "llama", "gemma4")
"""What ``tokenizer.ggml.model`` may say."""
_LISTS = ("tokens", "token_type")
_SAMPLING = {"temp": "temperature", "top_k": "top_k", "top_p": "top_p", "min_p": "min_p"}


def inspect_gguf(path: Path) -> Inspection:
    """Return what lies in a GGUF file and the others of its set; nothing is raised."""
    path = first_part(path)
    parts = read_parts(path)
    problems: list[LarderError] = list(parts.problems)
    header, family, spec, roles, kinds = parts.first, None, None, Roles(), list[str]()
    architecture = ""
    if header is not None:
        metadata = Metadata(header, parts)
        architecture = metadata.architecture
        family, spec, found = _read_spec(path, metadata)
        # What follows from the matrices alone, such as which layers have experts, is not known
        # where some of them are missing.
        problems += [] if family is not None and parts.problems else found
        if family is not None and spec is not None and not parts.problems:
            turned = architecture in TURNED_PAIRS
            roles, kinds = assign_roles(family, spec, parts.tensors, has_turned_pairs=turned)
            problems += role_problems(roles, parts.tensors)
        if family is not None:
            problems += _chat_problems(path, header)
    elif not problems:
        problems.append(_invalid(path, "it does not say of which architecture the model is"))
    report = ModelReport(
        folder=shown(str(path)),
        name=model_name(path.name),
        model_type=family.model_type if family else spelled(architecture).strip("'"),
        fingerprint=parts.fingerprint(),
        licence=_text(header, "general.license"),
        sampling=_sampling(header),
        problems=[report_of(problem) for problem in problems],
        gguf_kinds=kinds,
        file_bytes=sum(each.file_bytes for each in parts.headers.values()),
        num_shards=len(parts.headers),
    )
    if spec is not None:
        report = describe_spec(report, spec)
        if not problems:
            report = describe_weights(report, spec, roles)
    return Inspection(report, spec, roles.dense, roles.experts)


def _read_spec(
    path: Path, metadata: Metadata
) -> tuple[Family | None, ModelSpec | None, list[LarderError]]:
    """Return the family and spec of a model, or why there is none."""
    config = config_of(metadata)
    model_type = None if config is None else config["model_type"]
    family = find_family(model_type, None)
    if config is None or family is None:
        named = model_type if config is not None else metadata.architecture
        error = LarderError(
            ErrorCode.ARCHITECTURE_UNSUPPORTED,
            architecture=spelled(named).strip("'") if named else "an unnamed architecture",
            supported=SUPPORTED,
        )
        return None, None, [error]
    missing = [
        LarderError(
            ErrorCode.CONFIG_INVALID,
            file=shown(str(path)),
            field=f"{metadata.architecture}.{name}",
            found="nothing",
            expected="a value",
        )
        for name in _REQUIRED
        if metadata[name] is None
    ]
    if missing:
        return family, None, missing
    reader = ConfigReader(config, str(path))
    spec = family.read_spec(reader)
    eos_ids = reader.integers("eos_token_id")
    if reader.problems:
        return family, None, list(reader.problems)
    return family, dataclasses.replace(spec, eos_ids=eos_ids), []


def _chat_problems(path: Path, header: GgufHeader) -> Iterable[LarderError]:
    """Yield what is missing of vocabulary and chat template."""
    kind = header.values.get("tokenizer.ggml.model")
    if kind is None or kind in ("no_vocab", "none"):
        yield LarderError(ErrorCode.TOKENIZER_MISSING, file="tokenizer.ggml.tokens")
    elif kind not in TOKENIZERS:
        reason = f"its vocabulary is of the kind {spelled(kind)}, which is not read"
        yield LarderError(ErrorCode.TOKENIZER_INVALID, file=shown(str(path)), reason=reason)
    else:
        lists = [header.values.get(f"tokenizer.ggml.{name}") for name in _LISTS]
        counts = {
            each.num_items if isinstance(each, ListPlace) else len(each)
            for each in lists
            if isinstance(each, ListPlace | list)
        }
        if lists[0] is None or len(counts) > 1:
            reason = "the lists of its vocabulary are not equally long, or not there"
            yield LarderError(ErrorCode.TOKENIZER_INVALID, file=shown(str(path)), reason=reason)
    if not _text(header, "tokenizer.chat_template"):
        yield LarderError(ErrorCode.CHAT_TEMPLATE_MISSING, folder=shown(str(path)))


def _text(header: GgufHeader | None, key: str) -> str:
    value = header.values.get(key) if header is not None else None
    return shown(value) if isinstance(value, str) else ""


def _sampling(header: GgufHeader | None) -> SamplingSettings | None:
    """Return what the makers recommend, as newer files say it."""
    stated: dict[str, object] = {}
    for key, name in _SAMPLING.items():
        value = header.values.get(f"general.sampling.{key}") if header is not None else None
        stated[name] = meant(value) if isinstance(value, float) else value
    found = usable_sampling(stated)
    return msgspec.convert({"temperature": 1.0, **found}, SamplingSettings) if found else None


def _invalid(path: Path, reason: str) -> LarderError:
    return LarderError(ErrorCode.SHARD_INVALID, file=shown(str(path)), reason=reason)
