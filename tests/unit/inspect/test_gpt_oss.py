"""gpt-oss configs, and experts that were published in MXFP4."""

import json
from pathlib import Path

import pytest

from runtime.inspect.config import ConfigReader
from runtime.inspect.families.gpt_oss import GPT_OSS
from runtime.inspect.folder import inspect_folder
from runtime.protocol.errors import ErrorCode
from runtime.protocol.values import WeightFormat
from runtime.spec.attention import AttentionSpec
from runtime.spec.blocks import Activation, ActivationKind, NormSpec, Routing
from runtime.spec.model import ModelSpec
from runtime.spec.rope import RopeSpec, YarnScaling
from runtime.spec.tensors import ExpertId, ExpertPart, Weave
from tests.support.checkpoint_folders import edit_json, write_safetensors
from tests.support.packed_folders import HIDDEN_SIZE, packed_tensors, write_packed

CONFIGS = Path(__file__).parents[2] / "golden" / "model-configs"
GATE_UP = "model.layers.1.mlp.experts.gate_up_proj"
YARN = YarnScaling(32.0, 4096, pytest.approx(1.3465736), is_truncated=False)  # type: ignore[arg-type]


def spec_of(**changes: object) -> tuple[ModelSpec, ConfigReader]:
    """The spec of the published config of 20 billions with changes; None takes a field away."""
    config = json.loads((CONFIGS / "openai--gpt-oss-20b.config.json").read_text())
    kept = {name: value for name, value in (config | changes).items() if value is not None}
    reader = ConfigReader(kept, "config.json")
    return GPT_OSS.read_spec(reader), reader


def windows(spec: ModelSpec) -> list[int]:
    return [each.window for each in spec.attention if isinstance(each, AttentionSpec)]


def test_published_config_gives_the_spec() -> None:
    spec, reader = spec_of()
    full = AttentionSpec(
        num_heads=64,
        num_kv_heads=8,
        head_dim=64,
        rope=RopeSpec(150_000.0, 64, YARN),
        has_qkv_bias=True,
        has_output_bias=True,
        has_sinks=True,
    )
    assert not reader.problems
    assert spec.attention[1] == full
    assert windows(spec) == [128, 0] * 12
    assert spec.norm == NormSpec(1e-5)
    assert spec.routing == Routing(top_k=4, is_normalised=True)
    assert spec.activation == Activation(ActivationKind.CLAMPED_SWIGLU, 7.0, 1.702)
    assert (spec.hidden_size, spec.expert_width, spec.num_experts) == (2880, 2880, 32)
    assert (spec.max_context_tokens, spec.vocabulary_size) == (131072, 201088)
    assert spec.packed_experts is WeightFormat.MXFP4


def test_config_that_says_little_means_what_the_published_class_means() -> None:
    spec, reader = spec_of(
        head_dim=None,
        layer_types=None,
        sliding_window=None,
        attention_bias=None,
        rope_scaling=None,
        rope_theta=None,
        swiglu_limit=None,
        quantization_config=None,
    )
    expected, _ = spec_of(quantization_config=None)
    assert not reader.problems
    assert spec == expected
    assert spec.packed_experts is None


def test_listed_layers_have_the_usual_window_where_the_config_does_not_say() -> None:
    expected, _ = spec_of()
    assert spec_of(sliding_window=None)[0] == expected


def test_config_with_plain_rope_and_other_layers_is_followed() -> None:
    kinds = ["full_attention"] * 23 + ["sliding_attention"]
    spec, _ = spec_of(rope_scaling={"rope_type": "default"}, layer_types=kinds, sliding_window=64)
    assert windows(spec) == [0] * 23 + [64]
    (rope,) = spec.ropes
    assert rope == RopeSpec(150_000.0, 64)


def test_widths_that_no_scales_fit_are_refused_by_name() -> None:
    _, reader = spec_of(hidden_size=2872, intermediate_size=2873)
    fields = [problem.parameters["field"] for problem in reader.problems]
    assert fields == ["hidden_size", "intermediate_size"]
    assert not spec_of(hidden_size=2872, quantization_config=None)[1].problems


