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
from tests.support.gguf_files import tiny_llama, write_gguf
from tests.support.gguf_models import write_model
from tests.support.mixed_gguf import KindOf, q3_k_m, q4_k_m, write_mixed

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
    assert four.stored_format is WeightFormat.Q4K_G32
    assert four.expert_bytes / eight.expert_bytes == pytest.approx(4.84 / 8.5, rel=0.01)
    plain = facts("BF16")
    assert plain.report.stored_format is WeightFormat.BF16
    assert plain.report.expert_bytes == 3 * 2048 * 768 * 2
    # So large a dense part is kept in eight bits, unless the file has it plain.
    assert plain.dense_ram_bytes > 1.8 * facts("Q4_K_M").dense_ram_bytes
    assert facts("Q4_K_M").report.gguf_kinds == ["Q4_K", "Q6_K"]


@pytest.mark.parametrize(("label", "kind_of"), [("Q4_K_M", q4_k_m), ("Q3_K_M", q3_k_m)])
def test_outlook_of_mixed_files_is_what_their_own_header_says(
    tmp_path: Path, label: str, kind_of: KindOf
) -> None:
    path = write_mixed(tmp_path / "real.gguf", kind_of)
    report = inspect_folder(str(path)).report
    found = facts(label, report.file_bytes, outline=str(path)).report
    assert found.mixed_experts is not None
    assert found.mixed_experts == report.mixed_experts
    assert list(found.mixed_experts.format_bytes) == list(report.mixed_experts.format_bytes)
    assert found.stored_format is report.stored_format


@pytest.mark.parametrize(
    ("label", "bits", "kinds"),
    [
        # Half of the layers have Q6_K in one of three matrices, which takes 6.5625 bits.
        ("Q4_K_M", 4.5 + 2.0625 / 6, ["Q4_K", "Q6_K"]),
        ("Q4_K", 4.5 + 2.0625 / 6, ["Q4_K", "Q6_K"]),
        ("UD-Q4_K_XL", 4.5 + 2.0625 / 6, ["Q4_K", "Q6_K"]),
        ("Q4_K_S", 4.5 + 1 / 24, ["Q4_K", "Q5_K"]),
        ("Q3_K_M", (2 * 3.5625 + 4.5 + 3 / 48) / 3, ["Q3_K", "Q5_K", "Q4_K"]),
        ("Q5_K_M", 5.5 + 1.0625 / 6, ["Q5_K", "Q6_K"]),
        ("Q5_K_S", 0, ["Q5_K"]),
        ("Q3_K_L", 0, ["Q3_K"]),
        ("Q6_K", 0, ["Q6_K"]),
        ("IQ4_XS", 0, ["IQ4_XS"]),
    ],
)
def test_bits_of_experts_in_memory_follow_from_the_name(
    label: str, bits: float, kinds: list[str]
) -> None:
    report = facts(label).report
    assert report.gguf_kinds == kinds
    if not bits:
        assert report.mixed_experts is None
        homes = {
            "Q3_K": WeightFormat.Q3K_G16,
            "Q5_K": WeightFormat.Q5K_G32,
            "Q6_K": WeightFormat.Q6K_G16,
        }
        assert report.stored_format is homes.get(kinds[0], WeightFormat.Q8_G32)
        return
    assert report.mixed_experts is not None
    assert report.mixed_experts.bits == pytest.approx(bits, rel=1e-6)
    per_expert = report.mixed_experts.records_bytes / (48 * 128)
    assert per_expert == pytest.approx(3 * 2048 * 768 * bits / 8, rel=0.002)


@pytest.mark.parametrize(
    ("name", "label", "bits", "kinds"),
    [
        # 1408 channels are no whole blocks of 256: what leads down is in blocks of 32.
        ("zai-org--GLM-4.5-Air", "Q4_K_M", (2 * 4.5 + 8.5) / 3, ["Q4_K", "Q5_0", "Q8_0"]),
        ("deepseek-ai--DeepSeek-V2-Lite", "Q4_K_S", (2 * 4.5 + 8.5) / 3, ["Q4_K", "Q5_1", "Q5_0"]),
        ("deepseek-ai--DeepSeek-V2-Lite", "Q3_K_M", (2 * 3.5625 + 8.5) / 3, ["Q3_K", "Q5_0"]),
        ("deepseek-ai--DeepSeek-V2-Lite", "Q2_K", (2 * 2.625 + 8.5) / 3, ["Q2_K", "IQ4_NL"]),
    ],
)
def test_rows_that_are_no_whole_blocks_are_in_smaller_ones(
    name: str, label: str, bits: float, kinds: list[str]
) -> None:
    config = (CONFIGS / f"{name}.config.json").read_text(encoding="utf-8")
    report = facts(label, config=config).report
    assert sorted(report.gguf_kinds) == sorted(kinds)
    mixed = report.mixed_experts
    assert (mixed.bits if mixed else 0) == pytest.approx(bits, rel=1e-6)
    assert mixed is not None or report.stored_format is WeightFormat.Q8_G32


def test_one_format_for_all_is_that_of_the_smaller_blocks() -> None:
    """Neither 2080 inputs nor 736 channels are whole blocks of 256."""
    config = QWEN.replace('"hidden_size": 2048', '"hidden_size": 2080').replace(
        '"moe_intermediate_size": 768', '"moe_intermediate_size": 736'
    )
    report = facts("Q4_K_M", config=config).report
    assert report.gguf_kinds == ["Q5_0", "Q8_0"]
    assert (report.stored_format, report.mixed_experts) == (WeightFormat.Q8_G32, None)
    odd = facts("Q4_K_S", config=QWEN.replace('e_size": 768', 'e_size": 100')).report
    assert odd.gguf_kinds == ["Q4_K", "F16"]


@pytest.mark.parametrize("label", ["Q4_K_M", "F16", "Q8_0", "MXFP4"])
def test_experts_that_were_trained_in_mxfp4_stay_so_in_files_of_any_name(label: str) -> None:
    config = (CONFIGS / "openai--gpt-oss-20b.config.json").read_text(encoding="utf-8")
    report = facts(label, 12_000_000_000, config=config).report
    assert (report.stored_format, report.mixed_experts) == (WeightFormat.MXFP4, None)
    assert report.gguf_kinds == ["MXFP4"]
    # 4.25 bits and a tenth at most, as far as the size of the file tells it.
    assert report.expert_bytes <= 1.1 * 3 * 2880 * 2880 * 4.25 / 8


def test_outlook_of_a_dense_model_names_the_kinds_of_its_layers(tmp_path: Path) -> None:
    outline = write_gguf(tmp_path / "outline.gguf", *tiny_llama())
    report = facts("Q4_K_M", outline=str(outline)).report
    assert report.gguf_kinds == ["Q4_K", "Q6_K"]
    assert report.mixed_experts is None


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
