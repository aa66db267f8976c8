"""Markdown as it streams in, cut into pieces that a view can draw.

The parser is markdown-it-py (CommonMark with tables and strikethrough). HTML in the source is
shown as text and images as their description, so that nothing is ever fetched.
"""

import dataclasses
import functools
import html
import re
from collections.abc import Sequence

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict

_TASK = re.compile(r"<li>(<p>)?\[([ xX])\] ")


@dataclasses.dataclass(frozen=True, slots=True)
class Prose:
    """One top-level block that flows as text, as HTML of the subset that Qt draws."""

    html: str


@dataclasses.dataclass(frozen=True, slots=True)
class Code:
    """One top-level code block, with its language as written."""

    text: str
    language: str


Block = Prose | Code


class _Renderer(RendererHTML):
    """Writes images as their description and tables with visible lines."""

    def image(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        """Return the description of an image; its file is never loaded."""
        token = tokens[idx]
        text = self.renderInlineAsText(token.children or [], options, env)
        address = html.escape(str(token.attrGet("src") or ""))
        return f'<a href="{address}">{html.escape(text) or address}</a>'

    def table_open(
        self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType
    ) -> str:
        """Return a table whose cells Qt separates by the lines of the style sheet."""
        return '<table cellspacing="0">'


@functools.cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False}, renderer_cls=_Renderer)
    return parser.enable(["table", "strikethrough"])


def _render(tokens: Sequence[Token]) -> Block:
    parser = _parser()
    first = tokens[0]
    if first.type in ("fence", "code_block"):
        return Code(first.content.removesuffix("\n"), first.info.strip().split(" ")[0])
    text = parser.renderer.render(tokens, parser.options, {})
    return Prose(_TASK.sub(_task_item, text))


def _task_item(match: re.Match[str]) -> str:
    box = "☐" if match.group(2) == " " else "☑"
    return f"<li>{match.group(1) or ''}{box} "


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


class MarkdownStream:
    """Markdown that grows at its end.

    A block is *settled* when another one has begun after it; settled blocks never change again, so
    that each update costs only the last block's length.
    """

    def __init__(self) -> None:
        self._tail = ""

    @property
    def tail(self) -> str:
        """The source of the open block."""
        return self._tail

    def append(self, text: str) -> tuple[list[Block], Block | None]:
        """Take more source; return the blocks that are settled now, and the open one at the end."""
        self._tail += text
        parser = _parser()
        blocks = _top_level(parser.parse(self._tail))
        if not blocks:
            return [], None
        settled = [_render(block) for block in blocks[:-1]]
        start = blocks[-1][0].map
        if settled and start:
            lines = self._tail.split("\n")
            self._tail = "\n".join(lines[start[0] :])
        return settled, _render(blocks[-1])


def blocks_of(text: str) -> list[Block]:
    """Return all blocks of a finished text."""
    settled, last = MarkdownStream().append(text)
    return [*settled, last] if last else settled
