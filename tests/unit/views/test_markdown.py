"""Markdown that streams in gives the same blocks as Markdown that is there at once."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from app.views.markdown import Block, Code, MarkdownStream, Prose, blocks_of

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


def streamed(pieces: list[str]) -> list[Block]:
    stream = MarkdownStream()
    settled: list[Block] = []
    last: Block | None = None
    for piece in pieces:
        new, last = stream.append(piece)
        settled += new
    return [*settled, last] if last else settled


@given(st.lists(st.integers(1, len(SAMPLE) - 1), max_size=40))
def test_stream_in_any_pieces_gives_the_same_blocks(cuts: list[int]) -> None:
    borders = [0, *sorted(set(cuts)), len(SAMPLE)]
    pieces = [SAMPLE[a:b] for a, b in itertools.pairwise(borders)]
    assert streamed(pieces) == blocks_of(SAMPLE)


def test_blocks_of_sample_has_each_kind() -> None:
    blocks = blocks_of(SAMPLE)
    assert [type(block) for block in blocks] == [
        Prose, Prose, Prose, Code, Prose, Prose, Code, Prose,
    ]  # fmt: skip
    assert blocks[3] == Code('print("a")\n\nprint("b")', "python")
    assert isinstance(blocks[4], Prose)
    assert "<td>1</td>" in blocks[4].html


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
