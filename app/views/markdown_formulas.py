r"""Formulas in Markdown: ``$x$``, ``$$x$$``, ``\(x\)``, ``\[x\]`` and environments of LaTeX."""

from collections.abc import Sequence

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from mdit_py_plugins.amsmath import amsmath_plugin
from mdit_py_plugins.dollarmath import dollarmath_plugin

from app.views.formula_text import mark_of

_LINE_KINDS = ("math_inline",)
_BLOCK_KINDS = ("math_inline_double", "math_block", "amsmath")
_BRACKETS = {"(": (")", "math_inline"), "[": ("]", "math_inline_double")}


def with_formulas(parser: MarkdownIt) -> MarkdownIt:
    """Return a parser that knows formulas; prices such as $5 are none."""
    parser.use(
        dollarmath_plugin,
        allow_labels=False,
        allow_space=False,
        allow_digits=False,
        double_inline=True,
    )
    parser.use(amsmath_plugin)
    parser.inline.ruler.before("escape", "math_brackets", _bracket_inline)
    parser.block.ruler.before(
        "paragraph", "math_brackets", _bracket_block, {"alt": ["paragraph", "blockquote", "list"]}
    )
    for kind in _LINE_KINDS:
        parser.add_render_rule(kind, _line)
    for kind in _BLOCK_KINDS:
        parser.add_render_rule(kind, _block)
    return parser


def _bracket_inline(state: StateInline, silent: bool) -> bool:
    r"""Take ``\(x\)`` or ``\[x\]`` within one paragraph."""
    start = state.pos
    found = _BRACKETS.get(state.src[start + 1 : start + 2]) if state.src[start] == "\\" else None
    if found is None:
        return False
    closing, kind = found
    end = state.src.find("\\" + closing, start + 2, state.posMax)
    if end < 0 or not state.src[start + 2 : end].strip():
        return False
    if not silent:
        token = state.push(kind, "math", 0)
        token.content = state.src[start + 2 : end]
    state.pos = end + 2
    return True


def _bracket_block(state: StateBlock, start_line: int, end_line: int, silent: bool) -> bool:
    r"""Take a block from ``\[`` at the beginning of a line to ``\]`` at the end of one."""
    if state.is_code_block(start_line):
        return False
    start = state.bMarks[start_line] + state.tShift[start_line]
    # Without the second look a text of many beginnings is searched to its end from each of them.
    if not state.src.startswith("\\[", start) or state.src.find("\\]", start) < 0:
        return False
    for line in range(start_line, end_line):
        if state.sCount[line] < state.blkIndent:
            return False
        if state.src[state.bMarks[line] : state.eMarks[line]].rstrip().endswith("\\]"):
            break
    else:
        return False
    if silent:
        return True
    text = state.getLines(start_line, line + 1, state.blkIndent, False).strip()
    token = state.push("math_block", "math", 0)
    token.block = True
    token.content = text[2:-2]
    token.map = [start_line, line + 1]
    state.line = line + 1
    return True


def _line(_renderer: object, tokens: Sequence[Token], index: int, *_: object) -> str:
    return mark_of(tokens[index].content, is_block=False)


def _block(_renderer: object, tokens: Sequence[Token], index: int, *_: object) -> str:
    token = tokens[index]
    mark = mark_of(token.content, is_block=True)
    return mark if token.type == "math_inline_double" else f'<p align="center">{mark}</p>'
