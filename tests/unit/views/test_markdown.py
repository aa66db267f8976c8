"""Markdown that streams in gives the same blocks as Markdown that is there at once."""

import itertools
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.views.markdown import (
    MAX_BAR_LEVEL,
    MAX_GROUP_CELLS,
    MAX_GROUP_ITEMS,
    MAX_GROUP_LINES,
    Block,
    Code,
    MarkdownStream,
    Prose,
    Table,
    blocks_of,
)

SAMPLE = """# Title

A *first* paragraph
in two lines.

- one
- two

  more of two

```python
print("a")

print("b")
```

| a | b |
|---|---|
| 1 | 2 |

> quoted

    indented code

the end"""

LONG_LIST = "".join(f"- item {number}\n" for number in range(100)) + "\nthe end"
LONG_NUMBERS = "5. item\n" + "1. item\n" * (2 * MAX_GROUP_ITEMS + 19) + "\nthe end"
LONG_ITEMS = "".join(
    f"{number}. item\n\n   ```\n" + "   line\n" * 10 + "   ```\n\n" for number in range(1, 20)
)
LONG_TABLE = (
    "| a | b |\n|--:|---|\n"
    + "".join(f"| {number} | *{number}* |\n" for number in range(130))
    + "\nthe end"
)


def streamed(pieces: list[str]) -> list[Block]:
    stream = MarkdownStream()
    settled: list[Block] = []
    last: Block | None = None
    for piece in pieces:
        new, last = stream.append(piece)
        settled += new
    return [*settled, last] if last else settled


def cut_up(text: str, cuts: list[int]) -> list[str]:
    borders = [0, *sorted({cut for cut in cuts if cut < len(text)}), len(text)]
    return [text[a:b] for a, b in itertools.pairwise(borders)]


@given(st.lists(st.integers(1, len(SAMPLE) - 1), max_size=40))
def test_stream_in_any_pieces_gives_the_same_blocks(cuts: list[int]) -> None:
    assert streamed(cut_up(SAMPLE, cuts)) == blocks_of(SAMPLE)


@pytest.mark.parametrize("text", [LONG_LIST, LONG_NUMBERS, LONG_ITEMS, LONG_TABLE])
@given(cuts=st.lists(st.integers(1, 4000), max_size=40))
@settings(max_examples=25, deadline=None)
def test_stream_of_long_block_in_any_pieces_gives_the_same_groups(
    text: str, cuts: list[int]
) -> None:
    assert streamed(cut_up(text, cuts)) == blocks_of(text)


def test_blocks_of_long_list_are_groups_that_keep_their_numbers() -> None:
    first, second, third, end = blocks_of(LONG_NUMBERS)
    assert isinstance(first, Prose)
    assert isinstance(second, Prose)
    assert isinstance(third, Prose)
    assert first.html.startswith('<ol start="5">')
    assert second.html.startswith(f'<ol start="{5 + MAX_GROUP_ITEMS}">')
    assert third.html.startswith(f'<ol start="{5 + 2 * MAX_GROUP_ITEMS}">')
    assert third.html.count("<li>") == 20
    assert end == Prose("<p>the end</p>\n")


def test_blocks_of_list_of_long_items_are_groups_by_their_lines() -> None:
    blocks = [block for block in blocks_of(LONG_ITEMS) if isinstance(block, Prose)]
    counts = [block.html.count("<li>") for block in blocks]
    assert sum(counts) == 19
    assert max(counts) <= MAX_GROUP_LINES // 10
    assert blocks[1].html.startswith(f'<ol start="{counts[0] + 1}">')


def test_blocks_of_long_table_are_groups_with_all_rows_in_order() -> None:
    *groups, end = blocks_of(LONG_TABLE)
    tables = [group for group in groups if isinstance(group, Table)]
    assert len(tables) == len(groups) > 2
    assert [table.is_continued for table in tables] == [False] + [True] * (len(tables) - 1)
    rows = [row for table in tables for row in table.rows]
    assert rows == [(f"{number}", f"<em>{number}</em>") for number in range(130)]
    assert max(len(table.rows) * 2 for table in tables) <= MAX_GROUP_CELLS
    assert {table.aligns for table in tables} == {("right", "")}
    assert end == Prose("<p>the end</p>\n")


def test_stream_of_long_table_keeps_only_its_last_rows() -> None:
    stream = MarkdownStream()
    stream.append("| a | b |\n|--:|---|\n")
    for number in range(1000):
        stream.append(f"| {number} | x |\n")
    assert len(stream.tail) < 1000


@pytest.mark.parametrize("depth", [5, 20, 31, 32, 33, 500])
def test_blocks_of_deep_quotes_show_their_text(depth: int) -> None:
    (block,) = blocks_of(">" * depth + " the <deep> text")
    assert isinstance(block, Prose)
    assert "the &lt;deep&gt; text" in block.html


