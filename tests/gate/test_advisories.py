"""No pinned version is one that a published advisory names."""

from __future__ import annotations

import pytest
from packaging.specifiers import SpecifierSet
from packaging.version import Version

import advisories

BY_HAND = (
    ("cryptography", "<41.0.0", "GHSA-5cpq-8wj7-hf2v"),
    ("cryptography", "<41.0.3", "GHSA-jm77-qphf-c4w8"),
    ("cryptography", ">=2.5,<41.0.4", "GHSA-v8gr-m533-ghj9"),
    ("cryptography", ">=37.0.0,<43.0.1", "GHSA-h4gh-qq45-vh27"),
    ("cryptography", "<48.0.1", "GHSA-537c-gmf6-5ccf"),
)
"""Of what wheels bring along; the database of Python packages leaves that out."""


def published() -> list[tuple[str, str, str]]:
    """Package, versions affected and ids of every advisory that is known here."""
    lines = advisories.LIST.read_text(encoding="utf-8").splitlines()
    rows = [tuple(line.split("\t")) for line in lines if not line.startswith("#")]
    return [(name, versions, ids) for name, versions, ids in rows] + list(BY_HAND)


def affected(versions: dict[str, Version]) -> list[str]:
    """The advisories that name one of these versions."""
    return [
        ids
        for name, range_, ids in published()
        if name in versions and SpecifierSet(range_, prereleases=True).contains(versions[name])
    ]


def test_no_pinned_version_is_named_by_a_known_advisory() -> None:
    assert len(published()) > 150
    assert affected(advisories.pinned()) == []


def test_database_was_asked_about_every_pinned_package() -> None:
    """One that joins the pins is asked about: `.ci/advisories.py FOLDER` makes the list anew."""
    assert advisories.pinned().keys() - advisories.asked() == set()


@pytest.mark.parametrize(
    ("name", "version", "advisory"),
    [
        ("jinja2", "3.1.5", "CVE-2025-27516"),
        ("protobuf", "6.31.0", "CVE-2025-4565"),
        ("torch", "2.5.1", "CVE-2025-32434"),
        ("urllib3", "2.5.0", "CVE-2025-66471"),
        ("setuptools", "78.1.0", "CVE-2025-47273"),
        ("filelock", "3.20.2", "CVE-2026-22701"),
        ("cryptography", "48.0.0", "GHSA-537c-gmf6-5ccf"),
    ],
)
def test_version_before_the_mended_one_is_found(name: str, version: str, advisory: str) -> None:
    assert any(advisory in ids for ids in affected({name: Version(version)}))


@pytest.mark.parametrize(
    ("events", "ranges"),
    [
        ([{"introduced": "0"}, {"fixed": "2.0"}], ["<2.0"]),
        ([{"introduced": "1.5"}, {"last_affected": "2.6.0-cu124"}], [">=1.5,<=2.6.0"]),
        (
            [{"introduced": "0"}, {"fixed": "1.1"}, {"introduced": "2.0a1"}],
            ["<1.1", ">=2.0a1"],
        ),
        ([{"introduced": "0"}], [">=0"]),
        ([{"limit": "3"}], []),
    ],
)
def test_events_become_ranges(events: list[dict[str, str]], ranges: list[str]) -> None:
    assert list(advisories.ranges_of(events)) == ranges


def test_lines_are_of_our_packages_and_of_advisories_in_force() -> None:
    span = {"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "2"}]}
    commits = {"type": "GIT", "events": [{"introduced": "0"}, {"fixed": "0a1b"}]}
    advisory = {
        "id": "PYSEC-1",
        "aliases": ["GHSA-b", "CVE-a"],
        "affected": [
            {"package": {"name": "Of_Ours"}, "ranges": [commits, span], "versions": ["1", "1.5"]},
            {"package": {"name": "listed"}, "ranges": [commits], "versions": ["1", "1.5"]},
            {"package": {"name": "other"}, "ranges": [span]},
        ],
    }
    assert list(advisories.lines_of(advisory, {"of-ours", "listed"})) == [
        "of-ours\t<2\tPYSEC-1 CVE-a GHSA-b",
        "listed\t==1\tPYSEC-1 CVE-a GHSA-b",
        "listed\t==1.5\tPYSEC-1 CVE-a GHSA-b",
    ]
    assert not list(advisories.lines_of(advisory | {"withdrawn": "2026"}, {"of-ours"}))
