"""Models published in MXFP4 and by AWQ through the runtime: planned, prepared, loaded, asked."""

from pathlib import Path

import pytest

from runtime.errors import LarderError
from runtime.inspect.folder import inspect_folder
from runtime.prepare.prepare import prepare_model
from runtime.protocol.chat import SamplingSettings
from runtime.protocol.errors import ErrorCode
from runtime.protocol.messages import (
    GenerationFinished,
    ModelPrepared,
    PrepareModel,
    StartGeneration,
)
from runtime.protocol.values import WeightFormat
from tests.support.engine_runs import user
from tests.support.larderctl import larderctl
from tests.support.level_folders import AWQ, published_matrices, write_levels
from tests.support.packed_folders import write_packed
from tests.support.runtime_process import running_runtime

pytestmark = pytest.mark.usefixtures("measured_before")


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return write_packed(tmp_path / "model")


def test_larderctl_prepares_a_packed_model_as_published_and_chats_with_it(model: Path) -> None:
    (plan,) = larderctl("plan", str(model))["plans"]
    assert (plan["kind"], plan["expert_format"], plan["is_exact"]) == ("exact", "mxfp4", True)
    assert plan["needs_prepare"]
    refused = larderctl("chat", str(model), "--prompt", "hello", status=2)
    assert refused["error"]["code"] == "not_prepared"

    copy = larderctl("prepare", str(model))
    assert copy["expert_format"] == "mxfp4"
    assert plan["bytes_to_write"] <= copy["size_bytes"]

    ask = ("--prompt", "hello", "--max-tokens", "24", "--temperature", "0")
    first = larderctl("chat", str(model), *ask)
    again = larderctl("chat", str(model), *ask)
    assert first["expert_format"] == "mxfp4"
    assert first["plan"] == "exact"
    assert len(first["token_ids"]) == first["generated_tokens"] > 0
    assert first["token_ids"] == again["token_ids"]
    assert first["tiers"]["ram"]["hits"] > 0


def test_larderctl_prepares_a_model_by_awq_exactly_and_chats_with_it(tmp_path: Path) -> None:
    model = write_levels(tmp_path / "model", AWQ, published_matrices(AWQ))
    assert larderctl("prepare", str(model))["expert_format"] == "q8_g32"
    answer = larderctl("chat", str(model), "--prompt", "hello", "--max-tokens", "8")
    assert (answer["plan"], answer["expert_format"]) == ("exact", "q8_g32")
    assert answer["generated_tokens"] > 0


def test_window_commands_prepare_and_load_a_packed_model(tmp_path: Path, model: Path) -> None:
    with running_runtime(tmp_path, "--engine", "tiered") as runtime:
        runtime.open()
        (plan,) = runtime.plans(model)
        command = PrepareModel(request_id=3, folder=str(model), expert_format=plan.expert_format)
        runtime.send(command)
        copy = runtime.wait_for(ModelPrepared)
        assert copy.expert_format is WeightFormat.MXFP4
        (ready,) = runtime.plans(model)
        assert (ready.needs_prepare, ready.store_folder) == (False, copy.folder)
        assert runtime.load(ready).is_exact
        request = StartGeneration(
            request_id=6,
            conversation=[user("hello")],
            sampling=SamplingSettings(temperature=0, max_tokens=4),
        )
        runtime.send(request)
        assert runtime.wait_for(GenerationFinished).stats.generated_tokens > 0


def test_packed_model_is_not_packed_again_in_another_format(tmp_path: Path, model: Path) -> None:
    inspection = inspect_folder(str(model))
    with pytest.raises(LarderError) as refused:
        prepare_model(inspection, WeightFormat.Q4_G32, str(tmp_path / "copy"))
    assert refused.value.code is ErrorCode.SETTING_INVALID
    assert refused.value.parameters == {
        "name": "expert_format",
        "found": "q4_g32",
        "expected": "mxfp4",
    }