@pytest.mark.parametrize("depth", [9, 10, 11, 16, 17, 60])
def test_blocks_of_deep_list_show_every_item(depth: int) -> None:
    blocks = blocks_of("\n".join("  " * level + f"- item{level}." for level in range(depth)))
    text = "".join(block.html for block in blocks if isinstance(block, Prose))
    assert all(f"item{level}." in text for level in range(depth))


def test_blocks_of_sample_has_each_kind() -> None:
    blocks = blocks_of(SAMPLE)
    assert [type(block) for block in blocks] == [
        Prose, Prose, Prose, Code, Table, Prose, Code, Prose,
    ]  # fmt: skip
    assert blocks[3] == Code('print("a")\n\nprint("b")', "python")
    assert blocks[4] == Table(("a", "b"), (("1", "2"),), ("", ""))


def test_blocks_of_html_shows_it_as_text() -> None:
    (block,) = blocks_of("a <script>alert(1)</script> b")
    assert isinstance(block, Prose)
    assert "<script>" not in block.html
    assert "&lt;script&gt;" in block.html


def test_blocks_of_image_never_loads_it() -> None:
    (block,) = blocks_of('![a "cat"](http://example.org/cat.png)')
    assert isinstance(block, Prose)
    assert "<img" not in block.html
    assert "http://example.org/cat.png" in block.html
    assert "cat" in block.html


def test_blocks_of_task_list_shows_boxes() -> None:
    (block,) = blocks_of("- [ ] open\n- [x] done")
    assert isinstance(block, Prose)
    assert "☐ open" in block.html
    assert "☑ done" in block.html


def test_stream_of_long_text_keeps_only_the_open_block() -> None:
    stream = MarkdownStream()
    num_settled = 0
    for number in range(300):
        settled, _ = stream.append(f"paragraph {number} " * 5 + "\n\n")
        num_settled += len(settled)
    assert num_settled == 299
    assert len(stream.tail) < 200


def test_stream_of_unclosed_fence_is_one_open_code_block() -> None:
    settled, last = MarkdownStream().append("text\n\n```c\nint a;\n")
    assert len(settled) == 1
    assert last == Code("int a;", "c")


def test_blocks_of_nothing_is_empty() -> None:
    assert blocks_of("") == []
    assert blocks_of("\n\n") == []


def test_mark_for_a_new_line_in_a_cell_is_one() -> None:
    (table,) = blocks_of("| a |\n|---|\n| one<br>two<BR />`<br>` <b> |")
    assert isinstance(table, Table)
    assert table.rows == (("one<br/>two<br/><code>&lt;br&gt;</code> &lt;b&gt;",),)


def test_quotes_have_a_bar_each_and_very_deep_ones_none() -> None:
    (two,) = blocks_of("> one\n>\n> > two")
    assert isinstance(two, Prose)
    assert two.html.count('<td class="bar"') == two.html.count("</table>") == 2
    (deep,) = blocks_of("> " * 10 + "deep")
    assert isinstance(deep, Prose)
    num_bars = deep.html.count('<td class="bar"')
    assert num_bars == deep.html.count("</table>") == MAX_BAR_LEVEL
    assert deep.html.count("<blockquote>") == deep.html.count("</blockquote>") == 10 - num_bars


@pytest.mark.parametrize(
    ("text", "links"),
    [
        ("See https://example.com/a_b?x=1.", ["https://example.com/a_b?x=1"]),
        (
            "(http://a.example/x) and mailto:a@b.example",
            ["http://a.example/x", "mailto:a@b.example"],
        ),
        ("- https://a.example\n- b", ["https://a.example"]),
        (
            "[name](https://a.example) <https://b.example>",
            ["https://a.example", "https://b.example"],
        ),
        ("main.py README.md www.example.com a@b.example 10.0.0.1 ftp://a.example //a.example", []),
        ("`https://a.example` and $https://b.example$", []),
        ("看https://a.example/x。然后", ["https://a.example/x"]),
        (
            "（https://a.example/x）和https://b.example，或 http://c.example/y：好",
            ["https://a.example/x", "https://b.example", "http://c.example/y"],
        ),
        ("https://a.example/y，https://b.example", ["https://a.example/y", "https://b.example"]),
        ("javascript:alert(1) file:///etc/passwd data:text/html,x", []),
    ],
)
def test_bare_addresses_of_the_web_are_links_and_names_of_files_are_not(
    text: str, links: list[str]
) -> None:
    html = "".join(block.html for block in streamed([text]) if isinstance(block, Prose))
    assert re.findall(r'<a href="([^"]*)"', html) == links
