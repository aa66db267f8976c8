"""No pinned version is one that a published advisory names; a list kept by hand."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

CONSTRAINTS = Path(__file__).parents[2] / "constraints.txt"
ADVISORIES = (
    ("certifi", "<2024.7.4", "CVE-2024-39689"),
    ("filelock", "<3.20.1", "CVE-2025-68146"),
    ("filelock", "<3.20.3", "CVE-2026-22701"),
    ("h11", "<0.16.0", "CVE-2025-43859"),
    ("idna", "<3.7", "CVE-2024-3651"),
    ("jinja2", "<3.1.5", "CVE-2024-56201"),
    ("jinja2", "<3.1.5", "CVE-2024-56326"),
    ("jinja2", "<3.1.6", "CVE-2025-27516"),
    ("markdown-it-py", "<2.2.0", "CVE-2023-26302"),
    ("markdown-it-py", "<2.2.0", "CVE-2023-26303"),
    ("protobuf", ">=6.30,<6.31.1", "CVE-2025-4565"),
    ("protobuf", ">=5.26,<5.29.5", "CVE-2025-4565"),
    ("pydantic", ">=2,<2.4.0", "CVE-2024-3772"),
    ("pygments", "<2.15.1", "CVE-2022-40896"),
    ("requests", "<2.32.4", "CVE-2024-47081"),
    ("setuptools", "<70.0", "CVE-2024-6345"),
    ("setuptools", "<78.1.1", "CVE-2025-47273"),
    ("torch", "<2.6.0", "CVE-2025-32434"),
    ("tqdm", "<4.66.3", "CVE-2024-34062"),
    ("urllib3", "<2.5.0", "CVE-2025-50181"),
    ("urllib3", "<2.6.0", "CVE-2025-66418"),
    ("urllib3", "<2.6.0", "CVE-2025-66471"),
)
"""Package, versions affected, advisory. Written down on 2026-11-30 and not taken from a database:
what was published and is not here is not found."""


def pinned() -> dict[str, Version]:
    """The versions of constraints.txt by their packages' names."""
    lines = re.findall(r"(?m)^([\w.-]+)==(\S+)", CONSTRAINTS.read_text(encoding="utf-8"))
    return {canonicalize_name(name): Version(version) for name, version in lines}


def affected(versions: dict[str, Version]) -> list[str]:
    """The advisories that name one of these versions."""
    return [
        advisory
        for name, range_, advisory in ADVISORIES
        if versions[name] in SpecifierSet(range_, prereleases=True)
    ]


def test_no_pinned_version_is_named_by_a_known_advisory() -> None:
    assert affected(pinned()) == []


@pytest.mark.parametrize(
    ("name", "version", "advisory"),
    [("jinja2", "3.1.5", "CVE-2025-27516"), ("protobuf", "6.31.0", "CVE-2025-4565")],
)
def test_version_before_the_mended_one_is_found(name: str, version: str, advisory: str) -> None:
    assert affected({**pinned(), name: Version(version)}) == [advisory]
