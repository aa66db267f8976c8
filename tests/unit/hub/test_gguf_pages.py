"""Pages with files in GGUF: which of them are one model, looking at one, downloading it."""

import dataclasses
from pathlib import Path

import pytest

from runtime.engine.base import CancelToken
from runtime.errors import LarderError
from runtime.hub.desk import HubDesk
from runtime.hub.places import final_folder, part_folder
from runtime.hub.repo import read_repo
from runtime.hub.variants import usual_label, variants_of
from runtime.inspect.folder import inspect_folder
from runtime.inspect.gguf import cursor
from runtime.inspect.search import TreeSearch
from runtime.protocol.errors import ErrorCode
from runtime.protocol.hub import HubCard, HubFit
from tests.support.fake_hub import COMMIT, FakeHub, Fault, gguf_facts, moe_facts
from tests.support.gguf_files import Declared, write_gguf
from tests.support.gguf_models import model_tensors, model_values

PAGE = "maker/Tiny-A1B-GGUF"
SET = "Tiny-A1B-Q8_0"


def write_kind(path: Path, kind: str = "F32", family: str = "qwen3_moe") -> Path:
    """Write a model whose data are no zeros."""
    tensors = {
        name: dataclasses.replace(each, data=b"\x01" * each.num_bytes)
        for name, each in model_tensors(family, kind).items()
    }
    return write_gguf(path, model_values(family), tensors)


