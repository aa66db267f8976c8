"""Parts of sets, folders with several models, links, and what stands beside the weights."""

from pathlib import Path

import pytest

from runtime.inspect.folder import inspect_folder
from runtime.inspect.gguf import parts
from runtime.protocol.errors import ErrorCode
from tests.support.checkpoint_folders import write_checkpoint
from tests.support.gguf_files import tiny_llama, write_gguf
from tests.support.gguf_models import (
    inspected,
    model_tensors,
    model_values,
    problem,
)


def split_set(folder: Path, total: int = 3) -> list[Path]:
    """Write a model in three files: metadata in the first alone, as the splitter writes them."""
    values, tensors = tiny_llama()
    names = list(tensors)
    paths = []
    for number in range(total):
        begin, end = (len(names) * step // total for step in (number, number + 1))
        own = {"split.no": number, "split.count": total, "split.tensors.count": len(names)}
        if not number:
            own |= values
        path = folder / f"tiny-{number + 1:05d}-of-{total:05d}.gguf"
        paths.append(write_gguf(path, own, {name: tensors[name] for name in names[begin:end]}))
    return paths


def test_any_part_of_a_set_stands_for_the_model(tmp_path: Path) -> None:
    paths = split_set(tmp_path / "m")
    reports = [inspected(path).report for path in (*paths, tmp_path / "m", tmp_path)]
    assert len({each.fingerprint for each in reports}) == 1
    assert {each.folder for each in reports} == {str(paths[0])}
    assert reports[0].name == "tiny"
    assert reports[0].num_shards == 3


def test_sets_with_something_wrong_are_told(tmp_path: Path) -> None:
    paths = split_set(tmp_path / "m")
    data = paths[1].read_bytes()
    paths[1].unlink()
    missing = problem(paths[2])
    assert missing.code is ErrorCode.SHARD_MISSING
    assert missing.parameters["file"] == paths[1].name
    assert int(missing.parameters["num_tensors"]) > 3
    assert problem(tmp_path / "m").code is ErrorCode.SHARD_MISSING
    paths[1].write_bytes(data[: len(data) // 2])
    assert problem(paths[0]).code is ErrorCode.SHARD_TRUNCATED
    paths[1].write_bytes(paths[2].read_bytes())
    assert "part 3" in str(problem(paths[0]).parameters["reason"])
    paths[1].write_bytes(data)
    paths[0].rename(tmp_path / "m" / "first.gguf")
    report = inspect_folder(str(paths[1])).report
    assert report.problems[0].code is ErrorCode.SHARD_MISSING
    (tmp_path / "m" / "first.gguf").rename(tmp_path / "m" / "tiny-00001-of-00002.gguf")
    (tmp_path / "m" / "tiny-00002-of-00002.gguf").write_bytes(data)
    reason = inspect_folder(str(tmp_path / "m" / "tiny-00002-of-00002.gguf")).report.problems[0]
    assert "one of 3 parts" in str(reason.parameters["reason"])


def test_matrix_in_two_files_and_too_many_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    values, tensors = tiny_llama()
    for number in (1, 2):
        write_gguf(tmp_path / f"t-{number:05d}-of-00002.gguf", values, tensors)
    assert "is in t-00001-of-00002.gguf too" in str(
        problem(tmp_path / "t-00001-of-00002.gguf").parameters["reason"]
    )
    monkeypatch.setattr(parts, "MAX_TENSORS", 3)
    path = write_gguf(tmp_path / "one.gguf", values, tensors)
    assert "more than 3" in str(inspect_folder(str(path)).report.problems[0].parameters["reason"])


def test_absurd_number_of_parts_is_one_file(tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "m-00001-of-99999.gguf", *tiny_llama())
    assert inspected(path).report.num_shards == 1


def test_folders_with_gguf_files_are_told_apart(tmp_path: Path) -> None:
    one = write_gguf(tmp_path / "one" / "A-Q8_0.gguf", *tiny_llama())
    (tmp_path / "one" / "mmproj-A.gguf").write_bytes(b"GGUF")
    assert inspected(tmp_path / "one").report.folder == str(one)
    assert inspected(tmp_path).report.name == "A-Q8_0"
    write_gguf(tmp_path / "one" / "B.gguf", *tiny_llama())
    several = problem(tmp_path / "one")
    assert several.code is ErrorCode.SEVERAL_MODELS
    assert several.parameters["names"] == "A-Q8_0, B"
    checkpoint = write_checkpoint(tmp_path / "both")
    write_gguf(checkpoint / "C.gguf", *tiny_llama())
    assert inspected(checkpoint).report.model_type == "qwen3_moe"
    for file in checkpoint.glob("*.safetensors*"):
        file.unlink()
    assert inspected(checkpoint).report.model_type == "llama"


def test_files_by_other_names_and_links_are_found(tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "blobs" / "sha256-123", *tiny_llama())
    assert inspected(path).report.model_type == "llama"
    snapshot = tmp_path / "hub" / "models--org--tiny" / "snapshots" / "abc"
    snapshot.mkdir(parents=True)
    (snapshot / "Tiny-Q8_0.gguf").symlink_to(path)
    assert inspected(snapshot / "Tiny-Q8_0.gguf").report.name == "Tiny-Q8_0"
    assert inspected(tmp_path / "hub" / "models--org--tiny").report.name == "Tiny-Q8_0"
    assert inspected(tmp_path / "hub").report.name == "Tiny-Q8_0"
    (snapshot / "Lost.gguf").symlink_to(tmp_path / "gone")
    assert problem(snapshot).code is ErrorCode.SEVERAL_MODELS


def test_recommended_sampling_and_licence_are_read(tmp_path: Path) -> None:
    values, tensors = tiny_llama()
    values |= {
        "general.license": "mit",
        "general.sampling.temp": 0.6,
        "general.sampling.top_k": 20,
        "general.sampling.top_p": 7.0,
    }
    report = inspected(write_gguf(tmp_path / "m.gguf", values, tensors)).report
    assert report.licence == "mit"
    assert report.sampling is not None
    assert (report.sampling.temperature, report.sampling.top_k, report.sampling.top_p) == (
        0.6,
        20,
        1.0,
    )


def test_what_lies_in_a_cache_beside_snapshots_and_cannot_be_read_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshots = tmp_path / "models--org--tiny" / "snapshots"
    write_gguf(snapshots / "abc" / "Tiny.gguf", *tiny_llama())
    (snapshots / "notes").write_bytes(b"")
    assert inspected(tmp_path / "models--org--tiny").report.name == "Tiny"
    file = tmp_path / "strange"
    file.write_bytes(b"GGUF")

    def fail(path: Path, num_bytes: int) -> bytes:
        raise FileNotFoundError

    monkeypatch.setattr("runtime.inspect.gguf.places.read_start", fail)
    assert problem(file).code is ErrorCode.NOT_A_MODEL


@pytest.mark.parametrize(
    ("name", "is_model"),
    [
        ("mmproj-F16.gguf", False),
        ("tiny-mmproj-F16.gguf", False),
        ("tiny.MMPROJ.gguf", False),
        ("mtp-tiny.gguf", False),
        ("imatrix_unsloth.gguf", False),
        ("tiny-imatrix.gguf", False),
        ("tiny-imatrix-Q4_K_M.gguf", True),
        ("imatrix-tiny-Q4_K_M.gguf", True),
        ("commproject-7b.gguf", True),
    ],
)
def test_files_beside_a_model_are_none(name: str, is_model: bool) -> None:
    assert parts.is_gguf_name(name) is is_model


def test_every_model_of_a_folder_is_found_by_its_first_part_that_is_there() -> None:
    largest = [f"large-{number:05d}-of-04096.gguf" for number in range(2, 4097)]
    others = ["one.GGUF", "b-00003-of-00003.gguf", "b-00009-of-00003.gguf", "mmproj-b.gguf"]
    absurd = ["a-00001-of-99999.gguf", "a-00002-of-99999.gguf"]
    assert parts.models_among([*others, *reversed(largest), *absurd, "b.txt"]) == [
        *absurd,
        "b-00003-of-00003.gguf",
        "large-00002-of-04096.gguf",
        "one.GGUF",
    ]


def test_half_a_set_is_told_as_that_and_not_as_a_model_without_experts(tmp_path: Path) -> None:
    first = dict(list(model_tensors("qwen3_moe").items())[:2])
    values = {**model_values("qwen3_moe"), "split.no": 0, "split.count": 2}
    path = write_gguf(tmp_path / "m-00001-of-00002.gguf", values, first)
    problems = inspect_folder(str(path)).report.problems
    assert [each.code for each in problems] == [ErrorCode.SHARD_MISSING]