def test_plain_experts_lie_turned_with_gate_and_up_taking_turns() -> None:
    spec, _ = spec_of(quantization_config=None)
    up = GPT_OSS.expert_part(spec, ExpertId(1, 5), ExpertPart.UP)
    down = GPT_OSS.expert_part(spec, ExpertId(1, 5), ExpertPart.DOWN)
    assert (up.name, up.shape, up.index) == (GATE_UP, (32, 2880, 5760), 5)
    assert (up.first_row, up.row_step, up.is_transposed) == (1, 2, True)
    assert down.shape == (32, 2880, 2880)
    assert (down.first_row, down.row_step, down.is_transposed) == (0, 1, True)


def test_packed_folder_is_runnable_and_says_what_it_holds(tmp_path: Path) -> None:
    inspection = inspect_folder(str(write_packed(tmp_path / "m")))
    report = inspection.report
    assert report.is_runnable, report.problems
    assert report.stored_format is WeightFormat.MXFP4
    # Two matrices of 64 inputs and 96 outputs, one the other way round.
    assert report.expert_bytes == 3 * 64 * 96 * 17 // 32
    up = inspection.experts[ExpertId(1, 2)][ExpertPart.UP]
    assert up.name == f"{GATE_UP}_blocks"
    assert up.shape == (96, HIDDEN_SIZE)
    assert up.num_bytes == 2 * 96 * HIDDEN_SIZE // 2
    assert up.weave == Weave(192, HIDDEN_SIZE, 1, 2)
    assert up.scales is not None
    assert up.scales.name == f"{GATE_UP}_scales"
    assert up.scales.num_bytes == 2 * 96 * HIDDEN_SIZE // 32


@pytest.mark.parametrize("ending", ["blocks", "scales"])
def test_packed_folder_without_a_tensor_names_it_once(tmp_path: Path, ending: str) -> None:
    folder = write_packed(tmp_path / "m")
    tensors = packed_tensors()
    del tensors[f"{GATE_UP}_{ending}"]
    write_safetensors(folder / "model.safetensors", tensors)
    (problem,) = inspect_folder(str(folder)).report.problems
    assert problem.code is ErrorCode.TENSOR_MISSING
    assert problem.parameters["tensor"] == f"{GATE_UP}_{ending}"
    assert problem.parameters["num_missing"] == 1


def test_packed_folder_with_scales_of_another_kind_is_refused(tmp_path: Path) -> None:
    folder = write_packed(tmp_path / "m")
    tensors = packed_tensors()
    name = f"{GATE_UP}_scales"
    _, shape, data = tensors[name]
    tensors[name] = ("BF16", shape, data * 2)
    write_safetensors(folder / "model.safetensors", tensors)
    (problem,) = inspect_folder(str(folder)).report.problems
    assert problem.code is ErrorCode.TENSOR_MISMATCHED
    assert problem.parameters["tensor"] == name
    assert (problem.parameters["found"], problem.parameters["expected"]) == ("BF16", "U8")


def test_packed_folder_with_scales_of_another_shape_is_refused(tmp_path: Path) -> None:
    folder = write_packed(tmp_path / "m")
    tensors = packed_tensors()
    name = f"{GATE_UP}_scales"
    _, (experts, rows, groups), data = tensors[name]
    tensors[name] = ("U8", (experts, groups, rows), data)
    write_safetensors(folder / "model.safetensors", tensors)
    (problem,) = inspect_folder(str(folder)).report.problems
    assert problem.code is ErrorCode.TENSOR_MISMATCHED
    assert problem.parameters["found"] == f"{experts} x {groups} x {rows}"


def test_packed_tensors_in_a_file_that_is_broken_count_one_byte_each(tmp_path: Path) -> None:
    folder = write_packed(tmp_path / "m", is_indexed=True)
    path = folder / "model.safetensors"
    num_bytes = path.stat().st_size
    with path.open("r+b") as file:
        file.truncate(num_bytes // 2)
    (problem,) = inspect_folder(str(folder)).report.problems
    assert problem.code is ErrorCode.SHARD_TRUNCATED
    assert problem.parameters["expected_bytes"] == num_bytes


def test_other_quantisation_of_the_family_is_refused_by_its_name(tmp_path: Path) -> None:
    folder = write_packed(tmp_path / "m")
    edit_json(folder / "config.json", quantization_config={"quant_method": "squeeze"})
    codes = [problem.code for problem in inspect_folder(str(folder)).report.problems]
    assert ErrorCode.QUANTIZATION_UNSUPPORTED in codes
