"""Code inside of lists and quotes has its language, its colours and a word that copies it."""

import re

import pytest

from app.theme.palette import DARK, LIGHT
from app.views.markdown import MarkdownStream, Prose, blocks_of
from app.views.nested_code import (
    MAX_COLOURED_CHARACTERS,
    code_behind,
    nested_code,
    nested_style,
)

CODE = 'import os\n\nif 1 < 2:\n    print("a & b")  # <pre>'
INDENTED = CODE.replace("\n", "\n   ")


def address_in(page: str) -> str:
    found = re.search(r'href="([^"]+)"', page)
    assert found is not None
    return found[1]


def html_of(source: str) -> str:
    (block,) = blocks_of(source)
    assert isinstance(block, Prose)
    return block.html


@pytest.mark.parametrize(
    "source",
    [
        f"1. Do:\n\n   ```python\n   {INDENTED}\n   ```\n\n   then go on",
        "> ~~~~python\n> " + CODE.replace("\n", "\n> ") + "\n> ~~~~",
    ],
)
def test_code_in_a_list_or_quote_is_coloured_and_can_be_copied(source: str) -> None:
    page = html_of(source)
    assert '<span class="code_keyword">import</span>' in page
    assert '<td class="code">python</td>' in page
    assert code_behind(address_in(page), page) == CODE


def test_indented_code_in_a_list_can_be_copied() -> None:
    page = html_of("- a\n\n      x = 1\n        y < 2")
    assert code_behind(address_in(page), page) == "x = 1\n  y < 2"


def test_code_is_coloured_once_its_end_is_there() -> None:
    stream = MarkdownStream()
    _, last = stream.append("- ```python\n  import os\n")
    assert isinstance(last, Prose)
    assert "code_keyword" not in last.html
    assert "import os" in last.html
    _, last = stream.append("  ```")
    assert isinstance(last, Prose)
    assert "code_keyword" in last.html


def test_code_after_other_blocks_is_known_to_have_its_end() -> None:
    blocks = blocks_of("one\n\ntwo\n\n- ```python\n  import os\n  ```\n- b\n\nend")
    assert any(isinstance(block, Prose) and "code_keyword" in block.html for block in blocks)


def test_long_code_in_a_list_stays_plain() -> None:
    long = "import os\n" * (MAX_COLOURED_CHARACTERS // 10 + 1)
    page = nested_code(long, "python", is_closed=True)
    assert "<span" not in page
    assert code_behind(address_in(page), page) == long


def test_of_several_blocks_the_one_of_the_link_is_copied() -> None:
    page = html_of("- ```\n  one\n  ```\n- ```\n  two\n  ```")
    links = re.findall(r'href="([^"]+)"', page)
    assert [code_behind(link, page) for link in links] == ["one", "two"]


@pytest.mark.parametrize("address", ["https://example.org", "copy-code:0", 'copy-code:"><pre>'])
def test_other_links_copy_nothing(address: str) -> None:
    assert code_behind(address, html_of("- ```\n  one\n  ```")) is None


def test_markup_in_a_language_is_text() -> None:
    assert "<b>" not in nested_code("x", "<b>", is_closed=True)


def test_colours_are_those_of_the_palette() -> None:
    assert LIGHT.code_keyword in nested_style(LIGHT)
    assert DARK.code_keyword in nested_style(DARK)
