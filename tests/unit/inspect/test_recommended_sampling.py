"""What `generation_config.json` says about sampling."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from runtime.inspect.chat_files import read_recommended_sampling
from runtime.protocol.chat import SamplingSettings


def written(folder: Path, content: Mapping[str, object]) -> Path:
    (folder / "generation_config.json").write_text(json.dumps(content), encoding="utf-8")
    return folder


def test_recommended_sampling_without_a_file_is_none(tmp_path: Path) -> None:
    assert read_recommended_sampling(tmp_path) is None


def test_recommended_sampling_that_says_nothing_is_none(tmp_path: Path) -> None:
    assert read_recommended_sampling(written(tmp_path, {"eos_token_id": 2})) is None


def test_recommended_sampling_without_sampling_is_greedy(tmp_path: Path) -> None:
    found = read_recommended_sampling(written(tmp_path, {"do_sample": False, "temperature": 0.6}))
    assert found == SamplingSettings(temperature=0.0)


def test_recommended_sampling_greedy_keeps_the_penalty(tmp_path: Path) -> None:
    said = {"do_sample": False, "repetition_penalty": 1.2}
    assert read_recommended_sampling(written(tmp_path, said)) == SamplingSettings(
        temperature=0.0, repetition_penalty=1.2
    )


def test_recommended_sampling_takes_all_that_is_said(tmp_path: Path) -> None:
    said = {"temperature": 0.6, "top_k": 20, "top_p": 0.95, "do_sample": True}
    found = read_recommended_sampling(written(tmp_path, {**said, "repetition_penalty": 1.05}))
    assert found == SamplingSettings(temperature=0.6, top_k=20, top_p=0.95, repetition_penalty=1.05)


def test_recommended_sampling_that_only_samples_keeps_the_whole_distribution(
    tmp_path: Path,
) -> None:
    found = read_recommended_sampling(written(tmp_path, {"do_sample": True}))
    assert found == SamplingSettings(temperature=1.0)


@pytest.mark.parametrize("value", [-1, "hot", True, None, 1e9, [0.5]])
def test_recommended_sampling_with_nonsense_is_as_if_absent(tmp_path: Path, value: object) -> None:
    assert read_recommended_sampling(written(tmp_path, {"temperature": value})) is None