def write_set(folder: Path, stem: str, total: int = 2) -> list[Path]:
    """Write a model in a set of files, as the splitter does."""
    values, tensors = model_values("qwen3_moe"), model_tensors("qwen3_moe", "Q8_0")
    names, paths = list(tensors), []
    for number in range(total):
        begin, end = (len(names) * step // total for step in (number, number + 1))
        own = {"split.no": number, "split.count": total, "split.tensors.count": len(names)}
        own |= values if not number else {}
        path = folder / f"{stem}-{number + 1:05d}-of-{total:05d}.gguf"
        paths.append(write_gguf(path, own, {name: tensors[name] for name in names[begin:end]}))
    return paths


@pytest.fixture
def page(tmp_path: Path, hub: FakeHub) -> Path:
    """A page with a model in four sizes, one of them a set, and what goes beside models."""
    folder = tmp_path / "page"
    write_kind(folder / "Tiny-A1B-Q4_K_M.gguf", "F16")
    write_kind(folder / "BF16" / "Tiny-A1B-BF16.gguf", "F32")
    write_set(folder / "Q8_0", SET)
    (folder / "Tiny-A1B-IQ2_XS.gguf").write_bytes(b"GGUF" + bytes(50))
    (folder / "mmproj-F16.gguf").write_bytes(b"GGUF" + bytes(60))
    (folder / "README.md").write_text("read me")
    (folder / "LICENSE").write_text("do as you like")
    hub.add(PAGE, folder, **gguf_facts("maker/Tiny-A1B"))
    return folder


def describe(desk: HubDesk, hub: FakeHub, root: Path, variant: str = "") -> HubCard:
    return desk.describe(PAGE, hub.address, str(root), CancelToken(), variant)


def download(desk: HubDesk, hub: FakeHub, root: Path, variant: str) -> Path:
    token = CancelToken()
    return desk.download(PAGE, COMMIT, hub.address, str(root), token, lambda _: None, variant)[0]


def found_below(root: Path) -> list[Path]:
    return [model for models in TreeSearch(str(root), {}) for model in models]


def test_search_lists_pages_in_gguf_by_what_their_names_and_headers_say(
    desk: HubDesk, hub: FakeHub, page: Path, tmp_path: Path
) -> None:
    hub.models.clear()
    architectures = {
        "a/known-GGUF": {"architecture": "qwen3moe", "total": 1_000_000},
        "a/huge-GGUF": {"architecture": "glm4moe", "total": 1 << 55},
        "a/Mixtral-8x7B-GGUF": {"architecture": "llama", "total": 1000},
        "a/Llama-8B-GGUF": {"architecture": "llama", "total": 1000},
        "a/silent-GGUF": {},
        "a/other-GGUF": {"architecture": "mamba", "total": 1000},
    }
    for rank, (name, facts) in enumerate(architectures.items()):
        hub.add(name, page, **gguf_facts("a/base", gguf=facts, downloads=100 - rank))
    models = {
        each.model_id: each
        for each in desk.search("GGUF", hub.address, str(tmp_path), CancelToken())
    }
    assert {name: each.fit for name, each in models.items()} == {
        "a/known-GGUF": HubFit.FITS,
        "a/Mixtral-8x7B-GGUF": HubFit.FITS,
        "a/huge-GGUF": HubFit.NO_ROOM,
        "a/Llama-8B-GGUF": HubFit.DENSE,
        "a/silent-GGUF": HubFit.UNKNOWN,
        "a/other-GGUF": HubFit.NOT_RUNNABLE,
    }
    known = models["a/known-GGUF"]
    assert (known.gguf_label, known.base_model, known.licence) == ("Q4_K_M", "a/base", "apache-2.0")
    assert known.size_bytes == pytest.approx(1_000_000 * 4.84 / 8, rel=0.01)
    assert models["a/silent-GGUF"].size_bytes == 0
    asked = [path for path, _, _ in hub.requests]
    assert ["filter=gguf" in path for path in asked] == [False, True]


def test_page_with_safetensors_too_is_told_of_as_published(
    desk: HubDesk, hub: FakeHub, published: Path, tmp_path: Path
) -> None:
    write_kind(published / "tiny-Q8_0.gguf")
    hub.add("maker/both", published, **moe_facts(num_parameters=1000))
    found = desk.search("both", hub.address, str(tmp_path), CancelToken())
    assert [each.gguf_label for each in found] == [""]
    card = desk.describe("maker/both", hub.address, str(tmp_path), CancelToken())
    assert card.variant == ""
    assert [each.name for each in card.variants] == ["Q8_0"]
    assert Path(card.outline_folder).is_dir()
    (published / "config.json").unlink()
    card = desk.describe("maker/both", hub.address, str(tmp_path), CancelToken())
    assert card.variant == "Q8_0", "what is left of the other cannot be run"


def test_describe_tells_all_models_of_a_page_and_looks_at_the_usual_one(
    desk: HubDesk, hub: FakeHub, page: Path, tmp_path: Path
) -> None:
    card = describe(desk, hub, tmp_path / "models")
    assert card.variant == "Q4_K_M"
    told = {each.name: (each.fit, each.num_files, each.is_here) for each in card.variants}
    assert told == {
        "BF16": (HubFit.FITS, 1, False),
        "Q4_K_M": (HubFit.FITS, 1, False),
        "Q8_0": (HubFit.FITS, 2, False),
        "IQ2_XS": (HubFit.NOT_RUNNABLE, 1, False),
    }
    sizes = [each.size_bytes for each in card.variants]
    assert sizes == sorted(sizes, reverse=True)
    file = page / "Tiny-A1B-Q4_K_M.gguf"
    licence_bytes = (page / "LICENSE").stat().st_size
    assert card.size_bytes == file.stat().st_size + licence_bytes
    assert card.num_files == 2
    assert card.folder == str(tmp_path / "models" / "maker" / "Tiny-A1B-GGUF@Q4_K_M")
    outline, real = inspect_folder(card.outline_folder).report, inspect_folder(str(file)).report
    assert outline.is_runnable
    assert (outline.fingerprint, outline.num_parameters) == (real.fingerprint, real.num_parameters)
    assert outline.expert_bytes == real.expert_bytes
    hub.requests.clear()
    assert describe(desk, hub, tmp_path / "models").outline_folder == card.outline_folder
    assert not hub.asked("/resolve/")


def test_outline_of_a_file_holds_its_header_and_little_more(
    desk: HubDesk, hub: FakeHub, page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cursor, "_PIECE_BYTES", 4096)
    file = page / "Tiny-A1B-Q4_K_M.gguf"
    tensors = model_tensors("qwen3_moe", "F16") | {"extra": Declared((1 << 20,))}
    tensors["extra"] = dataclasses.replace(tensors["extra"], data=b"\x01" * (4 << 20))
    write_gguf(file, model_values("qwen3_moe"), tensors)
    outline = Path(describe(desk, hub, tmp_path).outline_folder).read_bytes()
    assert len(outline) == file.stat().st_size
    assert outline[:4096] == file.read_bytes()[:4096]
    assert not any(outline[-(2 << 20) :])


def test_small_tensors_that_say_how_angles_turn_are_fetched_too(
    desk: HubDesk, hub: FakeHub, page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cursor, "_PIECE_BYTES", 4096)
    factors = b"\x00\x00\x80\x3f" * 8
    tensors = model_tensors("qwen3_moe", "F16")
    tensors["padding"] = Declared((1 << 19,))
    tensors["rope_freqs.weight"] = Declared((8,), data=factors)
    file = write_gguf(page / "Tiny-A1B-Q4_K_M.gguf", model_values("qwen3_moe"), tensors)
    outline = Path(describe(desk, hub, tmp_path).outline_folder).read_bytes()
    assert outline[-len(factors) :] == factors
    assert len(outline) == file.stat().st_size


def test_header_whose_line_breaks_is_taken_up_where_it_broke(
    desk: HubDesk, hub: FakeHub, page: Path, tmp_path: Path
) -> None:
    name = "Tiny-A1B-Q4_K_M.gguf"
    hub.faults[name] = [Fault.CUT, Fault.BUSY]
    card = describe(desk, hub, tmp_path)
    assert inspect_folder(card.outline_folder).report.is_runnable
    ranges = [each[1] for each in hub.asked(f"/cdn/{PAGE}/resolve/{COMMIT}/{name}")]
    assert len(ranges) == 3
    assert ranges[1] == ranges[2] != ranges[0]


def test_header_that_stays_away_is_told(
    desk: HubDesk, hub: FakeHub, page: Path, tmp_path: Path
) -> None:
    hub.faults["Tiny-A1B-Q4_K_M.gguf"] = [Fault.BUSY] * 9
    with pytest.raises(LarderError) as caught:
        describe(desk, hub, tmp_path)
    assert caught.value.code is ErrorCode.HUB_UNREACHABLE


def test_file_that_is_no_gguf_says_so_in_its_outline(
    desk: HubDesk, hub: FakeHub, page: Path, tmp_path: Path
) -> None:
    (page / "Tiny-A1B-Q4_K_M.gguf").write_bytes(b"<html>moved</html>" * 100)
    card = describe(desk, hub, tmp_path)
    problems = inspect_folder(card.outline_folder).report.problems
    assert [each.code for each in problems] == [ErrorCode.SHARD_INVALID]


def test_set_of_a_folder_is_downloaded_as_one_model_and_found(
    desk: HubDesk, hub: FakeHub, page: Path, tmp_path: Path
) -> None:
    root = tmp_path / "models"
    card = describe(desk, hub, root, "q8_0")
    assert (card.variant, card.num_files) == ("Q8_0", 3)
    assert Path(card.outline_folder).name == f"{SET}-00001-of-00002.gguf"
    hub.requests.clear()
    hub.faults[f"Q8_0/{SET}-00001-of-00002.gguf"] = [Fault.CUT]
    hub.faults[f"Q8_0/{SET}-00002-of-00002.gguf"] = [Fault.OTHER_BYTES]
    folder = download(desk, hub, root, "Q8_0")
    assert folder == final_folder(root, PAGE, "Q8_0")
    names = sorted(path.name for path in (page / "Q8_0").iterdir())
    assert sorted(path.name for path in folder.glob("*.gguf")) == names
    for name in names:
        assert (folder / name).read_bytes() == (page / "Q8_0" / name).read_bytes()
        assert len(hub.asked(f"/cdn/{PAGE}/resolve/{COMMIT}/Q8_0/{name}")) == 2
    assert not hub.asked("Q4_K_M")
    assert not hub.asked("mmproj")
    assert found_below(root) == [folder / names[0]]
    report = inspect_folder(str(folder)).report
    assert (report.is_runnable, report.num_shards) == (True, 2)
    here = [each.name for each in describe(desk, hub, root).variants if each.is_here]
    assert here == ["Q8_0"]


def test_two_sizes_of_a_page_lie_side_by_side(
    desk: HubDesk, hub: FakeHub, page: Path, tmp_path: Path
) -> None:
    folders = {download(desk, hub, tmp_path / "m", name) for name in ("Q8_0", "BF16")}
    assert len(folders) == 2
    assert {path.parent for path in found_below(tmp_path / "m")} == folders


def test_download_whose_files_were_deleted_comes_again(
    desk: HubDesk, hub: FakeHub, page: Path, tmp_path: Path
) -> None:
    folder = download(desk, hub, tmp_path, "Q4_K_M")
    (folder / "Tiny-A1B-Q4_K_M.gguf").unlink()
    assert download(desk, hub, tmp_path, "Q4_K_M") == folder
    assert (folder / "Tiny-A1B-Q4_K_M.gguf").is_file()
    (folder / "Tiny-A1B-Q4_K_M.gguf").unlink()
    (folder / "own.txt").write_text("mine")
    with pytest.raises(LarderError) as caught:
        download(desk, hub, tmp_path, "Q4_K_M")
    assert caught.value.code is ErrorCode.DOWNLOAD_PLACE_TAKEN
    assert (folder / "own.txt").read_text() == "mine"


def test_unfinished_size_is_kept_and_can_be_discarded(
    desk: HubDesk, hub: FakeHub, page: Path, tmp_path: Path
) -> None:
    name = "Tiny-A1B-BF16.gguf"
    hub.faults[f"BF16/{name}"] = [Fault.CUT, *[Fault.BUSY] * 8]
    with pytest.raises(LarderError) as caught:
        download(desk, hub, tmp_path, "BF16")
    assert caught.value.code is ErrorCode.HUB_UNREACHABLE
    kept = desk.kept(PAGE, str(tmp_path), "BF16")
    assert 0 < kept < (page / "BF16" / name).stat().st_size
    assert describe(desk, hub, tmp_path, "BF16").kept_bytes == kept
    assert desk.discard(PAGE, str(tmp_path), "BF16") > 0
    assert not part_folder(tmp_path, PAGE, "BF16").exists()


@pytest.mark.parametrize("name", ["Q5_K_M", "../x", "a/b"])
def test_name_that_no_model_of_the_page_has_is_told(
    desk: HubDesk, hub: FakeHub, page: Path, tmp_path: Path, name: str
) -> None:
    card = describe(desk, hub, tmp_path, name)
    assert card.problem is not None
    assert card.problem.code is ErrorCode.HUB_MODEL_UNUSABLE
    assert "Q4_K_M" in str(card.problem.parameters["reason"])
    with pytest.raises(LarderError) as caught:
        download(desk, hub, tmp_path / "models", name)
    leads_elsewhere = "/" in name
    expected = ErrorCode.SETTING_INVALID if leads_elsewhere else ErrorCode.HUB_MODEL_UNUSABLE
    assert caught.value.code is expected
    assert not (tmp_path / "models").exists()


def test_page_of_numbers_that_cannot_be_read_is_shown_all_the_same(
    desk: HubDesk, hub: FakeHub, tmp_path: Path
) -> None:
    folder = tmp_path / "odd"
    write_kind(folder / "tiny-IQ2_XS.gguf", "IQ2_XS")
    hub.add(PAGE, folder, **gguf_facts())
    (found,) = desk.search("tiny-a1b", hub.address, str(tmp_path), CancelToken())
    assert (found.fit, found.gguf_label) == (HubFit.NOT_RUNNABLE, "GGUF")
    card = describe(desk, hub, tmp_path)
    assert card.variant == "IQ2_XS"
    problems = inspect_folder(card.outline_folder).report.problems
    assert problems


def page_of(*paths: str) -> list[tuple[str, int]]:
    siblings = [{"rfilename": path, "size": 10} for path in paths]
    repo = read_repo({"sha": COMMIT, "siblings": siblings}, PAGE)
    return sorted((each.name, len(each.files)) for each in variants_of(repo))


def test_models_of_a_page_have_names_of_their_own() -> None:
    assert page_of("a-Q4_K_M.gguf", "b-Q4_K_M.gguf", "a-Q8_0.gguf") == [
        ("Q8_0", 1), ("a-Q4_K_M", 1), ("b-Q4_K_M", 1),
    ]  # fmt: skip
    assert page_of("x/a.gguf", "y/z/a.gguf", "b.gguf") == [("b", 1), ("x-a", 1), ("y-z-a", 1)]
    assert page_of("UD-Q2_K_XL/m-00001-of-00002.gguf", "UD-Q2_K_XL/m-00002-of-00002.gguf") == [
        ("UD-Q2_K_XL", 2)
    ]
    assert page_of("m-Q8_0-00001-of-00002.gguf", "../m-Q8_0-00002-of-00002.gguf") == []
    assert page_of("../m.gguf", "a/.b/m.gguf", "con/m.gguf", "mtp-m.gguf", "m.gguf.part") == []


@pytest.mark.parametrize(
    ("names", "usual"),
    [
        (["m-Q8_0.gguf", "m-Q5_K_M.gguf", "m-IQ4_XS.gguf", "m-Q4_K_M.gguf"], "Q4_K_M"),
        (["m-IQ2_M.gguf", "m-BF16.gguf", "m-Q6_K.gguf"], "Q6_K"),
        (["gpt-oss-mxfp4.gguf", "gpt-oss-F16.gguf"], "MXFP4"),
        (["m.gguf", "m-IQ1_S.gguf"], ""),
    ],
)
def test_usual_size_is_nearest_to_what_most_people_take(names: list[str], usual: str) -> None:
    assert usual_label(names) == usual
