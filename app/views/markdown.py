"""Markdown as it streams in, cut into pieces that a view can draw.

The parser is markdown-it-py (CommonMark with tables, strikethrough, bare addresses and formulas).
HTML in the source is shown as text and images as their description, so that nothing is ever
fetched.
"""

import dataclasses
import functools
import html
import itertools
import re
from collections.abc import Sequence

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict

from app.views.bare_links import BareLinks
from app.views.markdown_formulas import with_formulas
from app.views.nested_code import nested_code

MAX_NESTING = 32
"""Quotes and lists within each other; what is deeper is shown as it was written."""
MAX_GROUP_ITEMS = 40
MAX_GROUP_LINES = 60
MAX_GROUP_CELLS = 100
"""A list or table settles in groups of about this size, so that an update costs no more."""

MAX_BAR_LEVEL = 2
"""Quotes that are deeper within others have no bar: tables within tables are slow to lay out."""
_QUOTE_BEGIN = (
    '<table class="quote" width="100%" cellspacing="0"><tr><td class="bar" width="3"></td>'
    '<td class="quote">'
)
_TASK = re.compile(r"<li>(<p>)?\[([ xX])\] ")
_NEW_LINE = re.compile(r"&lt;br ?/?&gt;", re.IGNORECASE)
_LISTS = ("bullet_list_open", "ordered_list_open")


@dataclasses.dataclass(frozen=True, slots=True)
class Prose:
    """One top-level block that flows as text, as HTML of the subset that Qt draws."""

    html: str


@dataclasses.dataclass(frozen=True, slots=True)
class Code:
    """One top-level code block, with its language as written."""

    text: str
    language: str


