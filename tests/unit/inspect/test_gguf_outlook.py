"""What the name of a GGUF file and another model's shape say of it, before it is here."""

from pathlib import Path

import pytest

from runtime.inspect.folder import inspect_folder
from runtime.inspect.gguf.labels import bits_of, is_readable, label_of
from runtime.inspect.outlook import outlook
from runtime.protocol.hub import HubSketch
from runtime.protocol.values import WeightFormat
from runtime.spec.facts import ModelFacts
from runtime.spec.footprint import dense_bytes
from tests.support.gguf_models import write_model

CONFIGS = Path("tests/golden/model-configs")
QWEN = (CONFIGS / "Qwen--Qwen3-30B-A3B.config.json").read_text(encoding="utf-8")


def facts(label: str, size_bytes: int = 0, *, config: str = QWEN, outline: str = "") -> ModelFacts:
    own = "" if outline else config
    sketch = HubSketch(config=own, outline=outline, gguf_label=label, size_bytes=size_bytes)
    found = outlook(sketch, "/models/a")
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("name", "label", "bits"),
    [
        ("Qwen3-30B-A3B-Q4_K_M.gguf", "Q4_K_M", 4.84),
        ("model.Q6_K.gguf", "Q6_K", 7.05),
        ("gpt-oss-20b-mxfp4.gguf", "MXFP4", 4.25),
        ("m-MXFP4_MOE.gguf", "MXFP4_MOE", 4.25),
        ("m-UD-Q4_K_XL-00001-of-00003.gguf", "UD-Q4_K_XL", 4.84),
        ("m-UD-Q8_K_XL.gguf", "UD-Q8_K_XL", 8.5),
        ("m-IQ4_XS.gguf", "IQ4_XS", 4.57),
        ("m-fp16.gguf", "FP16", 16.0),
        ("m-Q4_0.gguf", "Q4_0", 4.5),
        ("m-UD-IQ2_M.gguf", "UD-IQ2_M", 2.7),
        ("m-Q9_K.gguf", "Q9_K", 0.0),
        ("Q4_0-of-a-BF16.gguf", "BF16", 16.0),
        ("model.gguf", "", 0.0),
        ("myQ4_K_Moment.gguf", "", 0.0),
    ],
)
def test_names_of_files_tell_their_numbers(name: str, label: str, bits: float) -> None:
    assert label_of(name) == label
    assert bits_of(label) == pytest.approx(bits, abs=0.01)
    assert is_readable(label) is (not label or not label.startswith(("UD-IQ2", "Q9")))


@pytest.mark.parametrize(
    ("kind", "label"), [("Q8_0", "Q8_0"), ("F16", "F16"), ("Q4_0", "Q4_0"), ("MXFP4", "MXFP4")]
)
def test_outlook_of_another_size_is_what_its_own_file_says(
    tmp_path: Path, kind: str, label: str
) -> None:
    outline = write_model(tmp_path / "outline.gguf", "qwen3_moe", "BF16")
    real = inspect_folder(str(write_model(tmp_path / "real.gguf", "qwen3_moe", kind)))
    report = real.report
    assert report.is_runnable
    found = facts(label, report.file_bytes, outline=str(outline))
    for name in (
        "model_type", "num_layers", "num_moe_layers", "num_experts", "top_k", "hidden_size",
        "max_context_tokens", "num_parameters", "num_active_parameters", "stored_format",
        "kv_bytes_per_token", "file_bytes",
    ):  # fmt: skip
        assert getattr(found.report, name) == getattr(report, name), name
    assert found.report.folder == "/models/a"
    assert real.spec is not None
    assert found.spec.moe_layers == real.spec.moe_layers
    # Here the dense part is f32, which published files have as the rest of the file.
    assert found.dense_ram_bytes <= dense_bytes(real.tensors.values())


def test_outlook_of_published_sizes_comes_near_the_published_files() -> None:
    four, eight = facts("Q4_K_M").report, facts("Q8_0").report
    assert four.file_bytes / 1e9 == pytest.approx(18.6, rel=0.02)
    assert eight.file_bytes / 1e9 == pytest.approx(32.5, rel=0.02)
    assert four.stored_format is WeightFormat.Q8_G32
    assert four.expert_bytes / eight.expert_bytes == pytest.approx(4.84 / 8.5, rel=0.01)
    plain = facts("BF16")
    assert plain.report.stored_format is WeightFormat.BF16
    assert plain.report.expert_bytes == 3 * 2048 * 768 * 2
    # So large a dense part is kept in eight bits, unless the file has it plain.
    assert plain.dense_ram_bytes > 1.8 * facts("Q4_K_M").dense_ram_bytes
    assert facts("Q4_K_M").report.gguf_kinds == ["Q4_K"]


def test_outlook_takes_the_size_that_is_told_unless_it_cannot_be() -> None:
    told = facts("Q4_K_M", 17_000_000_000).report
    assert told.file_bytes == 17_000_000_000
    assert told.expert_bytes < facts("Q4_K_M").report.expert_bytes
    more = facts("Q4_K_M", 40_000_000_000).report
    assert more.expert_bytes == pytest.approx(1.1 * facts("Q4_K_M").report.expert_bytes, rel=0.01)


@pytest.mark.parametrize(
    "sketch",
    [
        HubSketch(config=QWEN, gguf_label="IQ2_XS"),
        HubSketch(config=QWEN, gguf_label="GGUF"),
        HubSketch(
            config=QWEN.replace('"num_experts": 128', '"num_experts": "x"'), gguf_label="Q8_0"
        ),
        HubSketch(config="{}", gguf_label="Q8_0"),
        HubSketch(outline="/nowhere/a.gguf", gguf_label="Q8_0"),
    ],
)
def test_outlook_of_files_of_which_too_little_is_known_is_none(sketch: HubSketch) -> None:
    assert outlook(sketch, "/models/a") is None
