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


def split_thinking(text: str) -> ThoughtSplit:
    """Return the parts of a text, which may still be growing."""
    return ThoughtSplit("", text, is_open=False)