@dataclasses.dataclass(frozen=True, slots=True)
class Table:
    """Some rows of a table, each cell as HTML."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    aligns: tuple[str, ...]
    """``left``, ``right``, ``center`` or nothing, for each column."""
    is_continued: bool = False
    """The rows belong to the table before."""


Block = Prose | Code | Table


class _Renderer(RendererHTML):
    """Writes images as their description and tables with visible lines."""

    def image(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        """Return the description of an image; its file is never loaded."""
        token = tokens[idx]
        text = self.renderInlineAsText(token.children or [], options, env)
        address = html.escape(str(token.attrGet("src") or ""))
        return f'<a href="{address}">{html.escape(text) or address}</a>'

    def text(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        """Return text; the mark for a new line, which cells cannot have otherwise, is one."""
        return _NEW_LINE.sub("<br/>", html.escape(tokens[idx].content))

    def fence(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        """Return code inside of another block."""
        token = tokens[idx]
        text, language = token.content.removesuffix("\n"), token.info.strip().split(" ")[0]
        return nested_code(text, language, is_closed="is_open" not in token.meta)

    def code_block(
        self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType
    ) -> str:
        """Return indented code inside of another block."""
        return self.fence(tokens, idx, options, env)

    def blockquote_open(
        self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType
    ) -> str:
        """Begin a quote, with a bar at its side."""
        return _QUOTE_BEGIN if tokens[idx].level < MAX_BAR_LEVEL else "<blockquote>"

    def blockquote_close(
        self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType
    ) -> str:
        """End a quote."""
        return "</td></tr></table>" if tokens[idx].level < MAX_BAR_LEVEL else "</blockquote>"

    def table_open(
        self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType
    ) -> str:
        """Return a table inside of another block, whose cells the style sheet parts by lines."""
        return '<table cellspacing="0">'


@functools.cache
def _parser() -> MarkdownIt:
    options = {"html": False, "linkify": True, "maxNesting": MAX_NESTING}
    parser = MarkdownIt("commonmark", options, renderer_cls=_Renderer)
    parser.linkify = BareLinks()
    return with_formulas(parser.enable(["table", "strikethrough", "linkify"]))


def _html(tokens: Sequence[Token]) -> str:
    parser = _parser()
    text: str = parser.renderer.render(tokens, parser.options, {})
    return text


def _is_too_deep(tokens: Sequence[Token]) -> bool:
    """Whether the parser has left out what is inside of the innermost containers."""
    return any(
        token.level >= MAX_NESTING - 1
        for token in tokens
        if token.type in ("blockquote_open", "list_item_open")
    )


def _render(tokens: Sequence[Token], source: str, *, is_continued: bool = False) -> Block:
    """Return the block that these tokens make; ``source`` is how it was written."""
    first = tokens[0]
    if first.type in ("fence", "code_block"):
        return Code(first.content.removesuffix("\n"), first.info.strip().split(" ")[0])
    if first.type == "table_open":
        return _table(tokens, is_continued=is_continued)
    if _is_too_deep(tokens):
        lines = "<br/>".join(html.escape(line) for line in source.split("\n"))
        return Prose(f'<p style="white-space: pre-wrap">{lines}</p>')
    _mark_open_code(tokens, source)
    return Prose(_TASK.sub(_task_item, _html(tokens)))


def _mark_open_code(tokens: Sequence[Token], source: str) -> None:
    """Mark code whose end is not there yet."""
    first_line = (tokens[0].map or [0])[0]
    lines = source.split("\n")
    for token in tokens:
        if token.type == "fence" and token.map:
            last = lines[min(token.map[1] - first_line, len(lines)) - 1].rstrip()
            if token.map[1] - token.map[0] < 2 or not last.endswith(token.markup):
                token.meta["is_open"] = True


def _task_item(match: re.Match[str]) -> str:
    box = "☐" if match.group(2) == " " else "☑"
    return f"<li>{match.group(1) or ''}{box} "


def _table(tokens: Sequence[Token], *, is_continued: bool) -> Table:
    rows: list[list[str]] = []
    aligns: list[str] = []
    for index, token in enumerate(tokens):
        if token.type == "tr_open":
            rows.append([])
        elif token.type in ("th_open", "td_open"):
            rows[-1].append(_html([tokens[index + 1]]))
            if token.type == "th_open":
                aligns.append(str(token.attrGet("style") or "").removeprefix("text-align:"))
    head, *body = (tuple(row) for row in rows)
    return Table(head, tuple(body), tuple(aligns), is_continued)


def _top_level(tokens: Sequence[Token]) -> list[list[Token]]:
    """Split a token stream into its top-level blocks."""
    blocks: list[list[Token]] = []
    depth = 0
    for token in tokens:
        if depth == 0:
            blocks.append([])
        blocks[-1].append(token)
        depth += token.nesting
    return blocks


def _cuts(block: Sequence[Token]) -> list[int]:
    """Return the lines at which a long list or table is parted; none if it is not long."""
    kind = block[0].type
    if kind in _LISTS:
        items = [each for each in block if each.type == "list_item_open" and each.level == 1]
        return _item_cuts([each.map[0] for each in items if each.map])
    if kind == "table_open":
        parts = [each for each in block if each.type == "tr_open"][1:]
        num_columns = sum(each.type == "th_open" for each in block)
        size = max(1, MAX_GROUP_CELLS // max(1, num_columns))
    else:
        return []
    return [each.map[0] for each in parts[size::size] if each.map]


def _item_cuts(starts: Sequence[int]) -> list[int]:
    """Return those of the first lines of items at which a new group begins."""
    cuts: list[int] = []
    first_line, num_items = starts[0], 0
    for line in starts:
        if num_items == MAX_GROUP_ITEMS or line - first_line >= MAX_GROUP_LINES:
            cuts.append(line)
            first_line, num_items = line, 0
        num_items += 1
    return cuts


class MarkdownStream:
    """Markdown that grows at its end.

    A block is *settled* when another one has begun after it; settled blocks never change again, so
    that each update costs only the last block's length. A long list or table settles in groups: the
    rest is read as a block of its own, which is marked as continued.
    """

    def __init__(self) -> None:
        self._tail = ""
        self._is_continued = False
        self._next_number = 0
        """Of the item with which a parted list goes on; 0 if it has no numbers."""

    @property
    def tail(self) -> str:
        """The source of the open block."""
        return self._tail

    def append(self, text: str) -> tuple[list[Block], Block | None]:
        """Take more source; return the blocks that are settled now, and the open one at the end."""
        self._tail += text
        blocks = _top_level(_parser().parse(self._tail))
        lines = self._tail.split("\n")
        settled: list[Block] = []
        last: Block | None = None
        for number, block in enumerate(blocks, start=1):
            is_open = number == len(blocks)
            start, end = block[0].map or (0, len(lines))
            source, groups = _parted(block, lines, start, len(lines) if is_open else end)
            for group in groups:
                settled.append(self._render(_first_block(group), group))
                self._is_continued = True
            last = self._render(_first_block(source) if groups else block, source, is_open=is_open)
            if is_open:
                self._tail = source
            else:
                settled.append(last)
                self._is_continued = False
                self._next_number = 0
        return settled, last

    def _render(self, block: Sequence[Token], source: str, *, is_open: bool = False) -> Block:
        first = block[0]
        if first.type == "ordered_list_open":
            if self._next_number:
                first.attrSet("start", self._next_number)
            if not is_open:
                num_items = sum(each.type == "list_item_open" for each in block if each.level == 1)
                self._next_number = int(first.attrGet("start") or 1) + num_items
        return _render(block, source, is_continued=self._is_continued)


def _first_block(source: str) -> list[Token]:
    return _top_level(_parser().parse(source))[0]


def _parted(
    block: Sequence[Token], lines: Sequence[str], start: int, end: int
) -> tuple[str, list[str]]:
    """Return the source of a block's last group, and those of the groups before.

    Rows of a table take its head along, without which they are none.
    """
    cuts = _cuts(block)
    head = lines[start : start + 2] if block[0].type == "table_open" else []
    borders = [start, *cuts, end]
    sources = [
        "\n".join([*(head if first > start else []), *lines[first:last]])
        for first, last in itertools.pairwise(borders)
    ]
    return sources[-1], sources[:-1]


def blocks_of(text: str) -> list[Block]:
    """Return all blocks of a finished text."""
    settled, last = MarkdownStream().append(text)
    return [*settled, last] if last else settled
