"""Inspecting a folder: everything about a model that its headers say, in milliseconds."""

import dataclasses

import msgspec

from runtime.errors import LarderError, report_of
from runtime.inspect.chat_files import (
    read_config,
    read_eos_ids,
    read_recommended_sampling,
    template_problems,
    tokenizer_problems,
)
from runtime.inspect.config import ConfigReader, spelled
from runtime.inspect.families.base import Family
from runtime.inspect.families.registry import SUPPORTED, find_family
from runtime.inspect.families.wrapped import with_text_part
from runtime.inspect.files import shown
from runtime.inspect.fingerprint import fingerprint
from runtime.inspect.gguf.model import inspect_gguf
from runtime.inspect.inspection import Inspection
from runtime.inspect.levels import levels_name, read_levels
from runtime.inspect.licence import read_licence
from runtime.inspect.listing import CONFIG_NAME
from runtime.inspect.manifest import MANIFEST_NAME
from runtime.inspect.place import Place, find_model, real_place
from runtime.inspect.prepared import (
    copy_without_model,
    describe_copy,
    find_prepared,
    model_of_copy,
)
from runtime.inspect.quantization import (
    order_problems,
    quantization_problems,
    read_own_file,
)
from runtime.inspect.report import describe_files, describe_spec, describe_weights
from runtime.inspect.roles import Roles, assign_roles
from runtime.inspect.scaled import packed_name, read_scheme
from runtime.inspect.shards import Shards, read_shards
from runtime.inspect.weights import weight_problems
from runtime.protocol.errors import ErrorCode
from runtime.protocol.model import ModelReport
from runtime.spec.model import ModelSpec

_HEAD = "lm_head.weight"
_NEVER_RUNS = (ErrorCode.ARCHITECTURE_UNSUPPORTED, ErrorCode.QUANTIZATION_UNSUPPORTED)
"""Who reads one of these should look for another model, and not for files that this one lacks."""


def inspect_folder(folder: str, prepared_folder: str = "") -> Inspection:
    """Return what lies in ``folder``; never raises for anything a person can have on a drive.

    Whatever is wrong is in ``report.problems``, the most useful first. ``prepared_folder`` is where
    prepared copies are looked for; empty: nowhere.
    """
    inspection = _inspect(folder, prepared_folder)
    real_folder = real_place(inspection.report.folder)
    if not real_folder:
        return inspection
    report = msgspec.structs.replace(inspection.report, real_folder=real_folder)
    return dataclasses.replace(inspection, report=report)


def _inspect(folder: str, prepared_folder: str) -> Inspection:
    try:
        place = find_model(folder)
        if place.gguf is not None:
            return inspect_gguf(place.gguf)
        if MANIFEST_NAME in place.names:
            return _inspect_copy(place, prepared_folder)
        return _inspect_place(place, prepared_folder)
    except LarderError as error:
        return _nothing(folder, error)


def _inspect_copy(copy: Place, prepared_folder: str) -> Inspection:
    """Return what the model of a prepared copy is, that copy listed with it."""
    place, manifest = model_of_copy(copy)
    inspection = _inspect_place(place, prepared_folder)
    report = inspection.report
    if report.fingerprint != manifest.source_fingerprint:
        raise copy_without_model(copy, manifest)
    described = describe_copy(copy.folder, manifest)
    if described not in report.prepared:
        report = msgspec.structs.replace(report, prepared=[*report.prepared, described])
    return dataclasses.replace(inspection, report=report)


def _inspect_place(place: Place, prepared_folder: str) -> Inspection:
    config, problems = _read_config(place)
    identity_values = config.values
    family = spec = None
    if not problems:
        config = with_text_part(config)
        own = read_own_file(place, config)
        config = config.with_values(own.values)
        identity_values = {**identity_values, **own.values}
        family, spec, problems = _read_spec(place, config)
        readable = family.quant_methods if family else frozenset[str]()
        problems += own.problems or quantization_problems(config, own.name, readable)
    shards = read_shards(place.folder, place.names)
    spec = _with_stored_head(spec, shards)
    schemes = read_scheme(config), read_levels(config)
    roles = assign_roles(family, spec, shards, *schemes) if family and spec else Roles()
    problems += order_problems(config, roles.entries())
    problems += weight_problems(place, shards, roles)
    if not any(problem.code in _NEVER_RUNS for problem in problems):
        problems += tokenizer_problems(place.folder)
        problems += template_problems(place.folder, place.names)
    identity = fingerprint(identity_values, shards)
    report = ModelReport(
        folder=shown(str(place.folder)),
        name=place.name,
        model_type=family.model_type if family else _architecture(config),
        fingerprint=identity,
        licence=read_licence(place.folder, place.names),
        sampling=read_recommended_sampling(place.folder),
        problems=[report_of(problem) for problem in problems],
        prepared=find_prepared(prepared_folder, identity),
    )
    report = describe_files(report, shards)
    if spec:
        report = describe_spec(report, spec)
        if not problems:
            report = describe_weights(report, spec, roles)
    return Inspection(report, spec, roles.dense, roles.experts)


def _read_config(place: Place) -> tuple[ConfigReader, list[LarderError]]:
    try:
        return read_config(place.folder, CONFIG_NAME), []
    except FileNotFoundError:
        reason = "its config.json is a link to a file that is not there"
        folder = shown(str(place.folder))
        error = LarderError(ErrorCode.NOT_A_MODEL, folder=folder, reason=reason)
        return ConfigReader({}, CONFIG_NAME), [error]
    except LarderError as error:
        return ConfigReader({}, CONFIG_NAME), [error]


def _read_spec(
    place: Place, config: ConfigReader
) -> tuple[Family | None, ModelSpec | None, list[LarderError]]:
    """Return the family and spec of a config, or why there is none."""
    family = find_family(config["model_type"], config["architectures"])
    if family is None:
        error = LarderError(
            ErrorCode.ARCHITECTURE_UNSUPPORTED,
            architecture=_architecture(config),
            supported=SUPPORTED,
        )
        return None, None, [error]
    spec = family.read_spec(config)
    if config.problems:
        return family, None, list(config.problems)
    eos_ids, problems = read_eos_ids(place.folder, config)
    problems += config.problems
    return family, dataclasses.replace(spec, eos_ids=eos_ids), problems


def _with_stored_head(spec: ModelSpec | None, shards: Shards) -> ModelSpec | None:
    """Return the spec of a model whose output matrix is stored although it is said to be tied.

    What is stored is what the weights were trained with: where both matrices are the same it costs
    memory alone, and where they are not the embedding would give nonsense.
    """
    if spec is None or not spec.is_tied:
        return spec
    head = spec.naming.published(_HEAD)
    names = head, levels_name(head), packed_name(head)
    is_stored = any(name in shards.tensors for name in names)
    return dataclasses.replace(spec, is_tied=not is_stored)


def _architecture(config: ConfigReader) -> str:
    """Return what the config calls itself, its class if the type alone is one we read."""
    model_type, classes = config["model_type"], config["architectures"]
    first = classes[0] if isinstance(classes, list) and classes else None
    is_known = find_family(model_type, None) is not None
    named = first if (is_known and first) or not model_type else model_type
    return spelled(named).strip("'") if named else "an unnamed architecture"


def _nothing(folder: str, error: LarderError) -> Inspection:
    report = ModelReport(
        folder=shown(folder),
        name="",
        model_type="",
        fingerprint="",
        licence="",
        problems=[report_of(error)],
    )
    return Inspection(report, None, {}, {})
