"""Searching a hub and looking at a model before it is downloaded."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from runtime.engine.base import CancelToken
from runtime.errors import CancelledError, LarderError
from runtime.hub import outline as outline_module
from runtime.hub.address import hub_address
from runtime.hub.desk import MAX_CONFIG_BYTES, HubDesk
from runtime.hub.listing import read_listed
from runtime.hub.repo import read_repo
from runtime.inspect.folder import inspect_folder
from runtime.inspect.outlook import outlook
from runtime.protocol.errors import ErrorCode
from runtime.protocol.hub import HubCard, HubFit, HubSketch
from tests.support.fake_hub import COMMIT, FakeHub, Fault, moe_facts
from tests.unit.hub.conftest import MODEL


def describe(desk: HubDesk, hub: FakeHub, root: Path, model_id: str = MODEL) -> HubCard:
    return desk.describe(model_id, hub.address, str(root), CancelToken())


def test_search_puts_models_that_suit_first(
    desk: HubDesk, hub: FakeHub, published: Path, tmp_path: Path
) -> None:
    hub.models.clear()
    facts: dict[str, dict[str, Any]] = {
        "a/other-kind": moe_facts(config={"model_type": "mamba"}, downloads=9000),
        "a/gguf": {"tags": ["gguf"], "downloads": 8000},
        "a/silent": {"downloads": 7000},
        "a/dense": moe_facts(config={"model_type": "llama"}, downloads=6000),
        "a/huge": moe_facts(num_parameters=1 << 60, downloads=5000),
        "a/small": moe_facts(num_parameters=1000, downloads=4),
        "a/known": moe_facts(num_parameters=1000, downloads=40, gated="manual"),
    }
    for name, each in facts.items():
        hub.add(name, published, **each)
    found = desk.search("A/", hub.address, str(tmp_path), CancelToken())
    assert [(model.model_id, model.fit) for model in found] == [
        ("a/known", HubFit.FITS),
        ("a/small", HubFit.FITS),
        ("a/huge", HubFit.NO_ROOM),
        ("a/dense", HubFit.DENSE),
        ("a/silent", HubFit.UNKNOWN),
        ("a/other-kind", HubFit.NOT_RUNNABLE),
        ("a/gguf", HubFit.NOT_RUNNABLE),
    ]
    assert found[0].is_gated
    assert found[0].size_bytes == 2000
    assert found[0].licence == "apache-2.0"
    assert "search=A%2F" in hub.requests[0][0]


@pytest.mark.parametrize(
    "listed",
    [None, {}, {"id": 5}, {"id": "../x"}, {"id": "a/b/c"}],
)
def test_search_passes_over_what_has_no_name(listed: object) -> None:
    assert read_listed(listed, 0) is None


def test_search_takes_nothing_on_trust() -> None:
    model = read_listed(
        {
            "id": "a/b",
            "config": [],
            "safetensors": {"parameters": {"BF16": -5, "F32": True}},
            "tags": [3, None],
            "downloads": "many",
        },
        0,
    )
    assert model is not None
    assert (model.num_parameters, model.size_bytes, model.num_downloads) == (0, 0, 0)
    assert model.fit is HubFit.UNKNOWN


def test_configs_are_read_in_their_order_and_empty_where_they_cannot_be_had(
    desk: HubDesk, hub: FakeHub, published: Path, tmp_path: Path
) -> None:
    hub.add("maker/closed", published).is_closed = True
    hub.add("maker/empty", tmp_path)
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd" / "config.json").write_bytes(b"\xff")
    hub.add("maker/odd", tmp_path / "odd")
    (tmp_path / "large").mkdir()
    (tmp_path / "large" / "config.json").write_bytes(b" " * (MAX_CONFIG_BYTES + 1))
    hub.add("maker/large", tmp_path / "large")
    asked = ["maker/closed", MODEL, "../x", "maker/odd", "maker/empty", "maker/large", "a/gone"]
    configs = desk.read_configs(asked, hub.address, CancelToken())
    assert configs == ["", (published / "config.json").read_text(), "", "", "", "", ""]
    assert outlook(HubSketch(config=configs[1]), "/models/a") is not None
    assert [path for path, _, _ in hub.requests if "safetensors" in path] == []


def test_configs_that_are_not_wanted_any_more_are_not_asked_for(
    desk: HubDesk, hub: FakeHub
) -> None:
    token = CancelToken()
    token.cancel()
    with pytest.raises(CancelledError):
        desk.read_configs([MODEL], hub.address, token)
    assert hub.requests == []


def test_describe_outline_says_what_the_model_itself_will_say(
    desk: HubDesk, hub: FakeHub, published: Path, tmp_path: Path
) -> None:
    card = describe(desk, hub, tmp_path / "models")
    outline, real = (
        inspect_folder(card.outline_folder).report,
        inspect_folder(str(published)).report,
    )
    assert outline.is_runnable
    assert outline.fingerprint == real.fingerprint
    assert outline.file_bytes == real.file_bytes
    assert outline.num_parameters == real.num_parameters
    wanted = {"pytorch_model.bin", "consolidated.safetensors"}
    needed = [path for path in published.iterdir() if path.is_file() and path.name not in wanted]
    assert card.size_bytes == sum(path.stat().st_size for path in needed)
    assert card.num_files == len(needed)
    assert card.left_out_bytes == 5000 + 4000 + 3000
    assert card.licence == "apache-2.0"
    assert card.last_modified == "2026-05-31"
    assert card.folder == str(tmp_path / "models" / "maker" / "tiny-moe")
    assert not card.is_here
    assert card.free_bytes > 0
    assert card.problem is None


def test_describe_outline_takes_no_room_for_weights(
    desk: HubDesk, hub: FakeHub, published: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outline_module, "FIRST_BYTES", 64)
    folder = Path(describe(desk, hub, tmp_path).outline_folder)
    for shard in published.glob("model-*.safetensors"):
        there = (folder / shard.name).stat()
        assert there.st_size == shard.stat().st_size
        header_bytes = 8 + int.from_bytes(shard.read_bytes()[:8], "little")
        assert (folder / shard.name).read_bytes()[:header_bytes] == (
            shard.read_bytes()[:header_bytes]
        )
        assert not any((folder / shard.name).read_bytes()[header_bytes:])


def test_describe_again_asks_for_no_file(desk: HubDesk, hub: FakeHub, tmp_path: Path) -> None:
    first = describe(desk, hub, tmp_path)
    hub.requests.clear()
    again = describe(desk, hub, tmp_path)
    assert msgspec.structs.replace(again, free_bytes=first.free_bytes) == first
    assert not hub.asked("/resolve/")


def test_describe_without_sparse_files_has_no_outline(
    desk: HubDesk, hub: FakeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outline_module, "write_sparse", lambda *_: False)
    card = describe(desk, hub, tmp_path)
    assert card.outline_folder == ""
    assert card.size_bytes > 0


def test_describe_keeps_few_outlines(
    desk: HubDesk, hub: FakeHub, published: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outline_module, "MAX_KEPT", 2)
    for number in range(4):
        hub.add(f"a/m{number}", published)
        describe(desk, hub, tmp_path, f"a/m{number}")
    assert len(list((tmp_path / "cache" / "hub").iterdir())) == 2


def test_describe_closed_model_is_told_with_its_card(
    desk: HubDesk, hub: FakeHub, tmp_path: Path
) -> None:
    hub.models[MODEL].is_closed = True
    hub.models[MODEL].facts["gated"] = "manual"
    card = describe(desk, hub, tmp_path)
    assert card.is_gated
    assert card.outline_folder == ""
    assert card.problem is not None
    assert card.problem.code is ErrorCode.HUB_MODEL_GATED


@pytest.mark.parametrize("missing", ["config.json", "model-00002-of-00002.safetensors"])
def test_describe_model_without_what_is_needed_is_told(
    desk: HubDesk, hub: FakeHub, published: Path, tmp_path: Path, missing: str
) -> None:
    (published / missing).unlink()
    card = describe(desk, hub, tmp_path)
    assert card.problem is not None
    assert card.problem.code is ErrorCode.HUB_MODEL_UNUSABLE
    assert missing in str(card.problem.parameters["reason"])


def test_describe_unknown_model_is_told(desk: HubDesk, hub: FakeHub, tmp_path: Path) -> None:
    with pytest.raises(LarderError) as caught:
        describe(desk, hub, tmp_path, "nobody/nothing")
    assert caught.value.code is ErrorCode.HUB_MODEL_MISSING


def test_describe_stalled_header_is_asked_for_again(
    desk: HubDesk, hub: FakeHub, tmp_path: Path
) -> None:
    hub.faults["model-00001-of-00002.safetensors"] = [Fault.BUSY, Fault.STALL]
    assert describe(desk, hub, tmp_path).outline_folder


def test_describe_cancelled_leaves_no_outline(desk: HubDesk, hub: FakeHub, tmp_path: Path) -> None:
    cancel = CancelToken()
    cancel.cancel()
    with pytest.raises(CancelledError):
        desk.describe(MODEL, hub.address, str(tmp_path), cancel)
    assert describe(desk, hub, tmp_path).outline_folder


def test_files_with_names_that_lead_elsewhere_are_passed_over() -> None:
    names = [
        "../up.json",
        "a/b.json",
        "c:\\x.json",
        ".hidden.json",
        "con.json",
        "ok.json",
        "x.part",
    ]
    siblings = [{"rfilename": name, "size": 1} for name in names]
    repo = read_repo({"sha": COMMIT, "siblings": siblings}, MODEL)
    assert [file.name for file in repo.files] == ["ok.json"]


@pytest.mark.parametrize(
    "answer",
    [
        [],
        {},
        {"sha": "main", "siblings": []},
        {"sha": COMMIT},
        {"sha": COMMIT, "siblings": [5]},
        {"sha": COMMIT, "siblings": [{"rfilename": "a"}]},
        {"sha": COMMIT, "siblings": [{"rfilename": "a", "size": -1}]},
    ],
)
def test_answer_that_is_no_model_is_refused(answer: object) -> None:
    with pytest.raises(ValueError, match=r"^(the model|a file|the file) "):
        read_repo(answer, MODEL)


def test_address_comes_from_the_setting_then_the_environment_then_the_library(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "https://library.example")
    environment = {"HF_ENDPOINT": "https://mirror.example/"}
    assert hub_address(" https://own.example/ ", environment) == "https://own.example"
    assert hub_address("", environment) == "https://mirror.example"
    assert hub_address("", {}) == "https://library.example"


@pytest.mark.parametrize("address", ["ftp://a", "example", "https://", "http://[", "https://a:0"])
def test_address_that_is_none_is_refused(address: str) -> None:
    with pytest.raises(LarderError) as caught:
        hub_address(address, {})
    assert caught.value.code is ErrorCode.SETTING_INVALID


def test_address_offline_asks_nobody() -> None:
    with pytest.raises(LarderError) as caught:
        hub_address("https://own.example", {"HF_HUB_OFFLINE": "1"})
    assert caught.value.code is ErrorCode.HUB_OFFLINE
