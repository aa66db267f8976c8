"""The checks over the tree find what must not be there."""

from __future__ import annotations

from pathlib import Path

import pytest

import tree


def _write(root: Path, name: str, text: str) -> list[Path]:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return [path]


def test_lengths_of_a_file_over_the_limit_names_it(tmp_path: Path) -> None:
    files = _write(tmp_path, "app/long.py", "x = 1\n" * (tree.MAX_LINES + 1))
    assert tree.lengths(files, tmp_path) == [
        f"app/long.py: {tree.MAX_LINES + 1} lines; which two things is it? (limit 500)"
    ]


def test_lengths_of_a_listed_file_is_accepted_until_it_is_short(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(tree.LONG_FILES, "app/long.py", "one table")
    assert tree.lengths(_write(tmp_path, "app/long.py", "x\n" * 600), tmp_path) == []
    assert "off the list" in tree.lengths(_write(tmp_path, "app/long.py", "x\n"), tmp_path)[0]


def test_links_that_lead_nowhere_are_named_with_their_line(tmp_path: Path) -> None:
    text = "[a](there.md) [w](https://example.org)\n```\n[b](in/code.md)\n```\n[c](gone.md#x)\n"
    _write(tmp_path, "docs/there.md", "x")
    found = tree.links(_write(tmp_path, "docs/a.md", text), tmp_path)
    assert found == ["docs/a.md:5: the link to gone.md#x leads nowhere"]


@pytest.mark.parametrize(
    ("text", "is_good"),
    [
        ("## Unreleased\n\n- One can chat.\n", True),
        ("## Unreleased\n\n## 0.1.0\n\n- Old.\n", False),
        ("# Changelog\n", False),
    ],
)
def test_changelog_needs_an_unreleased_entry(tmp_path: Path, text: str, is_good: bool) -> None:
    _write(tmp_path, "CHANGELOG.md", text)
    assert (tree.changelog(tmp_path) == []) is is_good


def test_changelog_that_is_missing_is_named(tmp_path: Path) -> None:
    assert tree.changelog(tmp_path) == ["CHANGELOG.md: is missing"]


@pytest.mark.parametrize(
    ("name", "text", "what"),
    [
        ("docs/a.md", "see /ro" + "ot/thing", "a path of one machine"),
        ("docs/a.md", "see /ho" + "me/someone/thing", "a path of one machine"),
        ("Makefile", "pip --index" + "-url x", "a package source"),
        ("docs/a.md", "from py" + "pi.org", "a registry's host"),
        ("app/a.py", "# TO" + "DO later", "an unfinished place"),
        ("runtime/a.py", "    raise NotImplemented" + "Error", "an unfinished place"),
        ("tests/a.py", "    assert " + "True", "a swallowed error or an empty test"),
        ("tests/a.py", "@pytest.mark." + "skip", "a swallowed error or an empty test"),
    ],
)
def test_words_that_must_not_be_there_are_named(
    tmp_path: Path, name: str, text: str, what: str
) -> None:
    assert tree.words(_write(tmp_path, name, text), tmp_path) == [f"{name}:1: has {what}"]


def test_words_in_the_file_of_sources_are_allowed(tmp_path: Path) -> None:
    text = "find" + "-links = 'x'"
    assert tree.words(_write(tmp_path, "installers/sources.toml", text), tmp_path) == []
