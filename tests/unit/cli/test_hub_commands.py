"""``larderctl search`` and ``larderctl download`` against a hub on this machine."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from runtime.cli.__main__ import main
from runtime.inspect.folder import inspect_folder
from tests.support.checkpoint_folders import TinyModel, write_checkpoint
from tests.support.fake_hub import FakeHub, fake_hub, gguf_facts, moe_facts
from tests.support.gguf_models import write_model

Capture = pytest.CaptureFixture[str]
MODEL = "maker/tiny"


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    with fake_hub(monkeypatch) as served:
        published = write_checkpoint(tmp_path / "published", TinyModel(num_shards=0))
        served.add(MODEL, published, **moe_facts(num_parameters=1000))
        monkeypatch.setenv("HF_ENDPOINT", served.address)
        yield served


def run_json(capsys: Capture, *arguments: str, status: int = 0) -> dict[str, Any]:
    assert main([*arguments, "--json"]) == status
    document = json.loads(capsys.readouterr().out)
    assert isinstance(document, dict)
    return document


def test_search_tells_each_model_with_how_it_suits(hub: FakeHub, capsys: Capture) -> None:
    assert main(["search", "tiny"]) == 0
    line = capsys.readouterr().out
    assert MODEL in line
    assert "runs here" in line
    assert run_json(capsys, "search")["models"][0]["model_id"] == MODEL
    assert main(["search", "no such name"]) == 0
    assert "nothing was found" in capsys.readouterr().err
    assert len(hub.asked("/api/models")) == 6, "models that write text, and those in GGUF"


def test_one_of_several_sizes_in_gguf_is_planned_and_downloaded(
    hub: FakeHub, capsys: Capture, tmp_path: Path
) -> None:
    page, name = tmp_path / "page", "maker/tiny-GGUF"
    for kind in ("F16", "Q8_0"):
        write_model(page / f"tiny-{kind}.gguf", "qwen3_moe", kind)
    (page / "tiny-IQ2_M.gguf").write_bytes(b"GGUF")
    hub.add(name, page, **gguf_facts())
    assert main(["search", "gguf"]) == 0
    assert "as Q8_0" in capsys.readouterr().out
    assert main(["download", name, "--plan", "--to", str(tmp_path / "to")]) == 0
    told = capsys.readouterr().out
    assert "Q8_0 in GGUF" in told
    assert "--variant F16" in told
    assert "cannot be read yet" in told
    assert "answers at" in told
    document = run_json(capsys, "download", name, "--variant", "f16")
    assert Path(document["folder"]).name == "tiny-GGUF@F16"
    report = inspect_folder(document["folder"]).report
    assert (report.is_runnable, report.name) == (True, "tiny-F16")
    assert not hub.asked("cdn/maker/tiny-GGUF/resolve/main")
    assert main(["download", name, "--plan", "--variant", "F16"]) == 0
    assert "is here" in capsys.readouterr().out
    assert main(["download", name, "--variant", "Q5_0"]) == 2
    assert "it has F16, Q8_0, IQ2_M" in capsys.readouterr().err


def test_download_plan_tells_speed_and_downloads_nothing(
    hub: FakeHub, capsys: Capture, tmp_path: Path
) -> None:
    document = run_json(capsys, "download", MODEL, "--plan", "--to", str(tmp_path / "to"))
    assert document["card"]["size_bytes"] > 0
    assert document["recommended"] is not None
    assert document["plans"][0]["forecast"]["decode_tokens_per_s_high"] > 0
    assert not (tmp_path / "to").exists()
    assert main(["download", MODEL, "--plan", "--to", str(tmp_path / "to")]) == 0
    assert "answers at" in capsys.readouterr().out
    assert all(each[1] for each in hub.asked("/cdn/"))


def test_download_brings_a_model_that_can_be_run(hub: FakeHub, capsys: Capture) -> None:
    document = run_json(capsys, "download", MODEL)
    assert inspect_folder(document["folder"]).report.is_runnable
    assert Path(document["folder"]).parts[-3:] == ("models", *MODEL.split("/"))
    hub.requests.clear()
    assert main(["download", MODEL]) == 0
    assert not hub.asked("/resolve/")
    assert document["folder"] in capsys.readouterr().out


def test_download_of_a_closed_model_says_what_to_do(hub: FakeHub, capsys: Capture) -> None:
    hub.models[MODEL].is_closed = True
    assert main(["download", MODEL]) == 2
    assert "HF_TOKEN" in capsys.readouterr().err


def test_download_offline_asks_nobody(
    hub: FakeHub, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert main(["download", MODEL]) == 2
    assert "HF_HUB_OFFLINE" in capsys.readouterr().err
    assert hub.requests == []
