"""Names a chat after its first question."""

import re

MAX_TITLE_LENGTH = 48
_MARKS = re.compile(r"[#>*_`~\[\]|]+")


def title_of(question: str) -> str:
    """Return the first words of a question, without line ends and marks of Markdown."""
    words = " ".join(_MARKS.sub(" ", question).split())
    if len(words) <= MAX_TITLE_LENGTH:
        return words or question.strip()[:MAX_TITLE_LENGTH]
    cut = words[: MAX_TITLE_LENGTH - 1]
    # Languages without spaces are cut where the room ends.
    head = cut.rpartition(" ")[0] if " " in cut[MAX_TITLE_LENGTH // 2 :] else cut
    return f"{head.rstrip(' ,.;:')}…"
