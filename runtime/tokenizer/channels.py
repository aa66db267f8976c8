"""Thinking and answer in channels of their own, as gpt-oss writes them."""

import re

from runtime.tokenizer.markers import Marker, MarkerScanner
from runtime.tokenizer.separation import Parted, Trimmer, joined

START, CHANNEL, MESSAGE, END = "<|start|>", "<|channel|>", "<|message|>", "<|end|>"
CHANNEL_MARKS = (START, CHANNEL, MESSAGE, END, "<|constrain|>", "<|return|>", "<|call|>")
_FINAL = "final"
_MAX_ADDRESS = 80
_MAX_HEADER = 200
"""A longer header is none: the model left out the marker behind it."""
_ADDRESS = re.compile(r"\s*(t(o(=\S*)?)?)?\s*")
"""What a model may write before the first marker: whom it speaks to."""


class ChannelSeparator:
    """Parts messages by the channel in their header; ``final`` is the answer.

        <|channel|>analysis<|message|> ... <|end|><|start|>assistant<|channel|>final<|message|> ...
        `------- header ------------'      `----------------- header ------------------------'

    Everything in another channel is thinking, a call of a tool too: nobody waits for one. Text
    that comes without any header is the answer.
    """

    def __init__(self) -> None:
        self._scanner = MarkerScanner(CHANNEL_MARKS)
        self._header: str | None = None
        """The header that is being read; None inside of a message."""
        self._unmarked: str | None = ""
        """What came before the first marker and may be an address; None behind it."""
        self._is_final = True
        self._thinking = Trimmer()
        self._gap = ""
        """Goes before the next text of the answer."""
        self._has_answer = False

    @property
    def is_thinking(self) -> bool:
        """Whether the text that comes next is thinking."""
        return not self._is_final

    def feed(self, piece: str) -> Parted:
        """Take the next piece and return what became certain."""
        taken: list[Parted] = []
        for part in self._scanner.feed(piece):
            if isinstance(part, Marker):
                self._take_marker(part)
            else:
                taken.append(self._take(part))
        return joined(taken)

    def finish(self) -> Parted:
        """Return what was held back; no more text comes."""
        rest = self._scanner.finish()
        # More than one character is a marker in which the text breaks off.
        parted = self._take(rest) if len(rest) < 2 else Parted()
        held, self._unmarked = self._unmarked, None
        return parted + Parted(answer=held or "")

    def _take(self, text: str) -> Parted:
        if self._header is not None:
            return self._take_header(text)
        if self._unmarked is not None:
            text = self._unmarked + text
            if len(text) < _MAX_ADDRESS and _ADDRESS.fullmatch(text):
                self._unmarked = text
                return Parted()
            self._unmarked = None
        return self._take_message(text)

    def _take_header(self, text: str) -> Parted:
        header = (self._header or "") + text
        self._header = header
        if len(header) < _MAX_HEADER:
            return Parted()
        self._begin_message(header[:_MAX_HEADER])
        words = header[:_MAX_HEADER].rpartition(CHANNEL)[2].split(maxsplit=1)
        return self._take_message("".join(words[1:]) + header[_MAX_HEADER:])

    def _take_message(self, text: str) -> Parted:
        if not self._is_final:
            return Parted(thinking=self._thinking.feed(text))
        if not text:
            return Parted()
        gap, self._gap = self._gap, ""
        self._has_answer = True
        return Parted(answer=gap + text)

    def _take_marker(self, marker: str) -> None:
        self._unmarked = None
        if marker == START:
            self._header = ""
        elif marker == CHANNEL:
            self._header = (self._header or "") + CHANNEL
        elif marker == MESSAGE and self._header is not None:
            self._begin_message(self._header)

    def _begin_message(self, header: str) -> None:
        """Choose where a message goes; one whose header names no channel is the answer."""
        self._header = None
        self._is_final = CHANNEL not in header or header.rpartition(CHANNEL)[2].split()[:1] == [
            _FINAL
        ]
        if self._is_final:
            self._gap = "\n\n" if self._has_answer else ""
        else:
            self._thinking = self._thinking.next()
