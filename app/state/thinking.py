"""Parts the thinking of a model from its answer."""

import dataclasses

OPEN_MARK = "<think>"
CLOSE_MARK = "</think>"


@dataclasses.dataclass(frozen=True, slots=True)
class ThoughtSplit:
    """A text in its two parts, without the marks."""

    thinking: str
    answer: str
    is_open: bool
    """The thinking has not ended (yet)."""


def split_thinking(text: str, *, is_growing: bool = False) -> ThoughtSplit:
    """Return the parts of a text.

    Thinking stands at the beginning, after nothing but white space. Some templates write the
    opening mark into the prompt, so that only the closing one is generated. While a text grows,
    an end that may become a mark is held back, so that no part of a mark is ever shown.
    """
    start = text.lstrip()
    if is_growing and start and OPEN_MARK.startswith(start) and start != OPEN_MARK:
        return ThoughtSplit("", "", is_open=False)
    is_marked = start.startswith(OPEN_MARK)
    before, mark, after = (start[len(OPEN_MARK) :] if is_marked else text).partition(CLOSE_MARK)
    if mark and (is_marked or OPEN_MARK not in before):
        return ThoughtSplit(before.strip(), after.lstrip(), is_open=False)
    whole = before + mark + after
    shown = whole[: len(whole) - _started_mark(whole)] if is_growing else whole
    if is_marked:
        return ThoughtSplit(shown.strip(), "", is_open=True)
    return ThoughtSplit("", shown, is_open=False)


def _started_mark(text: str) -> int:
    """Return how many characters at the end of a text may be the beginning of a closing mark."""
    sizes = range(min(len(text), len(CLOSE_MARK) - 1), 0, -1)
    return next((size for size in sizes if text.endswith(CLOSE_MARK[:size])), 0)
