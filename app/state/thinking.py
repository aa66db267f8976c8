"""Parts thinking and answer of texts that were kept together, as the first chats were."""

from typing import NamedTuple

_OPEN_MARK = "<think>"
_CLOSE_MARK = "</think>"


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
