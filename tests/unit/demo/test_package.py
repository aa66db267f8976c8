"""Tests of fetching and checking the package, without any network."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

import pytest

from resources.demo import package
from resources.demo.failure import DemoBuildError

CONTENT = b"a package"
SHA256 = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture(name="requirements")
def _requirements(tmp_path: Path) -> Path:
    path = tmp_path / "requirements.txt"
    path.write_text(f"# pinned\nsome-package==1.0 --hash=sha256:{SHA256}\n", "utf-8")
    return path


def _pip(
    monkeypatch: pytest.MonkeyPatch, *, content: bytes | None, stderr: str = ""
) -> list[list[str]]:
    """Put a stand-in for pip in place; returns the commands it was given."""
    commands: list[list[str]] = []

    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        commands.append(command)
        if content is not None:
            folder = Path(command[command.index("--dest") + 1])
            (folder / "some_package-1.0-py3-none-any.whl").write_bytes(content)
        return subprocess.CompletedProcess(command, 0 if content is not None else 1, "", stderr)

    monkeypatch.setattr(subprocess, "run", run)
    return commands


def test_wanted_sha256_reads_the_pinned_hash(requirements: Path) -> None:
    assert package.wanted_sha256(requirements) == SHA256


def test_wanted_sha256_without_a_hash_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "requirements.txt"
    path.write_text("some-package==1.0\n", "utf-8")
    with pytest.raises(DemoBuildError, match="exactly one hash"):
        package.wanted_sha256(path)


def test_check_sha256_of_other_content_names_both_hashes(tmp_path: Path) -> None:
    path = tmp_path / "x.whl"
    path.write_bytes(b"something else")
    with pytest.raises(DemoBuildError, match=f"wanted {SHA256[:12]}"):
        package.check_sha256(path, SHA256)


def test_check_sha256_of_a_missing_file_says_so(tmp_path: Path) -> None:
    with pytest.raises(DemoBuildError, match="cannot be read: No such file"):
        package.check_sha256(tmp_path / "x.whl", SHA256)


def test_fetch_package_asks_pip_once_and_then_uses_the_cache(
    requirements: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands = _pip(monkeypatch, content=CONTENT)
    first = package.fetch_package(requirements, tmp_path / "cache")
    second = package.fetch_package(requirements, tmp_path / "cache")
    assert first == second
    assert first.read_bytes() == CONTENT
    assert len(commands) == 1
    assert {"--no-deps", "--require-hashes"} <= set(commands[0])


def test_fetch_package_replaces_a_damaged_file_in_the_cache(
    requirements: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "cache"
    cache.mkdir()
    (cache / "some_package-1.0-py3-none-any.whl").write_bytes(b"half a pack")
    _pip(monkeypatch, content=CONTENT)
    assert package.fetch_package(requirements, cache).read_bytes() == CONTENT


def test_fetch_package_with_other_content_leaves_nothing_in_the_cache(
    requirements: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _pip(monkeypatch, content=b"not what was pinned")
    with pytest.raises(DemoBuildError, match="not the pinned one"):
        package.fetch_package(requirements, tmp_path / "cache")
    assert list((tmp_path / "cache").iterdir()) == []


@pytest.mark.parametrize(
    ("stderr", "said"),
    [
        ("ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE FILE", "SHA-256 differs"),
        ("OSError: [Errno 28] No space left on device", "disk is full"),
        ("/usr/bin/python3: No module named pip", "has no pip"),
        ("WARNING: Retrying\nERROR: No matching distribution found", "check the network"),
        ("", "no reason given"),
    ],
)
def test_fetch_package_when_pip_fails_says_why_in_one_line(
    requirements: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stderr: str, said: str
) -> None:
    _pip(monkeypatch, content=None, stderr=stderr)
    with pytest.raises(DemoBuildError, match=said) as caught:
        package.fetch_package(requirements, tmp_path / "cache")
    assert "\n" not in str(caught.value)
