"""Parts thinking and answer of texts that were kept together, as the first chats were."""

import html
from typing import NamedTuple

_OPEN_MARK = "<think>"
_CLOSE_MARK = "</think>"
_OPEN_FOLD = '<details type="reasoning"'
_CLOSE_FOLD = "</details>"


class ThoughtSplit(NamedTuple):
    """A text in its two parts, without the marks."""

    thinking: str
    answer: str


def split_thinking(text: str) -> ThoughtSplit:
    """Return the parts of a text.

    Thinking stands at the beginning, after nothing but white space. Some templates write the
    opening mark into the prompt, so that only the closing one was generated.
    """
    start = text.lstrip()
    is_marked = start.startswith(_OPEN_MARK)
    before, mark, after = (start[len(_OPEN_MARK) :] if is_marked else text).partition(_CLOSE_MARK)
    if mark and (is_marked or _OPEN_MARK not in before):
        return ThoughtSplit(before.strip(), after.lstrip())
    return ThoughtSplit(before.strip(), "") if is_marked else ThoughtSplit("", text)


def split_folds(text: str) -> ThoughtSplit:
    """Return the parts of a text whose thinking other programs keep as what folds away in a page.

    It stands quoted before the answer, in one piece or several.
    """
    thoughts: list[str] = []
    start = len(text) - len(text.lstrip())
    while text.startswith(_OPEN_FOLD, start):
        end = text.find(_CLOSE_FOLD, start)
        if end < 0:
            break
        lines = html.unescape(text[start:end].partition("</summary>")[2]).strip().split("\n")
        thoughts.append("\n".join(line.removeprefix(">").removeprefix(" ") for line in lines))
        start = end + len(_CLOSE_FOLD)
        while text[start : start + 1].isspace():
            start += 1
    return ThoughtSplit("\n\n".join(thoughts), text[start:]) if thoughts else ThoughtSplit("", text)
