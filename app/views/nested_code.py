"""Code inside of a list or quote: HTML with its language, a word that copies it, and colours."""

import functools
import hashlib
import html
import re

from app.text.view_words import CodeWords
from app.theme.palette import Palette
from app.views.code_spans import Span, highlight_spans

_SCHEME = "copy-code:"
_MARK_CHARACTERS = 16
MAX_COLOURED_CHARACTERS = 6000
"""A longer block stays plain: a list that grows is written anew with each word."""
MAX_KEPT = 128
"""Blocks whose colours are kept while the list around them grows."""
_KINDS = ("code_keyword", "code_string", "code_number", "code_comment", "code_name")
_TAG = re.compile(r"<[^>]+>")


def nested_code(text: str, language: str, *, is_closed: bool) -> str:
    """Return the HTML of a block; it is coloured once it is closed."""
    is_coloured = is_closed and len(text) <= MAX_COLOURED_CHARACTERS
    shown = _coloured(text, language) if is_coloured else html.escape(text).replace("\n", "<br/>")
    copy = f'<a href="{_address(text)}">{html.escape(str(CodeWords.COPY))}</a>'
    return (
        '<table class="code" width="100%" cellspacing="0"><tr>'
        f'<td class="code">{html.escape(language)}</td><td class="code" align="right">{copy}</td>'
        f'</tr><tr><td class="code" colspan="2"><pre>{shown}</pre></td></tr></table>'
    )


def code_behind(address: str, page: str) -> str | None:
    """Return the code that the link in a page copies; None where it is another kind of link."""
    if not address.startswith(_SCHEME):
        return None
    link = page.find(f'<a href="{html.escape(address)}">')
    start, end = page.find("<pre>", link), page.find("</pre>", link)
    if min(link, start, end) < 0:
        return None
    return html.unescape(_TAG.sub("", page[start:end].replace("<br/>", "\n")))


def nested_style(palette: Palette) -> str:
    """Return the part of a style sheet that these blocks need, in the subset that Qt draws."""
    colours = "".join(f".{kind} {{ color: {getattr(palette, kind)}; }}\n" for kind in _KINDS)
    return f"""
.code {{ background-color: {palette.code}; margin: 2px 0 8px 0; }}
td.code {{ border: 0; padding: 2px 10px 2px 10px; }}
pre {{ margin: 0; line-height: 100%; white-space: pre-wrap; }}
{colours}"""


def _address(text: str) -> str:
    mark = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return _SCHEME + mark[:_MARK_CHARACTERS]


@functools.lru_cache(MAX_KEPT)
def _coloured(text: str, language: str) -> str:
    lines = highlight_spans(text, language)
    return "<br/>".join(
        _coloured_line(line, lines[number] if number < len(lines) else [])
        for number, line in enumerate(text.split("\n"))
    )


def _coloured_line(line: str, spans: list[Span]) -> str:
    pieces, done = [], 0
    for start, length, kind in spans:
        pieces.append(html.escape(line[done:start]))
        done = start + length
        pieces.append(f'<span class="{kind}">{html.escape(line[start:done])}</span>')
    return "".join([*pieces, html.escape(line[done:])])
