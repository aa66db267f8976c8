"""A folder that can never run is not said to lack files."""

import json
from pathlib import Path

import pytest

from runtime.inspect.folder import inspect_folder
from runtime.protocol.errors import ErrorCode


@pytest.mark.parametrize(
    ("config", "code"),
    [
        ({"model_type": "jamba"}, ErrorCode.ARCHITECTURE_UNSUPPORTED),
        (
            {"model_type": "mixtral", "quantization_config": {"quant_method": "awq", "bits": 4}},
            ErrorCode.QUANTIZATION_UNSUPPORTED,
        ),
    ],
    ids=["family", "format"],
)
def test_folder_that_never_runs_is_not_asked_for_a_vocabulary(
    tmp_path: Path, config: dict[str, object], code: ErrorCode
) -> None:
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    codes = [problem.code for problem in inspect_folder(str(tmp_path)).report.problems]
    assert code in codes
    assert ErrorCode.TOKENIZER_MISSING not in codes
    assert ErrorCode.CHAT_TEMPLATE_MISSING not in codes
