"""What recipes write down for the program's own upkeep, and what its launcher does with it."""

from __future__ import annotations

import dataclasses
import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from app.state.engine_folder import EngineList
from app.state.package import read_package
from installers import description, engine, marker, versions, wheels
from installers.linux import folder
from runtime.engine.base import CancelToken
from runtime.hub.updates import LIST, SIGNATURE, UpdateDesk
from tests.support.fake_hub import fake_hub

UPDATES = '[updates]\nsource = "%s"\nkey = "%s"\n'


def test_packaged_program_knows_where_it_lies_and_where_newer_versions_are(tmp_path: Path) -> None:
    sources, packages = tmp_path / "sources.toml", tmp_path / "tree" / "python" / "packages"
    sources.write_text(UPDATES % ("https://v.example/larder", "AAAA"))
    marker.write(tmp_path / "tree", packages, "linux", sources)
    found = read_package({}, packages / marker.FILE)
    assert found is not None
    assert found.place == (tmp_path / "tree").resolve()
    assert (found.address, found.key, found.can_look) == ("https://v.example/larder", "AAAA", True)


@pytest.mark.parametrize(("source", "key"), [("https://v.example", ""), ("", "AAAA")])
def test_address_without_a_key_stops_the_recipe(tmp_path: Path, source: str, key: str) -> None:
    sources = tmp_path / "sources.toml"
    sources.write_text(UPDATES % (source, key))
    with pytest.raises(description.RecipeError, match="each needs the other"):
        marker.write(tmp_path, tmp_path, "linux", sources)


def test_list_of_versions_is_signed_so_that_the_program_believes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    dist, secret, notes = tmp_path / "site", tmp_path / "secret.pem", tmp_path / "notes.txt"
    dist.mkdir()
    notes.write_text("More models.\n")
    assert versions.main(["--new-key", str(secret)]) == 0
    key = capsys.readouterr().out.strip()
    assert secret.stat().st_mode & 0o077 == 0
    arguments = [str(dist), "--notes", str(notes), "--key", str(secret)]
    assert versions.main(arguments) == 1
    assert "has no package of" in capsys.readouterr().err
    name = versions.packages(description.read())["linux-appimage"]
    (dist / name).write_bytes(b"program")
    (dist / "SHA256SUMS").write_text("of another system's packages\n")
    assert versions.main(arguments) == 0
    told = dict(line.split()[::-1] for line in (dist / "SHA256SUMS").read_text().splitlines())
    assert told.keys() == {name, LIST, SIGNATURE}
    assert told[name] == hashlib.sha256(b"program").hexdigest()
    with fake_hub(monkeypatch) as site:
        site.files = dist
        desk, address = UpdateDesk(), f"{site.address}/updates"
        found = desk.check(address, key, "0.0.1", "linux-appimage", CancelToken())
    assert found is not None
    assert (found.version, found.file) == (description.read().version, name)
    assert found.notes == "More models."


def test_version_that_no_program_could_compare_is_not_published(tmp_path: Path) -> None:
    odd = dataclasses.replace(description.read(), version="0.2.0rc1")
    with pytest.raises(description.RecipeError, match="rc1 cannot be compared"):
        versions.write(odd, tmp_path, tmp_path / "notes.txt", tmp_path / "key")


def test_key_of_another_kind_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "key").write_text("no key")
    assert versions.main([str(tmp_path), "--notes", "x", "--key", str(tmp_path / "key")]) == 1
    assert "make one by --new-key" in capsys.readouterr().err


@pytest.mark.skipif(sys.platform != "linux", reason="made and started on Linux alone")
class TestNewerFolder:
    """What the launcher does with a version that was unpacked beside it."""

    @pytest.fixture(name="place")
    def _place(self, tmp_path: Path) -> Path:
        """A program of one script, and a newer one."""
        if shutil.which("gcc") is None:
            pytest.skip("gcc is not installed here")
        place = tmp_path / "мой larder"
        for tree, word in ((place, "old"), (place.with_name("мой larder.new"), "new")):
            python = tree / "python" / "bin" / "python3.11"
            python.parent.mkdir(parents=True)
            python.write_text(f"#!/bin/sh\necho {word}\nexit ${{STATUS:-0}}\n")
            python.chmod(0o755)
            folder.compile_launcher(tree)
        return place

    @staticmethod
    def start(place: Path) -> str:
        done = subprocess.run([place / "larder"], capture_output=True, text=True, check=True)
        return done.stdout.strip()

    def test_whole_one_takes_the_place_when_the_program_ends_and_the_old_one_is_kept(
        self, place: Path
    ) -> None:
        (place.with_name("мой larder.new") / ".ready").touch()
        assert self.start(place) == "old"
        assert self.start(place) == "new"
        kept = place.with_name("мой larder.previous")
        assert "old" in (kept / "python" / "bin" / "python3.11").read_text()
        assert not place.with_name("мой larder.new").exists()
        assert not (place / ".ready").exists()

    def test_half_a_one_is_left_alone(self, place: Path) -> None:
        assert [self.start(place) for _ in range(2)] == ["old", "old"]


def told_package(name: str, version: str = "13.0", **facts: object) -> dict[str, object]:
    """A package in pip's report of what it would install."""
    url = f"https://w.example/whl/{name}-{version.replace('+', '%2B')}-py3-none-any.whl"
    info = {"url": url, "archive_info": {"hashes": {"sha256": "a" * 64}}} | facts
    return {"metadata": {"name": name, "version": version}, "download_info": info}


def test_engine_for_cards_is_torch_and_what_it_needs_of_their_makers() -> None:
    names = ("nvidia_cublas", "cuda-bindings", "triton", "sympy", "nvidia-ml-py")
    packages = [told_package("torch", "2.13.0+cu130"), *(told_package(name) for name in names)]
    listed = engine.listed_engine({"install": packages}, "w.example", lambda _url: 7)
    assert listed["name"] == "torch-2.13.0-cu130"
    assert [part["file"].partition("-13")[0] for part in listed["parts"]] == [
        "cuda-bindings", "nvidia_cublas", "torch-2.13.0+cu130-py3-none-any.whl", "triton",
    ]  # fmt: skip
    found = msgspec.convert(listed, EngineList)
    assert found.size_bytes == 28
    assert found.parts[0].sha256 == "a" * 64


def test_torch_for_the_processor_is_no_engine_for_cards() -> None:
    report = {"install": [told_package("torch", "2.13.0+cpu"), told_package("sympy")]}
    with pytest.raises(description.RecipeError, match="needs nothing of a card's makers"):
        engine.listed_engine(report, "w.example", lambda _url: 7)


def test_file_without_a_checksum_is_never_offered() -> None:
    report = {"install": [told_package("torch", "2.13.0+cu130", archive_info={})]}
    with pytest.raises(description.RecipeError, match="has no checksum"):
        engine.listed_engine(report, "w.example", lambda _url: 7)


def test_packages_are_made_without_the_engines_source_and_say_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise description.RecipeError("no network")

    monkeypatch.setattr(engine, "resolve", refuse)
    told = engine.write(description.read(), tmp_path, wheels.LINUX)
    assert told.startswith("no engine for graphics cards is offered by these packages: no network")
    assert list(tmp_path.glob("resources/*")) == []
