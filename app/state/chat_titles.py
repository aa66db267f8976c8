"""Names a chat after its first question."""

import re

MAX_TITLE_LENGTH = 48
_MAX_READ = 1000
_MARKS = re.compile(r"[#>*_`~\[\]|]+")


def title_of(question: str) -> str:
    """Return the first words of a question, without line ends and marks of Markdown."""
    words = " ".join(_MARKS.sub(" ", question[:_MAX_READ]).split())
    if len(words) <= MAX_TITLE_LENGTH:
        return words or question.strip()[:MAX_TITLE_LENGTH]
    # With one character more a word that ends exactly there is seen to be whole.
    head = words[:MAX_TITLE_LENGTH].rpartition(" ")[0]
    if len(head) < MAX_TITLE_LENGTH // 2:
        # Languages without spaces are cut where the room ends.
        head = words[: MAX_TITLE_LENGTH - 1]
    return f"{head.rstrip(' ,.;:')}…"
