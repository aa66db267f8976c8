"""Thinking between a pair of tags before the answer, as most families write it."""

from runtime.tokenizer.markers import Marker, MarkerScanner
from runtime.tokenizer.separation import Parted, Trimmer, joined

THINKING_TAGS = {
    "<think>": "</think>",
    "<seed:think>": "</seed:think>",
    "[THINK]": "[/THINK]",
    "◁think▷": "◁/think▷",
    "<|channel>thought": "<channel|>",
}
"""What opens and what closes the thinking, in the families that are known."""
ANSWER_TAGS = {"<response>": "</response>"}
"""What some of them write around the answer after the thinking."""
TAGS = (*THINKING_TAGS, *THINKING_TAGS.values(), *ANSWER_TAGS, *ANSWER_TAGS.values())
_CLOSING = frozenset(THINKING_TAGS.values())


class TagSeparator:
    """Parts thinking that stands between tags at the beginning.

        {[space] <think> thinking </think>} [space] [<response>] answer [</response>]

    ``opened_by`` is the tag with which the prompt ended, if it did. Behind the beginning of the
    answer tags are words, as in an answer about tags; only a closing tag that nothing opened is
    dropped there. So is a tag with which the text breaks off.
    """

    def __init__(self, opened_by: str = "") -> None:
        self._scanner = MarkerScanner(TAGS)
        self._closing = THINKING_TAGS.get(opened_by, "")
        """The tag that ends the thinking; empty where the text is not thinking."""
        self._thinking = Trimmer()
        self._answer_closing = ""
        self._space = ""
        """White space at the beginning, kept until it is known what follows."""
        self._keeps_space = True
        """Whether that white space belongs to the answer: no tag came before."""
        self._has_begun = False
        """Whether the answer has words."""
        self._num_open = 0
        """Opening tags among the words of the answer that were not closed there."""

    @property
    def is_thinking(self) -> bool:
        """Whether the text that comes next is thinking."""
        return bool(self._closing)

    def feed(self, piece: str) -> Parted:
        """Take the next piece and return what became certain."""
        return joined(
            [
                self._take_marker(part) if isinstance(part, Marker) else self._take(part)
                for part in self._scanner.feed(piece)
            ]
        )

    def finish(self) -> Parted:
        """Return what was held back; no more text comes."""
        held = self._scanner.finish()
        is_first = self._keeps_space and not self._has_begun
        is_tag = self._closing.startswith(held) if self._closing else is_first
        parted = Parted() if is_tag and len(held) > 1 else self._take(held)
        space = self._space if self._keeps_space and not self._has_begun else ""
        self._space = ""
        return parted + Parted(answer=space)

    def _take(self, text: str) -> Parted:
        """Take words."""
        if self._closing:
            return Parted(thinking=self._thinking.feed(text))
        if self._has_begun:
            return Parted(answer=text)
        core = text.lstrip()
        self._space += text[: len(text) - len(core)]
        if not core:
            return Parted()
        self._has_begun = True
        return Parted(answer=(self._space if self._keeps_space else "") + core)

    def _take_marker(self, marker: str) -> Parted:
        if self._closing:
            return self._take_in_thinking(marker)
        if not self._has_begun:
            return self._take_at_beginning(marker)
        return self._take_in_answer(marker)

    def _take_in_thinking(self, marker: str) -> Parted:
        if marker == self._closing:
            self._closing = ""
            self._begin_answer()
            return Parted()
        if self._thinking.is_empty and THINKING_TAGS.get(marker) == self._closing:
            return Parted()  # the prompt opened it, and the model once more
        return self._take(marker)

    def _take_at_beginning(self, marker: str) -> Parted:
        if marker in THINKING_TAGS:
            self._closing = THINKING_TAGS[marker]
            self._thinking = self._thinking.next()
            self._begin_answer()
            return Parted()
        if marker in _CLOSING:
            self._begin_answer()
            return Parted()
        if marker in ANSWER_TAGS and not self._keeps_space:
            self._answer_closing = ANSWER_TAGS[marker]
            self._begin_answer()
            return Parted()
        return self._take_as_words(marker)

    def _take_in_answer(self, marker: str) -> Parted:
        if marker == self._answer_closing:
            self._answer_closing = ""
            return Parted()
        if marker in _CLOSING and not self._num_open:
            return Parted()
        return self._take_as_words(marker)

    def _take_as_words(self, marker: str) -> Parted:
        """Take a tag that the answer speaks of."""
        if marker in THINKING_TAGS:
            self._num_open += 1
        elif marker in _CLOSING:
            self._num_open -= 1
        return self._take(marker)

    def _begin_answer(self) -> None:
        """A tag ends here: white space behind it belongs to nothing."""
        self._space = ""
        self._keeps_space = False
