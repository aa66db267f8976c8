"""Which files the engine for graphics cards has, written down where the packages are made.

A packaged program computes on the processor; what it would fetch for a card stands in a list
inside, with addresses, sizes and checksums (`app.state.engine_folder` reads it). pip resolves it
from the source that `sources.toml` names.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from installers.description import ROOT, Description, RecipeError
from installers.marker import SOURCES
from installers.wheels import Platform, normal_name

FILE = "resources/engine.json"
_WANTED = re.compile(r"^(torch|triton|nvidia-.+|cuda-.+)$")
_INSIDE = ("nvidia-ml-py",)
_WAIT_S = 30


def write(description: Description, packages: Path, platform: Platform) -> str:
    """Write the list into a tree; return a sentence about what came of it.

    Without the source the packages are as good, but offer no engine for cards.
    """
    source = tomllib.loads(SOURCES.read_text(encoding="utf-8"))["torch"]["cuda"]["source"]
    host = urllib.parse.urlsplit(source).netloc
    try:
        listed = listed_engine(resolve(description, platform, source), host, size_of)
    except RecipeError as error:
        return f"no engine for graphics cards is offered by these packages: {error}"
    (packages / FILE).write_text(json.dumps(listed, indent=1) + "\n", encoding="utf-8")
    size = sum(part["size_bytes"] for part in listed["parts"])
    return f"{listed['name']} is offered for graphics cards, {size / 1e6:.0f} MB from {host}"


def resolve(description: Description, platform: Platform, source: str) -> Mapping[str, Any]:
    """Have pip say what it would install from a source.

    Raises:
        RecipeError: it cannot.
    """
    command = [sys.executable, "-m", "pip", "install", "-qq", "--dry-run", "--ignore-installed"]
    command += ["--report", "-", "--only-binary", ":all:", "--target", "none", "--retries", "0"]
    command += ["--timeout", str(_WAIT_S), "-i", source, "-c", str(ROOT / "constraints.txt")]
    command += ["--implementation", "cp", "--python-version", platform.python]
    for tag in platform.tags:
        command += ["--platform", tag]
    done = subprocess.run(
        [*command, *description.engine], cwd=ROOT, capture_output=True, text=True, check=False
    )
    start = done.stdout.find("{")
    if done.returncode != 0 or start < 0:
        lines = done.stderr.strip().splitlines() or ["pip says nothing"]
        raise RecipeError(f"pip could not resolve it from {source}: {lines[-1]}")
    report: Mapping[str, Any] = json.JSONDecoder().raw_decode(done.stdout[start:])[0]
    return report


def listed_engine(
    report: Mapping[str, Any], host: str, size: Callable[[str], int]
) -> dict[str, Any]:
    """Return the list of a report: torch and what it needs of the card's makers.

    Raises:
        RecipeError: it is no build for cards, or a file has no checksum.
    """
    parts, name = [], ""
    for entry in report["install"]:
        package, told = normal_name(entry["metadata"]["name"]), entry["download_info"]
        if not _WANTED.match(package) or package in _INSIDE:
            continue
        checksum = told.get("archive_info", {}).get("hashes", {}).get("sha256", "")
        file = urllib.parse.unquote(urllib.parse.urlsplit(told["url"]).path.rpartition("/")[2])
        if not checksum:
            raise RecipeError(f"{file} has no checksum at {host}.")
        if package == "torch":
            name = f"torch-{entry['metadata']['version']}".replace("+", "-")
        parts.append(
            {"file": file, "url": told["url"], "size_bytes": size(told["url"]), "sha256": checksum}
        )
    if not name or len(parts) < 2:
        raise RecipeError(f"{host} serves a torch that needs nothing of a card's makers.")
    return {"name": name, "source": host, "parts": sorted(parts, key=lambda part: part["file"])}


def size_of(url: str) -> int:
    """The size of a file, as its server tells it."""
    try:
        request = urllib.request.Request(url, method="HEAD")  # noqa: S310 - pip took it from there
        with urllib.request.urlopen(request, timeout=_WAIT_S) as answer:  # noqa: S310
            size = int(answer.headers.get("Content-Length") or 0)
    except (urllib.error.URLError, ValueError, OSError) as error:
        raise RecipeError(f"{url} does not tell its size ({error}).") from error
    if size <= 0:
        raise RecipeError(f"{url} does not tell its size.")
    return size
